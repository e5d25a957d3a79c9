"""Machines and the quotas of their namespace: what does not fit waits, and starts by itself once there is room."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.client.errors import QuotaExceeded
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES
from paddock.server.housekeeping.quotas import QuotaController
from tests.coroutines import played
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import CORE, VMIS, Host

QUOTAS = f"{CORE}/resourcequotas"


async def quota(host: Host, name: str = "q", scope: dict[str, Any] | None = None, **hard: str) -> QuotaController:
    bounds = {key.replace("__", "/").replace("_", "."): amount for key, amount in hard.items()}
    body = {"metadata": {"name": name}, "spec": {"hard": bounds, **({"scopeSelector": scope} if scope else {})}}
    await host.post(QUOTAS, body)
    keeper = QuotaController(host.api.parts)
    keeper.start()
    await asyncio.sleep(0.1)
    return keeper


async def used(host: Host, name: str = "q") -> dict[str, str]:
    return dict((await host.api.get(f"{QUOTAS}/{name}")).data["status"]["used"])


def cores(count: int) -> dict[str, Any]:
    return {"domain": {"cpu": {"cores": count}}}


@pytest.mark.spec("kubevirt", 192)
@pytest.mark.spec("kubevirt", 193)
@played
async def test_a_machine_beyond_the_quota_waits_and_starts_when_there_is_room(host: Host, /) -> None:
    keeper = await quota(host, requests_cpu__vmi="2")
    for name in ("a", "b"):
        await host.running(name)
    await host.make("c")
    await asyncio.sleep(1)
    status = await host.status("c")
    assert status["phase"] == "Pending" and "nodeName" not in status and "activePods" not in status
    assert (await host.conditions("c"))["Synchronized"] == ("False", "FailedCreate")
    (said,) = (each["message"] for each in status["conditions"] if each["type"] == "Synchronized")
    assert said.startswith('failed to create virtual machine pod: pods "virt-launcher-c-')
    assert said.endswith(
        "is forbidden: exceeded quota: q, requested: requests.cpu/vmi=1, used: requests.cpu/vmi=2, limited: requests.cpu/vmi=2"
    )
    assert (await host.api.get("/api/v1/namespaces/default/pods")).data["items"] == [] or len(host.engine.machines.living()) == 2
    assert [reason for reason, note in await host.events("c") if note.startswith("Error creating pod: pods ")] == ["FailedCreate"]
    await host.api.delete(f"{VMIS}/a")
    await asyncio.sleep(5)
    assert (await host.status("c"))["phase"] == "Running"
    assert (await used(host))["requests.cpu/vmi"] == "2"
    await host.api.delete(f"{VMIS}/b")
    await host.api.delete(f"{VMIS}/c")
    await asyncio.sleep(5)
    assert (await used(host))["requests.cpu/vmi"] == "0"
    await keeper.chores.stop()


@pytest.mark.spec("kubevirt", 192)
@played
async def test_a_waiting_machine_is_written_once_and_takes_no_network(host: Host, /) -> None:
    keeper = await quota(host, requests_instances__vmi="0")
    made = await host.make("a")
    await asyncio.sleep(1)
    before = (await host.get("a"))["metadata"]["resourceVersion"]
    await asyncio.sleep(120)
    assert (await host.get("a"))["metadata"]["resourceVersion"] == before
    assert host.engine.machines.get(made["metadata"]["uid"]) is None
    await host.api.merge(f"{QUOTAS}/q", {"spec": {"hard": {"requests.instances/vmi": "1"}}})
    await asyncio.sleep(2)
    assert (await host.status("a"))["phase"] == "Running"
    await keeper.chores.stop()


@pytest.mark.spec("kubevirt", 193)
@played
async def test_a_storm_starts_exactly_what_fits(host: Host, /) -> None:
    keeper = await quota(host, requests_cpu__vmi="10", requests_memory__vmi="4Gi")
    await asyncio.gather(*(host.make(f"m{each:03}", **cores(1 + each % 3)) for each in range(120)))
    await asyncio.sleep(30)
    running = list(host.engine.machines.living().values())
    vcpus = sum(config.cpu.sockets * config.cpu.cores * config.cpu.threads for config in running)
    assert vcpus == 10 and (await used(host))["requests.cpu/vmi"] == "10"
    for each in range(120):
        await host.api.delete(f"{VMIS}/m{each:03}")
        if each % 40 == 0:
            await asyncio.sleep(4)
            now = host.engine.machines.living().values()
            assert sum(config.cpu.sockets * config.cpu.cores * config.cpu.threads for config in now) <= 10
    await asyncio.sleep(10)
    assert set((await used(host)).values()) == {"0"} and not host.engine.machines.living()
    await keeper.chores.stop()


@pytest.mark.spec("kubevirt", 193)
@played
async def test_a_machine_keeps_its_place_over_a_kill(host: Host, /) -> None:
    keeper = await quota(host, requests_instances__vmi="2")
    for name in ("a", "b", "c", "d"):
        await host.make(name)
    await host.again()
    await asyncio.sleep(5)
    assert len(host.engine.machines.living()) == 2 and (await used(host))["requests.instances/vmi"] == "2"
    await host.again()
    await asyncio.sleep(40)
    assert len(host.engine.machines.living()) == 2
    await keeper.chores.stop()


@pytest.mark.spec("kubevirt", 194)
@played
async def test_a_machine_does_not_grow_beyond_the_quota(host: Host, /) -> None:
    keeper = await quota(host, requests_cpu__vmi="3", requests_memory__vmi="1536Mi")
    await host.running("a", domain={"cpu": {"sockets": 2, "maxSockets": 8}, "memory": {"guest": "1Gi", "maxGuest": "4Gi"}})
    client, key = host.api.client(), Key("default", "a")
    for change, said in (
        ({"cpu": {"sockets": 4}}, "requested: requests.cpu/vmi=2, used: requests.cpu/vmi=2, limited: requests.cpu/vmi=3"),
        (
            {"memory": {"guest": "2Gi"}},
            "requested: requests.memory/vmi=1Gi, used: requests.memory/vmi=1Gi, limited: requests.memory/vmi=1536Mi",
        ),
    ):
        with pytest.raises(QuotaExceeded) as refused:
            await client.patch(INSTANCES, key, merge_patch({"spec": {"domain": change}}))
        assert str(refused.value).startswith('pods "virt-launcher-a-') and str(refused.value).endswith(said)
        (user,) = refused.value.users
        assert user.startswith("virtualmachineinstances.kubevirt.io/a uses requests.")
    await client.patch(INSTANCES, key, merge_patch({"spec": {"domain": {"cpu": {"sockets": 3}}}}))
    await asyncio.sleep(1)
    assert (await used(host))["requests.cpu/vmi"] == "3"
    await keeper.chores.stop()


@pytest.mark.spec("kubevirt", 195)
@played
async def test_scopes_choose_machines_by_their_priority_class(host: Host, /) -> None:
    await host.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 10})
    scope = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    keeper = await quota(host, "high", scope, pods="1")
    await host.running("free")
    await host.running("first", priorityClassName="high")
    await host.make("second", priorityClassName="high")
    await asyncio.sleep(1)
    assert (await host.conditions("second"))["Synchronized"] == ("False", "FailedCreate")
    assert await used(host, "high") == {"pods": "1"}
    await keeper.chores.stop()


@pytest.mark.spec("kubevirt", 196)
@played
async def test_a_limit_range_bounds_the_container_of_a_machine(host: Host, /) -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "64Mi"}}
    await host.post(f"{CORE}/limitranges", {"metadata": {"name": "sizes"}, "spec": {"limits": [item]}})
    await asyncio.sleep(0.1)
    # Without a limit of its own the container gets the largest that it may have.
    await host.running("small", **cores(8))
    await host.make("large", domain={"resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}})
    await asyncio.sleep(1)
    (said,) = (each["message"] for each in (await host.status("large"))["conditions"] if each["type"] == "Synchronized")
    assert said.endswith("is forbidden: maximum cpu usage per Container is 2, but limit is 3")
    await host.api.delete(f"{CORE}/limitranges/sizes")
    await asyncio.sleep(2)
    assert (await host.status("large"))["phase"] == "Running"


@pytest.mark.spec("kubevirt", 192)
@played
async def test_a_machine_that_waits_for_a_host_needs_its_place_all_the_same(host: Host, /) -> None:
    keeper = await quota(host, pods="0")
    await host.make("a", nodeSelector={"kubernetes.io/hostname": "elsewhere"})
    await asyncio.sleep(2)
    assert (await host.conditions("a"))["Synchronized"] == ("False", "FailedCreate")
    assert (await host.status("a"))["phase"] == "Pending" and await used(host) == {"pods": "0"}
    await host.api.merge(f"{QUOTAS}/q", {"spec": {"hard": {"pods": "1"}}})
    await asyncio.sleep(5)
    assert (await host.conditions("a"))["PodScheduled"] == ("False", "Unschedulable")
    assert (await host.status("a"))["phase"] == "Scheduling" and await used(host) == {"pods": "1"}
    await keeper.chores.stop()

"""Quotas on a whole host: machines of every dialect, all at once, from every side."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import GIB, Data, FakeHost, machine
from tests.scenario.fronts.kubermatic.making import pool
from tests.scenario.fronts.stakater.stage import Stage, front
from tests.scenario.fronts.virtrigaud import test_ownserver as rigaud
from tests.scenario.fronts.vitistack.conftest import machine as vitistack

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
INSTANCES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
# after so many looks, while starts and ends are under way
_KILLS = (0, 1, 3, 6)
POOLS = "/apis/kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"


async def bound(host: FakeHost, **hard: str) -> None:
    """A quota of the namespace; `requests_cpu__vmi` is `requests.cpu/vmi`."""
    host.house.quotas.start()
    named = {key.replace("__", "/").replace("_", "."): amount for key, amount in hard.items()}
    reply = await host.api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": named}})
    assert reply.status == 201, reply.data
    await asyncio.sleep(1)


async def used(host: FakeHost) -> dict[str, str]:
    return dict((await host.api.get(f"{QUOTAS}/q")).data["status"]["used"])


def vcpus(host: FakeHost) -> int:
    """Return the processors that guests have now."""
    return sum(each.cpu.sockets * each.cpu.cores * each.cpu.threads for each in host.engine.machines.living().values())


async def documents(host: FakeHost, count: int) -> list[tuple[str, Data]]:
    """The requests that make so many machines of each dialect."""
    stage = await Stage(host).open()
    host.engine.images.offer(rigaud.IMAGE)
    await rigaud.Stage(host).make(*rigaud.WORLD)
    found: list[tuple[str, Data]] = []
    for number in range(count):
        name = f"k{number:03}"
        found.append((MACHINES, machine(name, volumes=[])))
        found.append((stage.path(), front(f"s{number:03}")))
        found.append(("/apis/vitistack.io/v1alpha1/namespaces/default/machines", vitistack(f"v{number:03}")))
        rigauds = {**rigaud.MACHINE, "metadata": {"name": f"r{number:03}"}}
        found.append((f"/apis/{rigaud.API}/namespaces/default/virtualmachines", rigauds))
    flat = pool(count, disks=False)
    return [*found, (POOLS, {**flat, "metadata": {"name": "pool"}})]


@pytest.mark.spec("kubevirt", 193)
@pytest.mark.parametrize("is_killed", [False, True], ids=["steady", "killed"])
@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.soak)])
@played
async def test_of_a_storm_of_five_dialects_exactly_what_fits_runs(host: FakeHost, /, count: int, is_killed: bool) -> None:
    wanted = await documents(host, count)
    await bound(host, requests_cpu__vmi="10")
    replies = await asyncio.gather(*(host.api.post(path, body) for path, body in wanted))
    assert {each.status for each in replies} == {201}
    most = 0
    for wave in range(60):
        await asyncio.sleep(5)
        most = max(most, vcpus(host))
        if is_killed and wave in _KILLS:
            await host.again()
    assert (most, vcpus(host), (await used(host))["requests.cpu/vmi"]) == (10, 10, "10")
    for path, body in wanted:
        await host.api.delete(f"{path}/{body['metadata']['name']}")
    for wave in range(120):
        if is_killed and wave in _KILLS:
            await host.again()
        await asyncio.sleep(5)
        assert vcpus(host) <= 10
        if not host.engine.machines.living() and not (await host.api.get(INSTANCES)).data["items"]:
            break
    await asyncio.sleep(5)
    assert (await used(host), vcpus(host)) == ({"requests.cpu/vmi": "0"}, 0)


@pytest.mark.spec("kubevirt", 193)
@played
async def test_kills_in_a_storm_neither_lose_nor_give_a_place(host: FakeHost, /) -> None:
    await bound(host, requests_cpu__vmi="4")
    for wave in range(6):
        made = [host.api.post(MACHINES, machine(f"m{wave}{each}", volumes=[])) for each in range(5)]
        await asyncio.gather(*made)
        await asyncio.sleep(0.05 * wave)
        await host.again()
        assert vcpus(host) <= 4
    await asyncio.sleep(60)
    assert (vcpus(host), (await used(host))["requests.cpu/vmi"]) == (4, "4")
    for wave in range(6):
        await asyncio.gather(*(host.api.delete(f"{MACHINES}/m{wave}{each}") for each in range(5)))
        await host.again()
        assert vcpus(host) <= 4
    await asyncio.sleep(60)
    assert (vcpus(host), await used(host)) == (0, {"requests.cpu/vmi": "0"})


@pytest.mark.spec("kubevirt", 194)
@played
async def test_a_machine_grows_when_the_quota_lets_it(host: FakeHost, /) -> None:
    await bound(host, requests_cpu__vmi="3", requests_memory__vmi="2Gi")
    domain = {"cpu": {"sockets": 2, "maxSockets": 8}, "memory": {"guest": "1Gi", "maxGuest": "4Gi"}}
    await host.make(machine(domain=domain, volumes=[]))
    ran = await host.running()
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 4}}}}}})
    await asyncio.sleep(5)
    failure = next(each for each in (await host.vm())["status"]["conditions"] if each["type"] == "Failure")
    assert "exceeded quota: q, requested: requests.cpu/vmi=2, used: requests.cpu/vmi=2" in failure["message"]
    assert (ran.observed.sockets, vcpus(host)) in ((2, 2), (None, 2))
    await host.api.merge(f"{QUOTAS}/q", {"spec": {"hard": {"requests.cpu/vmi": "4"}}})
    await asyncio.sleep(20)
    assert (await host.running()).observed.sockets == 4
    assert (await used(host))["requests.cpu/vmi"] == "4"
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "3Gi"}}}}}})
    await asyncio.sleep(20)
    assert ran.observed.memory in (None, 0, GIB) and (await used(host))["requests.memory/vmi"] == "1Gi"


SNAPSHOTS, CLONES = "snapshot.kubevirt.io/v1beta1", "clone.kubevirt.io/v1beta1"
DISK = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "6Gi"}}}}}


@pytest.mark.spec("kube-api", 168)
@played
async def test_restores_and_clones_do_not_exceed_the_quota_of_storage(host: FakeHost, /) -> None:
    await host.make(machine(volumes=[{"name": "root", "dataVolume": {"name": "root"}}], templates=[DISK]))
    await host.running(seconds=30)
    await bound(host, requests_storage="10Gi")
    before = await used(host)
    snapshot = {"apiVersion": SNAPSHOTS, "kind": "VirtualMachineSnapshot", "metadata": {"name": "s"}}
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    base = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default"
    assert (await host.api.post(f"{base}/virtualmachinesnapshots", {**snapshot, "spec": {"source": source}})).status == 201
    clones = "/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones"
    for number in range(4):
        target = {**source, "name": f"copy{number}"}
        body = {
            "apiVersion": CLONES,
            "kind": "VirtualMachineClone",
            "metadata": {"name": f"c{number}"},
            "spec": {"source": source, "target": target},
        }
        assert (await host.api.post(clones, body)).status == 201
    restored = {"target": {**source, "name": "again"}, "virtualMachineSnapshotName": "s"}
    restore: dict[str, Any] = {"apiVersion": SNAPSHOTS, "kind": "VirtualMachineRestore", "metadata": {"name": "r"}, "spec": restored}
    await asyncio.sleep(30)
    assert (await host.api.post(f"{base}/virtualmachinerestores", restore)).status == 201
    await asyncio.sleep(600)
    after = (await host.api.get("/api/v1/namespaces/default/persistentvolumeclaims")).data["items"]
    assert len(after) == 1 and (await used(host)) == before

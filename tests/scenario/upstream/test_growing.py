"""Machines that get more while they run, as `tests/hotplug` of KubeVirt wants it."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import GIB, Data, FakeHost, machine
from tests.scenario.upstream.asking import MACHINES, asked, condition
from tests.scenario.upstream.test_sizes import made, needs, sized

pytestmark = pytest.mark.spec("kubevirt", 110)
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["host"]}]}]
        }
    }
}


async def changed(host: FakeHost, **spec: Any) -> None:
    """Another template, and no restart for it."""
    await host.change("web", {"spec": {"template": {"spec": spec}}})
    await asyncio.sleep(10)
    assert condition(await host.vm(), "RestartRequired") in ("", "False")


@pytest.mark.parametrize(
    "change", [{"nodeSelector": {"kubernetes.io/hostname": "host"}}, {"affinity": AFFINITY}], ids=["selector", "affinity"]
)
@played
async def test_where_it_may_run_changes_at_once(host: FakeHost, /, change: Data) -> None:
    await host.make(machine())
    ran = await host.running()
    await changed(host, **change)
    spec = (await host.vmi())["spec"]
    assert {name: spec[name] for name in change} == change and (await host.running()).id == ran.id


@played
async def test_processors_that_are_asked_for_by_resources_are_there(host: FakeHost, /) -> None:
    await host.make(machine(domain={"resources": {"requests": {"cpu": "2", "memory": "128Mi"}}}))
    assert (await host.running()).observed.sockets == 2


@played
async def test_memory_is_added_twice_and_is_the_base_after_a_restart(host: FakeHost, /) -> None:
    await host.make(machine(domain={"memory": {"guest": "1Gi"}}))
    ran = await host.running()
    for size in (2, 3):
        await changed(host, domain={"memory": {"guest": f"{size}Gi"}})
        assert ran.observed.memory == size * GIB
        assert (await host.vmi())["status"]["memory"]["guestCurrent"] == f"{size}Gi"
    assert (await host.vmi())["status"]["memory"]["guestAtBoot"] == "1Gi"
    await asked(host, "web", "restart", seconds=30)
    again = await host.running()
    assert again.id != ran.id and again.config.memory.size == 3 * GIB
    assert (await host.vmi())["status"]["memory"]["guestAtBoot"] == "3Gi"


@played
async def test_memory_that_was_only_asked_for_grows_with_a_restart(host: FakeHost, /) -> None:
    body = machine()
    body["spec"]["template"]["spec"]["domain"] = {"devices": {}, "resources": {"requests": {"memory": "1Gi"}}}
    await host.make(body)
    ran = await host.running()
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "2Gi"}}}}}})
    await asyncio.sleep(10)
    assert ran.observed.memory == GIB and condition(await host.vm(), "RestartRequired") == "True"
    await asked(host, "web", "restart", seconds=30)
    assert (await host.running()).observed.memory == 2 * GIB


@pytest.mark.parametrize("limits", [True, False], ids=["maxima", "no-maxima"])
@played
async def test_another_instancetype_gives_more_with_a_restart(host: FakeHost, /, limits: bool) -> None:
    most: list[Data] = [{"maxSockets": 4}, {"maxGuest": "4Gi"}] if limits else [{}, {}]
    for name, count, size in (("small", 1, "1Gi"), ("large", 2, "2Gi")):
        spec = {"cpu": {"guest": count, **most[0]}, "memory": {"guest": size, **most[1]}}
        await made(host, "VirtualMachineClusterInstancetype", spec, name)
    await host.make(sized(instancetype={"name": "small"}))
    ran = await host.running()
    await host.change("web", {"spec": {"instancetype": {"name": "large", "revisionName": None}}})
    await asyncio.sleep(15)
    assert (ran.observed.sockets, ran.observed.memory) == (1, GIB)
    assert condition(await host.vm(), "RestartRequired") == "True"
    await asked(host, "web", "restart", seconds=30)
    again = await host.running()
    assert (again.observed.sockets, again.observed.memory) == (2, 2 * GIB)


@pytest.mark.parametrize("by", ["machine", "instancetype"])
@played
async def test_a_machine_may_not_become_less_than_its_preference_needs(host: FakeHost, /, by: str) -> None:
    await made(host, "VirtualMachineClusterPreference", needs("sockets", 2))
    for name, count in (("small", 1), ("large", 2)):
        await made(host, "VirtualMachineClusterInstancetype", {"cpu": {"guest": count}, "memory": {"guest": "128Mi"}}, name)
    body = sized(instancetype={"name": "large"} if by == "instancetype" else None, preference={"name": "tiny"})
    if by == "machine":
        body["spec"]["template"]["spec"]["domain"]["cpu"] = {"sockets": 2}
    await host.make(body)
    await host.running()
    less: Data = {"instancetype": {"name": "small", "revisionName": None}}
    if by == "machine":
        less = {"template": {"spec": {"domain": {"cpu": {"sockets": 1}}}}}
    reply = await host.api.merge(f"{MACHINES}/web", {"spec": less})
    assert reply.status == 422 and "failure checking preference requirements" in reply.data["message"], reply.data

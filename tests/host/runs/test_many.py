"""Many machines at once, and many that do nothing."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from tests.coroutines import played
from tests.host.runs.conftest import EVENTS, MAPS, VMIS, VMS, Data, Host, Talk, machine, perform, phase
from tests.scenario.fronts.kubermatic.making import pool

IDLE, MANY, APART_SECONDS = 500, 100, 0.1
ROOM = 300 << 20


@pytest.mark.spec("kubevirt", 103)
@played
async def test_five_hundred_idle_machines_are_settled_and_cost_little(talk: Talk, /) -> None:
    gate = asyncio.Semaphore(8)

    async def make(number: int) -> None:
        async with gate:
            await talk.make(VMS, machine(f"m{number:03}", strategy="Halted"))

    await asyncio.gather(*(make(number) for number in range(IDLE)))

    def settled(found: dict[str, list[dict[str, dict[str, str]]]]) -> bool:
        words = [each.get("status", {}).get("printableStatus") for each in found["items"]]
        return words == ["Stopped"] * IDLE

    found = await talk.until(VMS, settled, "all are stopped")
    assert [each["metadata"]["name"] for each in found["items"]] == [f"m{number:03}" for number in range(IDLE)]
    for _ in range(10):
        assert len((await talk.get(VMS))["items"]) == IDLE
    assert talk.host.resident() < ROOM
    # A restart reads them all, and writes none.
    revisions = {each["metadata"]["resourceVersion"] for each in found["items"]}
    talk.host.stop()
    talk.host.start()
    async with talk.host.client() as client:
        again = Talk(talk.host, client)
        await asyncio.sleep(5)
        found = await again.until(VMS, settled, "all are stopped")
        assert {each["metadata"]["resourceVersion"] for each in found["items"]} == revisions
    assert talk.host.resident() < ROOM


@pytest.mark.slow
@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 102, "no error events")
@played
async def test_a_hundred_machines_in_ten_seconds_all_run(talk: Talk, /) -> None:
    async def make(number: int) -> None:
        await asyncio.sleep(number * APART_SECONDS)
        spec = {"domain": {"memory": {"guest": "32Mi"}, "devices": {"autoattachGraphicsDevice": False}}}
        body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": f"m{number:03}"}}
        await talk.make(VMIS, {**body, "spec": {**spec, "startStrategy": "Paused", "terminationGracePeriodSeconds": 0}})

    await asyncio.gather(*(make(number) for number in range(MANY)))
    found = await talk.until(VMIS, lambda seen: [phase(each) for each in seen["items"]] == ["Running"] * MANY, "all run", 300)
    assert {each["metadata"]["uid"] for each in found["items"]} == set(talk.host.qemus())
    assert all(len(pids) == 1 for pids in talk.host.qemus().values())
    told = (await talk.get(EVENTS))["items"]
    assert [each for each in told if each["type"] == "Warning"] == []
    assert {each["involvedObject"]["name"] for each in told if each["reason"] == "Started"} == {f"m{n:03}" for n in range(MANY)}


GRACE = 5
POOLS = "/apis/kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"


async def _another_client(talk: Talk) -> None:
    """Write and read as another user does; a request without an answer fails."""
    while True:
        made = await talk.make(MAPS, {"metadata": {"generateName": "beside-"}})
        assert await talk.get(f"{MAPS}/{made['metadata']['name']}")
        await asyncio.sleep(0.2)


def _machines(count: int) -> tuple[str, str, list[Data]]:
    """What makes so many machines, where, and what deletes them all."""
    return VMS, VMS, [machine(f"m{number:03}", terminationGracePeriodSeconds=GRACE) for number in range(count)]


def _pool(count: int) -> tuple[str, str, list[Data]]:
    """The same as one pool in the flat form of Kubermatic's documents."""
    made = pool(count, disks=False)
    hardware = made["spec"]["virtualMachineTemplate"]["spec"]
    hardware |= {"terminationGracePeriodSeconds": GRACE, "volumes": []}
    hardware["domain"] = machine("any")["spec"]["template"]["spec"]["domain"]
    return POOLS, f"{POOLS}/web", [made]


@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 149)
@pytest.mark.parametrize("documents", [_machines, _pool])
@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_machines_that_are_deleted_together_end_side_by_side(
    host: Host, count: int, documents: Callable[[int], tuple[str, str, list[Data]]]
) -> None:
    """Their guests do not obey the power button. One after the other they would take twelve times the grace, or more."""

    async def script(talk: Talk) -> None:
        collection, whole, made = documents(count)
        await asyncio.gather(*(talk.make(collection, body) for body in made))
        await talk.until(VMIS, lambda found: [phase(each) for each in found["items"]] == ["Running"] * count, "all run", 250)
        other = asyncio.create_task(_another_client(talk))
        began = asyncio.get_running_loop().time()
        await talk.client.request("DELETE", whole)
        for path in (VMIS, VMS):
            await talk.until(path, lambda found: not found["items"], "all are gone")
        seconds = asyncio.get_running_loop().time() - began
        assert talk.host.qemus() == {}
        assert seconds < count * GRACE / 3
        assert not other.done(), other.exception()
        other.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await other

    host.options = ("--memory-overcommit=20",)
    perform(host, script)

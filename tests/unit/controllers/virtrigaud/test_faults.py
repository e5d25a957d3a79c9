"""Every call of a provider fails in turn, with every kind of error and in every other way, and the manager restarts at any step.

Whatever happens, the machine converges, no second one is made, and no status says what is not so (docs/spec/virtrigaud.md 2.1 and 3.3).
"""

import asyncio
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock.drivers.fake.settings import RpcFault
from tests.scripted import timeless
from tests.unit.controllers.rigaudharness import NAMES, Rigaud, image, machine, rigaud

SOURCE = {"libvirt": {"url": "https://images.example/cloud.qcow2"}}
RPCS = ("ImagePrepare", "Create", "TaskStatus", "Describe", "Power", "Reconfigure", "Delete", "Validate", "GetCapabilities")
# A provider that does not find what is to be deleted has no machine: the fake would lie.
ERRORS = [(rpc, kind) for rpc in RPCS for kind in ErrorKind if (rpc, kind) != ("Delete", ErrorKind.NOT_FOUND)]
HOT = {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True}


async def judge(life: Rigaud) -> None:
    """Hold the status against what is really there, all the time."""
    while True:
        await asyncio.sleep(0.5)
        there = await life.machines()
        assert len(there) <= 1, there
        status = await life.status()
        ready: dict[str, Any] = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), {})
        seen = await life.get()
        if not seen or ready.get("status") != "True" or ready["observedGeneration"] != seen["metadata"]["generation"]:
            continue
        (machine,) = there
        assert status["id"] == machine.id
        assert machine.power_state == seen["spec"].get("powerState", "On"), (status, machine)
        if ready["reason"] == "ReconcileSuccess":
            assert (status["currentResources"]["cpu"], machine.cpu) == (machine.cpu, seen["spec"].get("resources", {"cpu": 2})["cpu"])


async def settled(life: Rigaud, nudges: int = 3) -> None:
    """Wait until the machine is ready; a refusal waits for a change of the spec, so somebody makes one."""
    for number in range(nudges):
        try:
            await life.ready(seconds=1000)
        except AssertionError:
            await life.merge("web", {"spec": {"tags": [f"nudge-{number}"]}})
            await life.merge("cloud", {"spec": {"prepare": {"retries": number}}}, "VMImage")
        else:
            return
    await life.ready()


async def live(life: Rigaud) -> None:
    """A life: made from an image that has to be prepared, resized, off, and gone."""
    judging = asyncio.create_task(judge(life))
    await life.merge("small", {"spec": {"performanceProfile": HOT}}, "VMClass")
    await life.make(image("cloud", SOURCE), machine(imageRef={"name": "cloud"}))
    await settled(life)
    await life.merge("web", {"spec": {"resources": {"cpu": 4}}})
    await settled(life)
    await life.merge("web", {"spec": {"powerState": "Off"}})
    await settled(life)
    judging.cancel()
    (done,) = await asyncio.gather(judging, return_exceptions=True)
    assert isinstance(done, asyncio.CancelledError), done
    assert [(each.cpu, each.power_state) for each in await life.machines()] == [(4, "Off")]
    await life.delete()
    await life.gone()
    assert await life.machines() == []


@pytest.mark.spec("virtrigaud", 26, 28)
@pytest.mark.parametrize(("rpc", "kind"), ERRORS)
@timeless
async def test_an_error_of_each_kind(rpc: str, kind: ErrorKind) -> None:
    async with rigaud(faults=(RpcFault(rpc=rpc, kind=kind),)) as life:
        await live(life)


@pytest.mark.spec("virtrigaud", 26, 28)
@pytest.mark.parametrize("after", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("effect", ["lost-answer", "task-error", "restart", "delay"])
@timeless
async def test_another_fault_at_each_call(effect: Any, after: int) -> None:
    rpcs = [each for each in RPCS if each not in ("Validate", "GetCapabilities")]
    async with rigaud(faults=tuple(RpcFault(rpc=rpc, effect=effect, after=after, delay=20.0) for rpc in rpcs)) as life:
        await live(life)


@pytest.mark.spec("virtrigaud", 26)
@pytest.mark.parametrize("number", range(16))
@timeless
async def test_the_manager_ends_at_each_call(number: int) -> None:
    """It ends when the provider has done what was asked and before the answer is written."""
    async with rigaud() as life:
        ended = asyncio.Event()
        counted = 0

        async def ends(rpc: str, request: Any) -> m.WireMessage | None:
            nonlocal counted
            if rpc in ("Validate", "GetCapabilities"):
                return None
            counted += 1
            if counted - 1 == number and not ended.is_set():
                name = {method: attribute for attribute, method in NAMES.items()}[rpc]
                await getattr(life.driver.driver, name)(request)
                ended.set()
                await asyncio.Event().wait()
            return None

        life.driver.script = ends

        async def restart() -> None:
            await ended.wait()
            await life.restart()

        restarting = asyncio.create_task(restart())
        await live(life)
        restarting.cancel()

"""Every call of a provider fails in turn, with every kind of error and in every other way, and the manager restarts at any step.

Whatever happens, the machine converges, no second one is made, and no status says what is not so (docs/spec/virtrigaud.md 2.1 and 3.3).
"""

import asyncio
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock_drivers.fake.settings import RpcFault
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import NAMES, Rigaud, image, machine, rigaud

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


@pytest.mark.spec("virtrigaud", 26, 39)
@timeless
async def test_a_create_without_an_answer_and_another_spec() -> None:
    """The machine was made with the sizes of the first request; nobody says that it has those of the second one."""
    fault = RpcFault(rpc="Create", effect="lost-answer", kind=ErrorKind.TIMEOUT)
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine(resources={"cpu": 1}, disks=[{"name": "data", "sizeGiB": 10}]))
        await life.until(lambda: life.machines())
        await life.merge("web", {"spec": {"resources": {"cpu": 4}, "disks": [{"name": "data", "sizeGiB": 20}]}})
        await life.merge("web", {"metadata": {"annotations": {"virtrigaud.io/allow-restart": "true"}}})
        status = await life.ready()
        assert status["currentResources"]["cpu"] == 4
        (there,) = await life.machines()
        assert (there.cpu, sorted(disk.size_gib for disk in there.disks)) == (4, [10, 20])


@pytest.mark.spec("virtrigaud", 39)
@timeless
async def test_a_reconfigure_without_an_answer_that_is_taken_back() -> None:
    fault = RpcFault(rpc="Reconfigure", effect="lost-answer", kind=ErrorKind.TIMEOUT)
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.merge("web", {"spec": {"resources": {"cpu": 4}}})
        await life.until(lambda: _has(life, 4))
        await life.merge("web", {"spec": {"resources": None}})
        await life.ready()
        await asyncio.sleep(700)
        assert await _has(life, 2)
        assert (await life.status())["currentResources"]["cpu"] == 2


@pytest.mark.spec("virtrigaud", 26)
@timeless
async def test_a_refusal_after_a_create_without_an_answer() -> None:
    """The refusal says nothing about the first create, so the deletion looks for its machine."""
    faults = (
        RpcFault(rpc="Create", effect="lost-answer", kind=ErrorKind.UNAVAILABLE),
        RpcFault(rpc="Create", kind=ErrorKind.INVALID_SPEC, after=1),
    )
    async with rigaud(faults=faults) as life:
        await life.make(machine())
        await life.until(lambda: _failed(life))
        assert len(await life.machines()) == 1
        await life.delete()
        await life.gone()
        assert await life.machines() == []


async def _has(life: Rigaud, cpu: int) -> bool:
    return [each.cpu for each in await life.machines()] == [cpu]


async def _failed(life: Rigaud) -> bool:
    return bool((await life.status()).get("phase") == "Failed")


@timeless
async def test_a_refusal_whose_report_is_lost_is_reported() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=ErrorKind.INVALID_SPEC, count=0),)) as life:
        send, lost = life.wire.send, 0

        async def loses(ask: TransportRequest) -> TransportResponse:
            nonlocal lost
            if ask.method == "PATCH" and "/virtualmachines/web/status" in ask.target and b"ValidationError" in ask.body and not lost:
                lost += 1
                return TransportResponse(503, {}, b"{}")
            return await send(ask)

        life.wire.send = loses  # type: ignore[method-assign]
        await life.make(machine())

        async def reported() -> bool:
            return (await life.said("Ready")) == ("False", "ValidationError")

        await life.until(reported, 60)
        asked = life.driver.count("Create")
        await asyncio.sleep(600)
        assert lost == 1 and life.driver.count("Create") == asked == 2

"""Machines that go back to a snapshot, and snapshots that hooks take (docs/spec/virtrigaud.md 2.1.6 and 2.1.8)."""

import asyncio
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import PowerOp
from paddock_drivers.fake.settings import RpcFault
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.snapshots import KIND, end, kept, names, phase, snapshot, state
from tests.unit.kubevirt.controllers.rigaudharness import NAMES, Rigaud, machine, rigaud

SECONDS = 900.0


async def revert(life: Rigaud, name: str | None, vm: str = "web") -> None:
    await life.merge(vm, {"spec": {"snapshot": {"revertToRef": {"name": name}} if name else None}})


async def begin(life: Rigaud, power: str = "On") -> None:
    """A machine with a snapshot of which the root disk has changed since."""
    await life.make(machine(powerState=power))
    await life.ready()
    await life.make(snapshot())
    await phase(life, "Ready")
    disk(life).data = b"after"


def disk(life: Rigaud) -> Any:
    """The root disk at the provider."""
    inventory = life.driver.driver._inventory
    inventory.tasks.settle()
    (found,) = inventory.machines.values()
    return found.disks[0]


@pytest.mark.spec("virtrigaud", 44, 115)
@timeless
async def test_a_machine_goes_back_once_and_runs_again() -> None:
    async with rigaud() as life:
        await begin(life)
        seen: list[tuple[str, str, str]] = []
        await revert(life, "s")
        for _ in range(30):
            await asyncio.sleep(0.5)
            status = await life.status()
            seen.append((status["phase"], *await life.said("Reconfiguring")))
        assert ("Reconfiguring", "True", "Reverting") in seen
        status = await life.ready()
        assert status["phase"] == "Running" and disk(life).data != b"after"
        assert await life.said("Reverted") == ("True", "Reverted")
        assert [each.op for each in life.driver.of("Power")] == [PowerOp.ON, PowerOp.ON]
        assert {"Reverting", "Reverted"} <= set(await life.events())
        await asyncio.sleep(900)
        await life.restart()
        await asyncio.sleep(300)
        assert life.driver.count("SnapshotRevert") == 1
        await revert(life, None)
        await life.ready()
        assert await life.condition("Reverted") == {} and "paddock.io/revert" not in (await life.status())["provider"]
        assert life.driver.count("SnapshotRevert") == 1
        await revert(life, "s")
        await life.ready()
        assert life.driver.count("SnapshotRevert") == 2


@pytest.mark.spec("virtrigaud", 44)
@timeless
async def test_a_machine_that_should_be_off_stays_off() -> None:
    async with rigaud() as life:
        await begin(life, "Off")
        await revert(life, "s")
        assert (await life.ready())["phase"] == "Stopped"
        assert life.driver.count("SnapshotRevert") == 1 and life.driver.count("Power") == 0 and disk(life).data == b""


@pytest.mark.spec("virtrigaud", 44)
@timeless
async def test_a_machine_gets_the_sizes_again_that_it_had_before() -> None:
    async with rigaud() as life:
        await begin(life, "Off")
        await life.merge("web", {"spec": {"resources": {"cpu": 4}}})
        await life.ready()
        await revert(life, "s")
        await life.ready()
        (found,) = await life.machines()
        assert found.cpu == 4 and (await life.status())["currentResources"]["cpu"] == 4


@pytest.mark.spec("virtrigaud", 44)
@timeless
async def test_foreign_snapshots_and_those_that_are_not_ready_are_refused() -> None:
    async with rigaud() as life:
        await life.make(machine(), machine("other"))
        await life.ready()
        await life.ready("other")
        await life.make(snapshot("foreign", "other"))
        await phase(life, "Ready", "foreign")
        await revert(life, "foreign")
        await asyncio.sleep(5)
        assert await life.said() == ("False", "ValidationError")
        assert "VMSnapshot default/foreign is of VirtualMachine other" in (await life.status())["message"]
        await revert(life, "missing")
        await asyncio.sleep(5)
        assert await life.said() == ("False", "WaitingForDependencies")
        assert "VMSnapshot default/missing does not exist" in (await life.status())["message"]

        async def runs(rpc: str, request: Any) -> m.TaskStatusResponse | None:
            return m.TaskStatusResponse() if rpc == "TaskStatus" else None

        life.driver.script = runs
        await life.make(snapshot("missing"))
        await phase(life, "Creating", "missing")
        await asyncio.sleep(5)
        assert await life.said() == ("False", "ValidationError")
        assert "is not Ready (Creating)" in (await life.status())["message"]
        assert life.driver.count("SnapshotRevert") == 0
        # The power of the machine is seen to all the same.
        life.driver.script = None
        await phase(life, "Ready", "missing")
        await life.ready()
        assert life.driver.count("SnapshotRevert") == 1


@pytest.mark.spec("virtrigaud", 44)
@timeless
async def test_a_snapshot_of_a_machine_that_was_replaced_is_refused() -> None:
    async with rigaud() as life:
        await begin(life)
        inventory = life.driver.driver._inventory
        inventory.machines.clear()
        first = (await life.status())["id"]

        async def replaced() -> bool:
            return (await life.status()).get("id") not in (None, first)

        await life.until(replaced)
        assert (await phase(life, "Failed"))["message"].startswith("the machine of VirtualMachine default/web is gone")
        await revert(life, "s")
        await asyncio.sleep(20)
        assert await life.said() == ("False", "ValidationError") and life.driver.count("SnapshotRevert") == 0


@pytest.mark.spec("virtrigaud", 44, 104)
@timeless
async def test_a_provider_that_no_longer_reports_snapshots_gets_no_revert() -> None:
    async with rigaud() as life:
        await begin(life)

        async def nothing(rpc: str, request: Any) -> m.GetCapabilitiesResponse | None:
            return m.GetCapabilitiesResponse() if rpc == "GetCapabilities" else None

        life.driver.script = nothing
        await life.restart()
        await revert(life, "s")
        await asyncio.sleep(3)
        assert await life.said() == ("False", "UnsupportedByProvider")
        assert life.driver.count("SnapshotRevert") == 0


@pytest.mark.spec("virtrigaud", 44)
@timeless
async def test_a_provider_that_needs_the_machine_off_gets_it_off() -> None:
    async with rigaud() as life:
        await begin(life)

        async def needs_off(rpc: str, request: Any) -> None:
            if rpc == "SnapshotRevert" and (await life.machines())[0].power_state == "On":
                raise ProviderError(ErrorKind.CONFLICT, "the machine runs")

        life.driver.script = needs_off
        await revert(life, "s")
        assert (await life.ready())["phase"] == "Running" and disk(life).data != b"after"
        assert [each.op for each in life.driver.of("Power")] == [PowerOp.ON, PowerOp.OFF, PowerOp.ON]
        assert life.driver.count("SnapshotRevert") == 2


@pytest.mark.spec("virtrigaud", 44)
@pytest.mark.parametrize("kind", list(ErrorKind))
@pytest.mark.parametrize("rpc", ["SnapshotRevert", "TaskStatus"])
@timeless
async def test_an_error_of_each_kind(rpc: str, kind: ErrorKind) -> None:
    async with rigaud() as life:
        await begin(life)
        failed = False

        async def fails(name: str, request: Any) -> None:
            nonlocal failed
            if name == rpc and not failed:
                failed = True
                # Events of one moment have one name.
                await asyncio.sleep(0.1)
                raise ProviderError(kind, "no luck")

        life.driver.script = fails
        await revert(life, "s")
        if rpc == "SnapshotRevert" and kind in (ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED, ErrorKind.NOT_FOUND):

            async def reported() -> bool:
                return (await life.said("Reverted"))[0] == "False" and (await life.status())["phase"] == "Running"

            await life.until(reported)
            assert "no luck" in (await life.status())["message"] and (await life.said())[0] == "False"
            assert disk(life).data == b"after" and "RevertFailed" in await life.events()
            await asyncio.sleep(600)
            assert life.driver.count("SnapshotRevert") == 1
            await revert(life, None)
            await life.ready()
            await revert(life, "s")
        await life.ready()
        assert disk(life).data != b"after" and (await life.status())["phase"] == "Running"


@pytest.mark.spec("virtrigaud", 44)
@timeless
async def test_a_task_that_keeps_failing_ends_the_revert() -> None:
    fault = RpcFault(rpc="SnapshotRevert", effect="task-error", count=0, message="the chain is broken")
    async with rigaud(faults=(fault,)) as life:
        await begin(life)
        await revert(life, "s")

        async def ended() -> bool:
            return "RevertFailed" in await life.events()

        await life.until(ended)
        await asyncio.sleep(300)
        assert life.driver.count("SnapshotRevert") == 3 and disk(life).data == b"after"
        status = await life.status()
        assert status["phase"] == "Running" and "the chain is broken" in status["message"]
        assert await life.said() == ("False", "ProviderError")


@pytest.mark.spec("virtrigaud", 44)
@pytest.mark.parametrize("number", range(10))
@timeless
async def test_the_manager_ends_before_each_write(number: int) -> None:
    async with rigaud() as life:
        await begin(life)
        life.wire.ends_at = life.wire.writes + number + 1
        await revert(life, "s")
        await asyncio.sleep(30)
        life.wire.ends_at = -1
        await life.restart()
        await life.ready()
        assert disk(life).data != b"after" and 1 <= life.driver.count("SnapshotRevert") <= 2
        count = life.driver.count("SnapshotRevert")
        disk(life).data = b"later"
        await asyncio.sleep(400)
        assert (life.driver.count("SnapshotRevert"), disk(life).data) == (count, b"later")


@pytest.mark.spec("virtrigaud", 44)
@pytest.mark.parametrize("effect", ["lost-answer", "restart", "task-error", "delay"])
@timeless
async def test_another_fault(effect: Any) -> None:
    async with rigaud(faults=(RpcFault(rpc="SnapshotRevert", effect=effect, delay=20.0),)) as life:
        await begin(life)
        await revert(life, "s")
        await life.ready()
        assert disk(life).data != b"after" and (await life.status())["phase"] == "Running"


@pytest.mark.spec("virtrigaud", 44, 79)
@pytest.mark.parametrize("whole", [False, True], ids=["snapshot", "machine"])
@timeless
async def test_a_snapshot_waits_for_the_revert_before_it_goes(whole: bool) -> None:
    async with rigaud() as life:
        await begin(life)
        done = False

        async def hangs(rpc: str, request: Any) -> m.TaskStatusResponse | None:
            return m.TaskStatusResponse() if rpc == "TaskStatus" and not done else None

        life.driver.script = hangs
        await revert(life, "s")
        await asyncio.sleep(10)
        await life.delete("s", KIND)
        await asyncio.sleep(30)
        assert life.driver.count("SnapshotDelete") == 0
        assert await life.said("Deleting", "s", KIND) == ("True", "WaitingForDependencies")
        if whole:
            await life.delete()
        done = True
        await end(life)
        if whole:
            await life.gone()
        else:
            await life.merge("web", {"spec": {"snapshot": None}})
            assert (await life.ready())["phase"] == "Running"
        assert life.driver.count("SnapshotRevert") == 1


@timeless
async def test_the_snapshot_may_go_after_the_revert() -> None:
    async with rigaud() as life:
        await begin(life)
        await revert(life, "s")
        await life.ready()
        await life.delete("s", KIND)
        await end(life)
        await life.ready()
        assert kept(life) == []


@pytest.mark.spec("virtrigaud", 37)
@timeless
async def test_a_snapshot_hook_makes_a_snapshot_of_its_own_each_time() -> None:
    async with rigaud() as life:
        hook = {"snapshot": {"name": "before-stop", "description": "as it was"}}
        await life.make(machine(lifecycle={"preStop": hook}))
        await life.ready()
        for count in (1, 2):
            await life.merge("web", {"spec": {"powerState": "Off"}})
            status = await life.ready()
            assert [each["name"] for each in status["snapshots"]] == ["before-stop"] * count
            assert len(await names(life)) == len(kept(life)) == count
            await life.merge("web", {"spec": {"powerState": "On"}})
            await life.ready()
        first = (await names(life))[0]
        assert (await state(life, first))["phase"] == "Ready"
        assert (await life.get(first, KIND))["metadata"]["labels"] == {"virtrigaud.io/snapshot-hook": "PreStop"}
        calls = [name for name in life.driver.names() if name in NAMES.values()]
        assert calls.index("SnapshotCreate") < calls.index("Power", calls.index("Power") + 1)
        await life.delete()
        await life.gone()
        assert await names(life) == []

"""VMSnapshots: taken, reported, and deleted (docs/spec/virtrigaud.md 1.6 and 2.5)."""

import asyncio
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.snapshots import KIND, end, kept, names, phase, snapshot, state
from tests.unit.kubevirt.controllers.rigaudharness import WORLD, Rigaud, machine, rigaud

FINALIZER = "snapshot.infra.virtrigaud.io/finalizer"


async def versions(life: Rigaud) -> list[str]:
    """The revisions of the snapshot and its machine."""
    return [(await life.get(*each))["metadata"]["resourceVersion"] for each in (("s", KIND), ("web", "VirtualMachine"))]


def slow(life: Rigaud, seconds: float) -> None:
    """Let every task take so long."""
    inventory = life.driver.driver._inventory
    inventory.settings = msgspec.structs.replace(inventory.settings, task_seconds=SecondsRange(seconds, seconds))


@pytest.mark.spec("virtrigaud", 74, 115)
@timeless
async def test_a_snapshot_waits_for_its_machine_and_the_provider() -> None:
    async with rigaud(world=False) as life:
        await life.make(snapshot(snapshotConfig={"name": "nightly", "description": "as it was"}))
        assert (await phase(life, "Pending"))["message"] == "VirtualMachine default/web does not exist"
        assert await life.said("Ready", "s", KIND) == ("False", "WaitingForDependencies")
        await life.make(machine(powerState="Off", disks=[{"name": "data", "sizeGiB": 2}]))
        await asyncio.sleep(5)
        assert "is not created yet" in (await state(life))["message"] and life.driver.count("SnapshotCreate") == 0
        await life.make(*WORLD)
        slow(life, 21.0)
        status = await phase(life, "Creating")
        assert status["creationTime"] and "completionTime" not in status
        assert (await life.said("Ready", "s", KIND))[0] == "False" and kept(life) == []
        status = await phase(life, "Ready")
        (ask,) = life.driver.of("SnapshotCreate")
        assert ask.name_hint.startswith("nightly-") and kept(life) == [ask.name_hint]
        assert (ask.include_memory, ask.description) == (False, "as it was")
        assert "taskRef" not in status and status["completionTime"] > status["creationTime"]
        assert status["virtualSize"] == "12Gi" and status["observedGeneration"] == 1
        assert status["providerStatus"]["lab"]["available"] and status["providerStatus"]["lab"]["id"] == status["snapshotID"]
        ready = await life.condition("Ready", "s", KIND)
        assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("True", "Created", 1)
        assert "Provider default/lab" in ready["message"]
        assert FINALIZER in (await life.get("s", KIND))["metadata"]["finalizers"]
        await asyncio.sleep(3)
        (info,) = (await life.status())["snapshots"]
        assert (info["id"], info["name"], info["description"]) == (status["snapshotID"], "nightly", "as it was")
        assert {"SnapshotCreating", "SnapshotReady"} <= set(await life.events("s"))
        slow(life, 0.1)
        await life.delete("s", KIND)
        await end(life)
        assert kept(life) == [] and "snapshots" not in await life.status()
        assert {"SnapshotDeleting", "SnapshotDeleted"} <= set(await life.events("s"))


@pytest.mark.spec("virtrigaud", 74)
@timeless
async def test_a_provider_that_is_away_gives_no_snapshot() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await life.make(snapshot())
        for _ in range(60):
            await asyncio.sleep(1)
            status = await state(life)
            assert status.get("phase") in (None, "Pending", "Creating") and "snapshotID" not in status
            assert (await life.said("Ready", "s", KIND))[0] != "True"
        assert await life.said("Ready", "s", KIND) == ("False", "ProviderError")
        assert "connection refused" in (await state(life))["message"]
        assert 3 <= life.driver.count("SnapshotCreate") <= 8
        life.driver.down = None
        await phase(life, "Ready")
        assert len(kept(life)) == 1


@pytest.mark.spec("virtrigaud", 74)
@pytest.mark.parametrize("kind", list(ErrorKind))
@pytest.mark.parametrize("rpc", ["SnapshotCreate", "TaskStatus"])
@timeless
async def test_an_error_of_each_kind_is_waited_out_or_reported(rpc: str, kind: ErrorKind) -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        failed = False

        async def fails(name: str, request: Any) -> None:
            nonlocal failed
            if name == rpc and not failed:
                failed = True
                # Events of one moment have one name.
                await asyncio.sleep(0.1)
                raise ProviderError(kind, "no luck")

        life.driver.script = fails
        await life.make(snapshot())
        terminal = rpc == "SnapshotCreate" and kind in (ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED)
        status = await phase(life, "Failed" if terminal else "Ready")
        if terminal:
            reason = "UnsupportedByProvider" if kind == ErrorKind.NOT_SUPPORTED else "ValidationError"
            assert await life.said("Ready", "s", KIND) == ("False", reason) and "no luck" in status["message"]
            assert "SnapshotFailed" in await life.events("s")
            # The request was refused; a change of the spec begins anew.
            await life.merge("s", {"spec": {"snapshotConfig": {"description": "again"}}}, KIND)
            await phase(life, "Ready")
        assert len(kept(life)) == 1


@pytest.mark.spec("virtrigaud", 74)
@pytest.mark.parametrize("effect", ["lost-answer", "task-error", "restart", "delay"])
@pytest.mark.parametrize("after", [0, 1])
@timeless
async def test_another_fault_gives_one_snapshot(effect: Any, after: int) -> None:
    rpcs = ("SnapshotCreate", "SnapshotDelete")
    async with rigaud(faults=tuple(RpcFault(rpc=rpc, effect=effect, after=after, delay=20.0) for rpc in rpcs)) as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot(), snapshot("t"))
        await phase(life, "Ready")
        await phase(life, "Ready", "t")
        assert len(kept(life)) == 2
        ids = {(await state(life, name))["snapshotID"] for name in ("s", "t")}
        assert len(ids) == 2
        await life.delete("s", KIND)
        await end(life)
        await life.delete("t", KIND)
        await end(life, "t")
        assert kept(life) == []


@pytest.mark.spec("virtrigaud", 74)
@timeless
async def test_a_task_that_keeps_failing_ends_the_snapshot() -> None:
    fault = RpcFault(rpc="SnapshotCreate", effect="task-error", count=0, message="no space left in the pool")
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        status = await phase(life, "Failed")
        assert await life.said("Ready", "s", KIND) == ("False", "ProviderError")
        assert "no space left in the pool" in status["message"] and life.driver.count("SnapshotCreate") == 3
        await asyncio.sleep(900)
        assert life.driver.count("SnapshotCreate") == 3 and kept(life) == []


@pytest.mark.spec("virtrigaud", 74)
@pytest.mark.parametrize("number", range(14))
@timeless
async def test_the_manager_ends_before_each_write(number: int) -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        life.wire.ends_at = life.wire.writes + number
        await life.make(snapshot())
        await asyncio.sleep(8)
        life.wire.ends_at = -1
        await life.restart()
        await phase(life, "Ready")
        assert len(kept(life)) == 1
        life.wire.ends_at = life.wire.writes + number // 2
        await life.delete("s", KIND)
        await asyncio.sleep(8)
        life.wire.ends_at = -1
        await life.restart()
        await end(life)
        assert kept(life) == []


@pytest.mark.spec("virtrigaud", 75, 104)
@timeless
async def test_memory_without_the_capability_is_refused() -> None:
    async with rigaud(without=("memory_snapshots",)) as life:
        await life.make(machine())
        await life.ready()
        await life.make(snapshot(snapshotConfig={"includeMemory": True}), snapshot("plain"))
        status = await phase(life, "Failed")
        assert await life.said("Ready", "s", KIND) == ("False", "UnsupportedByProvider")
        assert "does not report that it supports snapshots with memory" in status["message"]
        await phase(life, "Ready", "plain")
        assert life.driver.count("SnapshotCreate") == 1
        await life.merge("s", {"spec": {"snapshotConfig": {"includeMemory": False}}}, KIND)
        await phase(life, "Ready")


@pytest.mark.spec("virtrigaud", 104)
@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"encryption": {"enabled": True}}, "encrypted"),
        ({"type": "Application"}, "consistent for applications"),
        ({"consistencyLevel": "ApplicationConsistent"}, "consistent for applications"),
    ],
)
@timeless
async def test_what_the_contract_cannot_carry_is_refused(config: Any, text: str) -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot(snapshotConfig=config))
        assert text in (await phase(life, "Failed"))["message"]
        assert await life.said("Ready", "s", KIND) == ("False", "UnsupportedByProvider")
        assert life.driver.count("SnapshotCreate") == 0


@pytest.mark.spec("virtrigaud", 104)
@timeless
async def test_a_provider_that_reports_snapshots_later_takes_it_then() -> None:
    async with rigaud() as life:

        async def starts(rpc: str, request: Any) -> m.GetCapabilitiesResponse | None:
            return m.GetCapabilitiesResponse() if rpc == "GetCapabilities" else None

        life.driver.script = starts
        await life.restart()
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Failed")
        assert life.driver.count("SnapshotCreate") == 0
        await asyncio.sleep(100)
        assert (await life.events("s")).count("SnapshotFailed") == 1
        life.driver.script = None
        await phase(life, "Ready")


@pytest.mark.spec("virtrigaud", 104)
@timeless
async def test_a_provider_without_snapshots_gets_no_request() -> None:
    async with rigaud(without=("snapshots",)) as life:
        await life.make(machine())
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Failed")
        assert await life.said("Ready", "s", KIND) == ("False", "UnsupportedByProvider")
        await life.delete("s", KIND)
        await end(life)
        assert not {"SnapshotCreate", "SnapshotDelete"} & set(life.driver.names())


@timeless
async def test_options_without_a_field_are_named() -> None:
    async with rigaud() as life:
        await life.make(machine(), machine("off", powerState="Off"))
        await life.ready()
        await life.ready("off")
        await life.make(
            snapshot(snapshotConfig={"compression": True}), snapshot("quiet", "off"), snapshot("raw", snapshotConfig={"quiesce": False})
        )
        for name in ("s", "quiet", "raw"):
            await phase(life, "Ready", name)
        assert "compression" in (await life.condition("Unsupported", "s", KIND))["message"]
        assert await life.said("Quiesced", "s", KIND) == ("Unknown", "NotReported")
        assert await life.said("Quiesced", "quiet", KIND) == ("True", "PoweredOff")
        assert await life.condition("Quiesced", "raw", KIND) == {}


@pytest.mark.spec("virtrigaud", 79)
@timeless
async def test_an_error_keeps_the_finalizer_until_the_provider_confirms() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Ready")
        locked = True

        async def fails(rpc: str, request: Any) -> None:
            if rpc == "SnapshotDelete" and locked:
                # Events of one moment have one name.
                await asyncio.sleep(0.1)
                raise ProviderError(ErrorKind.INTERNAL, "the storage is locked")

        life.driver.script = fails
        await life.delete("s", KIND)
        await asyncio.sleep(62)
        assert 4 <= life.driver.count("SnapshotDelete") <= 6
        found = await life.condition("Deleting", "s", KIND)
        assert (found["status"], found["reason"]) == ("True", "ProviderError") and "the storage is locked" in found["message"]
        assert (await state(life))["phase"] == "Deleting"
        assert "SnapshotDeleteFailed" in await life.events("s")
        locked = False
        slow(life, 30.0)

        async def deleting() -> bool:
            return (await life.condition("Deleting", "s", KIND)).get("reason") == "TaskInProgress"

        await life.until(deleting)
        await asyncio.sleep(10)
        assert await life.get("s", KIND) and len(kept(life)) == 1
        await end(life)
        assert kept(life) == []


@pytest.mark.spec("virtrigaud", 79)
@timeless
async def test_a_snapshot_that_is_not_found_is_released() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Ready")

        async def unknown(rpc: str, request: Any) -> None:
            if rpc == "SnapshotDelete":
                raise ProviderError(ErrorKind.NOT_FOUND, "no such snapshot")

        life.driver.script = unknown
        await life.delete("s", KIND)
        await end(life, seconds=20)


@pytest.mark.spec("virtrigaud", 79)
@pytest.mark.parametrize("kind", [ErrorKind.NOT_FOUND, ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED])
@timeless
async def test_one_refusal_does_not_prove_that_there_is_no_snapshot(kind: ErrorKind) -> None:
    """The answer to the request is lost, and a provider in trouble refuses the same request once while the snapshot is looked for."""
    async with rigaud(faults=(RpcFault(rpc="SnapshotCreate", effect="lost-answer", count=1),)) as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        slow(life, 1.0)
        await life.make(snapshot())
        await life.until(lambda: _asked(life, "SnapshotCreate"))
        await asyncio.sleep(1)
        refused = False

        async def refuses(rpc: str, request: Any) -> None:
            nonlocal refused
            if rpc == "SnapshotCreate" and not refused:
                refused = True
                raise ProviderError(kind, "a fault")

        life.driver.script = refuses
        await life.delete("s", KIND)
        await end(life)
        assert refused and kept(life) == []


@pytest.mark.spec("virtrigaud", 79)
@timeless
async def test_a_deletion_whose_task_nobody_knows_is_requested_again() -> None:
    """A provider that was started again does not know the task, and the deletion was never carried out."""
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Ready")

        async def forgets(rpc: str, request: Any) -> m.WireMessage | None:
            if rpc == "SnapshotDelete" and life.driver.count(rpc) == 1:
                return m.TaskResponse(task=m.TaskRef(id="lost"))
            if rpc == "TaskStatus" and request.task.id == "lost":
                raise ProviderError(ErrorKind.NOT_FOUND, "no such task")
            return None

        life.driver.script = forgets
        await life.delete("s", KIND)
        await end(life)
        assert life.driver.count("SnapshotDelete") >= 2 and kept(life) == []


async def _asked(life: Rigaud, rpc: str) -> bool:
    return life.driver.count(rpc) > 0


@pytest.mark.spec("virtrigaud", 79)
@timeless
async def test_force_delete_lets_the_object_go() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Ready")
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await life.delete("s", KIND)
        await asyncio.sleep(200)
        assert await life.get("s", KIND)
        await life.merge("s", {"metadata": {"annotations": {"virtrigaud.io/force-delete": "true"}}}, KIND)
        await end(life, seconds=30)
        assert "ForceDeleted" in await life.events("s") and len(kept(life)) == 1


@pytest.mark.spec("virtrigaud", 78)
@timeless
async def test_a_machine_takes_its_snapshots_along() -> None:
    async with rigaud() as life:
        await life.make(machine(), machine("other", powerState="Off"))
        await life.ready()
        await life.ready("other")
        keep = {"deleteOnVMDelete": False}
        await life.make(snapshot("a"), snapshot("b"), snapshot("keep", retentionPolicy=keep), snapshot("foreign", "other"))
        for name in ("a", "b", "keep", "foreign"):
            await phase(life, "Ready", name)
        slow(life, 20.0)
        await life.delete()

        async def waits() -> bool:
            found = await life.condition("Deleting")
            return found.get("reason") == "WaitingForDependencies" and "VMSnapshot a, b" in found["message"]

        await life.until(waits)
        assert life.driver.count("Delete") == 0
        await life.gone()
        assert life.driver.count("SnapshotDelete") == 2 and life.driver.names()[-1] == "Delete"
        assert await names(life) == ["foreign", "keep"]
        status = await phase(life, "Failed", "keep")
        assert await life.said("Ready", "keep", KIND) == ("False", "VirtualMachineGone")
        assert "VirtualMachine default/web is gone" in status["message"]
        assert (await state(life, "foreign"))["phase"] == "Ready"
        await life.delete("keep", KIND)
        await end(life, "keep")


@pytest.mark.spec("virtrigaud", 78)
@timeless
async def test_a_machine_that_was_never_made_takes_its_snapshots_along() -> None:
    async with rigaud(world=False) as life:
        await life.make(machine(), snapshot())
        await phase(life, "Pending")
        await life.delete()
        await life.gone()
        await end(life)
        assert life.driver.calls == []


@timeless
async def test_parents_and_children_are_the_order_of_the_snapshots() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        for name in ("a", "b", "c"):
            await life.make(snapshot(name))
            await phase(life, "Ready", name)
            await asyncio.sleep(2)
        assert "parent" not in await state(life, "a")
        assert (await state(life, "b"))["parent"]["name"] == "a"
        assert [each["name"] for each in (await state(life, "b"))["children"]] == ["c"]
        assert "children" not in await state(life, "c")
        await life.delete("b", KIND)
        await end(life, "b")
        await asyncio.sleep(2)
        assert "children" not in await state(life, "a") and "parent" not in await state(life, "c")


@pytest.mark.spec("virtrigaud", 3)
@timeless
async def test_nothing_happens_when_nothing_changes() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.make(snapshot())
        await phase(life, "Ready")
        await life.merge("s", {"spec": {"metadata": {"purpose": "backup"}}}, KIND)
        await asyncio.sleep(5)
        assert (await state(life))["observedGeneration"] == 2
        revisions, calls = await versions(life), len(life.driver.names())
        await life.merge("s", {"spec": {"metadata": {"purpose": "backup"}}}, KIND)
        await asyncio.sleep(250)
        assert (await versions(life), len(life.driver.names())) == (revisions, calls)

"""Migrations when something goes wrong: the manager ends anywhere, calls fail, disks are damaged, and users change their minds."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.methods import BY_ATTRIBUTE
from paddock_drivers.fake.settings import RpcFault
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.moving import DATA, KIND, MovingWorld, migration, moving
from tests.unit.kubevirt.controllers.rigaudharness import RecordedDriver

SOURCE_RPCS = ("SnapshotCreate", "ExportDisk", "TaskStatus", "Describe", "GetDiskInfo", "SnapshotDelete", "Power")
TARGET_RPCS = ("ImportDisk", "TaskStatus", "Create", "Describe", "GetDiskInfo", "Power", "TransferDelete")
RETRIES = {"retryPolicy": {"maxRetries": 3, "retryDelay": "1m"}}


async def moved(world: MovingWorld) -> None:
    """The machine has moved, once, and nothing is left."""
    await world.until("Ready", "Failed")
    await world.clean()
    assert await world.phase() == "Ready", await world.life.status("move", KIND)
    machines = (await world.target.list_vms(m.ListVMsRequest())).vms
    assert [each.name for each in machines] == ["moved"]
    assert world.disks(world.target, "moved")[1].data == DATA
    assert world.files() == [] and await world.claim() == 404
    assert not world.target._inventory.disks and not world.source._inventory.machines["vm-1"].snapshots
    assert await world.power(world.source) == ["Off"]


async def never_both(world: MovingWorld) -> None:
    """The source and the new machine never run at once."""
    while True:
        assert not ("On" in await world.power(world.source) and "On" in await world.power(world.target))
        await asyncio.sleep(0.25)


@pytest.mark.spec("virtrigaud", 92)
@pytest.mark.parametrize("number", range(0, 60, 2))
@timeless
async def test_the_manager_ends_before_any_write(number: int, tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        watching = asyncio.create_task(never_both(world))
        world.life.wire.ends_at = world.life.wire.writes + number
        await world.life.make(migration(target={"powerOn": True}))
        await asyncio.sleep(200)
        world.life.wire.ends_at = -1
        await world.life.restart()
        await moved(world)
        assert world.source._inventory.exported == ["export.qcow2", "export-data.qcow2"]
        assert world.target._inventory.imported == ["moved-migrated", "moved-migrated-data"]
        assert not watching.done()
        watching.cancel()


@pytest.mark.spec("virtrigaud", 92)
@pytest.mark.parametrize("number", range(14))
@pytest.mark.parametrize("side", ["source", "target"])
@timeless
async def test_the_manager_ends_at_each_call(side: str, number: int, tmp_path: Path) -> None:
    """It ends when the provider has done what was asked, and before the answer is written."""
    async with moving(tmp_path) as world:
        recorder: RecordedDriver = world.life.driver if side == "source" else world.other
        ended, counted = asyncio.Event(), 0

        async def ends(rpc: str, request: Any) -> m.WireMessage | None:
            nonlocal counted
            if rpc in ("Validate", "GetCapabilities", "GetFeatures"):
                return None
            counted += 1
            if counted - 1 == number and not ended.is_set():
                await getattr(recorder.driver, recorder_name(rpc))(request)
                ended.set()
                await asyncio.Event().wait()
            return None

        recorder.script = ends

        async def restart() -> None:
            await ended.wait()
            await world.life.restart()

        restarting = asyncio.create_task(restart())
        await world.life.make(migration(target={"powerOn": True}))
        await moved(world)
        assert world.source._inventory.exported == ["export.qcow2", "export-data.qcow2"]
        assert world.target._inventory.imported == ["moved-migrated", "moved-migrated-data"]
        restarting.cancel()


def recorder_name(rpc: str) -> str:
    return next(name for name, method in BY_ATTRIBUTE.items() if method.name == rpc)


@pytest.mark.spec("virtrigaud", 84, 92)
@pytest.mark.parametrize("effect", ["error", "lost-answer", "restart"])
@pytest.mark.parametrize("rpc", SOURCE_RPCS)
@timeless
async def test_a_call_of_the_source_fails(rpc: str, effect: Any, tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        world.source._faults._faults = (RpcFault(rpc=rpc, effect=effect, count=1),)
        world.source._faults._calls = world.source._faults._hits = [0]
        world.source._faults._hits = [0]
        await world.life.make(migration(target={"powerOn": True}))
        await moved(world)


@pytest.mark.spec("virtrigaud", 84, 92)
@pytest.mark.parametrize("effect", ["error", "lost-answer", "restart"])
@pytest.mark.parametrize("rpc", TARGET_RPCS)
@timeless
async def test_a_call_of_the_target_fails(rpc: str, effect: Any, tmp_path: Path) -> None:
    async with moving(tmp_path, faults=(RpcFault(rpc=rpc, effect=effect, count=1),)) as world:
        await world.life.make(migration(target={"powerOn": True}))
        await moved(world)


@pytest.mark.spec("virtrigaud", 91)
@pytest.mark.parametrize("kind", list(ErrorKind))
@timeless
async def test_an_import_fails_with_every_kind_of_error(kind: ErrorKind, tmp_path: Path) -> None:
    """An error that passes is waited out; one that does not ends the attempt, and a retry follows where one is allowed."""
    fault = RpcFault(rpc="ImportDisk", kind=kind, count=1)
    async with moving(tmp_path, faults=(fault,)) as world:
        await world.life.make(migration(target={"powerOn": True}, options=RETRIES))
        if kind is ErrorKind.NOT_SUPPORTED:
            await world.until("Failed")
            assert (await world.life.said("Failed", "move", KIND))[1] == "UnsupportedByProvider"
        else:
            await moved(world)


@pytest.mark.spec("virtrigaud", 84, 91)
@pytest.mark.parametrize("kind", list(ErrorKind))
@pytest.mark.parametrize(
    ("side", "rpc"),
    [
        *(("source", each) for each in ("SnapshotCreate", "ExportDisk", "TaskStatus", "Describe", "GetDiskInfo", "SnapshotDelete")),
        *(("target", each) for each in ("TaskStatus", "Create", "Describe", "GetDiskInfo", "Power", "TransferDelete")),
    ],
)
@timeless
async def test_a_call_fails_once_with_every_kind_of_error(side: str, rpc: str, kind: ErrorKind, tmp_path: Path) -> None:
    """The machine moves, at once or in a later attempt, or the migration says what it was refused and the source is as it was."""
    async with moving(tmp_path) as world:
        recorder: RecordedDriver = world.life.driver if side == "source" else world.other
        failed = False

        async def fails(name: str, request: Any) -> None:
            nonlocal failed
            if name == rpc and not failed and await world.life.get("move", KIND):
                failed = True
                raise ProviderError(kind, "a fault")

        recorder.script = fails
        await world.life.make(migration(target={"powerOn": True}, options={**RETRIES, "cleanupPolicy": "Always"}))
        await world.until("Ready", "Failed")
        await world.clean()
        assert failed
        if await world.phase() == "Ready" and (rpc, kind) == ("SnapshotDelete", ErrorKind.NOT_FOUND):
            # A provider that does not find it has been believed.
            assert len(world.source._inventory.machines["vm-1"].snapshots) == 1
            return
        if await world.phase() == "Ready":
            await moved(world)
            return
        assert kind in (ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC), await world.life.status("move", KIND)
        assert (await world.life.ready())["powerState"] == "On" and not await world.power(world.target)
        assert not world.target._inventory.disks and not world.source._inventory.machines["vm-1"].snapshots and world.files() == []


@pytest.mark.spec("virtrigaud", 91)
@timeless
async def test_retries_wait_longer_each_time_and_end(tmp_path: Path) -> None:
    fault = RpcFault(rpc="ImportDisk", kind=ErrorKind.CONFLICT, count=0)
    policy = {"maxRetries": 3, "retryDelay": "10m", "backoffMultiplier": 2}
    async with moving(tmp_path, faults=(fault,)) as world:
        times = []

        async def note(rpc: str, request: Any) -> None:
            if rpc == "ImportDisk":
                times.append(world.life.clock.seconds())

        world.other.script = note
        await world.life.make(migration(target={"powerOn": True}, options={"retryPolicy": policy}))
        status = await world.until("Failed")
        await world.clean()
        waits = [round((later - earlier) / 60) for earlier, later in itertools.pairwise(times)]
        assert waits == [10, 20, 30] and status["retryCount"] == 3
        # A complete export is not made again.
        assert world.source._inventory.exported == ["export.qcow2", "export-data.qcow2"]
        await world.life.ready()
        assert await world.power(world.source) == ["On"]


@pytest.mark.spec("virtrigaud", 91)
@timeless
async def test_a_failed_export_is_made_anew_under_another_address(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        faults = world.source._faults
        faults._faults, faults._calls, faults._hits = (RpcFault(rpc="ExportDisk", effect="task-error", count=2),), [0], [0]
        await world.life.make(migration(target={"powerOn": True}, options=RETRIES))
        status = await world.until("Ready")
        assert status["retryCount"] == 1 and world.source._inventory.exported == ["export-1.qcow2", "export-data.qcow2"]
        await moved(world)


@pytest.mark.spec("virtrigaud", 87, 90)
@timeless
async def test_a_damaged_disk_fails_and_leaves_nothing_at_the_target(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:

        async def damage(rpc: str, request: Any) -> None:
            if rpc == "ImportDisk" and "data" in request.target_name:
                (path,) = tmp_path.rglob("export-data.qcow2")
                raw = bytearray(path.read_bytes())
                raw[-1] ^= 1
                path.write_bytes(bytes(raw))

        world.other.script = damage
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}))
        await world.until("Failed")
        await world.clean()
        found = await world.life.condition("Failed", "move", KIND)
        assert (found["status"], found["reason"]) == ("True", "ValidationFailed") and "damaged" in found["message"]
        assert not world.target._inventory.disks and not (await world.target.list_vms(m.ListVMsRequest())).vms
        assert (await world.life.ready())["powerState"] == "On"
        assert "virtrigaud.io/fenced-by-migration" not in (await world.life.get())["metadata"].get("annotations", {})


@pytest.mark.spec("virtrigaud", 87, 90)
@timeless
async def test_a_provider_that_compares_nothing_is_compared(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:

        async def careless(rpc: str, request: Any) -> m.WireMessage | None:
            return m.ImportDiskResponse(disk_id="d", path="/fake/d", checksum="0" * 64) if rpc == "ImportDisk" else None

        world.other.script = careless
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}))
        await world.until("Failed")
        await world.clean()
        assert (await world.life.said("Failed", "move", KIND))[1] == "ValidationFailed"
        assert (await world.life.ready())["powerState"] == "On"


@pytest.mark.spec("virtrigaud", 90)
@timeless
async def test_the_source_is_deleted_after_a_good_validation_only(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}))
        status = await world.until("Ready")
        assert status["validationResults"] == {"diskSizeMatch": True, "checksumMatch": True}
        await world.life.gone("web")
        assert not await world.power(world.source) and await world.power(world.target) == ["On"]
        assert "SourceDeleted" in await world.life.events("move")


@pytest.mark.spec("virtrigaud", 90)
@pytest.mark.parametrize("silent", ["moved-migrated", "moved-migrated-data"])
@timeless
async def test_a_checksum_that_nobody_compared_keeps_the_source(silent: str, tmp_path: Path) -> None:
    """A Provider that reports no checksum of one disk, until the migration does without the check."""
    async with moving(tmp_path) as world:
        import_ = world.target.import_disk

        async def speechless(request: m.ImportDiskRequest) -> m.ImportDiskResponse:
            answer = await import_(request)
            return msgspec.structs.replace(answer, checksum="") if request.target_name == silent else answer

        world.target.import_disk = speechless  # type: ignore[method-assign]
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}))
        status = await world.until("Ready")
        await world.clean()
        await asyncio.sleep(3600)
        assert status["validationResults"] == {"diskSizeMatch": True}
        assert await world.power(world.source) == ["Off"] and await world.power(world.target) == ["On"]
        found = await world.life.condition("SourceDeleted", "move", KIND)
        name = "data" if silent.endswith("data") else "root"
        assert (found["status"], found["reason"]) == ("False", "SourceKept")
        assert found["message"] == (
            f"VirtualMachine default/web stays: the Providers reported no pair of checksums for {name}; delete the source by hand, "
            "or set spec.options.validationChecks.checkChecksum to false"
        )
        assert (await world.life.events("move")).count("SourceKept") == 1
        await world.life.merge("move", {"spec": {"options": {"validationChecks": {"checkChecksum": False}}}}, kind=KIND)
        await world.life.gone("web")
        await world.clean()
        conditions = (await world.life.status("move", KIND))["conditions"]
        assert "SourceDeleted" not in [each["type"] for each in conditions]


@pytest.mark.spec("virtrigaud", 90)
@timeless
async def test_checksums_are_compared_at_the_end_without_those_on_the_way(tmp_path: Path) -> None:
    """Of Providers that report a checksum when the task has ended, as most do."""
    async with moving(tmp_path) as world:
        export, import_ = world.source.export_disk, world.target.import_disk

        async def exported(request: m.ExportDiskRequest) -> m.ExportDiskResponse:
            answer = await export(request)
            return msgspec.structs.replace(answer, checksum="") if answer.task else answer

        async def imported(request: m.ImportDiskRequest) -> m.ImportDiskResponse:
            answer = await import_(request)
            return msgspec.structs.replace(answer, checksum="") if answer.task else answer

        world.source.export_disk = exported  # type: ignore[method-assign]
        world.target.import_disk = imported  # type: ignore[method-assign]
        options = {"verifyChecksums": False}
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}, options=options))
        status = await world.until("Ready")
        assert status["validationResults"] == {"diskSizeMatch": True, "checksumMatch": True}
        await world.life.gone("web")


@pytest.mark.spec("virtrigaud", 90)
@timeless
async def test_a_smaller_disk_at_the_target_keeps_the_source(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:

        async def smaller(rpc: str, request: Any) -> m.WireMessage | None:
            return m.GetDiskInfoResponse(disk_id="x", virtual_size_bytes=1) if rpc == "GetDiskInfo" else None

        world.other.script = smaller
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}))
        status = await world.until("Failed")
        await world.clean()
        assert status["validationResults"]["diskSizeMatch"] is False
        assert (await world.life.ready())["powerState"] == "On" and not await world.power(world.target)


@pytest.mark.spec("virtrigaud", 89)
@pytest.mark.parametrize(
    ("policy", "fails", "kept"),
    [
        ("Always", False, False),
        ("Always", True, False),
        ("OnSuccess", False, False),
        ("OnSuccess", True, True),
        ("Never", False, True),
        ("Never", True, True),
    ],
)
@timeless
async def test_cleanup_policies(policy: str, fails: bool, kept: bool, tmp_path: Path) -> None:
    faults = (RpcFault(rpc="ImportDisk", kind=ErrorKind.CONFLICT, count=0),) if fails else ()
    async with moving(tmp_path, faults=faults) as world:
        await world.life.make(migration(options={"cleanupPolicy": policy}))
        await world.until("Failed" if fails else "Ready")
        await world.clean()
        assert (await world.claim() == 200, bool(world.files()), bool(world.source._inventory.machines["vm-1"].snapshots)) == (kept,) * 3
        writes, calls = world.writes, [len(each.calls) for each in (world.life.driver, world.other)]
        await asyncio.sleep(110)
        assert world.writes == writes
        names = [name for name, _ in world.life.driver.calls[calls[0] :] + world.other.calls[calls[1] :]]
        assert set(names) <= {"Describe", "Validate", "GetCapabilities", "GetFeatures"}
        await world.life.delete("move", KIND)
        await world.gone()
        left = policy == "Never"
        assert (await world.claim() == 200, bool(world.files())) == (left, left)
        assert bool(await world.power(world.target)) == (not fails)


@pytest.mark.spec("virtrigaud", 89)
@pytest.mark.parametrize("seconds", [1, 3, 6, 10, 14, 18, 22, 30])
@timeless
async def test_deleting_the_migration_cancels_it(seconds: float, tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(target={"powerOn": True}))
        await asyncio.sleep(seconds)
        before = await world.phase()
        await world.life.delete("move", KIND)
        await world.gone()
        await asyncio.sleep(60)
        assert world.files() == [] and await world.claim() == 404
        if before == "Ready":
            return
        assert not await world.power(world.target) and not world.target._inventory.disks
        assert (await world.life.ready())["powerState"] == "On"
        assert not world.source._inventory.machines["vm-1"].snapshots


@pytest.mark.spec("virtrigaud", 92)
@timeless
async def test_somebody_starts_the_source_meanwhile(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(target={"powerOn": True}))
        await world.until("Importing")
        await world.life.merge("web", {"spec": {"powerState": "On"}})
        await world.until("Failed")
        await world.clean()
        assert (await world.life.said("Failed", "move", KIND))[1] == "SourceStarted"
        assert (await world.life.ready())["powerState"] == "On" and not await world.power(world.target)

"""Snapshots: copies of a machine's disks, and with memory the state of its VMM.

A snapshot exists when its record does, which is written last. Going back is in the machine's record until it is done, so a driver that ends
in its middle is followed by one that goes on.
"""

import asyncio
import hashlib
import shutil

import msgspec

from paddock.base import names
from paddock.contract import messages as m
from paddock_drivers.firecracker import files, power, runs
from paddock_drivers.firecracker.building import MicroVmBuilder
from paddock_drivers.firecracker.records import MicroVmFolder, MicroVmRecord, MicroVmSnapshot
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.firecracker.work import WorkBoard
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, TaskProgress, failed

SNAPSHOT, REVERT = "snapshot", "revert"


class MicroVmSnapshots:
    """Takes, deletes and goes back to snapshots."""

    def __init__(self, store: MicroVmStore, runs: MicroVmRuns, builder: MicroVmBuilder, board: WorkBoard) -> None:
        self._store = store
        self._runs = runs
        self._builder = builder
        self._board = board

    async def create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot, or answer with the one of the same name."""
        folder, record = self._store.get(request.vm_id)
        named = _snapshot_id(request.name_hint)
        if any(each.id == named for each in folder.snapshots()):
            return m.SnapshotCreateResponse(snapshot_id=named)
        task = await self._board.run(f"{SNAPSHOT}:{record.id}:{named}", lambda: self._take(request, named))
        return m.SnapshotCreateResponse(snapshot_id=named, task=task)

    async def _take(self, request: m.SnapshotCreateRequest, id: str) -> None:
        async with self._store.lock(request.vm_id.partition("/")[0]):
            folder, record, process = await power.settled(self._store, self._runs, request.vm_id)
            if request.include_memory and process is None:
                raise refusals.conflict(f"machine {record.name} is off and has no memory to keep", fix="start it, or leave memory out")
            target = folder.snapshot(id)
            await asyncio.to_thread(self._clear, folder, id)
            try:
                async with self._runs.paused(folder, record, process):
                    if process is not None and request.include_memory:
                        await self._runs.save(folder, record, process, target)
                    await asyncio.to_thread(_copy_disks, folder, record, id)
                await asyncio.to_thread(self._keep, folder, record, request, id)
            except BaseException:
                await asyncio.to_thread(shutil.rmtree, target, True)
                raise

    def _clear(self, folder: MicroVmFolder, id: str) -> None:
        """Make an empty directory; one that is there was left by a driver that ended."""
        files.discard(folder.snapshot(id))
        with files.failures("take a snapshot"):
            folder.snapshot(id).mkdir(mode=0o700, parents=True)

    def _keep(self, folder: MicroVmFolder, record: MicroVmRecord, request: m.SnapshotCreateRequest, id: str) -> None:
        found = MicroVmSnapshot(
            id=id,
            hint=request.name_hint,
            description=request.description,
            memory=request.include_memory,
            created=self._runs.clock.seconds(),
            spec=record.seen,
            tags=record.tags,
        )
        files.write(folder.snapshot(id) / "snapshot.json", found)

    def find(self, folder: MicroVmFolder, id: str) -> MicroVmSnapshot:
        """Return a snapshot of a machine; raises NotFound."""
        found = next((each for each in folder.snapshots() if each.id == id), None)
        if found is None:
            raise refusals.not_found(f"machine {folder.name} has no snapshot {id[:64]}")
        return found

    async def delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot. One that is gone is deleted. A machine that was brought back from it goes on."""
        if (found := self._store.find(request.vm_id)) is None:
            return m.TaskResponse()
        async with self._store.lock(found[1].name):
            folder, record = self._store.get(request.vm_id)
            known = next((each for each in folder.snapshots() if each.id == request.snapshot_id), None)
            if known is None:
                return m.TaskResponse()
            if request.snapshot_id in (record.reverting, record.resume):
                raise refusals.conflict(f"machine {record.name} is being brought back to the snapshot", fix="wait, or power it off")
            await asyncio.to_thread(files.discarded, folder.snapshot(known.id), folder.path)
        return m.TaskResponse()

    async def revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine that is off back to a snapshot. It runs again if the snapshot has memory."""
        folder, record = self._store.get(request.vm_id)
        self.find(folder, request.snapshot_id)
        key = f"{REVERT}:{record.id}:{request.snapshot_id}"
        return m.TaskResponse(task=await self._board.run(key, lambda: self._go_back(record.id, request.snapshot_id)))

    async def _go_back(self, id: str, snapshot_id: str) -> None:
        async with self._store.lock(id.partition("/")[0]):
            folder, record, process = await power.settled(self._store, self._runs, id)
            power.not_running(record, process, "brought back to a snapshot")
            snapshot = self.find(folder, snapshot_id)
            # From here on it is neither as it was nor as it will be, and does not start.
            record = msgspec.structs.replace(record, reverting=snapshot_id)
            folder.write(record)
            await self._replace(folder, record, snapshot)

    async def _replace(self, folder: MicroVmFolder, record: MicroVmRecord, snapshot: MicroVmSnapshot) -> None:
        """Put the snapshot's disks and hardware in place. Each step may be repeated."""
        place = folder.snapshot(snapshot.id)
        await asyncio.to_thread(self._builder.replaced, folder, snapshot.spec, lambda disk: place / f"{disk.name}.raw")
        runs.give(record.user, *(folder.disk(each) for each in snapshot.spec.disks))
        kept = {each.name for each in snapshot.spec.disks}
        detached = tuple(each for each in (*record.detached, *record.spec.disks) if each.name not in kept)
        record = msgspec.structs.replace(
            record,
            spec=snapshot.spec,
            detached=detached,
            tags=snapshot.tags,
            reverting="",
            resume=snapshot.id if snapshot.memory else "",
        )
        await asyncio.to_thread(self._builder.write_seed, folder, record)
        folder.write(record)
        if snapshot.memory:
            await self._runs.start(folder, record)

    async def recover(self, record: MicroVmRecord) -> None:
        """Go on with what a driver before this one has begun."""
        if record.reverting:
            machine, snapshot = record.id, record.reverting
            self._board.start(f"{REVERT}:{machine}:{snapshot}", lambda: self._go_back(machine, snapshot))

    def status(self, goal: str, id: str, snapshot_id: str) -> TaskProgress:
        """Judge a task that this process does not know."""
        found = self._store.find(id)
        if found is None:
            return failed("the machine does not exist")
        folder, record = found
        if goal == REVERT:
            return failed("the machine is not back at the snapshot; revert again") if record.reverting else DONE
        there = any(each.id == snapshot_id for each in folder.snapshots())
        return DONE if there else failed("the snapshot was not taken to its end; take it again")


def _copy_disks(folder: MicroVmFolder, record: MicroVmRecord, id: str) -> None:
    for disk in record.seen.disks:
        files.copy(folder.disk(disk), folder.snapshot(id) / f"{disk.name}.raw")


def _snapshot_id(hint: str) -> str:
    """The id of a name: the same one always, so that a repeated call finds its snapshot."""
    if len(hint) > 1024:
        raise refusals.invalid("the snapshot's name is too long")
    digest = hashlib.sha256(hint.encode()).hexdigest()[:10]
    plain = hint.lower()[:40].rstrip(".-")
    return f"{plain}-{digest}" if names.is_subdomain(plain) else f"snapshot-{digest}"

"""Disks: what they are, exporting and importing them over staging storage."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from paddock.base import names
from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock_drivers.firecracker import files, power
from paddock_drivers.firecracker.records import KeptImage, MicroVmDisk, MicroVmFolder, MicroVmRecord
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.firecracker.snapshots import MicroVmSnapshots
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.kit import conversion, foreign, refusals, staging, transfers
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress
from paddock_drivers.kit.transfers import DiskSink, ExportOrder, ImportOrder, StagingTransfers, TransferResult

EXPORT, IMPORT = "export", "import"
IMPORT_FORMATS = ("qcow2", "raw", "vmdk", "vdi", "vhdx")
_LOOK_SECONDS = 0.02


class DiskFiles:
    """Describes, exports and imports disks."""

    def __init__(
        self, store: MicroVmStore, settings: FirecrackerSettings, runs: MicroVmRuns, snapshots: MicroVmSnapshots, clock: Clock
    ) -> None:
        self._store = store
        self._settings = settings
        self._runs = runs
        self._snapshots = snapshots
        self._clock = clock
        self._work = StagingTransfers()

    def describe(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk of a machine, or of a snapshot of it: the named one, or the one that it boots from."""
        folder, record = self._store.get(request.vm_id)
        disk, path = self._found(folder, record, request.disk_id, request.snapshot_id)
        size, used = files.sizes(path)
        return m.GetDiskInfoResponse(
            disk_id=disk.name,
            format=conversion.RAW,
            virtual_size_bytes=size or disk.size,
            actual_size_bytes=used,
            path=str(path),
            is_bootable=disk.name == record.spec.disks[0].name,
            snapshots=tuple(each.id for each in folder.snapshots()),
            metadata={"device": "virtio"},
        )

    def _found(self, folder: MicroVmFolder, record: MicroVmRecord, name: str, snapshot: str) -> tuple[MicroVmDisk, Path]:
        spec = self._snapshots.find(folder, snapshot).spec if snapshot else record.spec
        # A disk that only waits for its removal is still there.
        disks = spec.disks if snapshot else (*spec.disks, *(each for each in record.seen.disks if each not in spec.disks))
        disk = next((each for each in disks if not name or name in (each.name, str(folder.disk(each)))), None)
        if disk is None:
            raise refusals.not_found(f"machine {record.name} has no disk {name[:64]}")
        return disk, folder.snapshot(snapshot) / f"{disk.name}.raw" if snapshot else folder.disk(disk)

    # --- exporting --------------------------------------------------------------------------------------------------------

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk that is at rest, as work of this process. A repeated call answers with its task, and then with its result."""
        folder, record = self._store.get(request.vm_id)
        disk, path = self._found(folder, record, request.disk_id, request.snapshot_id)
        target = staging.of_request(self._settings.staging, request, request.destination_url)
        chosen = request.format or (conversion.QCOW2 if conversion.QCOW2 in conversion.formats() else conversion.RAW)
        if chosen not in conversion.formats():
            raise refusals.not_supported(f"the format {chosen[:32]!r} cannot be exported", fix=f"use {', '.join(conversion.formats())}")
        if request.compress and chosen == conversion.RAW:
            raise refusals.not_supported("a raw export cannot be compressed", fix="use qcow2")
        size = files.sizes(path)[0] or disk.size
        order = ExportOrder(target=target, format=chosen, compress=request.compress, size=size, scratch=self._store.scratch)

        async def work() -> TransferResult:
            if request.snapshot_id:
                return await transfers.export(order, _content(path), self._clock)
            async with self._store.lock(record.name):
                _, now, process = await power.settled(self._store, self._runs, record.id)
                power.not_running(now, process, "exported without a snapshot")
                return await transfers.export(order, _content(path), self._clock)

        if not request.snapshot_id:
            # The refusal is for the call, not for a task.
            async with self._store.lock(record.name):
                _, now, process = await power.settled(self._store, self._runs, record.id)
                power.not_running(now, process, "exported without a snapshot")
        what = f"{record.token}/{disk.name}/{request.snapshot_id}/{chosen}/{request.compress}"
        transfer, result = self._work.begin(EXPORT, request.destination_url, what, work)
        if result is None and await self._is_done(transfer):
            transfer, result = self._work.begin(EXPORT, request.destination_url, what, work)
        name = hashlib.sha256(f"{request.destination_url} {what}".encode()).hexdigest()[:24]
        if result is None:
            return m.ExportDiskResponse(export_id=name, task=m.TaskRef(id=f"{EXPORT}:{transfer}"), estimated_size_bytes=size)
        return m.ExportDiskResponse(export_id=name, estimated_size_bytes=result.size, checksum=result.checksum)

    async def delete_transfer(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an export from its storage; one that is gone is deleted."""
        return await self._work.delete(self._settings.staging, request, self._clock)

    # --- importing --------------------------------------------------------------------------------------------------------

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk, as work of this process. A repeated call answers with the one that is there; another content is a Conflict."""
        name = request.target_name
        if not names.is_subdomain(name) or len(name) > 200:
            raise refusals.invalid("the disk has no name that it can have", fix="send target_name in lower-case letters, digits and '-'")
        if request.format and request.format not in IMPORT_FORMATS:
            raise refusals.not_supported(f"format {request.format[:32]!r} cannot be imported", fix=f"use {', '.join(IMPORT_FORMATS)}")
        source = staging.of_request(self._settings.staging, request, request.source_url)
        order = ImportOrder(source=source, checksum=transfers.expected_checksum(request))
        digest = _digest(request)
        record = files.read(self._store.disks / f"{name}.json", KeptImage)
        if record is not None and record.source != digest:
            raise refusals.conflict(f"a disk {name} exists and has another content", fix="choose another name or delete it")
        if record is not None:
            return m.ImportDiskResponse(disk_id=name, path=name, actual_size_bytes=record.size, checksum=record.checksum)
        key = f"{name}/{digest}"
        transfer, result = self._work.begin(IMPORT, request.source_url, key, lambda: self._receive(name, digest, request.format, order))
        if result is not None:
            # A machine has taken the disk meanwhile, or somebody has deleted it: this is another import of the same.
            self._work.forget(request.source_url)
            transfer, _ = self._work.begin(IMPORT, request.source_url, key, lambda: self._receive(name, digest, request.format, order))
        if await self._is_done(transfer) and (record := files.read(self._store.disks / f"{name}.json", KeptImage)) is not None:
            return m.ImportDiskResponse(disk_id=name, path=name, actual_size_bytes=record.size, checksum=record.checksum)
        return m.ImportDiskResponse(disk_id=name, path=name, task=m.TaskRef(id=f"{IMPORT}:{transfer}"))

    async def _is_done(self, transfer: str) -> bool:
        """Wait for a transfer, but not for long; returns whether it has ended well. One that failed is reported as a task."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._settings.patience
        while self._work.status(transfer) == RUNNING and loop.time() < ends:
            await asyncio.sleep(_LOOK_SECONDS)
        return self._work.status(transfer) == DONE

    async def _receive(self, name: str, digest: str, format: str, order: ImportOrder) -> TransferResult:
        """Read an export into a file, make it raw, and give it its name."""
        given = self._store.scratch / f"{name[:60]}.{secrets.token_hex(6)}"
        raw = self._store.disks / f".{name}.{secrets.token_hex(4)}"

        async def sink(chunks: AsyncIterator[bytes], size: int) -> None:
            with files.fresh(given) as handle:
                at = 0
                async for chunk in chunks:
                    staging.write_sparse(handle, chunk, at)
                    at += len(chunk)
                os.ftruncate(handle, at)

        async def open_sink(_: int) -> DiskSink:
            return sink

        try:
            result = await transfers.import_(order, self._clock, open_sink)
            with files.failures("import a disk"), open(given, "rb") as file:
                found = foreign.recognized(file.read(512))
            await foreign.unpack(given, format or found, raw)
            size = raw.stat().st_size
            with files.failures("import a disk"):
                raw.chmod(0o600)
                os.rename(raw, self._store.disks / f"{name}.raw")
            record = KeptImage(name=name, size=size, source=digest, checksum=result.checksum)
            files.write(self._store.disks / f"{name}.json", record)
            return TransferResult(result.size, size, result.checksum)
        finally:
            for each in (given, raw):
                each.unlink(missing_ok=True)

    def transfer_status(self, id: str) -> TaskProgress:
        """Return the state of a transfer."""
        return self._work.status(id)


async def _content(path: Path) -> AsyncIterator[bytes]:
    """The bytes of a disk, read in threads. Nobody else may have put another file there: the directory is the driver's."""
    with files.failures("read a disk"):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size, at = os.fstat(handle).st_size, 0
        while at < size:
            chunk = await asyncio.to_thread(os.pread, handle, min(staging.CHUNK, size - at), at)
            if not chunk:
                break
            at += len(chunk)
            yield chunk
    finally:
        os.close(handle)


def _digest(request: m.ImportDiskRequest) -> str:
    parts = (request.source_url, request.format, request.expected_checksum, request.storage_options_json)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

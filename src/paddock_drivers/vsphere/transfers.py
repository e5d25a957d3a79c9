"""Disks: what they are, exporting and importing them, over the staging storage that drivers share.

An export is a packed VMDK that vSphere makes for a lease. An endpoint that makes none is read by the files of its datastores. An import is
stored as files of a datastore, and a machine that is created with its path takes it.
"""

import hashlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import conversion, foreign, refusals, staging, transfers
from paddock_drivers.kit.progress import TaskProgress
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.kit.transfers import DiskSink, ExportOrder, ImportOrder, StagingTransfers, TransferResult
from paddock_drivers.vsphere import disks, files, leases, paths, snapshots, stores
from paddock_drivers.vsphere.datastores import DatastoreInventory, FoundDatastore, roomiest
from paddock_drivers.vsphere.disks import VSphereDisk
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.leases import LeaseHolder
from paddock_drivers.vsphere.lookups import FoundMachine, MachineLookup
from paddock_drivers.vsphere.paths import DatastorePath
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.stores import DiskStore, StoreContext

FOLDER = "paddock-disks"
IMPORT_FORMATS = ("vmdk", "qcow2", "raw", "vdi", "vhdx")
_UNFIT = re.compile(r"[^a-z0-9.-]+")
_PACKED = b"KDMV"


class TransferSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The storage and hosts that the driver reaches beside vSphere."""

    staging: StagingSettings = StagingSettings()
    # where files that are only needed meanwhile may be
    scratch: Path | None = None
    # addresses of this host that images may come from all the same
    allowed: tuple[str, ...] = ()


class _Source(msgspec.Struct, frozen=True):
    """A disk that is at rest."""

    # the machine or the snapshot
    ref: Any
    of_snapshot: bool
    disk: VSphereDisk
    number: int
    context: StoreContext
    key: str


class VSphereTransfers:
    """Describes, exports and imports disks."""

    def __init__(
        self, session: VSphereSession, lookup: MachineLookup, store: DiskStore, datastores: DatastoreInventory, settings: TransferSettings,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._session = session
        self._lookup = lookup
        self._store = store
        self._datastores = datastores
        self._settings = settings
        self._clock = clock
        self._work = StagingTransfers()

    # --- what a disk is -----------------------------------------------------------------------------------------------------------

    def describe(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk of a machine: the named one, or the one that it boots from. For threads."""
        machine = self._lookup.machine(request.vm_id)
        present = self._disks(machine, request.snapshot_id)
        disk = _named(machine, present, request.disk_id)
        facts = {"type": disk.type, "datastore": disk.datastore, "controller": disk.place, "uuid": disk.uuid}
        return m.GetDiskInfoResponse(
            disk_id=disk.name,
            format="vmdk",
            virtual_size_bytes=disk.size,
            actual_size_bytes=_stored(machine, disk),
            path=disk.path,
            is_bootable=disk == present[0],
            snapshots=tuple(each.id for each in snapshots.every(machine.snapshots)),
            backing_file=disk.parent,
            metadata={name: value for name, value in facts.items() if value},
        )

    def _disks(self, machine: FoundMachine, snapshot: str) -> tuple[VSphereDisk, ...]:
        if not snapshot:
            return machine.disks
        found = snapshots.configuration(snapshots.named(machine, snapshot))
        return disks.observed(found.hardware.device, machine.places)

    # --- exports ------------------------------------------------------------------------------------------------------------------

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk that is at rest, as work of this process. A repeated call answers with its task, and then with its result."""
        source = await self._session.run(lambda: self._source(request))
        target = staging.of_request(self._settings.staging, request, request.destination_url)
        known = conversion.formats()
        chosen = request.format or (conversion.QCOW2 if conversion.QCOW2 in known else conversion.RAW)
        if chosen not in known:
            raise refusals.not_supported(f"the format {chosen[:32]!r} cannot be exported", fix=f"use {', '.join(known)}")
        if request.compress and chosen == conversion.RAW:
            raise refusals.not_supported("a raw export cannot be compressed", fix="use qcow2")
        size, scratch = source.disk.size, self._settings.scratch
        order = ExportOrder(target=target, format=chosen, compress=request.compress, size=size, scratch=scratch)
        what = f"{source.key}/{chosen}/{request.compress}"

        async def work() -> TransferResult:
            with TemporaryDirectory(dir=scratch, prefix="export-") as directory:
                async with aclosing(self._bytes(source, Path(directory))) as chunks:
                    return await transfers.export(order, chunks, self._clock)

        key, result = self._work.begin(VSphereGoal.EXPORTED, request.destination_url, what, work)
        name = hashlib.sha256(what.encode()).hexdigest()[:16]
        if result is None:
            task = VSphereTaskId(VSphereGoal.EXPORTED, detail=key)
            return m.ExportDiskResponse(export_id=name, task=m.TaskRef(id=str(task)), estimated_size_bytes=size)
        return m.ExportDiskResponse(export_id=name, estimated_size_bytes=result.size, checksum=result.checksum)

    def _source(self, request: m.ExportDiskRequest) -> _Source:
        machine = self._lookup.machine(request.vm_id)
        present = self._disks(machine, request.snapshot_id)
        disk = _named(machine, present, request.disk_id)
        if machine.is_live and not request.snapshot_id:
            what = f"the disks of machine {machine.name} cannot be exported while it runs"
            raise refusals.conflict(what, fix="power it off, or name a snapshot")
        ref = snapshots.named(machine, request.snapshot_id).ref if request.snapshot_id else machine.ref
        key = f"{machine.id}/{disk.name}/{request.snapshot_id}"
        return _Source(ref, bool(request.snapshot_id), disk, present.index(disk), self._store.context(machine.ref), key)

    async def _bytes(self, source: _Source, scratch: Path) -> AsyncGenerator[bytes, None]:
        """The raw bytes of a disk: unpacked from a lease, else from the files of its datastore."""
        packed = await self._leased(source, scratch / "packed")
        if packed is None:
            path = paths.parse(source.disk.path)
            async with aclosing(self._store.read(path, source.context, source.disk.size)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        raw = scratch / "raw"
        size = await foreign.unpack(packed, "vmdk", raw)
        packed.unlink()
        if size != source.disk.size:
            raise refusals.retry_later(f"vSphere exported a disk of {size} bytes; the machine has one of {source.disk.size}")
        with raw.open("rb") as file:
            async for chunk in staging.pieces(os.dup(file.fileno()), size):
                yield chunk

    async def _leased(self, source: _Source, file: Path) -> Path | None:
        """Fetch the packed disk of a lease; None where there is none."""
        try:
            lease = await self._session.run(source.ref.ExportSnapshot if source.of_snapshot else source.ref.ExportVm)
        except ProviderError as error:
            if error.kind is ErrorKind.NOT_SUPPORTED:
                return None
            raise
        server = await self._session.run(self._store.server)
        holder = LeaseHolder(self._session, lease)
        async with holder as offered:
            found = leases.file_of(offered, source.disk, source.number)
            place, target = server.at(found.url)
            at = 0
            with file.open("xb") as stored:
                async with aclosing(files.read(place, target, "the disk")) as chunks:
                    async for chunk in chunks:
                        stored.write(chunk)
                        at += len(chunk)
                        holder.progress(at, source.disk.size)
        with file.open("rb") as stored:
            return file if stored.read(len(_PACKED)) == _PACKED else None

    async def delete_transfer(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an export from its storage; one that is gone is deleted."""
        return await self._work.delete(self._settings.staging, request, self._clock)

    def status(self, task: VSphereTaskId) -> TaskProgress:
        """Return the progress of a transfer."""
        return self._work.status(task.detail)

    # --- imports ------------------------------------------------------------------------------------------------------------------

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk as work of this process. A repeated call answers with the one that is there."""
        source = staging.of_request(self._settings.staging, request, request.source_url)
        order = ImportOrder(source=source, checksum=transfers.expected_checksum(request))
        name = _disk_name(request)
        there, place, context = await self._session.run(lambda: self._place(request.storage_hint, name))
        if there is not None:
            return m.ImportDiskResponse(disk_id=str(there), path=str(there), checksum=order.checksum)
        path = DatastorePath(place.name, f"{FOLDER}/{name}.vmdk")

        async def work() -> TransferResult:
            with TemporaryDirectory(dir=self._settings.scratch, prefix="import-") as directory:
                return await self._received(order, request.format, (path, context), Path(directory))

        key, result = self._work.begin(VSphereGoal.RECEIVED, request.source_url, str(path), work)
        if result is not None:
            # It was imported, and is gone since then.
            self._work.forget(request.source_url)
            key, _ = self._work.begin(VSphereGoal.RECEIVED, request.source_url, str(path), work)
        task = VSphereTaskId(VSphereGoal.RECEIVED, detail=key)
        return m.ImportDiskResponse(disk_id=str(path), path=str(path), task=m.TaskRef(id=str(task)))

    def _place(self, hint: str, name: str) -> tuple[DatastorePath | None, FoundDatastore, StoreContext]:
        """The disk of a name if it is there, and the datastore for a new one."""
        context = self._store.context()
        defaults = self._session.connection.settings.defaults
        wanted = hint or defaults.datastore
        pod = "" if wanted else defaults.storage_pod
        candidates = (self._datastores.named(wanted),) if wanted else self._datastores.every()
        members = tuple(each for each in candidates if (not pod or each.pod == pod) and each.type.lower() not in stores.OBJECTS)
        if not members:
            stores.check_kind(candidates[0].type if candidates else "none")
        for each in members:
            path = DatastorePath(each.name, f"{FOLDER}/{name}.vmdk")
            if each.is_usable and self._store.has(path, context):
                return path, each, context
        return None, roomiest(members, f'datastore "{wanted}"' if wanted else "the datacenter", 0), context

    async def _received(self, order: ImportOrder, format: str, to: tuple[DatastorePath, StoreContext], scratch: Path) -> TransferResult:
        path, context = to

        async def open_sink(size: int) -> DiskSink:
            async def plain(chunks: AsyncIterator[bytes], length: int) -> None:
                await self._store.write(path, context, chunks, length)

            async def packed(chunks: AsyncIterator[bytes], length: int) -> None:
                await self._unpacked(chunks, format, to, scratch)

            return plain if format == conversion.RAW else packed

        return await transfers.import_(order, self._clock, open_sink)

    async def _unpacked(self, chunks: AsyncIterator[bytes], format: str, to: tuple[DatastorePath, StoreContext], scratch: Path) -> None:
        """Store a disk of another format."""
        packed, raw = scratch / "packed", scratch / "raw"
        with packed.open("xb") as stored:
            async for chunk in chunks:
                stored.write(chunk)
        with packed.open("rb") as stored:
            found = format or foreign.recognized(stored.read(16))
        size = await foreign.unpack(packed, found, raw)
        packed.unlink()
        with raw.open("rb") as file:
            await self._store.write(*to, staging.pieces(os.dup(file.fileno()), size), size)


def _named(machine: FoundMachine, present: tuple[VSphereDisk, ...], wanted: str) -> VSphereDisk:
    found = disks.find(present, wanted)
    if found is None:
        raise refusals.not_found(f'machine {machine.name} has no disk "{wanted}"' if wanted else f"machine {machine.name} has no disk")
    return found


def _stored(machine: FoundMachine, disk: VSphereDisk) -> int:
    """The bytes that a disk takes on its datastores, with the files below it; its size when vSphere does not say it."""
    layout = machine.row.get("layoutEx")
    if layout is None:
        return disk.size
    sizes = {each.key: each.size for each in layout.file or ()}
    for each in layout.disk or ():
        if each.key == disk.key:
            return sum(sizes.get(key, 0) for part in each.chain or () for key in part.fileKey or ()) or disk.size
    return disk.size


def _disk_name(request: m.ImportDiskRequest) -> str:
    """The name of an imported disk's file: what it is called, and a sum of what it is."""
    if request.format and request.format not in IMPORT_FORMATS:
        raise refusals.not_supported(f"format {request.format[:32]} cannot be imported", fix=f"use one of {', '.join(IMPORT_FORMATS)}")
    name = _UNFIT.sub("-", request.target_name.lower()).strip("-.")[:60]
    if not name:
        raise refusals.invalid("the disk has no name", fix="send target_name")
    whose = request.target_vm or m.ObjectIdentity()
    parts = (request.target_name, whose.namespace, whose.name, request.source_url, request.format, request.expected_checksum)
    return f"{name}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"

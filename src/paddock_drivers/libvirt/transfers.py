"""Disks: what they are, exporting and importing them.

Bytes pass through libvirt's own streams, so a remote hypervisor needs nothing else to be open. A running machine is exported by a snapshot:
what a snapshot holds does not change while its file is read.
"""

import hashlib
import os
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock_drivers.kit import conversion, refusals, staging, transfers
from paddock_drivers.kit.diskimages import DiskImages, PlainDisk, WebImage
from paddock_drivers.kit.progress import DONE, TaskProgress
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.kit.transfers import ExportOrder, ImportOrder, StagingTransfers, TransferResult
from paddock_drivers.libvirt import chains, keeping, machines, marks, pools, records, snapshotxml, volumes, volumexml
from paddock_drivers.libvirt.chains import DiskContent
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.domainview import DiskView, DomainView
from paddock_drivers.libvirt.machines import MachineStore
from paddock_drivers.libvirt.records import VolumeNote
from paddock_drivers.libvirt.volumexml import PoolView

EXPORTED, RECEIVED = "export", "import"
IMPORT_FORMATS = ("qcow2", "raw", "vmdk", "vdi", "vhd", "vhdx")
_LONGEST = 80


class VolumeTransfers:
    """Describes, exports and imports disks."""

    def __init__(self, store: MachineStore, images: DiskImages, clock: Clock) -> None:
        self._store = store
        self._connection: LibvirtConnection = store.connection
        self._images = images
        self._clock = clock
        self._work = StagingTransfers()

    @property
    def backends(self) -> tuple[str, ...]:
        return self._staging.backends

    @property
    def _staging(self) -> StagingSettings:
        settings = self._connection.settings
        return StagingSettings(claims=settings.staging, mounts=settings.mounts)

    async def describe(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk of a machine: the named one, or the one that it boots from."""
        machine = await self._store.get(request.vm_id)
        disk = named_disk(machine.view, request.disk_id)
        return await self._connection.run(_describe, machine.uuid, machine.view, disk, request.snapshot_id)

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk that is at rest, or a snapshot of it. A repeated call answers with its task, and then with its result."""
        machine = await self._store.get(request.vm_id)
        disk = named_disk(machine.view, request.disk_id)
        target = staging.of_request(self._staging, request, request.destination_url)
        chosen = request.format or (conversion.QCOW2 if conversion.QCOW2 in conversion.formats() else conversion.RAW)
        if chosen not in conversion.formats():
            raise refusals.not_supported(f"the format {chosen[:32]!r} cannot be exported", fix=f"use {', '.join(conversion.formats())}")
        if request.compress and chosen == conversion.RAW:
            raise refusals.not_supported("a raw export cannot be compressed", fix="use qcow2")
        if not request.snapshot_id and machine.live:
            what = f"the disks of machine {machine.view.name} cannot be exported while it runs"
            raise refusals.conflict(what, fix="power it off, or name a snapshot")
        content, size = await self._connection.run(_content, machine.uuid, disk, request.snapshot_id)
        scratch = self._connection.settings.scratch

        async def work() -> TransferResult:
            async with chains.raw(self._connection, content, scratch) as file:
                now = await self._store.find(machine.uuid)
                if not request.snapshot_id and now is not None and now.live:
                    raise refusals.conflict(f"machine {machine.view.name} was started while its disk was read", fix="export it again")
                length = os.fstat(file.fileno()).st_size
                order = ExportOrder(target=target, format=chosen, compress=request.compress, size=length, scratch=scratch)
                return await transfers.export(order, staging.pieces(os.dup(file.fileno()), length), self._clock)

        what = f"{machine.uuid}/{disk.target}/{request.snapshot_id}/{chosen}/{request.compress}"
        digest = hashlib.sha256(f"{request.destination_url} {what}".encode()).hexdigest()[:12]
        name = f"{machine.view.name[:40]}-{digest}"
        task, result = self._work.begin(EXPORTED, request.destination_url, what, work)
        result = result or await self._work.settled(task, self._connection.settings.create_seconds)
        if result is None:
            return m.ExportDiskResponse(export_id=name, task=m.TaskRef(id=f"{EXPORTED}:{task}"), estimated_size_bytes=size)
        return m.ExportDiskResponse(export_id=name, estimated_size_bytes=result.size, checksum=result.checksum)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk. A repeated call answers with the one that is there; another content of the name is a Conflict."""
        name, checksum, digest = disk_name(request), transfers.expected_checksum(request), _digest(request)
        order = None
        if not _is_web(request.source_url):
            order = ImportOrder(source=staging.of_request(self._staging, request, request.source_url), checksum=checksum)
        pool = await self._connection.run(pools.choose, request.storage_hint, "", self._connection.settings.pool)
        volume = keeping.volume_name(pool, name)
        answer = m.ImportDiskResponse(disk_id=volume, path=keeping.path_of(pool, volume))
        note = await self._connection.run(keeping.noted, pool.name, volume)
        if note is not None:
            if note.purpose != records.DISK or note.request != digest:
                raise refusals.conflict(f"a disk {volume} exists and has another content", fix="choose another name or delete it")
            return msgspec.structs.replace(answer, actual_size_bytes=note.size, checksum=note.checksum)

        async def work() -> TransferResult:
            if order is None:
                return await self._fetch(request.source_url, checksum, pool, (volume, digest))
            return await self._receive(order, pool, volume, digest)

        key = f"{volume}/{digest}"
        task, result = self._work.begin(RECEIVED, request.source_url, key, work)
        if result is not None:
            # The disk was deleted since.
            self._work.forget(request.source_url)
            task, result = self._work.begin(RECEIVED, request.source_url, key, work)
        result = await self._work.settled(task, self._connection.settings.create_seconds)
        if result is not None:
            return msgspec.structs.replace(answer, actual_size_bytes=result.disk_size, checksum=result.checksum)
        return msgspec.structs.replace(answer, task=m.TaskRef(id=f"{RECEIVED}:{task}:{pool.name}/{volume}"))

    async def delete_transfer(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an export from its storage; one that is gone is deleted."""
        return await self._work.delete(self._staging, request, self._clock)

    async def status(self, task: str) -> TaskProgress:
        """Judge a transfer: by the work of this process, and by the disk when another process imported it."""
        digest, _, place = task.partition(":")
        found = self._work.status(digest)
        if not found.error or not place:
            return found
        pool, _, volume = place.partition("/")
        note = await self._connection.run(keeping.noted, pool, volume)
        return DONE if note is not None else found

    async def _receive(self, order: ImportOrder, pool: PoolView, volume: str, digest: str) -> TransferResult:
        sizes = []

        async def open_sink(_: int) -> transfers.DiskSink:
            async def send(chunks: AsyncIterator[bytes], size: int) -> None:
                async with self._images.received(chunks, size, pool.format) as disk:
                    sizes.append(await self._keep(pool, volume, digest, disk))

            return send

        result = await transfers.import_(order, self._clock, open_sink)
        return TransferResult(result.size, sizes[0], result.checksum)

    async def _fetch(self, url: str, checksum: str, pool: PoolView, what: tuple[str, str]) -> TransferResult:
        image = WebImage(url=url, checksum=f"sha256:{checksum}" if checksum else "")
        async with self._images.fetched(image, pool.format) as disk:
            size = await self._keep(pool, *what, disk)
            return TransferResult(size, size, disk.digest)

    async def _keep(self, pool: PoolView, volume: str, digest: str, disk: PlainDisk) -> int:
        note = VolumeNote(purpose=records.DISK, request=digest, checksum=disk.digest, size=disk.size, format=disk.format)
        await self._connection.run(keeping.keep, pool.name, volume, disk, note)
        return disk.size


def named_disk(view: DomainView, name: str) -> DiskView:
    """Return a disk of a machine; raises NotFound."""
    seed = view.marks.disk(marks.SEED_DISK) if view.marks is not None else None
    found = view.disk(name)
    if found is None or (seed is not None and found.path == seed.path):
        what = f"machine {view.name} has no disk {name[:64]}" if name else f"machine {view.name} has no disk"
        raise refusals.not_found(what)
    return found


def disk_name(request: m.ImportDiskRequest) -> str:
    """Return the name of an imported disk; raises `ProviderError` for a request that cannot be."""
    if request.format and request.format not in IMPORT_FORMATS:
        raise refusals.not_supported(f"format {request.format[:32]} cannot be imported", fix=f"use one of {', '.join(IMPORT_FORMATS)}")
    if request.transfer_mode not in ("", "auto", "relay"):
        raise refusals.not_supported(f"the transfer mode {request.transfer_mode[:32]!r} is not supported", fix="use relay")
    name = re.sub(r"[^a-z0-9.-]+", "-", request.target_name.lower()).strip("-.")[:_LONGEST]
    if not name:
        raise refusals.invalid("the disk has no name", fix="send target_name")
    return name


def _is_web(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https")


def _digest(request: m.ImportDiskRequest) -> str:
    parts = (request.source_url, request.format, request.expected_checksum, request.storage_options_json)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _describe(conn: Any, uuid: str, view: DomainView, disk: DiskView, snapshot: str) -> m.GetDiskInfoResponse:
    domain = machines.existing(conn, uuid)
    known = tuple(each.getName() for each in domain.listAllSnapshots(0))
    if snapshot and snapshot not in known:
        raise refusals.not_found(f"machine {view.name} has no snapshot {snapshot[:64]}")
    stored = volumes.measured(conn, (disk.path,)).get(disk.path)
    capacity, allocation = (stored.capacity, stored.allocation) if stored is not None else (0, 0)
    if domain.isActive() or stored is None:
        # QEMU knows first of a disk that has grown; and nobody else of one without a pool.
        capacity, allocation, _ = domain.blockInfo(disk.target)
    marked = view.mark_of(disk)
    facts = {"device": disk.target, "bus": disk.bus, "pool": stored.pool if stored is not None else disk.pool}
    return m.GetDiskInfoResponse(
        disk_id=marked.name if marked is not None else disk.target,
        format=disk.format or volumexml.RAW,
        virtual_size_bytes=capacity,
        actual_size_bytes=allocation,
        path=disk.path,
        is_bootable=disk == view.disk(""),
        snapshots=known,
        backing_file=stored.backing if stored is not None else "",
        metadata={name: value for name, value in facts.items() if value},
    )


def _content(conn: Any, uuid: str, disk: DiskView, snapshot: str) -> tuple[DiskContent, int]:
    """The file to read, and the size that is expected."""
    content = DiskContent(path=disk.path, format=disk.format or volumexml.RAW)
    if snapshot:
        found = snapshotxml.parse(snapshotxml.existing(machines.existing(conn, uuid), snapshot).getXMLDesc(0))
        part = found.disk(disk.target)
        if part is None:
            raise refusals.not_found(f"snapshot {snapshot[:64]} does not have the disk {disk.target}")
        content = DiskContent(path=part.path, format=part.format, snapshot=snapshot if part.internal else "")
    stored = volumes.measured(conn, (content.path,)).get(content.path)
    return content, stored.capacity if stored is not None else 0

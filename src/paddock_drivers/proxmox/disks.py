"""Disks: what they are, and importing them.

An imported disk is a file in a storage that takes `import`; the machine that is made from it copies the file and clears it away. Proxmox
VE offers no way to read a disk over its API, so there are no exports: a backup cannot be downloaded, and what a Proxmox Backup Server
gives out are files of the guest.
"""

import hashlib
import re
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock_drivers.kit import refusals, staging, transfers
from paddock_drivers.kit.progress import TaskProgress
from paddock_drivers.kit.transfers import DiskSink, ImportOrder, StagingTransfers, TransferResult
from paddock_drivers.proxmox import failures
from paddock_drivers.proxmox.api import FormValue, ProxmoxUploadedFile, path
from paddock_drivers.proxmox.cluster import ProxmoxCluster
from paddock_drivers.proxmox.config import ProxmoxConfiguredDrive, ProxmoxMachineConfig
from paddock_drivers.proxmox.identifiers import ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.images import ProxmoxImagePreparation
from paddock_drivers.proxmox.snapshots import ProxmoxSnapshotControl
from paddock_drivers.proxmox.upid import Upid

IMPORT_FORMATS = ("qcow2", "raw", "vmdk")
_WHY_NO_EXPORT = "Proxmox VE's API hands out no disks: it neither reads volumes nor lets backups be downloaded"
_FIX_NO_EXPORT = "copy the disk on a node (qm disk export, or a shared storage), and import it from there"


class ProxmoxDiskTransfers:
    def __init__(self, cluster: ProxmoxCluster, snapshots: ProxmoxSnapshotControl, images: ProxmoxImagePreparation, clock: Clock) -> None:
        self._cluster = cluster
        self._snapshots = snapshots
        self._images = images
        self._clock = clock
        self._work = StagingTransfers()

    async def describe(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk of a machine: the named one, or the one that it boots from."""
        machine = await self._cluster.machine(request.vm_id)
        snapshots = await self._snapshots.every(machine)
        if request.snapshot_id and all(each.name != request.snapshot_id for each in snapshots):
            raise refusals.not_found(f"machine {machine.config.name} has no snapshot {request.snapshot_id[:64]}")
        disk = named_disk(machine.config, request.disk_id)
        if disk is None:
            what = f"machine {machine.config.name} has no disk {request.disk_id[:64]}" if request.disk_id else "the machine has no disk"
            raise refusals.not_found(what)
        facts = {"storage": disk.storage, "serial": disk.serial, "bus": disk.slot.rstrip("0123456789")}
        return m.GetDiskInfoResponse(
            disk_id=disk.slot,
            format=disk.format,
            virtual_size_bytes=disk.size,
            path=disk.volume,
            is_bootable=disk == machine.config.root,
            snapshots=tuple(each.name for each in snapshots),
            metadata={name: value for name, value in facts.items() if value},
        )

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Refuse: the API has no way."""
        raise refusals.not_supported("the disk cannot be exported", why=_WHY_NO_EXPORT, fix=_FIX_NO_EXPORT)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk from staging storage, or have the cluster download it from an address."""
        given = request.format or "qcow2"
        if given not in IMPORT_FORMATS:
            raise refusals.not_supported(f"the format {given[:32]!r} cannot be imported", fix=f"use one of {', '.join(IMPORT_FORMATS)}")
        if not request.target_name:
            raise refusals.invalid("the disk has no name", fix="send target_name")
        checksum = transfers.expected_checksum(request)
        remote = urlsplit(request.source_url).scheme in ("http", "https")
        source = (
            None
            if remote
            else staging.find(
                self._cluster.settings.staging, request.source_url, request.credentials, request.storage_options_json, request.transfer_mode
            )
        )
        node = await self._images.node_for(request.storage_hint or self._cluster.settings.import_storage)
        storage = await self._images.storage(node, request.storage_hint)
        volume = f"{storage}:import/{_file(request, given)}"
        if source is None:
            return await self._download(request, node, volume, checksum)
        if await self._images.is_there(f"{node} {volume}") and not self._is_receiving(request, volume):
            return m.ImportDiskResponse(disk_id=volume, path=volume, checksum=checksum)
        order = ImportOrder(source=source, checksum=checksum)

        async def work() -> TransferResult:
            with failures.mapped():
                return await self._receive(node, volume, order)

        transfer, result = self._work.begin(ProxmoxTaskGoal.RECEIVED, request.source_url, volume, work)
        if result is None:
            task = ProxmoxTaskId(ProxmoxTaskGoal.RECEIVED, None, None, transfer)
            return m.ImportDiskResponse(disk_id=volume, path=volume, task=m.TaskRef(id=str(task)))
        self._work.forget(request.source_url)
        return m.ImportDiskResponse(disk_id=volume, path=volume, actual_size_bytes=result.disk_size, checksum=result.checksum)

    def _is_receiving(self, request: m.ImportDiskRequest, volume: str) -> bool:
        """Return whether this process writes a file, or knows the sum of one that it has written."""
        key = f"{request.source_url}\0{volume}"
        digest = hashlib.sha256(f"{ProxmoxTaskGoal.RECEIVED}\0{key}".encode()).hexdigest()[:32]
        found = self._work.status(digest)
        return not found.error

    async def _receive(self, node: str, volume: str, order: ImportOrder) -> TransferResult:
        storage, _, name = volume.partition(":import/")

        async def open_sink(size: int) -> DiskSink:
            async def send(chunks: AsyncIterator[bytes], length: int) -> None:
                fields = {"content": "import"}
                if order.checksum:
                    fields |= {"checksum": order.checksum, "checksum-algorithm": "sha256"}
                target = path("nodes", node, "storage", storage, "upload")
                await self._cluster.finish(await self._cluster.api.upload(target, fields, ProxmoxUploadedFile(name, length, chunks)))

            return send

        return await transfers.import_(order, self._clock, open_sink)

    async def _download(self, request: m.ImportDiskRequest, node: str, volume: str, checksum: str) -> m.ImportDiskResponse:
        """Have the cluster fetch a disk from an address."""
        if await self._images.is_there(f"{node} {volume}"):
            return m.ImportDiskResponse(disk_id=volume, path=volume, checksum=checksum)
        storage, _, name = volume.partition(":import/")
        form: dict[str, FormValue] = {"content": "import", "filename": name, "url": request.source_url}
        if checksum:
            form |= {"checksum": checksum, "checksum-algorithm": "sha256"}
        upid = Upid.parse(await self._cluster.api.post(path("nodes", node, "storage", storage, "download-url"), form))
        task = ProxmoxTaskId(ProxmoxTaskGoal.PREPARED, upid, None, f"{node} {volume}")
        return m.ImportDiskResponse(disk_id=volume, path=volume, task=m.TaskRef(id=str(task)), checksum=checksum)

    def transfer_status(self, transfer: str) -> TaskProgress:
        """The state of a transfer."""
        return self._work.status(transfer)

    async def delete_transfer(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an export from its storage; one that is gone is deleted."""
        return await self._work.delete(self._cluster.settings.staging, request, self._clock)


def named_disk(config: ProxmoxMachineConfig, name: str) -> ProxmoxConfiguredDrive | None:
    """Return the disk of a name: a slot, a serial number or a volume; without a name the one that the machine boots from."""
    if not name:
        return config.root
    return next((each for each in config.drives if name in (each.slot, each.serial, each.volume)), None)


def _file(request: m.ImportDiskRequest, format: str) -> str:
    """The name of an imported disk: that which is asked for, and a sum of where it comes from."""
    parts = (request.source_url, format, request.expected_checksum, request.storage_options_json)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    words = re.sub(r"[^A-Za-z0-9]+", "-", request.target_name).strip("-").lower()[:80]
    return f"paddock-disk-{words or 'disk'}-{digest}.{format}"

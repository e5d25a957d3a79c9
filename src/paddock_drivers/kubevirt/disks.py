"""Disks: what they are, exporting and importing them. A disk is a claim, and its content is raw."""

import asyncio
import hashlib
from urllib.parse import urlsplit

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.storage import ResourceRequirements, StorageSpec, TypedLocalReference
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec, HttpSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import conversion, refusals, staging, transfers
from paddock_drivers.kit.progress import TaskProgress
from paddock_drivers.kit.transfers import ExportOrder, ImportOrder, StagingTransfers, TransferResult
from paddock_drivers.kubevirt import booting, failures, marks, observed, targets
from paddock_drivers.kubevirt.channels import DiskChannel, TargetExports
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of
from paddock_drivers.kubevirt.identifiers import ObjectId, TaskGoal, TaskId
from paddock_drivers.kubevirt.inventory import MachineInventory
from paddock_drivers.kubevirt.observed import ClaimDisk
from paddock_drivers.kubevirt.receiving import DiskReceiver
from paddock_drivers.kubevirt.snapshots import SnapshotControl

IMPORT_FORMATS = ("qcow2", "raw", "vmdk", "vdi", "vhdx")


class DiskTransfers:
    """Describes, exports and imports disks."""

    def __init__(
        self, cluster: TargetCluster, inventory: MachineInventory, snapshots: SnapshotControl, channel: DiskChannel, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._snapshots = snapshots
        self._channel = channel
        self._clock = clock
        self._exports = TargetExports(cluster)
        self._receiver = DiskReceiver(cluster, channel, clock)
        self._work = StagingTransfers()

    async def describe(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk of a machine: the named one, or the one that it boots from.

        Kubernetes tells what a volume asks for and not what a snapshot of it takes, so that is left open.
        """
        machine = await self._cluster.machine(request.vm_id)
        if request.snapshot_id:
            await self._snapshots.find(request.snapshot_id)
        claims, instance = await asyncio.gather(self._inventory.claims_of(machine), self._cluster.instance(machine))
        found = observed.disks(machine, instance, claims)
        disk = named_disk(found, request.disk_id)
        if disk is None:
            what = f"machine {machine.metadata.name} has no disk {request.disk_id}" if request.disk_id else "the machine has no disk"
            raise refusals.not_found(what)
        claim = claims.get(disk.claim)
        snapshots = await self._cluster.every(targets.SNAPSHOTS)
        spec = claim.spec if claim is not None else None
        facts = {
            "storageClass": (spec.storageClassName if spec is not None else None) or "",
            "volumeMode": (spec.volumeMode if spec is not None else None) or "Filesystem",
            "device": disk.device,
        }
        return m.GetDiskInfoResponse(
            disk_id=disk.name,
            format="raw",
            virtual_size_bytes=disk.size,
            actual_size_bytes=0 if request.snapshot_id else booting.size_of(claim) if claim is not None else disk.size,
            path=disk.claim,
            is_bootable=bool(found) and disk == found[0],
            snapshots=tuple(str(id_of(each)) for each in snapshots if each.spec.source.name == machine.metadata.name),
            metadata={name: value for name, value in facts.items() if value},
        )

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk that is at rest, as work of this process. A repeated call answers with its task, and then with its result."""
        machine = await self._cluster.machine(request.vm_id)
        claims, instance = await asyncio.gather(self._inventory.claims_of(machine), self._cluster.instance(machine))
        disk = named_disk(observed.disks(machine, instance, claims), request.disk_id)
        if disk is None:
            what = f"machine {machine.metadata.name} has no disk {request.disk_id}" if request.disk_id else "the machine has no disk"
            raise refusals.not_found(what)
        target = staging.of_request(self._cluster.settings.staging, request, request.destination_url)
        chosen = request.format or (conversion.QCOW2 if conversion.QCOW2 in conversion.formats() else conversion.RAW)
        if chosen not in conversion.formats():
            raise refusals.not_supported(f"the format {chosen[:32]!r} cannot be exported", fix=f"use {', '.join(conversion.formats())}")
        if request.compress and chosen == conversion.RAW:
            raise refusals.not_supported("a raw export cannot be compressed", fix="use qcow2")
        source, volume = await self._source(machine, disk, request.snapshot_id, live=observed.is_live(instance))
        order = ExportOrder(target=target, format=chosen, compress=request.compress, size=disk.size, scratch=self._cluster.settings.scratch)
        what = f"{machine.metadata.uid}/{disk.name}/{request.snapshot_id}/{chosen}/{request.compress}"
        digest = hashlib.sha256(f"{request.destination_url} {what}".encode()).hexdigest()[:12]
        name = f"{marks.object_name(machine.metadata.name)[:40]}-{digest}"

        async def work() -> TransferResult:
            with failures.mapped():
                try:
                    link = await self._exports.open(machine, source, volume, name)
                    return await transfers.export(order, self._channel.fetch(link), self._clock)
                finally:
                    await self._exports.close(name)

        transfer, result = self._work.begin(TaskGoal.EXPORTED, request.destination_url, what, work)
        if result is None:
            return m.ExportDiskResponse(export_id=name, task=_task(TaskGoal.EXPORTED, transfer), estimated_size_bytes=disk.size)
        return m.ExportDiskResponse(export_id=name, estimated_size_bytes=result.size, checksum=result.checksum)

    async def _source(self, machine: VirtualMachine, disk: ClaimDisk, snapshot: str, *, live: bool) -> tuple[TypedLocalReference, str]:
        """The object to export, and the name of the disk in it."""
        if snapshot:
            found = await self._snapshots.find(snapshot)
            self._snapshots.check_machine(found, str(id_of(machine)))
            reference = TypedLocalReference(apiGroup="snapshot.kubevirt.io", kind=targets.SNAPSHOTS.kind, name=found.metadata.name)
            return reference, disk.name
        if live:
            what = f"the disks of machine {machine.metadata.name} cannot be exported while it runs"
            raise refusals.conflict(what, fix="power it off, or name a snapshot")
        return TypedLocalReference(apiGroup="", kind=targets.CLAIMS.kind, name=disk.claim), disk.claim

    async def delete_transfer(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an export from its storage; one that is gone is deleted."""
        return await self._work.delete(self._cluster.settings.staging, request, self._clock)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk. A repeated call answers with the one that is there; another content of the name is a Conflict."""
        if urlsplit(request.source_url).scheme not in ("http", "https"):
            return await self._receive(request)
        return await self._fetch(request)

    async def _receive(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk from staging storage, as work of this process."""
        name = _disk_name(request)
        source = staging.of_request(self._cluster.settings.staging, request, request.source_url)
        order = ImportOrder(source=source, checksum=transfers.expected_checksum(request))
        digest = _digest(request)

        async def work() -> TransferResult:
            with failures.mapped():
                return await self._receiver.receive(name, digest, order, request.storage_hint)

        transfer, result = self._work.begin(TaskGoal.RECEIVED, request.source_url, f"{name}/{digest}", work)
        if result is None:
            return m.ImportDiskResponse(disk_id=name, path=name, task=_task(TaskGoal.RECEIVED, transfer))
        if await self._cluster.find(targets.DATA_VOLUMES, name) is None:
            # The disk was deleted meanwhile.
            self._work.forget(request.source_url)
            return await self._receive(request)
        return m.ImportDiskResponse(disk_id=name, path=name, actual_size_bytes=result.disk_size, checksum=result.checksum)

    def transfer_status(self, task: TaskId) -> TaskProgress:
        """The state of a transfer."""
        return self._work.status(task.object.uid)

    async def _fetch(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Have CDI import a disk from an address."""
        wanted = import_source(request)
        name = _disk_name(request)
        digest = _digest(request)
        volume = DataVolume(
            apiVersion=targets.DATA_VOLUMES.api_version,
            kind=targets.DATA_VOLUMES.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=self._cluster.namespace,
                labels={marks.PURPOSE: booting.DISK},
                annotations={marks.REQUEST: digest, "cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
            ),
            spec=DataVolumeSpec(
                source=wanted,
                storage=StorageSpec(
                    resources=ResourceRequirements(requests={"storage": self._cluster.settings.disk_size}),
                    storageClassName=request.storage_hint or None,
                ),
            ),
        )
        found = await self._cluster.ensure(targets.DATA_VOLUMES, volume)
        if (found.metadata.annotations or {}).get(marks.REQUEST) != digest:
            raise refusals.conflict(f"a disk {name} exists and has another content", fix="choose another name or delete it")
        task = m.TaskRef(id=str(TaskId(TaskGoal.IMPORTED, id_of(found))))
        return m.ImportDiskResponse(disk_id=name, path=name, task=task, checksum=transfers.expected_checksum(request))


def _task(goal: TaskGoal, transfer: str) -> m.TaskRef:
    return m.TaskRef(id=str(TaskId(goal, ObjectId("transfer", transfer))))


def named_disk(disks: tuple[ClaimDisk, ...], name: str) -> ClaimDisk | None:
    """Return the disk of a name, by volume or claim; without a name the first, which the machine boots from."""
    if not name:
        return disks[0] if disks else None
    return next((each for each in disks if name in (each.name, each.claim)), None)


def import_source(request: m.ImportDiskRequest) -> DataVolumeSource:
    """Return where a disk comes from; raises NotSupported for what CDI does not reach."""
    if request.transfer_mode not in ("", "auto", "relay"):
        raise refusals.not_supported(f"transfer mode {request.transfer_mode} is not supported", fix="use relay")
    if request.format and request.format not in IMPORT_FORMATS:
        raise refusals.not_supported(f"format {request.format} cannot be imported", fix=f"use one of {', '.join(IMPORT_FORMATS)}")
    scheme, checksum = urlsplit(request.source_url).scheme, transfers.expected_checksum(request)
    if scheme in ("http", "https"):
        return DataVolumeSource(http=HttpSource(url=request.source_url, checksum=f"sha256:{checksum}" if checksum else None))
    what = f"a disk cannot be imported from {scheme or 'an empty address'}"
    raise refusals.not_supported(what, fix="use storage that the provider reports")


def _disk_name(request: m.ImportDiskRequest) -> str:
    name = marks.object_name(request.target_name)
    if not name:
        raise refusals.invalid("the disk has no name", fix="send target_name")
    if request.format and request.format not in IMPORT_FORMATS:
        raise refusals.not_supported(f"format {request.format[:32]} cannot be imported", fix=f"use one of {', '.join(IMPORT_FORMATS)}")
    return name


def _digest(request: m.ImportDiskRequest) -> str:
    parts = (request.source_url, request.format, request.expected_checksum, request.storage_options_json)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

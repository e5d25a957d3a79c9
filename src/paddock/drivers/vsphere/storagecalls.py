"""The calls about what machines are made of and leave behind: snapshots, clones, images, disks."""

from collections.abc import Mapping

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.driver import OptionalRpcs
from paddock.drivers.vsphere.clones import VSphereCloning
from paddock.drivers.vsphere.datastores import DatastoreInventory
from paddock.drivers.vsphere.identifiers import VSphereGoal
from paddock.drivers.vsphere.identities import CloneIdentities
from paddock.drivers.vsphere.images import VSphereImages
from paddock.drivers.vsphere.lookups import MachineLookup
from paddock.drivers.vsphere.placement import VSpherePlacement
from paddock.drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock.drivers.vsphere.session import VSphereSession
from paddock.drivers.vsphere.snapshots import VSphereSnapshots
from paddock.drivers.vsphere.stores import DiskStore
from paddock.drivers.vsphere.target import VSphereTarget
from paddock.drivers.vsphere.tasks import Judge
from paddock.drivers.vsphere.transfers import TransferSettings, VSphereTransfers


class VSphereStorageCalls(OptionalRpcs):
    """The part of the driver that these calls are."""

    def __init__(
        self,
        session: VSphereSession,
        target: VSphereTarget,
        reconfiguration: VSphereReconfiguration,
        identities: CloneIdentities,
        settings: TransferSettings,
        clock: Clock,
    ) -> None:
        self._session = session
        self._datastores = DatastoreInventory(target.inventory)
        self._placement = VSpherePlacement(target, self._datastores)
        lookup, store = MachineLookup(target.inventory), DiskStore(session, target.inventory)
        self._snapshots = VSphereSnapshots(lookup)
        self._cloning = VSphereCloning(target, self._snapshots, self._placement, reconfiguration, identities)
        self._images = VSphereImages(session, target, self._placement, store, settings)
        self._transfers = VSphereTransfers(session, lookup, store, self._datastores, settings, clock)

    @property
    def _judges(self) -> Mapping[VSphereGoal, Judge]:
        """The judges of the goals of these calls."""
        return {
            VSphereGoal.SNAPSHOTTED: self._snapshots.judge,
            VSphereGoal.SNAPSHOT_DELETED: self._snapshots.judge,
            VSphereGoal.REVERTED: self._snapshots.judge,
            VSphereGoal.PREPARED: self._images.status,
            VSphereGoal.UNPREPARED: self._images.judge_deletion,
            VSphereGoal.EXPORTED: self._transfers.status,
            VSphereGoal.RECEIVED: self._transfers.status,
        }

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot."""
        return await self._session.run(lambda: self._snapshots.create(request), "the snapshot cannot be taken")

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot."""
        return await self._session.run(lambda: self._snapshots.delete(request), "the snapshot cannot be deleted")

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""
        return await self._session.run(lambda: self._snapshots.revert(request), "the machine cannot go back to the snapshot")

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine, with copies of its disks or based on a snapshot of them."""
        return await self._session.run(lambda: self._cloning.clone(request), "the machine cannot be cloned")

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Make a template of an image, once."""
        return await self._images.prepare(request)

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image; machines have disks of their own."""
        return await self._session.run(lambda: self._images.delete(request), "the image cannot be deleted")

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and where it is kept."""
        return await self._session.run(lambda: self._transfers.describe(request), "the disk cannot be described")

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk to staging storage."""
        return await self._transfers.export_disk(request)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk from staging storage."""
        return await self._transfers.import_disk(request)

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an exported disk from staging storage."""
        return await self._transfers.delete_transfer(request)

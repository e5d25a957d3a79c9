"""The parts of the driver for snapshots, clones, images and disks."""

from collections.abc import Mapping

from paddock.base.clock import Clock
from paddock_drivers.vsphere.clones import VSphereCloning
from paddock_drivers.vsphere.datastores import DatastoreInventory
from paddock_drivers.vsphere.identifiers import VSphereGoal
from paddock_drivers.vsphere.identities import CloneIdentities
from paddock_drivers.vsphere.images import VSphereImages
from paddock_drivers.vsphere.lookups import MachineLookup
from paddock_drivers.vsphere.placement import VSpherePlacement
from paddock_drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.snapshots import VSphereSnapshots
from paddock_drivers.vsphere.stores import DiskStore
from paddock_drivers.vsphere.target import VSphereTarget
from paddock_drivers.vsphere.tasks import Judge
from paddock_drivers.vsphere.transfers import TransferSettings, VSphereTransfers


class VSphereStorageParts:
    """Snapshots, clones, images and disks, and who judges their tasks."""

    def __init__(
        self,
        session: VSphereSession,
        target: VSphereTarget,
        reconfiguration: VSphereReconfiguration,
        identities: CloneIdentities,
        settings: TransferSettings,
        clock: Clock,
    ) -> None:
        self.datastores = DatastoreInventory(target.inventory)
        self.placement = VSpherePlacement(target, self.datastores)
        lookup, store = MachineLookup(target.inventory), DiskStore(session, target.inventory)
        self.snapshots = VSphereSnapshots(lookup)
        self.cloning = VSphereCloning(target, self.snapshots, self.placement, reconfiguration, identities)
        self.images = VSphereImages(session, target, self.placement, store, settings)
        self.transfers = VSphereTransfers(session, lookup, store, self.datastores, settings, clock)

    @property
    def judges(self) -> Mapping[VSphereGoal, Judge]:
        """The judges of the goals of these calls."""
        return {
            VSphereGoal.SNAPSHOTTED: self.snapshots.judge,
            VSphereGoal.SNAPSHOT_DELETED: self.snapshots.judge,
            VSphereGoal.REVERTED: self.snapshots.judge,
            VSphereGoal.PREPARED: self.images.status,
            VSphereGoal.UNPREPARED: self.images.judge_deletion,
            VSphereGoal.EXPORTED: self.transfers.status,
            VSphereGoal.RECEIVED: self.transfers.status,
        }

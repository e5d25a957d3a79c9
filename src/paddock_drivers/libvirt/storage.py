"""The storage half of the driver: images, disks, snapshots, clones, datastores. `LibvirtDriver` passes such calls on."""

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock_drivers.kit import conversion
from paddock_drivers.kit.diskimages import DiskImages
from paddock_drivers.kit.progress import TaskProgress
from paddock_drivers.libvirt import clones, images, snapshots, transfers
from paddock_drivers.libvirt.clones import DomainCloning
from paddock_drivers.libvirt.hypervisor import Hypervisor
from paddock_drivers.libvirt.images import ImageVolumes
from paddock_drivers.libvirt.machines import MachineStore
from paddock_drivers.libvirt.pools import StoragePools
from paddock_drivers.libvirt.snapshots import DomainSnapshots
from paddock_drivers.libvirt.storageport import MachineStorage
from paddock_drivers.libvirt.transfers import VolumeTransfers

CALLS = (features.IMAGE_DELETE, features.TRANSFER_DELETE, features.DATASTORES, features.CLONE_SNAPSHOT)


class MachineDisks:
    """The calls about what machines are kept on."""

    def __init__(self, store: MachineStore, volumes: MachineStorage, hypervisor: Hypervisor, clock: Clock) -> None:
        settings = store.connection.settings
        self._images = DiskImages(settings.scratch, settings.image_hosts)
        self.preparation = ImageVolumes(store.connection, self._images)
        self.transfers = VolumeTransfers(store, self._images, clock)
        self.snapshots = DomainSnapshots(store)
        self.cloning = DomainCloning(store, volumes, hypervisor)
        self.pools = StoragePools(store.connection)

    async def close(self) -> None:
        """End the work of this process."""
        await self.snapshots.close()
        await self.cloning.close()
        await self._images.close()

    async def progress(self, id: str) -> TaskProgress | None:
        """Return the progress of a task; None for a task of another part."""
        goal, _, rest = id.partition(":")
        if goal == images.PREPARED:
            return await self.preparation.status(rest)
        if goal in (transfers.EXPORTED, transfers.RECEIVED):
            return await self.transfers.status(rest)
        if goal in (snapshots.SNAPSHOTTED, snapshots.REVERTED):
            return await self.snapshots.status(goal, rest)
        return await self.cloning.status(rest) if goal == clones.CLONED else None

    def able(self, get_capabilities_response: m.GetCapabilitiesResponse) -> m.GetCapabilitiesResponse:
        """Return capabilities with those of storage."""
        formats, backends = conversion.formats(), self.transfers.backends
        return m.GetCapabilitiesResponse(
            supports_reconfigure_online=get_capabilities_response.supports_reconfigure_online,
            supports_disk_expansion_online=get_capabilities_response.supports_disk_expansion_online,
            supported_disk_types=get_capabilities_response.supported_disk_types,
            supported_network_types=get_capabilities_response.supported_network_types,
            supports_snapshots=True,
            supports_memory_snapshots=True,
            supports_linked_clones=True,
            supports_image_import=conversion.QCOW2 in formats,
            supports_disk_export=conversion.QCOW2 in formats,
            supports_disk_import=conversion.QCOW2 in formats,
            supported_export_formats=formats,
            supported_import_formats=transfers.IMPORT_FORMATS,
            supports_export_compression=conversion.can_compress(),
            supported_export_backends=backends,
            supported_import_backends=backends,
            supported_transfer_modes=("relay",),
        )

    async def datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        return await self.pools.datastores(request)

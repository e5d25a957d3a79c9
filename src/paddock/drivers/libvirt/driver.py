"""The driver: each call is carried out by the part that it concerns.

    async with LibvirtConnection(settings) as connection:
        driver = LibvirtDriver(connection)
        made = await driver.create(CreateRequest(...))

Nothing is kept between calls but work that would end with the process anyway: machines, owners and deadlines are read from libvirt.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from paddock.base.clock import Clock, SystemClock
from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import OptionalRpcs
from paddock.contract.examination import ProviderFinding
from paddock.drivers.libvirt import examination, failures
from paddock.drivers.libvirt.capabilities import DISK_TYPES, NETWORK_TYPES, HypervisorReport
from paddock.drivers.libvirt.commands import AgentCommands
from paddock.drivers.libvirt.connection import LibvirtConnection
from paddock.drivers.libvirt.hypervisor import Hypervisor
from paddock.drivers.libvirt.inventory import DomainInventory
from paddock.drivers.libvirt.lifecycle import DomainCreation, DomainDeletion
from paddock.drivers.libvirt.machines import MachineStore
from paddock.drivers.libvirt.power import DomainPower
from paddock.drivers.libvirt.reconfiguration import DomainReconfiguration
from paddock.drivers.libvirt.storage import CALLS, MachineDisks
from paddock.drivers.libvirt.storageport import MachineStorage
from paddock.drivers.libvirt.tasks import DomainTasks
from paddock.drivers.libvirt.volumes import VolumeStore


class LibvirtDriver(OptionalRpcs):
    """Keeps machines as domains of one libvirtd."""

    def __init__(self, connection: LibvirtConnection, storage: MachineStorage | None = None, clock: Clock | None = None) -> None:
        storage = storage or VolumeStore(connection)
        store, hypervisor = MachineStore(connection), Hypervisor(connection)
        self._connection, self._hypervisor, self._storage = connection, hypervisor, storage
        self._creation = DomainCreation(store, storage, hypervisor)
        self._deletion = DomainDeletion(store, storage)
        self._power = DomainPower(store)
        self._inventory = DomainInventory(store, storage)
        self._reconfiguration = DomainReconfiguration(store, storage, hypervisor)
        self._commands = AgentCommands(store)
        self._report = HypervisorReport(connection, hypervisor)
        self._disks = MachineDisks(store, storage, hypervisor, clock or SystemClock())
        self._tasks = DomainTasks(self._creation, self._power, (self._disks.progress,))

    async def close(self) -> None:
        """End the work of this process."""
        await self._creation.close()
        await self._power.close()
        await self._disks.close()

    @contextmanager
    def _changes(self, id: str) -> Iterator[None]:
        """Change a machine. The next list reads it anew, although libvirt's event of the change may still be on its way."""
        with failures.mapped():
            try:
                yield
            finally:
                self._inventory.forget(id)

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether the hypervisor can be reached."""
        with failures.mapped():
            answer = await self._report.validate()
            if answer.ok:
                await self._storage.tidy()
            return answer

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what somebody who sets up a Provider should know of the hypervisor."""
        with failures.mapped():
            return await examination.examine(self._connection, self._hypervisor)

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        with failures.mapped():
            return await self._creation.create(request)

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks."""
        with self._changes(request.id):
            return await self._deletion.delete(request)

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power."""
        with self._changes(request.id):
            return await self._power.change(request)

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state."""
        with self._changes(request.id):
            return await self._reconfiguration.apply(request)

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state."""
        with failures.mapped():
            return await self._inventory.describe(request)

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state."""
        with failures.mapped():
            return await self._tasks.status(request)

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what the driver can do."""
        found = m.GetCapabilitiesResponse(
            supports_reconfigure_online=True,
            supports_disk_expansion_online=True,
            supported_disk_types=DISK_TYPES,
            supported_network_types=NETWORK_TYPES,
        )
        return self._disks.able(found)

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot."""
        with failures.mapped():
            return await self._disks.snapshots.create(request)

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot."""
        with failures.mapped():
            return await self._disks.snapshots.delete(request)

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""
        with self._changes(request.vm_id):
            return await self._disks.snapshots.revert(request)

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine."""
        with failures.mapped():
            return await self._disks.cloning.clone(request)

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Store an image once, for machines to copy."""
        with failures.mapped():
            return await self._disks.preparation.prepare(request)

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk to staging storage."""
        with failures.mapped():
            return await self._disks.transfers.export_disk(request)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk from staging storage or from an address."""
        with failures.mapped():
            return await self._disks.transfers.import_disk(request)

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and format."""
        with failures.mapped():
            return await self._disks.transfers.describe(request)

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image; machines have copies of it."""
        with failures.mapped():
            return await self._disks.preparation.delete(request)

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an exported disk from staging storage."""
        with failures.mapped():
            return await self._disks.transfers.delete_transfer(request)

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the storage pools."""
        with failures.mapped():
            return await self._disks.datastores(request)

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        """Return every domain of the hypervisor, foreign ones too."""
        with failures.mapped():
            return await self._inventory.every()

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the hypervisor's host."""
        with failures.mapped():
            return await self._report.hosts()

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return the hypervisor's host."""
        with failures.mapped():
            return await self._report.host(request)

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return what the driver can do beyond upstream's contract."""
        with failures.mapped():
            return await self._report.features((features.EXEC, *CALLS))

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command in a guest by its agent."""
        with failures.mapped():
            return await self._commands.run(request)

"""The driver: each call is carried out by the part that it concerns, and each error becomes a provider's error.

    driver = ProxmoxDriver(ProxmoxApi(Https(access)), ProxmoxSettings(server="https://pve1:8006"))
    made = await driver.create(CreateRequest(...))

What a machine is, and whose, is read from the cluster. The process keeps only the steps that a call has left to do; a driver that was
started again finds the machine incomplete, and the next call goes on.
"""

from paddock.base.clock import Clock, SystemClock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.driver import OptionalRpcs
from paddock.contract.examination import ProviderFinding
from paddock.drivers.proxmox import examination, failures
from paddock.drivers.proxmox.api import ProxmoxApi
from paddock.drivers.proxmox.building import ProxmoxMachineBuilder
from paddock.drivers.proxmox.capabilities import ProxmoxCapabilities
from paddock.drivers.proxmox.clones import ProxmoxMachineCloning
from paddock.drivers.proxmox.cluster import ProxmoxCluster
from paddock.drivers.proxmox.commands import ProxmoxGuestCommandRunner
from paddock.drivers.proxmox.disks import ProxmoxDiskTransfers
from paddock.drivers.proxmox.hosts import ProxmoxHostInventory
from paddock.drivers.proxmox.identifiers import ProxmoxMachineId
from paddock.drivers.proxmox.images import ProxmoxImagePreparation
from paddock.drivers.proxmox.inventory import ProxmoxMachineInventory
from paddock.drivers.proxmox.machines import ProxmoxMachineLifecycle
from paddock.drivers.proxmox.making import ProxmoxMachineMaking
from paddock.drivers.proxmox.power import ProxmoxPowerControl
from paddock.drivers.proxmox.reconfiguration import ProxmoxMachineReconfiguration
from paddock.drivers.proxmox.settings import ProxmoxSettings
from paddock.drivers.proxmox.snapshots import ProxmoxSnapshotControl
from paddock.drivers.proxmox.tasks import ProxmoxTaskJudge
from paddock.drivers.proxmox.works import ProxmoxWorks


class ProxmoxDriver(OptionalRpcs):
    """Keeps machines on the nodes of a Proxmox VE cluster."""

    def __init__(self, api: ProxmoxApi, settings: ProxmoxSettings, clock: Clock | None = None) -> None:
        self._works = ProxmoxWorks()
        cluster = ProxmoxCluster(api, settings, self._works)
        making, self._builder = ProxmoxMachineMaking(cluster), ProxmoxMachineBuilder(cluster)
        self._power = ProxmoxPowerControl(cluster)
        self._images = ProxmoxImagePreparation(cluster)
        self._inventory = ProxmoxMachineInventory(cluster, self._power)
        self._hosts = ProxmoxHostInventory(cluster)
        self._snapshots = ProxmoxSnapshotControl(cluster, self._power)
        self._machines = ProxmoxMachineLifecycle(cluster, making, self._builder, self._images, self._power)
        self._cloning = ProxmoxMachineCloning(cluster, making, self._builder, self._snapshots)
        self._reconfiguration = ProxmoxMachineReconfiguration(cluster, self._builder)
        self._disks = ProxmoxDiskTransfers(cluster, self._snapshots, self._images, clock or SystemClock())
        self._tasks = ProxmoxTaskJudge(cluster, self._power, self._snapshots, self._images, self._disks)
        self._commands = ProxmoxGuestCommandRunner(cluster, self._power)
        self._capabilities = ProxmoxCapabilities(cluster, self._images)
        self._cluster = cluster

    async def close(self) -> None:
        """Stop the work of this process."""
        await self._works.close()

    def _changed(self, id: str) -> None:
        """A machine of ours changes: the next list reads it again."""
        found = ProxmoxMachineId.parse(id)
        if found is not None:
            self._inventory.forget(found.vmid)

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether the cluster can be reached and gives the privileges that machines need."""
        with failures.mapped():
            return await self._capabilities.validate()

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what somebody who sets up a Provider should know of the cluster."""
        with failures.mapped():
            return await examination.examine(self._cluster, self._capabilities)

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        with failures.mapped():
            return await self._machines.create(request)

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks."""
        with failures.mapped():
            return await self._machines.delete(request)

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power."""
        with failures.mapped():
            return await self._power.change(request)

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state, as far as it can be without a restart."""
        self._changed(request.id)
        with failures.mapped():
            return await self._reconfiguration.apply(request)

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state."""
        with failures.mapped():
            return await self._inventory.describe(request)

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state."""
        with failures.mapped():
            return await self._tasks.status(request)

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot of the disks, with the memory if that is asked for."""
        with failures.mapped():
            return await self._snapshots.create(request)

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot."""
        with failures.mapped():
            return await self._snapshots.delete(request)

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""
        self._changed(request.vm_id)
        with failures.mapped():
            return await self._snapshots.revert(request)

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine with copies of its disks."""
        with failures.mapped():
            return await self._cloning.clone(request)

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Download an image once, for machines to copy."""
        with failures.mapped():
            return await self._images.prepare(request)

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what the cluster can do."""
        with failures.mapped():
            return await self._capabilities.find()

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Refuse: the API hands out no disks."""
        with failures.mapped():
            return await self._disks.export_disk(request)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk from staging storage or from an address."""
        with failures.mapped():
            return await self._disks.import_disk(request)

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and the volume that it is kept in."""
        with failures.mapped():
            return await self._disks.describe(request)

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        """Return every machine of the cluster that the user may see, foreign ones too."""
        with failures.mapped():
            return await self._inventory.every()

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the cluster's nodes."""
        with failures.mapped():
            return await self._hosts.every()

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one node."""
        with failures.mapped():
            return await self._hosts.find(request)

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return what the cluster can do beyond upstream's contract."""
        with failures.mapped():
            return await self._capabilities.features()

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command in a guest by its agent."""
        with failures.mapped():
            return await self._commands.run(request)

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image; machines have copies of it."""
        with failures.mapped():
            return await self._images.delete(request)

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete a disk from staging storage that another provider has exported."""
        with failures.mapped():
            return await self._disks.delete_transfer(request)

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the storages that take disks."""
        with failures.mapped():
            return await self._hosts.datastores(request)

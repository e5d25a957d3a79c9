"""The driver: each call is carried out by the part that it concerns, and each error becomes a provider's error.

    driver = KubeVirtDriver(client, KubeVirtDriverSettings(namespace="machines"))
    made = await driver.create(CreateRequest(...))

Nothing is kept between calls but transfers of disks: machines, tasks and owners are read from the target, so any number of drivers may be
started and ended. Transfers are work of this process, and have failed when it ends.
"""

from paddock.base.clock import Clock, SystemClock
from paddock.client.client import Client
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.driver import OptionalRpcs
from paddock.drivers.kubevirt import failures
from paddock.drivers.kubevirt.capabilities import TargetCapabilities
from paddock.drivers.kubevirt.channels import DiskChannel, HttpChannel
from paddock.drivers.kubevirt.clones import MachineCloning
from paddock.drivers.kubevirt.cluster import TargetCluster
from paddock.drivers.kubevirt.commands import GuestCommandRunner
from paddock.drivers.kubevirt.disks import DiskTransfers
from paddock.drivers.kubevirt.hosts import HostInventory
from paddock.drivers.kubevirt.images import ImagePreparation
from paddock.drivers.kubevirt.inventory import MachineInventory
from paddock.drivers.kubevirt.machines import MachineLifecycle
from paddock.drivers.kubevirt.power import PowerControl
from paddock.drivers.kubevirt.reconfiguration import MachineReconfiguration
from paddock.drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock.drivers.kubevirt.snapshots import SnapshotControl
from paddock.drivers.kubevirt.tasks import TaskJudge


class KubeVirtDriver(OptionalRpcs):
    """Keeps machines as KubeVirt objects in one namespace of a Kubernetes API."""

    def __init__(
        self, client: Client, settings: KubeVirtDriverSettings, channel: DiskChannel | None = None, clock: Clock | None = None
    ) -> None:
        cluster = TargetCluster(client, settings)
        self._control = PowerControl(cluster)
        self._inventory = MachineInventory(cluster)
        self._hosts = HostInventory(cluster)
        self._machines = MachineLifecycle(cluster, self._control)
        self._reconfiguration = MachineReconfiguration(cluster, self._inventory)
        self._snapshots = SnapshotControl(cluster)
        self._cloning = MachineCloning(cluster)
        self._images = ImagePreparation(cluster)
        self._disks = DiskTransfers(cluster, self._inventory, self._snapshots, channel or HttpChannel(), clock or SystemClock())
        self._tasks = TaskJudge(cluster, self._inventory, self._disks.transfer_status)
        self._commands = GuestCommandRunner(cluster)
        self._capabilities = TargetCapabilities(cluster, self._commands)

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether the target can be reached and serves machines."""
        with failures.mapped():
            return await self._capabilities.validate()

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        with failures.mapped():
            return await self._machines.create(request)

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with all that it owns."""
        with failures.mapped():
            return await self._machines.delete(request)

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power."""
        with failures.mapped():
            return await self._control.change(request)

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state, as far as it can be without a restart."""
        with failures.mapped():
            return await self._reconfiguration.apply(request)

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state."""
        with failures.mapped():
            return await self._inventory.describe(request)

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state, as its object shows it."""
        with failures.mapped():
            return await self._tasks.status(request)

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot of the disks."""
        with failures.mapped():
            return await self._snapshots.create(request)

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot."""
        with failures.mapped():
            return await self._snapshots.delete(request)

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""
        with failures.mapped():
            return await self._snapshots.revert(request)

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine with copies of its disks."""
        with failures.mapped():
            return await self._cloning.clone(request)

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Import an image once, for machines to copy."""
        with failures.mapped():
            return await self._images.prepare(request)

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what the target can do."""
        with failures.mapped():
            return await self._capabilities.find()

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Export a disk to staging storage."""
        with failures.mapped():
            return await self._disks.export_disk(request)

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk from staging storage or from an address."""
        with failures.mapped():
            return await self._disks.import_disk(request)

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an exported disk from staging storage."""
        with failures.mapped():
            return await self._disks.delete_transfer(request)

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and what it is kept in."""
        with failures.mapped():
            return await self._disks.describe(request)

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        """Return every machine of the namespace, foreign ones too."""
        with failures.mapped():
            return await self._inventory.every()

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the target's nodes."""
        with failures.mapped():
            return await self._hosts.every()

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one node."""
        with failures.mapped():
            return await self._hosts.find(request)

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return what the target can do beyond upstream's contract."""
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

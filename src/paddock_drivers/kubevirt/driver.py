"""The driver: each call is carried out by the part that it concerns, and each error becomes a provider's error.

    driver = KubeVirtDriver(client, KubeVirtDriverSettings(translation=translate, namespace="machines"))
    made = await driver.create(CreateRequest(...))

Nothing is kept between calls but transfers of disks: machines, tasks and owners are read from the target, so any number of drivers may be
started and ended. Transfers are work of this process, and have failed when it ends.
"""

from paddock.base.clock import Clock, SystemClock
from paddock.contract.driver import Calls, ComposedDriver
from paddock.kubernetes.client.client import Client
from paddock_drivers.kubevirt import failures
from paddock_drivers.kubevirt.capabilities import TargetCapabilities
from paddock_drivers.kubevirt.channels import DiskChannel, HttpChannel
from paddock_drivers.kubevirt.clones import MachineCloning
from paddock_drivers.kubevirt.cluster import TargetCluster
from paddock_drivers.kubevirt.commands import GuestCommandRunner
from paddock_drivers.kubevirt.disks import DiskTransfers
from paddock_drivers.kubevirt.hosts import HostInventory
from paddock_drivers.kubevirt.images import ImagePreparation
from paddock_drivers.kubevirt.inventory import MachineInventory
from paddock_drivers.kubevirt.machines import MachineLifecycle
from paddock_drivers.kubevirt.power import PowerControl
from paddock_drivers.kubevirt.reconfiguration import MachineReconfiguration
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock_drivers.kubevirt.snapshots import SnapshotControl
from paddock_drivers.kubevirt.tasks import TaskJudge


class KubeVirtDriver(ComposedDriver):
    """Keeps machines as KubeVirt objects in one namespace of a Kubernetes API."""

    def __init__(
        self, client: Client, settings: KubeVirtDriverSettings, channel: DiskChannel | None = None, clock: Clock | None = None
    ) -> None:
        cluster = TargetCluster(client, settings)
        power, inventory, hosts, snapshots = (
            PowerControl(cluster),
            MachineInventory(cluster),
            HostInventory(cluster),
            SnapshotControl(cluster),
        )
        machines, images, commands = MachineLifecycle(cluster, power), ImagePreparation(cluster), GuestCommandRunner(cluster)
        disks = DiskTransfers(cluster, inventory, snapshots, channel or HttpChannel(), clock or SystemClock())
        capabilities = TargetCapabilities(cluster, commands)
        calls = Calls(
            validate=lambda _: capabilities.validate(),
            get_capabilities=lambda _: capabilities.find(),
            get_features=lambda _: capabilities.features(),
            create=machines.create,
            delete=machines.delete,
            power=power.change,
            reconfigure=MachineReconfiguration(cluster, inventory).apply,
            describe=inventory.describe,
            list_vms=lambda _: inventory.every(),
            task_status=TaskJudge(cluster, inventory, disks.transfer_status).status,
            exec=commands.run,
            snapshot_create=snapshots.create,
            snapshot_delete=snapshots.delete,
            snapshot_revert=snapshots.revert,
            clone=MachineCloning(cluster).clone,
            image_prepare=images.prepare,
            image_delete=images.delete,
            export_disk=disks.export_disk,
            import_disk=disks.import_disk,
            transfer_delete=disks.delete_transfer,
            get_disk_info=disks.describe,
            list_hosts=lambda _: hosts.every(),
            get_host_info=hosts.find,
        )
        super().__init__(calls, failures.mapped)

"""The driver: each call is carried out by the part that it concerns, and each error becomes a provider's error.

    driver = ProxmoxDriver(ProxmoxApi(Https(access)), ProxmoxSettings(server="https://pve1:8006"))
    made = await driver.create(CreateRequest(...))

What a machine is, and whose, is read from the cluster. The process keeps only the steps that a call has left to do; a driver that was
started again finds the machine incomplete, and the next call goes on.
"""

from paddock.base.clock import Clock, SystemClock
from paddock.contract import messages as m
from paddock.contract.driver import Calls, ComposedDriver
from paddock.contract.examination import ProviderFinding
from paddock_drivers.proxmox import examination, failures
from paddock_drivers.proxmox.api import ProxmoxApi
from paddock_drivers.proxmox.building import ProxmoxMachineBuilder
from paddock_drivers.proxmox.capabilities import ProxmoxCapabilities
from paddock_drivers.proxmox.clones import ProxmoxMachineCloning
from paddock_drivers.proxmox.cluster import ProxmoxCluster
from paddock_drivers.proxmox.commands import ProxmoxGuestCommandRunner
from paddock_drivers.proxmox.disks import ProxmoxDiskTransfers
from paddock_drivers.proxmox.hosts import ProxmoxHostInventory
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId
from paddock_drivers.proxmox.images import ProxmoxImagePreparation
from paddock_drivers.proxmox.inventory import ProxmoxMachineInventory
from paddock_drivers.proxmox.machines import ProxmoxMachineLifecycle
from paddock_drivers.proxmox.making import ProxmoxMachineMaking
from paddock_drivers.proxmox.power import ProxmoxPowerControl
from paddock_drivers.proxmox.reconfiguration import ProxmoxMachineReconfiguration
from paddock_drivers.proxmox.settings import ProxmoxSettings
from paddock_drivers.proxmox.snapshots import ProxmoxSnapshotControl
from paddock_drivers.proxmox.tasks import ProxmoxTaskJudge
from paddock_drivers.proxmox.works import ProxmoxWorks


class ProxmoxDriver(ComposedDriver):
    """Keeps machines on the nodes of a Proxmox VE cluster."""

    def __init__(self, api: ProxmoxApi, settings: ProxmoxSettings, clock: Clock | None = None) -> None:
        self._works = ProxmoxWorks()
        self._cluster = cluster = ProxmoxCluster(api, settings, self._works)
        making, builder, power = ProxmoxMachineMaking(cluster), ProxmoxMachineBuilder(cluster), ProxmoxPowerControl(cluster)
        images, hosts, snapshots = ProxmoxImagePreparation(cluster), ProxmoxHostInventory(cluster), ProxmoxSnapshotControl(cluster, power)
        machines = ProxmoxMachineLifecycle(cluster, making, builder, images, power)
        disks = ProxmoxDiskTransfers(cluster, snapshots, images, clock or SystemClock())
        self._inventory = inventory = ProxmoxMachineInventory(cluster, power)
        self._capabilities = capabilities = ProxmoxCapabilities(cluster, images)
        reconfiguration = ProxmoxMachineReconfiguration(cluster, builder)

        async def reconfigure(request: m.ReconfigureRequest) -> m.TaskResponse:
            self._changed(request.id)
            return await reconfiguration.apply(request)

        async def revert(request: m.SnapshotRevertRequest) -> m.TaskResponse:
            self._changed(request.vm_id)
            return await snapshots.revert(request)

        calls = Calls(
            validate=lambda _: capabilities.validate(),
            get_capabilities=lambda _: capabilities.find(),
            get_features=lambda _: capabilities.features(),
            create=machines.create,
            delete=machines.delete,
            power=power.change,
            reconfigure=reconfigure,
            describe=inventory.describe,
            list_vms=lambda _: inventory.every(),
            task_status=ProxmoxTaskJudge(cluster, power, snapshots, images, disks).status,
            exec=ProxmoxGuestCommandRunner(cluster, power).run,
            snapshot_create=snapshots.create,
            snapshot_delete=snapshots.delete,
            snapshot_revert=revert,
            clone=ProxmoxMachineCloning(cluster, making, builder, snapshots).clone,
            image_prepare=images.prepare,
            image_delete=images.delete,
            export_disk=disks.export_disk,
            import_disk=disks.import_disk,
            transfer_delete=disks.delete_transfer,
            get_disk_info=disks.describe,
            list_hosts=lambda _: hosts.every(),
            get_host_info=hosts.find,
            list_datastores=hosts.datastores,
        )
        super().__init__(calls, failures.mapped)

    async def close(self) -> None:
        """Stop the work of this process."""
        await self._works.close()

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what somebody who sets up a Provider should know of the cluster."""
        with failures.mapped():
            return await examination.examine(self._cluster, self._capabilities)

    def _changed(self, id: str) -> None:
        """A machine of ours changes: the next list reads it again."""
        found = ProxmoxMachineId.parse(id)
        if found is not None:
            self._inventory.forget(found.vmid)

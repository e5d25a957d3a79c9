"""The driver: each call is carried out by the part that it concerns.

    async with LibvirtConnection(settings) as connection:
        driver = LibvirtDriver(connection)
        made = await driver.create(CreateRequest(...))

Nothing is kept between calls but work that would end with the process anyway: machines, owners and deadlines are read from libvirt.
"""

from collections.abc import Callable
from typing import TypeVar

from paddock.base.clock import Clock, SystemClock
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import Call, Calls, ComposedDriver
from paddock.contract.examination import ProviderFinding
from paddock_drivers.libvirt import examination, failures
from paddock_drivers.libvirt.capabilities import DISK_TYPES, NETWORK_TYPES, HypervisorReport
from paddock_drivers.libvirt.commands import AgentCommands
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.hypervisor import Hypervisor
from paddock_drivers.libvirt.inventory import DomainInventory
from paddock_drivers.libvirt.lifecycle import DomainCreation, DomainDeletion
from paddock_drivers.libvirt.machines import MachineStore
from paddock_drivers.libvirt.power import DomainPower
from paddock_drivers.libvirt.reconfiguration import DomainReconfiguration
from paddock_drivers.libvirt.storage import CALLS, MachineDisks
from paddock_drivers.libvirt.storageport import MachineStorage
from paddock_drivers.libvirt.tasks import DomainTasks
from paddock_drivers.libvirt.volumes import VolumeStore

Q = TypeVar("Q")


class LibvirtDriver(ComposedDriver):
    """Keeps machines as domains of one libvirtd."""

    def __init__(self, connection: LibvirtConnection, storage: MachineStorage | None = None, clock: Clock | None = None) -> None:
        storage = storage or VolumeStore(connection)
        store, hypervisor = MachineStore(connection), Hypervisor(connection)
        self._connection, self._hypervisor = connection, hypervisor
        self._creation, self._power = DomainCreation(store, storage, hypervisor), DomainPower(store)
        self._disks = disks = MachineDisks(store, storage, hypervisor, clock or SystemClock())
        self._inventory = inventory = DomainInventory(store, storage)
        report = HypervisorReport(connection, hypervisor)

        async def validate(request: m.ValidateRequest) -> m.ValidateResponse:
            answer = await report.validate()
            if answer.ok:
                await storage.tidy()
            return answer

        calls = Calls(
            validate=validate,
            get_capabilities=self._get_capabilities,
            get_features=lambda _: report.features((features.EXEC, *CALLS)),
            create=self._creation.create,
            delete=self._changes(DomainDeletion(store, storage).delete, lambda request: request.id),
            power=self._changes(self._power.change, lambda request: request.id),
            reconfigure=self._changes(DomainReconfiguration(store, storage, hypervisor).apply, lambda request: request.id),
            describe=inventory.describe,
            list_vms=lambda _: inventory.every(),
            task_status=DomainTasks(self._creation, self._power, (disks.progress,)).status,
            exec=AgentCommands(store).run,
            snapshot_create=disks.snapshots.create,
            snapshot_delete=disks.snapshots.delete,
            snapshot_revert=self._changes(disks.snapshots.revert, lambda request: request.vm_id),
            clone=disks.cloning.clone,
            image_prepare=disks.preparation.prepare,
            image_delete=disks.preparation.delete,
            export_disk=disks.transfers.export_disk,
            import_disk=disks.transfers.import_disk,
            transfer_delete=disks.transfers.delete_transfer,
            get_disk_info=disks.transfers.describe,
            list_hosts=lambda _: report.hosts(),
            get_host_info=report.host,
            list_datastores=disks.datastores,
        )
        super().__init__(calls, failures.mapped)

    def _changes(self, call: Call[Q, m.TaskResponse], machine: Callable[[Q], str]) -> Call[Q, m.TaskResponse]:
        """The next list reads the machine anew, although libvirt's event of the change may still be on its way."""

        async def change(request: Q) -> m.TaskResponse:
            try:
                return await call(request)
            finally:
                self._inventory.forget(machine(request))

        return change

    async def close(self) -> None:
        """End the work of this process."""
        await self._creation.close()
        await self._power.close()
        await self._disks.close()

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what somebody who sets up a Provider should know of the hypervisor."""
        with failures.mapped():
            return await examination.examine(self._connection, self._hypervisor)

    async def _get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        found = m.GetCapabilitiesResponse(
            supports_reconfigure_online=True,
            supports_disk_expansion_online=True,
            supported_disk_types=DISK_TYPES,
            supported_network_types=NETWORK_TYPES,
        )
        return self._disks.able(found)

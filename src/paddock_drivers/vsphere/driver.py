"""The driver: each call is carried out by the part that it concerns, in a thread, and each fault becomes a provider's error.

Nothing is kept between calls but transfers of disks: machines, tasks and owners are read from vSphere, so any number of drivers may be
started and ended. Transfers are work of this process, and have failed when it ends.
"""

from collections.abc import Callable
from typing import TypeVar

from paddock.base.clock import Clock
from paddock.contract.driver import Call, Calls, ComposedDriver
from paddock.contract.examination import ProviderFinding
from paddock_drivers.vsphere import examination, templates
from paddock_drivers.vsphere.capabilities import EndpointCapabilities
from paddock_drivers.vsphere.descriptions import VSphereDescriptions
from paddock_drivers.vsphere.identities import CloneIdentities
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.machines import VSphereCreation, VSphereDeletion
from paddock_drivers.vsphere.power import VSpherePower
from paddock_drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.storage import VSphereStorageParts
from paddock_drivers.vsphere.target import VSphereTarget
from paddock_drivers.vsphere.tasks import VSphereTaskJudge
from paddock_drivers.vsphere.transfers import TransferSettings
from paddock_drivers.vsphere.upgrades import HardwareUpgrades

Q = TypeVar("Q")
R = TypeVar("R")


class VSphereDriver(ComposedDriver):
    """Keeps machines in a vCenter or on an ESXi host."""

    def __init__(self, session: VSphereSession, clock: Clock, settings: TransferSettings | None = None) -> None:
        connection, transfers = session.connection, settings or TransferSettings()
        inventory = VSphereInventory(connection)
        self._session, self._target = session, VSphereTarget(connection, inventory)
        target, power = self._target, VSpherePower(self._target, clock)
        reconfiguration, identities = VSphereReconfiguration(target), CloneIdentities(target)
        storage = VSphereStorageParts(session, target, reconfiguration, identities, transfers, clock)
        creation = VSphereCreation(target, storage.placement, reconfiguration, identities, lambda image: templates.find(inventory, image))
        deletion, descriptions = VSphereDeletion(target), VSphereDescriptions(target)
        tasks = VSphereTaskJudge(target, reconfiguration, power, deletion, identities, storage.judges)
        capabilities = EndpointCapabilities(target, transfers.staging.backends)
        calls = Calls(
            validate=self._carried_out(lambda _: capabilities.validate(), "vSphere cannot be used"),
            get_capabilities=self._carried_out(lambda _: capabilities.find()),
            get_features=self._carried_out(lambda _: capabilities.features()),
            create=self._carried_out(creation.create, "the machine cannot be created"),
            delete=self._carried_out(deletion.delete, "the machine cannot be deleted"),
            power=self._carried_out(power.change, "the machine's power cannot be changed"),
            reconfigure=self._carried_out(reconfiguration.apply, "the machine cannot be changed"),
            hardware_upgrade=self._carried_out(HardwareUpgrades(target).upgrade, "the machine cannot be upgraded"),
            describe=self._carried_out(descriptions.describe, "the machine cannot be described"),
            list_vms=self._carried_out(lambda _: descriptions.every(), "the machines cannot be listed"),
            task_status=self._carried_out(tasks.status, "the task cannot be followed"),
            snapshot_create=self._carried_out(storage.snapshots.create, "the snapshot cannot be taken"),
            snapshot_delete=self._carried_out(storage.snapshots.delete, "the snapshot cannot be deleted"),
            snapshot_revert=self._carried_out(storage.snapshots.revert, "the machine cannot go back to the snapshot"),
            clone=self._carried_out(storage.cloning.clone, "the machine cannot be cloned"),
            image_prepare=storage.images.prepare,
            image_delete=self._carried_out(storage.images.delete, "the image cannot be deleted"),
            export_disk=storage.transfers.export_disk,
            import_disk=storage.transfers.import_disk,
            transfer_delete=storage.transfers.delete_transfer,
            get_disk_info=self._carried_out(storage.transfers.describe, "the disk cannot be described"),
            list_hosts=self._carried_out(lambda _: descriptions.hosts(), "the hosts cannot be listed"),
            get_host_info=self._carried_out(descriptions.host, "the host cannot be described"),
            list_datastores=self._carried_out(storage.datastores.list, "the datastores cannot be listed"),
        )
        super().__init__(calls)

    def _carried_out(self, part: Callable[[Q], R], trouble: str = "") -> Call[Q, R]:
        """Return the call that a part carries out in a thread."""

        async def call(request: Q) -> R:
            return await self._session.run(lambda: part(request), trouble)

        return call

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what somebody who sets up a Provider should know of the endpoint."""
        return await self._session.run(lambda: examination.examine(self._target))

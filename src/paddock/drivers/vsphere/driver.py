"""The driver: each call is carried out by the part that it concerns, in a thread, and each fault becomes a provider's error.

Nothing is kept between calls but transfers of disks: machines, tasks and owners are read from vSphere, so any number of drivers may be
started and ended. Transfers are work of this process, and have failed when it ends.
"""

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.examination import ProviderFinding
from paddock.drivers.vsphere import examination, templates
from paddock.drivers.vsphere.capabilities import EndpointCapabilities
from paddock.drivers.vsphere.descriptions import VSphereDescriptions
from paddock.drivers.vsphere.identities import CloneIdentities
from paddock.drivers.vsphere.inventory import VSphereInventory
from paddock.drivers.vsphere.machines import VSphereCreation, VSphereDeletion
from paddock.drivers.vsphere.power import VSpherePower
from paddock.drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock.drivers.vsphere.session import VSphereSession
from paddock.drivers.vsphere.storagecalls import VSphereStorageCalls
from paddock.drivers.vsphere.target import VSphereTarget
from paddock.drivers.vsphere.tasks import VSphereTaskJudge
from paddock.drivers.vsphere.transfers import TransferSettings
from paddock.drivers.vsphere.upgrades import HardwareUpgrades


class VSphereDriver(VSphereStorageCalls):
    """Keeps machines in a vCenter or on an ESXi host."""

    def __init__(self, session: VSphereSession, clock: Clock, settings: TransferSettings | None = None) -> None:
        connection = session.connection
        inventory = VSphereInventory(connection)
        target = VSphereTarget(connection, inventory)
        transfers = settings or TransferSettings()
        self._target = target
        self._power = VSpherePower(target, clock)
        self._reconfiguration = VSphereReconfiguration(target)
        identities = CloneIdentities(target)
        super().__init__(session, target, self._reconfiguration, identities, transfers, clock)
        self._creation = VSphereCreation(
            target, self._placement, self._reconfiguration, identities, lambda image: templates.find(inventory, image)
        )
        self._deletion = VSphereDeletion(target)
        self._descriptions = VSphereDescriptions(target)
        self._upgrades = HardwareUpgrades(target)
        self._tasks = VSphereTaskJudge(target, self._reconfiguration, self._power, self._deletion, identities, self._judges)
        self._capabilities = EndpointCapabilities(target, transfers.staging.backends)

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether vSphere can be reached with the credentials."""
        return await self._session.run(self._capabilities.validate, "vSphere cannot be used")

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what somebody who sets up a Provider should know of the endpoint."""
        return await self._session.run(lambda: examination.examine(self._target))

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        return await self._session.run(lambda: self._creation.create(request), "the machine cannot be created")

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks."""
        return await self._session.run(lambda: self._deletion.delete(request), "the machine cannot be deleted")

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power."""
        return await self._session.run(lambda: self._power.change(request), "the machine's power cannot be changed")

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state."""
        return await self._session.run(lambda: self._reconfiguration.apply(request), "the machine cannot be changed")

    async def hardware_upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Give a machine a newer version of virtual hardware."""
        return await self._session.run(lambda: self._upgrades.upgrade(request), "the machine cannot be upgraded")

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state."""
        return await self._session.run(lambda: self._descriptions.describe(request), "the machine cannot be described")

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state, as vSphere shows it."""
        return await self._session.run(lambda: self._tasks.status(request), "the task cannot be followed")

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        """Return every machine that the account sees, foreign ones too."""
        return await self._session.run(self._descriptions.every, "the machines cannot be listed")

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the hosts."""
        return await self._session.run(self._descriptions.hosts, "the hosts cannot be listed")

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one host."""
        return await self._session.run(lambda: self._descriptions.host(request), "the host cannot be described")

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what the endpoint can do."""
        return await self._session.run(self._capabilities.find)

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return what the endpoint can do beyond upstream's contract."""
        return await self._session.run(self._capabilities.features)

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the datastores, or those of a storage pod."""
        return await self._session.run(lambda: self._datastores.list(request), "the datastores cannot be listed")

"""The abilities of a libvirt hypervisor in the contract's words, and its one host."""

from typing import Any

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.hypervisor import Hypervisor

DISK_TYPES = ("thin", "thick", "eagerzeroedthick")
NETWORK_TYPES = ("network", "bridge", "vlan")
# Members of payloads that are obeyed; what is missing is refused, or a limitation.
_MEMBERS = (
    features.STORAGE_CLASS,
    features.IMPORTED_DISKS,
    features.NETWORK_QOS,
    features.DISK_IOPS,
    features.DISK_STORAGE,
    features.NETWORK_MTU,
    features.NETWORK_DRIVER,
    features.NETWORK_FILTER,
    features.NETWORK_ROUTES,
    features.NETWORK_SEARCH,
    features.IMAGE_CREDENTIALS,
    f"{features.IMAGE_PREPARE}.storage",
    *(f"{features.IMAGE_PREPARE}.optimization.{name}" for name in ("enableCompression", "convertFormat", "enableDeltaSync")),
    features.LISTED_POWER,
    f"{features.PERFORMANCE}.cpuHotAddEnabled",
    f"{features.PERFORMANCE}.memoryHotAddEnabled",
    f"{features.PERFORMANCE}.hyperThreadingPolicy",
    f"{features.SECURITY}.secureBoot",
    f"{features.SECURITY}.tpmEnabled",
    f"{features.SECURITY}.tpmVersion",
    f"{features.SECURITY}.vtdEnabled",
    f"{features.RESOURCE_LIMITS}.cpuShares",
)


class HypervisorReport:
    """Reports the hypervisor: reachable or not, its host, and what it can do."""

    def __init__(self, connection: LibvirtConnection, hypervisor: Hypervisor) -> None:
        self._connection = connection
        self._hypervisor = hypervisor

    async def validate(self) -> m.ValidateResponse:
        """Say whether the hypervisor can be reached, and has the pool and the network of machines that name none."""
        try:
            problem = await self._connection.run(_problem, self._connection.settings.pool)
        except ProviderError as error:
            return m.ValidateResponse(ok=False, message=error.reported, reason=error.reason_code)
        return m.ValidateResponse(ok=not problem, message=problem)

    async def features(self, calls: tuple[str, ...]) -> x.GetFeaturesResponse:
        """Return the features of the calls that the driver has, and of the members that it obeys."""
        found = await self._hypervisor.abilities()
        more = (f"{features.PERFORMANCE}.nestedVirtualization",) if found.accelerated else ()
        limits = (f"{features.RESOURCE_LIMITS}.cpuLimit",) if found.mhz else ()
        return x.GetFeaturesResponse(features=(*calls, *_MEMBERS, *more, *limits))

    async def hosts(self) -> m.ListHostsResponse:
        return m.ListHostsResponse(hosts=(await self._host(),))

    async def host(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return the host of an id."""
        found = await self._host()
        if request.host_id != found.id:
            raise refusals.not_found("the host does not exist", f"this Provider is {found.id}")
        return found

    async def _host(self) -> m.HostInfo:
        found = await self._hypervisor.abilities()
        free = await self._connection.run(_free, self._connection.settings.pool)
        return _described(found, free)


def _described(hypervisor_abilities: HypervisorAbilities, free: int) -> m.HostInfo:
    return m.HostInfo(
        id=hypervisor_abilities.hostname,
        address=hypervisor_abilities.hostname,
        allocatable_cpu=hypervisor_abilities.host_cpus,
        allocatable_mem_mib=hypervisor_abilities.host_memory_mib,
        allocatable_storage=free,
        health=m.HostHealth.READY,
        labels={"type": hypervisor_abilities.type},
        cpu_model=hypervisor_abilities.cpu_model,
        machine_types=hypervisor_abilities.machines,
        emulator_version=hypervisor_abilities.version,
    )


def _problem(conn: Any, pool: str) -> str:
    names = {each.name() for each in conn.listAllStoragePools(0)}
    conn.getHostname()
    return "" if pool in names else f'there is no storage pool "{pool}" at the hypervisor; define it, or set spec.defaults.datastore'


def _free(conn: Any, pool: str) -> int:
    found = [each for each in conn.listAllStoragePools(0) if each.name() == pool]
    return int(found[0].info()[3]) if found else 0

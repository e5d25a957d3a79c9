"""The abilities of the cluster for this user or token: an answer, and the privileges that are missing."""

from typing import Any

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock_drivers.proxmox import disks, placing
from paddock_drivers.proxmox.api import ProxmoxRefusal
from paddock_drivers.proxmox.cluster import ProxmoxCluster
from paddock_drivers.proxmox.images import ProxmoxImagePreparation

_OLDEST = (7, 2)
_DISK_TYPES = ("raw", "qcow2", "vmdk", "thin", "ssd", "nvme")
_NETWORK_TYPES = ("bridge", "vlan", "virtio", "e1000", "e1000e", "rtl8139", "vmxnet3")
_MACHINES = ("VM.Audit", "VM.Allocate", "VM.Clone", "VM.PowerMgmt", "VM.Snapshot")
_CONFIG = ("CPU", "Memory", "Disk", "Network", "Options", "HWType", "CDROM", "Cloudinit")
_STORAGE = ("Datastore.Audit", "Datastore.AllocateSpace")
# Where privileges of a kind count; a Provider may be limited to a pool.
_TREES = {"VM": "vms", "Datastore": "storage", "Sys": "nodes", "SDN": "sdn", "Pool": "pool"}
_PROBLEM_FIX = "give the user or token a role with them (`pveum role modify`, `pveum acl modify`)"


class ProxmoxCapabilities:
    """Finds out what can be done."""

    def __init__(self, cluster: ProxmoxCluster, images: ProxmoxImagePreparation) -> None:
        self._cluster = cluster
        self._images = images

    async def validate(self) -> m.ValidateResponse:
        """Say whether the cluster can be reached, is new enough, and gives the privileges that machines need."""
        self._cluster.forget_release()
        release = await self._cluster.release()
        if release < _OLDEST:
            version, least = (".".join(map(str, each)) for each in (release, _OLDEST))
            return m.ValidateResponse(ok=False, message=f"Proxmox VE {version} is too old; the driver needs {least} or later")
        missing = await self.missing_of((*_MACHINES, *(f"VM.Config.{each}" for each in _CONFIG), *_STORAGE))
        if missing:
            return m.ValidateResponse(ok=False, message=f"the user or token has no {', '.join(missing)}; {_PROBLEM_FIX}")
        return m.ValidateResponse(ok=True)

    async def missing_of(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some privileges that no path gives. A token has what both it and its user have."""
        try:
            paths = await self._cluster.api.get("/access/permissions")
        except ProxmoxRefusal as error:
            if error.status in (401, 403):
                raise
            return ()
        if not isinstance(paths, dict):
            return ()
        return tuple(each for each in wanted if each not in _privileges(paths, _TREES[each.partition(".")[0]]))

    async def _imports(self) -> bool:
        """Return whether files can be imported: by the release, and by a storage for them."""
        if not await self._images.can_import():
            return False
        resources = await self._cluster.resources("storage")
        return any(each.type == "storage" and placing.IMPORT in each.content.split(",") for each in resources)

    async def features(self) -> x.GetFeaturesResponse:
        """Return what can be done here beyond upstream's contract."""
        found = [
            features.EXEC,
            features.DATASTORES,
            features.TRANSFER_DELETE,
            features.RESOURCE_POOL,
            features.STORAGE_CLASS,
            features.CLONE_SNAPSHOT,
            features.NETWORK_QOS,
            features.DISK_IOPS,
            features.DISK_STORAGE,
            features.NETWORK_MTU,
            features.NETWORK_FIREWALL,
            features.NETWORK_RATE,
            features.NETWORK_ROUTES,
            features.NETWORK_SEARCH,
            features.FULL_CLONE,
            features.IMAGE_NODE,
            features.RESOURCE_LIMITS,
            features.PERFORMANCE,
            features.SECURITY,
        ]
        if await self._imports():
            found += [features.IMAGE_DELETE, features.IMPORTED_DISKS]
        return x.GetFeaturesResponse(features=tuple(found))

    async def find(self) -> m.GetCapabilitiesResponse:
        """Return what can be done here. Linked clones are of templates only, so machines have none."""
        imports = await self._imports()
        backends = self._cluster.settings.staging.backends
        return m.GetCapabilitiesResponse(
            supports_reconfigure_online=True,
            supports_disk_expansion_online=True,
            supports_snapshots=True,
            supports_memory_snapshots=True,
            supports_linked_clones=False,
            supports_image_import=imports,
            supported_disk_types=_DISK_TYPES,
            supported_network_types=_NETWORK_TYPES,
            supports_disk_export=False,
            supports_disk_import=imports,
            supported_import_formats=disks.IMPORT_FORMATS if imports else (),
            supported_import_backends=backends if imports else (),
            supported_transfer_modes=("relay",) if imports else (),
        )


def _privileges(paths: dict[str, Any], tree: str) -> set[str]:
    """The privileges on any path of a tree, or of the pools, whose members have them too."""
    roots = ("/", f"/{tree}", "/pool")
    found = (rights for where, rights in paths.items() if where in roots or where.startswith(tuple(f"{each}/" for each in roots[1:])))
    return {name for rights in found if isinstance(rights, dict) for name in rights}

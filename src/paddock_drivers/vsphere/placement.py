"""Finds the place of a machine: folder, pool, host and datastore, by the machine's wishes and the Provider's defaults. For threads."""

from typing import Any, Protocol

import msgspec
from msgspec import UNSET
from pyVmomi import vim

from paddock.contract.payloads import PlacementPayload
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere.inventory import InventoryRow
from paddock_drivers.vsphere.target import VSphereTarget


class ChosenDatastore(Protocol):
    @property
    def ref(self) -> Any: ...


class DatastoreChoice(Protocol):
    def named(self, text: str) -> ChosenDatastore:
        """Return the one of a name or a path."""

    def choose(self, pod: str, size: int = 0) -> ChosenDatastore:
        """Return the member of a storage pod that so many bytes go to."""


class VSpherePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a machine is made in."""

    folder: Any
    pool: Any
    # None: vSphere decides
    host: Any = None
    # None: that of the template
    datastore: Any = None
    datacenter: Any = None


class VSpherePlacement:
    """Finds the place of a new machine."""

    def __init__(self, target: VSphereTarget, datastores: DatastoreChoice) -> None:
        self._target = target
        self._inventory = target.inventory
        self._defaults = target.settings.defaults
        self._datastores = datastores

    def find(self, placement: PlacementPayload, size: int = 0) -> VSpherePlace:
        """Return the place of a machine whose disks have so many bytes; raises NotFound, and InvalidSpec when it is not clear."""
        home = self._inventory.datacenter()
        pool, host = self._computes(placement, home)
        return VSpherePlace(
            folder=self.folder(placement, home), pool=pool, host=host, datastore=self.datastore(placement, size), datacenter=home.ref
        )

    def folder(self, placement: PlacementPayload, home: InventoryRow | None = None) -> Any:
        """Return the folder of a machine: that of its name or path, or the datacenter's."""
        home = home or self._inventory.datacenter()
        name = placement.folder or self._defaults.folder
        return self._inventory.named(vim.Folder, name, home.get("vmFolder")).ref if name else home.get("vmFolder")

    def datastore(self, placement: PlacementPayload, size: int = 0) -> Any:
        """Return the datastore. What the machine says counts as a whole before the Provider's defaults."""
        own = bool(placement.datastore or placement.storage_pod)
        name = placement.datastore if own else self._defaults.datastore
        pod = placement.storage_pod if own else self._defaults.storage_pod
        if own and name:
            return self._datastores.named(name).ref
        if pod:
            return self._datastores.choose(pod, size).ref
        return self._datastores.named(name).ref if name else None

    def _computes(self, placement: PlacementPayload, home: InventoryRow) -> tuple[Any, Any]:
        """The resource pool, and the host if one is named."""
        cluster = placement.cluster or self._defaults.cluster
        owner = self._inventory.named(vim.ComputeResource, cluster, home.ref, ("resourcePool",)) if cluster else None
        host = None
        if placement.host:
            host = self._inventory.named(vim.HostSystem, placement.host, owner.ref if owner is not None else home.ref, ("parent",))
            owner = owner or self._inventory.find(host.get("parent"), ("name", "resourcePool"))
        owner = owner or self._only(home)
        asked = placement.resource_pool if placement.resource_pool is not UNSET else ""
        name = asked or (self._defaults.resource_pool if not placement.cluster or placement.cluster == self._defaults.cluster else "")
        pool = self._inventory.named(vim.ResourcePool, name, owner.ref).ref if name else owner.get("resourcePool")
        return pool, host.ref if host is not None else None

    def _only(self, home: InventoryRow) -> InventoryRow:
        """The only cluster of the datacenter, or its only host."""
        found = self._inventory.every(vim.ComputeResource, ("name", "resourcePool"), home.ref)
        clusters = [each for each in found if isinstance(each.ref, vim.ClusterComputeResource)] or found
        if len(clusters) == 1:
            return clusters[0]
        why = f"there are {len(clusters)} clusters in datacenter {home.name}"
        raise refusals.invalid("the cluster is not clear", why=why, fix="name one in placement.cluster, or in the defaults of the Provider")

"""Datastores and storage pods, and the choice of one for a new machine. For threads."""

from collections.abc import Sequence
from typing import Any

import msgspec
from pyVmomi import vim

from paddock.base import reasons
from paddock.contract import extensionmessages as x
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere.inventory import InventoryRow, VSphereInventory

_PATHS = ("name", "parent", "summary.accessible", "summary.capacity", "summary.freeSpace", "summary.maintenanceMode", "summary.type")
_NORMAL = "normal"


class FoundDatastore(msgspec.Struct, frozen=True):
    ref: Any
    name: str
    pod: str
    free: int
    total: int
    accessible: bool
    maintenance: bool
    type: str

    @property
    def is_usable(self) -> bool:
        """Return whether a new disk can be put there."""
        return self.accessible and not self.maintenance


class DatastoreInventory:
    """The datastores of the datacenter."""

    def __init__(self, inventory: VSphereInventory) -> None:
        self._inventory = inventory

    def list(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return all datastores, or those of a pod."""
        found = (each for each in self.every() if request.pod in ("", each.pod))
        return x.ListDatastoresResponse(
            datastores=tuple(
                x.DatastoreInfo(
                    name=each.name,
                    pod=each.pod,
                    free_bytes=each.free,
                    total_bytes=each.total,
                    accessible=each.accessible,
                    maintenance=each.maintenance,
                )
                for each in found
            )
        )

    def every(self) -> tuple[FoundDatastore, ...]:
        """Return the datastores in the order of their names."""
        root = self._inventory.datacenter().ref
        pods = {each.ref: each.name for each in self._inventory.every(vim.StoragePod, ("name",), root)}
        found = [_datastore(each, pods) for each in self._inventory.every(vim.Datastore, _PATHS, root)]
        return tuple(sorted(found, key=lambda each: each.name))

    def named(self, text: str) -> FoundDatastore:
        """Return the datastore of a name or a path; raises NotFound."""
        found = self._inventory.named(vim.Datastore, text, paths=_PATHS)
        return _datastore(found, {})

    def choose(self, pod: str, size: int = 0) -> FoundDatastore:
        """Return the datastore of a pod for so many bytes: the one with the most free space."""
        members = [each for each in self.every() if each.pod == pod]
        if not members:
            what = f'storage pod "{pod}" does not exist or has no datastore'
            raise refusals.not_found(what, "name a datastore cluster that has datastores", reason=reasons.POOL_MISSING)
        return roomiest(members, f'storage pod "{pod}"', size)


def roomiest(members: Sequence[FoundDatastore], where: str, size: int) -> FoundDatastore:
    """Return the usable datastore with the most free space, of several the first by name; raises QuotaExceeded when none has room."""
    usable = [each for each in members if each.is_usable]
    if not usable:
        raise refusals.conflict(f"{where} has no datastore that is accessible and not in maintenance")
    best = min(usable, key=lambda each: (-each.free, each.name))
    if best.free < size:
        raise _full(where, size, best)
    return best


def _full(where: str, size: int, best: FoundDatastore) -> Exception:
    why = f"{size} bytes are wanted, and the most that a datastore has free are {best.free}"
    fix = "add a datastore or delete what is not needed"
    return ProviderError(ErrorKind.QUOTA_EXCEEDED, f"{where} has no room", why=why, fix=fix, reason=reasons.PROVIDER_FULL)


def _datastore(row: InventoryRow, pods: dict[Any, str]) -> FoundDatastore:
    total = int(row.get("summary.capacity", 0))
    return FoundDatastore(
        ref=row.ref,
        name=row.name,
        pod=pods.get(row.get("parent"), ""),
        free=min(int(row.get("summary.freeSpace", 0)), total),
        total=total,
        accessible=bool(row.get("summary.accessible", False)),
        maintenance=str(row.get("summary.maintenanceMode") or _NORMAL) != _NORMAL,
        type=str(row.get("summary.type", "")),
    )

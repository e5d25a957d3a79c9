"""The inventory: objects by name or path, and their properties, read in few calls.

A read names its properties and goes over all objects at once, so that a thousand machines cost a handful of calls. The server keeps
nothing of a read but the place of the next page: if the session is lost between two pages, the read begins anew.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from pyVmomi import vim, vmodl

from paddock.base import reasons
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere.session import VSphereConnection

_QUERY = vmodl.query.PropertyCollector
# The ways through the inventory: type, property, and the ways to go on by.
_WAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "folder": ("Folder", "childEntity", ("folder", "vms", "hosts", "stores", "networks", "members", "root-pool", "apps")),
    "vms": ("Datacenter", "vmFolder", ("folder",)),
    "hosts": ("Datacenter", "hostFolder", ("folder",)),
    "stores": ("Datacenter", "datastoreFolder", ("folder",)),
    "networks": ("Datacenter", "networkFolder", ("folder",)),
    "members": ("ComputeResource", "host", ()),
    "root-pool": ("ComputeResource", "resourcePool", ("pools",)),
    "pools": ("ResourcePool", "resourcePool", ("pools",)),
    "apps": ("VirtualApp", "vm", ()),
}
# The ways to the objects of a kind; the others are not gone.
_TO: dict[str, tuple[str, ...]] = {
    "Datacenter": ("folder",),
    "VirtualMachine": ("folder", "vms", "apps"),
    "Folder": ("folder", "vms"),
    "HostSystem": ("folder", "hosts", "members"),
    "ComputeResource": ("folder", "hosts"),
    "ClusterComputeResource": ("folder", "hosts"),
    "ResourcePool": ("folder", "hosts", "root-pool", "pools"),
    "Datastore": ("folder", "stores"),
    "StoragePod": ("folder", "stores"),
    "Network": ("folder", "networks"),
    "DistributedVirtualPortgroup": ("folder", "networks"),
    "DistributedVirtualSwitch": ("folder", "networks"),
}
# The folder of a datacenter that has the kind.
_FOLDERS = {
    "VirtualMachine": "vm",
    "Folder": "vm",
    "HostSystem": "host",
    "ComputeResource": "host",
    "ClusterComputeResource": "host",
    "ResourcePool": "host",
    "Datastore": "datastore",
    "StoragePod": "datastore",
    "Network": "network",
    "DistributedVirtualPortgroup": "network",
    "DistributedVirtualSwitch": "network",
}
_WORDS = {
    "VirtualMachine": "machine",
    "Folder": "folder",
    "HostSystem": "host",
    "ClusterComputeResource": "cluster",
    "ComputeResource": "cluster",
    "ResourcePool": "resource pool",
    "StoragePod": "storage pod",
}
# The reason codes of what is missing.
_MISSING = {
    "VirtualMachine": reasons.TEMPLATE_MISSING,
    "Network": reasons.NETWORK_MISSING,
    "Datastore": reasons.POOL_MISSING,
    "StoragePod": reasons.POOL_MISSING,
}
_SHOWN = 5


class InventoryRow(msgspec.Struct, frozen=True):
    """An object and those of its properties that were read and are set."""

    ref: Any
    properties: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name as people write it; vCenter escapes three characters."""
        return unquote(str(self.properties.get("name") or ""))

    def get(self, path: str, default: Any = None) -> Any:
        """Return a property, or the default when it is not set."""
        found = self.properties.get(path)
        return default if found is None else found


class VSphereInventory:
    """Finds objects and reads their properties. For threads."""

    def __init__(self, connection: VSphereConnection) -> None:
        self._connection = connection

    # --- reading ----------------------------------------------------------------------------------------------------------

    def every(self, kind: type[Any], paths: Sequence[str], root: Any = None) -> list[InventoryRow]:
        """Return all objects of a kind below a folder, a datacenter or a cluster; everywhere by default."""
        below = root if root is not None else self._connection.content.rootFolder
        start = _QUERY.ObjectSpec(obj=below, skip=False, selectSet=_selections(kind.__name__.rsplit(".", 1)[-1]))
        return [each for each in self._retrieved(kind, paths, [start]) if isinstance(each.ref, kind)]

    def read(self, refs: Iterable[Any], paths: Sequence[str]) -> list[InventoryRow]:
        """Return the properties of objects of one kind. One that is gone is left out."""
        wanted = list(refs)
        if not wanted:
            return []
        try:
            return self._retrieved(type(wanted[0]), paths, [_QUERY.ObjectSpec(obj=each, skip=False) for each in wanted])
        except vmodl.fault.ManagedObjectNotFound:
            # The fault is of one object, and the call of all.
            return [row for each in wanted if (row := self.find(each, paths)) is not None] if len(wanted) > 1 else []

    def find(self, ref: Any, paths: Sequence[str]) -> InventoryRow | None:
        """Return the properties of an object; None when it is gone."""
        try:
            found = self._retrieved(type(ref), paths, [_QUERY.ObjectSpec(obj=ref, skip=False)])
        except vmodl.fault.ManagedObjectNotFound:
            return None
        return found[0] if found else None

    def _retrieved(self, kind: type[Any], paths: Sequence[str], starts: list[Any]) -> list[InventoryRow]:
        what = _QUERY.PropertySpec(type=kind, all=False, pathSet=list(paths))
        spec = _QUERY.FilterSpec(propSet=[what], objectSet=starts, reportMissingObjectsInResults=True)
        try:
            return self._pages(spec)
        except (vmodl.fault.InvalidArgument, vim.fault.NotAuthenticated):
            # The token of a page is worth nothing in another session.
            return self._pages(spec)

    def _pages(self, spec: Any) -> list[InventoryRow]:
        collector = self._connection.content.propertyCollector
        options = _QUERY.RetrieveOptions(maxObjects=self._connection.settings.page)
        answer = collector.RetrievePropertiesEx([spec], options)
        rows: list[InventoryRow] = []
        while answer is not None:
            rows += [InventoryRow(each.obj, _properties(each)) for each in answer.objects or ()]
            answer = collector.ContinueRetrievePropertiesEx(answer.token) if answer.token else None
        return rows

    # --- by name or path --------------------------------------------------------------------------------------------------

    def datacenter(self) -> InventoryRow:
        """Return the datacenter of the settings, or the only one; raises InvalidSpec when there are several."""
        wanted = self._connection.settings.defaults.datacenter
        found = self.every(vim.Datacenter, ("name", "vmFolder", "hostFolder", "datastoreFolder", "networkFolder"))
        named = [each for each in found if wanted in ("", each.name) or wanted.rstrip("/").endswith(f"/{each.name}")]
        if len(named) == 1:
            return named[0]
        if not named:
            raise refusals.not_found(f'datacenter "{wanted}" does not exist' if wanted else "there is no datacenter that the account sees")
        names = ", ".join(sorted(each.name for each in named)[:_SHOWN])
        why = f"there are {names}"
        raise refusals.invalid("the datacenter is not clear", why=why, fix="name one in the Provider's variable VSPHERE_DATACENTER")

    def named(self, kind: type[Any], text: str, root: Any = None, paths: Sequence[str] = ()) -> InventoryRow:
        """Return the object of a name or a path; raises NotFound when there is none, and InvalidSpec when there are several."""
        word = _WORDS.get(_short(kind), _short(kind).lower())
        found = self._at(kind, text, paths) if "/" in text.strip("/") or text.startswith("/") else None
        if found is not None:
            return found
        last = text.rstrip("/").rsplit("/", 1)[-1]
        rows = [each for each in self.every(kind, ("name", *paths), root) if each.name == text or ("/" not in text and each.name == last)]
        if not rows:
            fix = "name one that does, or give the account a role on it"
            raise refusals.not_found(f'{word} "{text}" does not exist', fix, reason=_MISSING.get(_short(kind), ""))
        if len(rows) > 1:
            raise refusals.invalid(f'{word} "{text}" is not clear', why=f"there are {len(rows)} of this name", fix="give its path")
        return rows[0]

    def _at(self, kind: type[Any], text: str, paths: Sequence[str]) -> InventoryRow | None:
        """The object at a path: from the root, in the datacenter, or in the datacenter's folder of the kind."""
        index, place = self._connection.content.searchIndex, text.strip("/")
        home = self.datacenter().name
        for path in (place, f"{home}/{place}", f"{home}/{_FOLDERS.get(_short(kind), 'vm')}/{place}"):
            found = index.FindByInventoryPath(path)
            if isinstance(found, kind):
                return self.find(found, ("name", *paths))
        return None

    def machine_of(self, instance_uuid: str) -> Any:
        """Return the machine with an instance UUID, or None."""
        return self._connection.content.searchIndex.FindByUuid(None, instance_uuid, True, True)


def _properties(found: Any) -> dict[str, Any]:
    """The properties that are set; some endpoints name those that are not, too."""
    return {prop.name: prop.val for prop in found.propSet or () if prop.val is not None}


def _short(kind: type[Any]) -> str:
    return kind.__name__.rsplit(".", 1)[-1]


def _selections(kind: str) -> list[Any]:
    ways = _TO[kind]
    return [
        _QUERY.TraversalSpec(
            name=name,
            type=getattr(vim, _WAYS[name][0]),
            path=_WAYS[name][1],
            skip=False,
            selectSet=[_QUERY.SelectionSpec(name=each) for each in _WAYS[name][2] if each in ways],
        )
        for name in ways
    ]

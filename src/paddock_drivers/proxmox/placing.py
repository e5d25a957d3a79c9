"""The choice of a node and of storages for a machine. Pure."""

from collections.abc import Iterable

from paddock_drivers.kit import refusals
from paddock_drivers.proxmox.cluster import ProxmoxResource

IMAGES, ISO, IMPORT = "images", "iso", "import"
_ONLINE, _AVAILABLE = "online", "available"


def nodes(resources: Iterable[ProxmoxResource], allowed: tuple[str, ...]) -> dict[str, int]:
    """Return the free memory of each node that is up and that machines may be made on."""
    return {
        each.node: max(each.maxmem - each.mem, 0)
        for each in resources
        if each.type == "node" and each.status == _ONLINE and (not allowed or each.node in allowed)
    }


def storages(resources: Iterable[ProxmoxResource], content: str) -> tuple[ProxmoxResource, ...]:
    """Return the storages that are up and take a kind of content: one entry for each node that has it."""
    return tuple(each for each in resources if each.type == "storage" and each.status == _AVAILABLE and content in each.content.split(","))


def storage(resources: Iterable[ProxmoxResource], content: str, node: str, *names: str) -> str:
    """Return the storage of a node for some content: the first of some names that is given, else the one with the most free space."""
    here = {each.storage: each for each in storages(resources, content) if each.node == node}
    named = next((each for each in names if each), "")
    if named:
        if named not in here:
            what = f'storage "{named[:64]}" cannot be used on node {node}'
            raise refusals.invalid(what, why=f'it is unknown, not available there, or takes no "{content}"', fix="name another storage")
        return named
    if not here:
        what = f'no storage of node {node} takes "{content}"'
        raise refusals.not_supported(what, fix=f'add "{content}" to the content of a storage (Datacenter, Storage)')
    return max(here.values(), key=lambda each: (each.maxdisk - each.disk, each.storage)).storage


def node(free: dict[str, int], host: str, fitting: Iterable[str]) -> str:
    """Return the node for a machine: the one that is asked for, else that with the most free memory among those that fit."""
    fits = set(fitting)
    if host:
        if host not in free:
            raise refusals.invalid(f'machines cannot be made on node "{host[:64]}"', why="it is unknown, offline or not allowed")
        if host not in fits:
            raise refusals.invalid(
                f'node "{host}" does not have what the machine is made from', fix="use a shared storage, or another node"
            )
        return host
    found = [each for each in free if each in fits]
    if not found:
        raise refusals.retry_later("no node that is up has what the machine is made from", 30.0)
    return max(found, key=lambda each: (free[each], each))


def shared(resources: Iterable[ProxmoxResource], names: Iterable[str]) -> bool:
    """Return whether all of some storages are the same on each node."""
    found = {each.storage: bool(each.shared) for each in resources if each.type == "storage"}
    return all(found.get(name, False) for name in names)

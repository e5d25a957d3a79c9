"""Storage pools: finding them, choosing one, and the volumes that they have by path.

A pool is a datastore. Those whose names end in a number are a storage pod: `ssd-1` and `ssd-2` are the pod `ssd`.
"""

from pathlib import PurePosixPath
from typing import Any
from xml.sax.saxutils import escape

import libvirt

from paddock.base import reasons
from paddock.contract import extensionmessages as x
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import failures, records, volumexml
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.volumexml import PoolView


class StoragePools:
    """The pools of one hypervisor."""

    def __init__(self, connection: LibvirtConnection) -> None:
        self._connection = connection

    async def datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the pools, or those of a storage pod."""

        def work(conn: Any) -> list[tuple[PoolView, bool]]:
            return [(volumexml.parse_pool(each.XMLDesc(0)), bool(each.isActive())) for each in conn.listAllStoragePools(0)]

        found = await self._connection.run(work)
        infos = (_info(view, active) for view, active in sorted(found, key=lambda each: each[0].name))
        return x.ListDatastoresResponse(datastores=tuple(each for each in infos if not request.pod or each.pod == request.pod))


def choose(conn: Any, name: str, pod: str, default: str) -> PoolView:
    """Return the pool of a name, that of a pod with most free space, or the default. In a thread."""
    if name or not pod:
        return volumexml.parse_pool(active(conn, name or default).XMLDesc(0))
    views = (volumexml.parse_pool(each.XMLDesc(0)) for each in conn.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE))
    members = [each for each in views if volumexml.pod_of(each.name) == pod]
    if not members:
        fix = f"define pools that are called {pod[:64]}-1, {pod[:64]}-2 and so on, and start them"
        raise refusals.not_found(f"there is no storage pod {pod[:64]}", fix, reason=reasons.POOL_MISSING)
    return max(members, key=lambda each: (each.available, each.name))


def active(conn: Any, name: str) -> Any:
    """Return a virStoragePool that is active; one that is not is started. In a thread."""
    try:
        found = conn.storagePoolLookupByName(name)
    except libvirt.libvirtError as error:
        if failures.code_of(error) != failures.NO_STORAGE_POOL:
            raise
        fix = "define and start it with virsh, or name another in placement.datastore, the disk's storageClass or the Provider's defaults"
        raise refusals.not_found(f"there is no storage pool {name[:64]}", fix, reason=reasons.POOL_MISSING) from error
    if not found.isActive():
        try:
            found.create(0)
        except libvirt.libvirtError as error:
            if not found.isActive():
                what = f"storage pool {name[:64]} is not active and does not start"
                raise ProviderError(ErrorKind.UNAVAILABLE, what, why=" ".join(str(error).split())[:300]) from error
    return found


def view_of(pool: Any) -> PoolView:
    """Return what a virStoragePool is. In a thread."""
    return volumexml.parse_pool(pool.XMLDesc(0))


def find(conn: Any, path: str) -> Any | None:
    """Return the volume of a path; None if no active pool has it. In a thread."""
    if not path.startswith("/"):
        return None
    try:
        return conn.storageVolLookupByPath(path)
    except libvirt.libvirtError as error:
        if failures.code_of(error) != failures.NO_STORAGE_VOL:
            raise
    # Somebody else may have put it there since the pool was last read.
    folder = str(PurePosixPath(path).parent)
    for pool in conn.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE):
        if view_of(pool).path == folder:
            refresh(pool)
            return records.lookup(pool, PurePosixPath(path).name)
    return None


def find_named(conn: Any, name: str, first: str) -> Any | None:
    """Return the volume of a name, in one pool before all others. In a thread."""
    if not name or "/" in name:
        return None
    pools = conn.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE)
    for pool in sorted(pools, key=lambda each: each.name() != first):
        found = records.lookup(pool, name)
        if found is not None:
            return found
    return None


def refresh(pool: Any) -> None:
    """Let libvirt look for volumes that others have put into a pool. In a thread."""
    try:
        pool.refresh(0)
    except libvirt.libvirtError as error:
        # A volume of the pool is being made; what was known stays.
        if failures.code_of(error) not in (failures.OPERATION_INVALID, failures.INTERNAL_ERROR):
            raise


def users(conn: Any, path: str) -> tuple[str, ...]:
    """Return the domains that have a path in their definitions, running or not: as disks, below disks, or detached. In a thread."""
    inactive = libvirt.VIR_DOMAIN_XML_INACTIVE
    found = []
    for domain in conn.listAllDomains(0):
        try:
            texts = [domain.XMLDesc(inactive)] + ([domain.XMLDesc(0)] if domain.isActive() else [])
        except libvirt.libvirtError as error:
            if failures.code_of(error) == failures.NO_DOMAIN:
                continue
            raise
        if any(_names(text, path) for text in texts):
            found.append(domain.name())
    return tuple(found)


def _names(text: str, path: str) -> bool:
    """Return whether the XML of a domain has a path in an attribute: of a disk, or of the marks, which name detached disks, too."""
    return f"'{escape(path, {chr(39): '&apos;'})}'" in text or f'"{escape(path, {chr(34): "&quot;"})}"' in text


def _info(view: PoolView, is_active: bool) -> x.DatastoreInfo:
    return x.DatastoreInfo(
        name=view.name,
        pod=volumexml.pod_of(view.name),
        free_bytes=min(view.available, view.capacity),
        total_bytes=view.capacity,
        accessible=is_active,
        maintenance=not is_active,
    )

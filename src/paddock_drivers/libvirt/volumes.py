"""The volumes of machines: planned, made, made larger, measured, deleted.

A disk of machine `web` called `data` is the volume `web-data.qcow2`, so that a call which is repeated finds what it made. A note beside it
says whose it is, also when the domain was undefined. A volume of that name that is neither in the domain nor noted for it is somebody
else's, and a Conflict; so is one that has come since the plan. What is copied has a mark beside it until it is whole.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import libvirt
import msgspec

from paddock.base import reasons
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import DiskPayload, ImagePayload
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import domainview, failures, imagesources, machines, marks, pools, records, streams, volumexml
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.storageport import DomainDisk, NamedMachine, StoredDisk
from paddock_drivers.libvirt.volumexml import PoolView, VolumeOrder

_GIB = 1 << 30
_HOW, _SOURCE, _THICK = "how", "source", "thick"
_COPY, _BLANK, _TAKE = "copy", "blank", "take"
_ENDINGS = {volumexml.QCOW2: ".qcow2", volumexml.RAW: ".raw"}

_RENAME = "delete the volume, or rename the machine"


class VolumeStore:
    """The disks of machines, as `storageport.MachineStorage` has them."""

    def __init__(self, connection: LibvirtConnection) -> None:
        self._connection = connection
        self._copies = asyncio.Semaphore(2)
        # What stood in the way of a volume, and is not to go with the machine that could not be made.
        self._foreign: set[str] = set()
        self._is_tidy = False

    async def plan(self, description: MachineDescription, uuid: str) -> tuple[DomainDisk, ...]:
        """Return the disks of a new machine, the root disk first. Raises for what is not there or not possible."""

        def work(conn: Any) -> tuple[DomainDisk, ...]:
            pool = pools.choose(conn, description.datastore, description.placement.storage_pod, self._connection.settings.pool)
            machine = NamedMachine(description.name, uuid)
            root = _root(conn, description, machine, pool)
            return (root, *(_data(conn, machine, each, pool) for each in description.disks))

        return await self._connection.run(work)

    async def plan_disk(self, machine: NamedMachine, disk: DiskPayload, datastore: str) -> DomainDisk:
        """Return one more disk for a machine that exists."""

        def work(conn: Any) -> DomainDisk:
            return _data(conn, machine, disk, pools.choose(conn, datastore, "", self._connection.settings.pool))

        return await self._connection.run(work)

    async def make(self, disks: Sequence[DomainDisk]) -> None:
        """Make the volumes. One that is whole is taken as it is; one whose copy was cut off is made again."""
        for disk in disks:
            try:
                await self._make(disk)
            except ProviderError as error:
                if not records.is_taken(error):
                    raise
                self._foreign.add(disk.path)
                raise records.taken(disk.volume, disk.pool) from error
        await self._connection.run(own, disks)

    async def _make(self, disk: DomainDisk) -> None:
        how = disk.recipe.get(_HOW)
        if how == _COPY:
            # A copy keeps one of the connection's threads for as long as it takes.
            async with self._copies:
                await self._connection.run(_copy, disk)
        elif how == _TAKE:
            await self._connection.run(_take, disk)
        elif how == _BLANK:
            await self._connection.run(_blank, disk)

    async def delete(self, paths: Iterable[str]) -> None:
        """Delete volumes by their paths, and layers below them that nothing else needs. One that is gone is deleted."""
        for path in paths:
            if path in self._foreign:
                self._foreign.discard(path)
                continue
            await self._connection.run(_delete, path)

    async def delete_left(self, uuid: str, name: str) -> None:
        """Delete the disks of a machine that no domain has any more; the name, where it is known, says where to look."""
        await self._connection.run(_delete_left, uuid, name)

    async def tidy(self) -> None:
        """Drop what copies that were cut off have left and that nobody wants, once for each process."""
        if not self._is_tidy:
            await self._connection.run(_tidy)
            self._is_tidy = True

    async def keep_seed(self, machine: NamedMachine, datastore: str, content: bytes) -> DomainDisk:
        """Store the documents of a guest's first boot as the raw volume MACHINE-cloud-init.iso, in the place of an older one."""

        def work(conn: Any) -> DomainDisk:
            pool = pools.choose(conn, datastore, "", self._connection.settings.pool)
            return _write_seed(conn, pool, machine, content)

        return await self._connection.run(work)

    async def grow(self, uuid: str, path: str, size: int) -> None:
        """Make a disk of a machine larger, with the running guest's knowledge if it runs. A disk that is as large is left."""
        await self._connection.run(_grow, uuid, path, size)

    async def measured(self, paths: Iterable[str]) -> Mapping[str, StoredDisk]:
        """Return the volumes of paths. A path that no pool has is missing in the answer."""
        return await self._connection.run(measured, tuple(paths))


def measured(conn: Any, paths: Sequence[str]) -> Mapping[str, StoredDisk]:
    """Return the volumes of paths. In a thread."""
    found = {}
    names: dict[str, str] = {}
    for path in paths:
        try:
            volume = pools.find(conn, path)
            if volume is not None:
                folder = path.rpartition("/")[0]
                if folder not in names:
                    names[folder] = volume.storagePoolLookupByVolume().name()
                found[path] = volumexml.parse_volume(volume.XMLDesc(0), names[folder])
        except libvirt.libvirtError as error:
            # It went between two calls.
            if failures.code_of(error) != failures.NO_STORAGE_VOL:
                raise
    return found


# --- plans ------------------------------------------------------------------------------------------------------------------------


def _root(conn: Any, description: MachineDescription, machine: NamedMachine, pool: PoolView) -> DomainDisk:
    defaults = description.hardware.disk_defaults
    source = imagesources.find(conn, description.image, pool.name, description.name)
    size = max(source.stored.capacity, (defaults.size_gib << 30) if defaults is not None else 0)
    if source.taken:
        return _taken(conn, marks.ROOT_DISK, source.stored, size)
    wanted = planned(conn, machine, marks.ROOT_DISK, pool, size)
    recipe = {_HOW: _COPY, _SOURCE: source.stored.path, **_provisioning(defaults.type if defaults is not None else "")}
    return msgspec.structs.replace(wanted, recipe=recipe)


def _data(conn: Any, machine: NamedMachine, disk: DiskPayload, pool: PoolView) -> DomainDisk:
    size = disk.size_gib * _GIB
    if disk.storage_class:
        pool = pools.choose(conn, str(disk.storage_class), "", pool.name)
    if disk.path:
        image = ImagePayload(path=str(disk.path))
        source = imagesources.find(conn, image, pool.name, machine.name)
        size = max(size, source.stored.capacity)
        if source.taken:
            return _taken(conn, disk.name, source.stored, size)
        wanted = planned(conn, machine, disk.name, pool, size)
        return msgspec.structs.replace(wanted, recipe={_HOW: _COPY, _SOURCE: source.stored.path, **_provisioning(disk.type)})
    wanted = planned(conn, machine, disk.name, pool, size)
    return msgspec.structs.replace(wanted, recipe={_HOW: _BLANK, **_provisioning(disk.type)})


def planned(conn: Any, machine: NamedMachine, name: str, pool: PoolView, size: int) -> DomainDisk:
    """The disk of a machine in a pool; raises Conflict if its volume is somebody else's."""
    volume = f"{machine.name}-{name}{_ENDINGS[pool.format] if pool.files else ''}"
    path = f"{pool.path}/{volume}"
    place = pools.active(conn, pool.name)
    there = records.lookup(place, volume) is not None
    if there and (why := _foreign(conn, place, volume, path, machine)):
        raise refusals.conflict(f"volume {volume} exists in pool {pool.name}", why=why, fix=_RENAME)
    return DomainDisk(
        name=name,
        path=path,
        pool=pool.name,
        volume=volume,
        format=pool.format,
        kind=pool.disk_kind,
        bytes=size,
        machine=machine.uuid,
        there=there,
    )


def _foreign(conn: Any, pool: Any, volume: str, path: str, machine: NamedMachine) -> str:
    """Why a volume is not the machine's; empty for one that its domain has, or had until somebody undefined it."""
    users = pools.users(conn, path)
    if machine.name in users:
        return ""
    if users:
        return f"it belongs to machine {users[0]}"
    if not records.is_of(conn, pool, volume, machine.uuid):
        return "it belongs to no machine of that name"
    above = dependents(conn, path)
    return f"the disk {above[0]} stands on it" if above else ""


def _taken(conn: Any, name: str, stored: StoredDisk, size: int) -> DomainDisk:
    kind = pools.view_of(pools.active(conn, stored.pool)).disk_kind
    return DomainDisk(
        name=name,
        path=stored.path,
        pool=stored.pool,
        volume=stored.volume,
        format=stored.format,
        kind=kind,
        bytes=size,
        imported=True,
        recipe={_HOW: _TAKE},
    )


def _provisioning(type: str) -> dict[str, str]:
    thick = volumexml.thick(type)
    if thick is None:
        raise refusals.not_supported(f"disks of the type {type[:32]!r} cannot be made", fix="use thin, thick or eagerzeroedthick")
    return {_THICK: "yes"} if thick else {}


# --- work in threads --------------------------------------------------------------------------------------------------------------


def _order(disk: DomainDisk) -> tuple[VolumeOrder, int]:
    thick = _THICK in disk.recipe
    flags = libvirt.VIR_STORAGE_VOL_CREATE_PREALLOC_METADATA if thick and disk.format == volumexml.QCOW2 else 0
    # A device has all of its space anyway.
    return VolumeOrder(name=disk.volume, capacity=disk.bytes, format=disk.format, thick=thick or disk.kind == "block"), flags


def _blank(conn: Any, disk: DomainDisk) -> None:
    pool = pools.active(conn, disk.pool)
    found = _made_before(conn, pool, disk)
    if found is None:
        order, flags = _order(disk)
        pool.createXML(volumexml.volume(order), flags)
    else:
        enlarge(found, disk.bytes)


def _take(conn: Any, disk: DomainDisk) -> None:
    found = records.lookup(pools.active(conn, disk.pool), disk.volume)
    if found is None:
        raise refusals.not_found(f"the imported disk {disk.volume} is gone", "import it again", reason=reasons.VOLUME_MISSING)
    enlarge(found, disk.bytes)


def missing(conn: Any, domain: Any) -> ProviderError | None:
    """Return the error of a machine's first disk whose volume is gone; None when all are there. In a thread."""
    view = domainview.parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    held = {pools.view_of(each).path: each for each in conn.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE)}
    for disk in view.disks:
        path = PurePosixPath(disk.path)
        pool = held.get(str(path.parent)) if disk.path else None
        if pool is None:
            continue
        pools.refresh(pool)
        if records.lookup(pool, path.name) is None:
            name = next((each.name for each in view.marks.disks if each.path == disk.path), disk.target) if view.marks else disk.target
            what = f"machine {view.name} cannot be started: storage pool {pool.name()} has no volume {path.name} any more, its disk {name}"
            return ProviderError(ErrorKind.INTERNAL, what, fix="bring the volume back", reason=reasons.VOLUME_MISSING)
    return None


def _copy(conn: Any, disk: DomainDisk) -> None:
    source = pools.find(conn, disk.recipe[_SOURCE])
    if source is None:
        raise refusals.not_found("the image is gone", "prepare it again", reason=reasons.TEMPLATE_MISSING)
    order, flags = _order(disk)
    copy(conn, source, disk, order, flags)


def copy(conn: Any, source: Any, disk: DomainDisk, order: VolumeOrder, flags: int = 0) -> None:
    """Copy a volume with all layers below it to a new one, which may be larger. A copy that was cut off is made again. In a thread."""
    pool = pools.active(conn, disk.pool)
    begun = records.lookup(pool, disk.volume)
    if begun is not None and records.is_begun(pool, disk.volume):
        _discard(begun, disk.volume)
    found = _made_before(conn, pool, disk)
    if found is not None:
        enlarge(found, disk.bytes)
        return
    with records.making(pool, disk.volume):
        enlarge(pool.createXMLFrom(volumexml.volume(order), source, flags), disk.bytes)


def _made_before(conn: Any, pool: Any, disk: DomainDisk) -> Any | None:
    """Return the volume of a disk that an earlier call has made, or another provider of this hypervisor since the plan."""
    found = records.lookup(pool, disk.volume)
    if found is not None and not disk.there and not records.is_of(conn, pool, disk.volume, disk.machine):
        raise records.taken(disk.volume, disk.pool)
    return found


def own(conn: Any, disks: Iterable[DomainDisk]) -> None:
    """Note whose disks volumes are. Devices have no notes, and an imported disk keeps its own. In a thread.

    All are made before: after a note was uploaded, libvirt knows of files that were put into their way, and goes on to know them.
    """
    for disk in disks:
        if disk.machine and disk.kind == "file" and not disk.imported:
            records.own(conn, pools.active(conn, disk.pool), disk.volume, disk.machine)


def _discard(volume: Any, name: str) -> None:
    try:
        volume.delete(0)
    except libvirt.libvirtError as error:
        if failures.code_of(error) == failures.OPERATION_INVALID:
            # Whoever began it is gone; libvirtd goes on with it.
            raise refusals.retry_later(f"the disk {name} is being copied") from error
        raise


def enlarge(volume: Any, size: int) -> None:
    """Make a volume of a machine that is off as large as this. In a thread."""
    if size > volumexml.parse_volume(volume.XMLDesc(0)).capacity:
        volume.resize(size, 0)


def _delete(conn: Any, path: str) -> None:
    volume = pools.find(conn, path)
    if volume is None:
        # Its copy may have been cut off before it began, and left a mark.
        for pool in _pools(conn):
            if pools.view_of(pool).path == path.rpartition("/")[0]:
                records.forget(pool, path.rpartition("/")[2])
        return
    try:
        pool = volume.storagePoolLookupByVolume()
        below = volumexml.parse_volume(volume.XMLDesc(0)).backing
        records.forget(pool, volume.name())
    except libvirt.libvirtError as error:
        if failures.code_of(error) != failures.NO_STORAGE_VOL:
            raise
        return
    if below:
        release(conn, below)


def _pools(conn: Any) -> list[Any]:
    return list(conn.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE))


def _delete_left(conn: Any, uuid: str, name: str) -> None:
    for pool in _pools(conn):
        place = pools.view_of(pool).path
        for volume in records.noted(pool):
            path = f"{place}/{volume}"
            if volume.startswith(f"{name}-" if name else "") and records.is_of(conn, pool, volume, uuid) and not pools.users(conn, path):
                _delete(conn, path)


def _tidy(conn: Any) -> None:
    """A machine's domain names its disks before they are copied, so a mark that no domain knows of is nobody's."""
    for pool in _pools(conn):
        place = pools.view_of(pool).path
        records.sweep(pool, lambda volume, place=place: bool(pools.users(conn, f"{place}/{volume}")))  # type: ignore[misc]


def release(conn: Any, path: str) -> None:
    """Delete a layer that the driver keeps for the disks above it, once there are none. In a thread."""
    volume = pools.find(conn, path)
    if volume is None:
        return
    pool = volume.storagePoolLookupByVolume()
    record = records.read(conn, pool, volume.name())
    if record is None or record.purpose != records.LAYER or dependents(conn, path) or pools.users(conn, path):
        return
    _delete(conn, path)


def dependents(conn: Any, path: str) -> tuple[str, ...]:
    """Return the paths of the volumes that stand on a volume. In a thread."""
    found = []
    for pool in _pools(conn):
        for volume in pool.listAllVolumes(0):
            try:
                stored = volumexml.parse_volume(volume.XMLDesc(0))
            except libvirt.libvirtError as error:
                if failures.code_of(error) == failures.NO_STORAGE_VOL:
                    continue
                raise
            if stored.backing == path:
                found.append(stored.path)
    return tuple(found)


def _write_seed(conn: Any, view: PoolView, machine: NamedMachine, content: bytes) -> DomainDisk:
    name = f"{machine.name}-{marks.SEED_DISK}.iso"
    path = f"{view.path}/{name}"
    pool = pools.active(conn, view.name)
    found = records.lookup(pool, name)
    if found is not None:
        others = [each for each in pools.users(conn, path) if each != machine.name]
        if others:
            raise refusals.conflict(f"volume {name} belongs to machine {others[0]}", fix="rename the machine")
        # A guest that runs keeps the file that it has opened.
        records.drop(pool, name)
    size = -(-len(content) // 2048) * 2048
    made = pool.createXML(volumexml.volume(VolumeOrder(name=name, capacity=size, format=volumexml.RAW)), 0)
    streams.upload_bytes(conn, made, content.ljust(size, b"\0"))
    disk = DomainDisk(
        name=marks.SEED_DISK,
        path=path,
        pool=view.name,
        volume=name,
        format=volumexml.RAW,
        kind=view.disk_kind,
        bytes=size,
        machine=machine.uuid,
    )
    own(conn, (disk,))
    return disk


def _grow(conn: Any, uuid: str, path: str, size: int) -> None:
    domain = machines.existing(conn, uuid)
    disk = next((each for each in domainview.parse(domain.XMLDesc(0)).disks if each.path == path), None)
    if disk is not None and domain.isActive():
        if domain.blockInfo(disk.target)[0] < size:
            domain.blockResize(disk.target, size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)
        return
    volume = pools.find(conn, path)
    if volume is None:
        fix = "define a pool for its directory, or make the disk larger at the host"
        raise refusals.not_supported("the disk cannot be made larger", why="no storage pool has it", fix=fix)
    enlarge(volume, size)

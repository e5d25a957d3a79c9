"""Cloning machines: full, with copies of the disks, or linked, on top of disks that stay as they are from then on.

The clone's domain is defined first, under a UUID that follows from the request, and marked as incomplete. So a call that is repeated goes
on with the clone that it began, and finds it also when the source is gone. Of a linked clone's source the disks become layers: the source
gets a file of its own on top of each, as the clone does. A layer goes with the last of those that stand on it.

A machine that runs is cloned by a snapshot that the driver takes for it, and deletes before the clone is complete:

    clone is incomplete --> snapshot of the source --> copies of its disks --> snapshot is gone --> clone is complete
"""

import tempfile
from pathlib import PurePosixPath
from typing import Any

import libvirt
import msgspec

from paddock.base import names, reasons
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError, TerminalProviderError
from paddock.contract.payloads import PlacementPayload
from paddock_drivers.kit import conversion, customization, refusals
from paddock_drivers.kit.conversion import OpenLayer
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.kit.diskimages import PlainDisk
from paddock_drivers.kit.progress import DONE, TaskProgress, failed
from paddock_drivers.libvirt import (
    chains,
    clonexml,
    domainview,
    editing,
    keeping,
    lifecycle,
    machines,
    marks,
    pools,
    records,
    snapshots,
    snapshotxml,
    volumes,
    volumexml,
    xmltree,
)
from paddock_drivers.libvirt.chains import DiskContent
from paddock_drivers.libvirt.domainview import DiskView, DomainView
from paddock_drivers.libvirt.hypervisor import Hypervisor
from paddock_drivers.libvirt.machines import LibvirtDomain, MachineStore
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk
from paddock_drivers.libvirt.records import VolumeNote
from paddock_drivers.libvirt.storageport import DomainDisk, MachineStorage, NamedMachine
from paddock_drivers.libvirt.undertakings import Undertakings
from paddock_drivers.libvirt.volumexml import PoolView, VolumeOrder

CLONED = "clone"
_LONGEST_NAME = 63
_MOST_LAYERS = 32


class CloneOrder(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uuid: str
    # the id by which the source was named, and its definition: as it is, or as it was in a snapshot
    source: str
    view: DomainView
    linked: bool
    datastore: str
    given: CloneCustomization
    marks: MachineMarks
    # what the disks are copied from; empty: the disks as they are
    snapshot: str = ""


class DomainCloning:
    def __init__(self, store: MachineStore, storage: MachineStorage, hypervisor: Hypervisor) -> None:
        self._store = store
        self._storage = storage
        self._hypervisor = hypervisor
        self._connection = store.connection
        self._work = Undertakings(store.connection.settings.create_seconds)

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine. A call that is repeated goes on with the clone that it began."""
        name = request.target_name
        if not names.is_label(name) or len(name) > _LONGEST_NAME:
            raise refusals.invalid(f'a machine cannot be called "{name[:64]}"', fix="use lower-case letters, digits and '-'")
        existing = await self._existing(request)
        uuid = existing.uuid if existing is not None else clone_uuid(request)
        answer = m.CloneResponse(target_vm_id=uuid)
        if existing is not None and existing.inactive.marks is not None and existing.inactive.marks.complete:
            return answer
        task = msgspec.structs.replace(answer, task=m.TaskRef(id=f"{CLONED}:{uuid}"))
        source = await self._store.find(request.source_vm_id)
        if source is None:
            if existing is None:
                raise refusals.not_found("the machine to clone does not exist")
            # Its task says that it failed, and whoever lost the first answer can remove it.
            return task
        try:
            order = await self._order(source, uuid, request)
        except TerminalProviderError:
            if existing is not None:
                await self._abandon(existing)
            raise

        async def work() -> None:
            async with self._store.changing(source.uuid), self._store.changing(uuid):
                await self._make(order, source)

        return answer if await self._work.do(f"{CLONED}:{uuid}", work) else task

    async def status(self, uuid: str) -> TaskProgress:
        """Judge a clone: by the work of this process, and by the machine when another process began it."""
        found = self._work.status(f"{CLONED}:{uuid}")
        if found is not None:
            return found
        machine = await self._store.find(uuid)
        if machine is not None and (machine.inactive.marks is None or machine.inactive.marks.complete):
            return DONE
        return failed("the machine was not cloned: the work was interrupted, or its source is gone; clone it again")

    async def close(self) -> None:
        """End what is under way."""
        await self._work.close()

    async def _existing(self, request: m.CloneRequest) -> LibvirtDomain | None:
        """The clone that an earlier call has begun; raises Conflict for any other machine of the name."""
        found = await self._store.find(request.target_name)
        if found is None:
            return None
        notes = found.inactive.marks.notes if found.inactive.marks is not None else {}
        if notes.get(clonexml.CLONED_FROM) == request.source_vm_id and notes.get(clonexml.CLONED_FOR, "") == whose(request):
            return found
        why = "it is another owner's, or the clone of another machine"
        raise refusals.conflict(f"machine {request.target_name} exists", why=why, fix="choose another name")

    async def _order(self, source: LibvirtDomain, uuid: str, request: m.CloneRequest) -> CloneOrder:
        given = customization.read(request.class_json, request.customize_json)
        placement = payloads.decode(request.placement_json, PlacementPayload)
        view, snapshot = source.inactive, given.snapshot
        if given.snapshot:
            text = await self._connection.run(_snapshot_text, source.uuid, given.snapshot)
            view = snapshotxml.parse(text).domain or view
        elif source.live and request.linked:
            fix = "power it off, or make a full clone"
            raise refusals.conflict(f"a linked clone of machine {view.name} cannot be made while it runs", fix=fix)
        elif source.live or await self._connection.run(_has_snapshot, source.uuid, clonexml.snapshot_of(uuid)):
            # Also when it was powered off since: all disks of a clone are of one moment.
            snapshot = clonexml.snapshot_of(uuid)
        if request.linked:
            await self._connection.run(_check_linked, source.uuid, view, given.snapshot)
        owner = request.target_vm or m.ObjectIdentity()
        notes = {clonexml.CLONED_FROM: request.source_vm_id, clonexml.CLONED_FOR: whose(request)}
        known = MachineMarks(
            namespace=owner.namespace,
            name=owner.name,
            request=marks.INCOMPLETE,
            state=marks.INCOMPLETE,
            limitations=(*(view.marks.limitations if view.marks is not None else ()), *given.limitations, *_ignored(placement)),
            notes=notes,
        )
        return CloneOrder(
            name=request.target_name,
            uuid=uuid,
            source=request.source_vm_id,
            view=view,
            linked=request.linked,
            datastore=placement.datastore,
            given=given,
            marks=known,
            snapshot=snapshot,
        )

    async def _make(self, order: CloneOrder, source: LibvirtDomain) -> None:
        disks = await self._connection.run(_plan, order, self._connection.settings.pool)
        marked = msgspec.structs.replace(order.marks, disks=tuple(MarkedDisk(each.name, each.path, each.bytes) for each in disks.values()))
        if order.given.hardware is not None:
            abilities = await self._hypervisor.abilities()
            root = editing.resized(order.view, order.given.hardware, abilities)
            order = msgspec.structs.replace(order, view=domainview.of_element(root))
        root = clonexml.define(order.view, order.name, order.uuid, marked)
        seed = order.view.marks.disk(marks.SEED_DISK) if order.view.marks is not None else None
        content = clonexml.documents(root, order.name, order.uuid, order.given, seeded=seed is not None)
        root = clonexml.with_disks(root, disks, None, seed.path if seed is not None else "")
        await self._connection.run(_define, xmltree.text(root))
        made: list[str] = []
        own = clonexml.snapshot_of(order.uuid)
        try:
            if order.snapshot == own:
                await self._connection.run(_take, source.uuid, own, order.name)
            for target, disk in disks.items():
                await self._copy(order, source, target, disk)
                made.append(disk.path)
            await self._connection.run(volumes.own, tuple(disks.values()))
            if order.linked:
                await self._connection.run(_own_overlays, source.uuid)
            await self._connection.run(snapshots.remove, source.uuid, own)
            if content:
                await self._seeded(order, root, content, marked)
            else:
                done = editing.marked(root, msgspec.structs.replace(marked, state=""))
                await self._connection.run(_define, xmltree.text(done))
        except ProviderError as error:
            foreign = records.is_taken(error)
            # A volume that somebody has put there is not the clone's.
            await self._connection.run(snapshots.remove, source.uuid, own)
            await self._undo(order, made if foreign else [each.path for each in disks.values()])
            raise

    async def _seeded(self, order: CloneOrder, root: Any, content: bytes, known: MachineMarks) -> None:
        seed = await self._storage.keep_seed(NamedMachine(order.name, order.uuid), order.datastore, content)
        root = clonexml.with_disks(root, {}, seed, "")
        complete = msgspec.structs.replace(known, state="").with_disk(MarkedDisk(marks.SEED_DISK, seed.path, seed.bytes))
        await self._connection.run(_define, xmltree.text(editing.marked(root, complete)))

    async def _copy(self, order: CloneOrder, source: LibvirtDomain, target: str, disk: DomainDisk) -> None:
        of = next(each for each in order.view.disks if each.target == target)
        if order.linked:
            await self._connection.run(_link, source.uuid, target, disk)
        elif order.snapshot:
            await self._copy_snapshot(order, of, disk)
        else:
            await self._connection.run(_copy, of, disk)

    async def _copy_snapshot(self, order: CloneOrder, of: DiskView, disk: DomainDisk) -> None:
        """Copy a disk as it was in a snapshot. libvirt has no call for that, so the bytes pass through here."""
        scratch = self._connection.settings.scratch
        content = DiskContent(path=of.path, format=of.format or volumexml.RAW, snapshot=order.snapshot)
        async with chains.raw(self._connection, content, scratch) as file:
            with tempfile.TemporaryFile(dir=scratch) as made:
                await conversion.flatten((OpenLayer(file.fileno(), volumexml.RAW),), made.fileno(), disk.format)
                plain = PlainDisk(made, disk.format, disk.bytes, "")
                note = VolumeNote(purpose=records.MACHINE, request=order.uuid, size=disk.bytes, format=disk.format)
                await self._connection.run(keeping.keep, disk.pool, disk.volume, plain, note)

    async def _abandon(self, clone: LibvirtDomain) -> None:
        """Leave nothing of a clone that was begun, and that its source does not allow any more. Whoever asks again begins anew."""
        async with self._store.changing(clone.uuid):
            known = clone.inactive.marks
            await self._storage.delete([each.path for each in known.disks] if known is not None else [])
            await self._connection.run(lifecycle.undefine, clone.uuid)

    async def _undo(self, order: CloneOrder, paths: list[str]) -> None:
        """Leave nothing of a clone that could not be made."""
        await self._storage.delete(paths)
        await self._connection.run(lifecycle.undefine, order.uuid)


def whose(request: m.CloneRequest) -> str:
    """Return the VirtualMachine that a clone is for, which has no uid yet."""
    return f"{request.target_vm.namespace}/{request.target_vm.name}" if request.target_vm is not None else ""


def clone_uuid(request: m.CloneRequest) -> str:
    """Return the UUID of a clone: the same for the same request, so that it is made once."""
    return marks.machine_uuid(f"{CLONED}/{request.source_vm_id}/{request.target_name}/{whose(request)}")


def _ignored(placement: PlacementPayload) -> tuple[str, ...]:
    rest = msgspec.structs.replace(placement, datastore="")
    return ("placement: of a clone, only the datastore counts",) if rest != PlacementPayload() else ()


# --- in threads -------------------------------------------------------------------------------------------------------------------


def _snapshot_text(conn: Any, uuid: str, name: str) -> str:
    domain = machines.existing(conn, uuid)
    return str(snapshotxml.existing(domain, name).getXMLDesc(libvirt.VIR_DOMAIN_SNAPSHOT_XML_SECURE))


def _has_snapshot(conn: Any, uuid: str, name: str) -> bool:
    return snapshotxml.lookup(machines.existing(conn, uuid), name) is not None


def _take(conn: Any, uuid: str, name: str, clone: str) -> None:
    """Take the snapshot that a machine is cloned by."""
    try:
        snapshots.take(conn, uuid, name, m.SnapshotCreateRequest(description=f"Paddock copies it to {clone}, and deletes it then."))
    except ProviderError as error:
        if error.kind is not ErrorKind.NOT_SUPPORTED:
            raise
        fix = "power it off, and clone it then"
        raise refusals.not_supported("the machine cannot be cloned while it runs", why=f"{error.what}: {error.why}", fix=fix) from error


def _define(conn: Any, text: str) -> None:
    conn.defineXML(text)


def _check_linked(conn: Any, uuid: str, view: DomainView, snapshot: str) -> None:
    """Refuse a linked clone that would harm its source."""
    if snapshot:
        raise refusals.not_supported(
            "a linked clone of a snapshot cannot be made", why="it is inside a disk's file", fix="make a full clone"
        )
    if view.marks is None:
        why = "its disks were not made by Paddock, which does not change what they stand on"
        raise refusals.not_supported(f"a linked clone of machine {view.name} cannot be made", why=why, fix="make a full clone")
    if machines.existing(conn, uuid).snapshotNum(0):
        why = "its snapshots are inside of the files that the clone would stand on"
        raise refusals.conflict(f"a linked clone of machine {view.name} cannot be made", why=why, fix="delete them, or make a full clone")


def _plan(conn: Any, order: CloneOrder, default: str) -> dict[str, DomainDisk]:
    """The disks of the clone by the targets that they take."""
    found = {}
    for disk in clonexml.disks_of(order.view):
        volume = pools.find(conn, disk.path)
        if volume is None:
            why = f"no storage pool has its disk {disk.target}"
            raise refusals.not_supported(f"machine {order.view.name} cannot be cloned", why=why, fix="define a pool for its directory")
        place = volume.storagePoolLookupByVolume()
        stored = volumexml.parse_volume(volume.XMLDesc(0), place.name())
        if not order.linked and stored.format != (disk.format or volumexml.RAW):
            why = f"disk {disk.target} is {disk.format or 'raw'}, and its content looks like {stored.format}"
            raise refusals.not_supported(f"machine {order.view.name} cannot be cloned", why=why)
        pool = pools.choose(conn, order.datastore, "", default) if order.datastore and not order.linked else pools.view_of(place)
        if order.linked and not pool.files:
            raise refusals.not_supported("a linked clone cannot be made", why=f"pool {pool.name} keeps devices", fix="make a full clone")
        found[disk.target] = _planned(conn, order, disk, pool, stored.capacity)
    return found


def _planned(conn: Any, order: CloneOrder, disk: DiskView, pool: PoolView, size: int) -> DomainDisk:
    name = clonexml.name_of(order.view, disk)
    wanted = volumes.planned(conn, NamedMachine(order.name, order.uuid), name, pool, size)
    return msgspec.structs.replace(wanted, format=volumexml.QCOW2 if order.linked else wanted.format)


def _copy(conn: Any, of: DiskView, disk: DomainDisk) -> None:
    source = pools.find(conn, of.path)
    if source is None:
        raise refusals.not_found(f"disk {of.target} of the machine to clone is gone", reason=reasons.VOLUME_MISSING)
    made = VolumeOrder(name=disk.volume, capacity=disk.bytes, format=disk.format, thick=disk.kind == "block")
    volumes.copy(conn, source, disk, made)


def _link(conn: Any, uuid: str, target: str, disk: DomainDisk) -> None:
    """Make a disk of the source a layer, and put the clone's and the source's own files on top of it. Each step may be repeated."""
    domain = machines.existing(conn, uuid)
    if domain.isActive():
        raise refusals.conflict("a machine cannot be cloned while it runs", fix="power it off")
    view = domainview.parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE))
    own = next(each for each in view.disks if each.target == target)
    pool = pools.active(conn, disk.pool)
    there = records.lookup(pool, disk.volume)
    base = volumexml.parse_volume(there.XMLDesc(0)).backing if there is not None else own.path
    kind = own.format or volumexml.RAW
    if there is None:
        _check_depth(conn, base)
        volume = pools.find(conn, base)
        if volume is None:
            raise refusals.not_found(f"disk {target} of the machine to clone is gone", reason=reasons.VOLUME_MISSING)
        records.write(conn, pool, volume.name(), VolumeNote(purpose=records.LAYER, request=uuid, format=kind))
        _overlay(pool, disk.volume, base, kind, disk.bytes)
    if own.path == base:
        _switch(conn, domain, view, own, _above(pool, own, kind, disk.bytes))


def _overlay(pool: Any, name: str, base: str, kind: str, size: int) -> Any:
    order = VolumeOrder(name=name, capacity=size, backing=base, backing_format=kind)
    return pool.createXML(volumexml.volume(order), 0)


def _above(pool: Any, own: DiskView, kind: str, size: int) -> str:
    """A new file on top of a disk; one that was left by a call that was cut off, and that nobody has, is taken."""
    stem = PurePosixPath(own.path).name.removesuffix(".qcow2").removesuffix(".raw")
    plain = stem.rpartition(".")[0] if stem.rpartition(".")[2].isdigit() else stem
    number = int(stem.rpartition(".")[2]) + 1 if stem != plain else 1
    while True:
        name = f"{plain}.{number}.qcow2"
        there = records.lookup(pool, name)
        if there is None:
            return str(_overlay(pool, name, own.path, kind, size).path())
        if volumexml.parse_volume(there.XMLDesc(0)).backing == own.path:
            return str(there.path())
        number += 1


def _own_overlays(conn: Any, uuid: str) -> None:
    """Note that the files which a linked clone's source got are the source's."""
    known = domainview.parse(machines.existing(conn, uuid).XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)).marks
    for disk in known.disks if known is not None else ():
        volume = pools.find(conn, disk.path)
        if volume is not None and volumexml.parse_volume(volume.XMLDesc(0)).backing:
            records.own(conn, volume.storagePoolLookupByVolume(), volume.name(), uuid)


def _switch(conn: Any, domain: Any, view: DomainView, own: DiskView, path: str) -> None:
    """Let a machine that is off have another file as its disk."""
    disk = DomainDisk(name="", path=path, pool="", volume="", format=volumexml.QCOW2)
    root = clonexml.with_disks(view.root, {own.target: disk}, None, "")
    known = view.marks or MachineMarks()
    moved = tuple(msgspec.structs.replace(each, path=path) if each.path == own.path else each for each in known.disks)
    conn.defineXML(xmltree.text(editing.marked(root, msgspec.structs.replace(known, disks=moved))))


def _check_depth(conn: Any, path: str) -> None:
    for _ in range(_MOST_LAYERS):
        volume = pools.find(conn, path)
        path = volumexml.parse_volume(volume.XMLDesc(0)).backing if volume is not None else ""
        if not path:
            return
    raise refusals.conflict("a linked clone cannot be made", why=f"the disk has {_MOST_LAYERS} layers already", fix="make a full clone")

"""Bringing a machine to the desired state: while it runs what can be, and the rest when it is off.

What a machine cannot take while it runs is a Conflict before anything is done. A disk is marked before it is made, so that a change which
was interrupted can be repeated, and a deletion finds it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import libvirt
import msgspec

from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import DiskPayload
from paddock_drivers.kit import description, refusals
from paddock_drivers.libvirt import (
    definition,
    differences,
    domainview,
    editing,
    events,
    failures,
    lifecycle,
    machines,
    marks,
    observed,
    support,
    xmltree,
)
from paddock_drivers.libvirt.differences import DomainChanges
from paddock_drivers.libvirt.domainview import DiskView
from paddock_drivers.libvirt.hypervisor import Hypervisor
from paddock_drivers.libvirt.machines import LibvirtDomain, MachineStore
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk
from paddock_drivers.libvirt.storageport import DomainDisk, MachineStorage, NamedMachine, StoredDisk

_DETACHED = "detached-"
_DETACH_SECONDS = 30.0


class DomainReconfiguration:
    def __init__(self, store: MachineStore, storage: MachineStorage, hypervisor: Hypervisor) -> None:
        self._store = store
        self._storage = storage
        self._hypervisor = hypervisor

    async def apply(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state."""
        found = await self._store.get(request.id, request.owner)
        given = description.of_desired(found.view.name, request.desired_json)
        abilities = await self._hypervisor.abilities()
        support.check(given, abilities)
        if not lifecycle.is_complete(found.view):
            raise refusals.retry_later("the machine is still being created")
        async with self._store.changing(found.uuid):
            machine = await self._store.get(found.uuid, request.owner)
            changes = differences.find(machine.view, given, await self._sizes(machine))
            if machine.live:
                slots = differences.free_slots(machine.view, changes.memory_mib - machine.view.memory_mib) if changes.memory_mib else 0
                differences.check_live(machine.view, changes, slots)
            await self._apply(machine, given, changes)
        return m.TaskResponse()

    async def _apply(self, machine: LibvirtDomain, description: MachineDescription, changes: DomainChanges) -> None:
        known = machine.inactive.marks or MachineMarks()
        for growth in changes.grown:
            await self._storage.grow(machine.uuid, growth.path, growth.bytes)
            marked = known.disk(growth.name)
            if marked is not None:
                known = known.with_disk(msgspec.structs.replace(marked, bytes=growth.bytes))
        for disk in changes.detached:
            known = await self._detach(machine, known, disk)
        for wanted in changes.added:
            known = await self._add(machine, known, wanted, description)
        if machine.live:
            await self._plug(machine, changes)
        elif changes.cpus or changes.memory_mib:
            abilities = await self._hypervisor.abilities()
            await self._store.connection.run(_resize, machine.uuid, description, abilities)
        limits = differences.limitations(known, machine.inactive, description)
        if changes.any or (machine.inactive.marks is not None and limits != known.limitations):
            await self._keep(machine, msgspec.structs.replace(known, limitations=limits))

    async def _sizes(self, machine: LibvirtDomain) -> Mapping[str, StoredDisk]:
        paths = [each.path for each in observed.disks(machine.view) if each.path and machine.view.mark_of(each) is None]
        return await self._storage.measured(paths) if paths else {}

    async def _plug(self, machine: LibvirtDomain, changes: DomainChanges) -> None:
        run = self._store.connection.run
        if changes.cpus:
            await run(_set_cpus, machine.uuid, changes.cpus)
        if changes.memory_mib:
            await run(_attach, machine.uuid, definition.memory_device(changes.memory_mib - machine.view.memory_mib))

    async def _add(
        self, machine: LibvirtDomain, known: MachineMarks, disk_payload: DiskPayload, description: MachineDescription
    ) -> MachineMarks:
        """Give a machine one more disk, or one that it had before."""
        named = NamedMachine(machine.view.name, machine.uuid)
        disk = definition.limited(await self._storage.plan_disk(named, disk_payload, description.placement.datastore), description.hardware)
        known = known.with_disk(MarkedDisk(disk.name, disk.path, disk.bytes, disk.own))
        known = msgspec.structs.replace(known, notes={name: each for name, each in known.notes.items() if name != _DETACHED + disk.name})
        await self._keep(machine, known)
        await self._storage.make((disk,))
        await self._store.connection.run(_attach_disk, machine.uuid, disk)
        return known

    async def _detach(self, machine: LibvirtDomain, known: MachineMarks, disk: DiskView) -> MachineMarks:
        """Take a disk from a machine. Its volume stays, and the machine remembers whose it was."""
        name = observed.name_of(machine.view, disk)
        rest = tuple(each for each in known.disks if each.path != disk.path)
        known = msgspec.structs.replace(known, disks=rest).with_note(_DETACHED + name, disk.path)
        with self._store.connection.events.watch(machine.uuid) as changed:
            await self._store.connection.run(_detach, machine.uuid, disk.path)
            await self._gone(machine.uuid, disk, changed)
        await self._keep(machine, known)
        return known

    async def _gone(self, uuid: str, disk: DiskView, changed: asyncio.Event) -> None:
        """Wait until a guest has let go of a disk."""
        try:
            async with asyncio.timeout(_DETACH_SECONDS):
                while True:
                    machine = await self._store.get(uuid)
                    if all(each.path != disk.path for each in machine.view.disks):
                        return
                    changed.clear()
                    await events.wait(changed, 1.0)
        except TimeoutError:
            what = f"disk {observed.name_of(machine.view, disk)} is not detached"
            raise refusals.conflict(
                what, why="the guest does not let go of it", fix="unmount it in the guest, or power the machine off"
            ) from None

    async def _keep(self, machine: LibvirtDomain, known: MachineMarks) -> None:
        def work(conn: Any) -> None:
            domain = machines.existing(conn, machine.uuid)
            flags = libvirt.VIR_DOMAIN_AFFECT_CONFIG | (libvirt.VIR_DOMAIN_AFFECT_LIVE if domain.isActive() else 0)
            marks.keep(domain, known, flags)

        await self._store.connection.run(work)


# --- in threads -------------------------------------------------------------------------------------------------------------


def _flags(domain: Any) -> int:
    return int(libvirt.VIR_DOMAIN_AFFECT_CONFIG | (libvirt.VIR_DOMAIN_AFFECT_LIVE if domain.isActive() else 0))


def _resize(conn: Any, uuid: str, description: MachineDescription, abilities: Any) -> None:
    domain = machines.existing(conn, uuid)
    # With what only an administrator may read, as passwords of screens: they would be lost otherwise.
    try:
        text = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
    except libvirt.libvirtError as error:
        if failures.is_lost(error):
            raise
        text = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    root = editing.resized(domainview.parse(text), description.hardware, abilities)
    conn.defineXML(xmltree.text(root))


def _set_cpus(conn: Any, uuid: str, count: int) -> None:
    domain = machines.existing(conn, uuid)
    domain.setVcpusFlags(count, _flags(domain))


def _attach(conn: Any, uuid: str, text: str) -> None:
    domain = machines.existing(conn, uuid)
    domain.attachDeviceFlags(text, _flags(domain))


def _attach_disk(conn: Any, uuid: str, disk: DomainDisk) -> None:
    domain = machines.existing(conn, uuid)
    views = [domainview.parse(domain.XMLDesc(flag)) for flag in (0, libvirt.VIR_DOMAIN_XML_INACTIVE)]
    if all(any(each.path == disk.path for each in view.disks) for view in views):
        return
    used = [each.target for view in views for each in view.disks]
    text = xmltree.text(definition.disk_element(disk, definition.free_target(used)))
    flags = _flags(domain)
    try:
        domain.attachDeviceFlags(text, flags)
    except libvirt.libvirtError as error:
        if _plugs_nothing(error):
            root = editing.with_disk(views[1].root, disk)
            conn.defineXML(xmltree.text(root))
            return
        if "No more available PCI" in str(error):
            why = "it has no place for another disk while it runs"
            raise ProviderError(ErrorKind.CONFLICT, "the disk is not attached", why=why, fix="power the machine off first") from error
        raise


def _plugs_nothing(error: libvirt.libvirtError) -> bool:
    """Return True for libvirt's driver for tests: it plugs nothing, since libvirt 11 nothing into the stored definition."""
    return failures.code_of(error) == failures.NO_SUPPORT or "unsupported flags" in str(error)


def _detach(conn: Any, uuid: str, path: str) -> None:
    domain = machines.existing(conn, uuid)
    root = domainview.parse(domain.XMLDesc(0)).root
    for each in root.iterfind("devices/disk"):
        source = each.find("source")
        if source is not None and (source.get("file") or source.get("dev")) == path:
            try:
                domain.detachDeviceFlags(xmltree.text(each), _flags(domain))
            except libvirt.libvirtError as error:
                if failures.code_of(error) == failures.DEVICE_MISSING:
                    return
                if not _plugs_nothing(error):
                    raise
                conn.defineXML(xmltree.text(editing.without_disks(root, (path,))))

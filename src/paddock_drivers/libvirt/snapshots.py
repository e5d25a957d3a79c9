"""Snapshots: taken, deleted, and gone back to. All are inside the files of the disks, so they go with their machine.

A snapshot is known by its name, which follows from the request: a repeated call finds the one that it took.
"""

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import libvirt
import msgspec

from paddock.contract import messages as m
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, TaskProgress, failed
from paddock_drivers.libvirt import domainview, failures, machines, marks, monitor, snapshotxml
from paddock_drivers.libvirt.machines import MachineStore
from paddock_drivers.libvirt.marks import MachineMarks
from paddock_drivers.libvirt.snapshotxml import SnapshotWay
from paddock_drivers.libvirt.undertakings import Undertakings

if TYPE_CHECKING:
    from collections.abc import Iterator

SNAPSHOTTED, REVERTED = "snapshot", "revert"
_DEFINE = libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_REDEFINE | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_CURRENT
_AGENT_SECONDS = 10


class DomainSnapshots:
    """Takes, deletes and goes back to snapshots."""

    def __init__(self, store: MachineStore) -> None:
        self._store = store
        self._work = Undertakings(store.connection.settings.create_seconds)

    async def create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot. The same name of the same machine is the same snapshot. A machine that is off has no memory to keep."""
        machine = await self._store.get(request.vm_id)
        name = snapshotxml.name_of(request.name_hint)
        key = f"{SNAPSHOTTED}:{machine.uuid}:{name}"

        async def work() -> None:
            async with self._store.changing(machine.uuid):
                await self._store.connection.run(take, machine.uuid, name, request)

        if await self._work.do(key, work):
            return m.SnapshotCreateResponse(snapshot_id=name)
        return m.SnapshotCreateResponse(snapshot_id=name, task=m.TaskRef(id=key))

    async def delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot. One that is gone is deleted, as all of a machine that is gone are."""
        machine = await self._store.find(request.vm_id)
        if machine is not None:
            async with self._store.changing(machine.uuid):
                await self._store.connection.run(remove, machine.uuid, request.snapshot_id)
        return m.TaskResponse()

    async def revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot, with its hardware. It is stopped for that, and runs then only with the snapshot's memory."""
        machine = await self._store.get(request.vm_id)
        await self._store.connection.run(_check, machine.uuid, request.snapshot_id)
        key = f"{REVERTED}:{machine.uuid}:{request.snapshot_id}"

        async def work() -> None:
            async with self._store.changing(machine.uuid):
                await self._store.connection.run(_revert, machine.uuid, request.snapshot_id)

        if await self._work.do(key, work):
            return m.TaskResponse()
        return m.TaskResponse(task=m.TaskRef(id=key))

    async def status(self, goal: str, rest: str) -> TaskProgress:
        """Judge a snapshot that is taken, or gone back to."""
        found = self._work.status(f"{goal}:{rest}")
        if found is not None:
            return found
        uuid, _, name = rest.partition(":")
        if await self._store.connection.run(_current, uuid, name, goal == REVERTED):
            return DONE
        return failed("the work has ended with the program that carried it out; call again")

    async def close(self) -> None:
        """End what is under way."""
        await self._work.close()


# --- in threads -------------------------------------------------------------------------------------------------------------------


def take(conn: Any, uuid: str, name: str, request: m.SnapshotCreateRequest) -> None:
    """Take a snapshot, unless there is one of this name. In a thread."""
    domain = machines.existing(conn, uuid)
    if snapshotxml.lookup(domain, name) is not None:
        return
    live = bool(domain.isActive())
    flags = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
    view = domainview.parse(domain.XMLDesc(flags))
    present = domainview.parse(domain.XMLDesc(0)) if live else view
    if snapshotxml.way(present, live=live, memory=request.include_memory) is SnapshotWay.WHOLE:
        domain.snapshotCreateXML(snapshotxml.order(name, request.description, present), libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_ATOMIC)
        return
    with _quiet(domain, present):
        monitor.snapshot_disks(domain, name, (each.path for each in snapshotxml.writable(present)))
    domain.snapshotCreateXML(snapshotxml.definition(name, request.description, int(time.time()), view), _DEFINE)


@contextmanager
def _quiet(domain: Any, view: domainview.DomainView) -> "Iterator[None]":
    """Let the guest's agent hold its file systems still, if it is there; without it the disks are as after a loss of power."""
    frozen = False
    if view.root.find("devices/channel/target[@name='org.qemu.guest_agent.0'][@state='connected']") is not None:
        try:
            domain.agentSetResponseTimeout(_AGENT_SECONDS, 0)
            domain.fsFreeze(None, 0)
            frozen = True
        except libvirt.libvirtError:
            frozen = False
    try:
        yield
    finally:
        if frozen:
            domain.fsThaw(None, 0)


def _check(conn: Any, uuid: str, name: str) -> None:
    snapshotxml.existing(machines.existing(conn, uuid), name)


def remove(conn: Any, uuid: str, name: str) -> None:
    """Delete a snapshot. One that is gone, or whose machine is, is deleted. In a thread."""
    domain = machines.lookup(conn, uuid)
    snapshot = snapshotxml.lookup(domain, name) if domain is not None else None
    try:
        if snapshot is not None:
            snapshot.delete(0)
    except libvirt.libvirtError as error:
        if failures.code_of(error) not in (failures.NO_SNAPSHOT, failures.NO_DOMAIN):
            raise


def _revert(conn: Any, uuid: str, name: str) -> None:
    domain = machines.existing(conn, uuid)
    snapshot = snapshotxml.existing(domain, name)
    view = snapshotxml.parse(snapshot.getXMLDesc(libvirt.VIR_DOMAIN_SNAPSHOT_XML_SECURE))
    before = domainview.parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    missing = sorted({each.path for each in view.disks} - {each.path for each in before.disks} - _marked_paths(before.marks))
    if missing:
        why = f"the machine no longer has {len(missing)} of its disks"
        raise refusals.conflict(f"machine {before.name} cannot go back to snapshot {name[:64]}", why=why)
    if domain.isActive():
        domain.destroy()
    domain.revertToSnapshot(snapshot, libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_RUNNING if view.memory else 0)
    if before.marks is not None:
        _keep_marks(domain, before.marks)


def _marked_paths(known: MachineMarks | None) -> set[str]:
    return {each.path for each in known.disks} if known is not None else set()


def _keep_marks(domain: Any, before: MachineMarks) -> None:
    """The owner and the disks that the machine got since are no part of its past: a disk that nobody knows would stay for ever."""
    after = domainview.parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)).marks
    known = {each.path: each for each in after.disks} if after is not None else {}
    merged = msgspec.structs.replace(before, disks=tuple(known.get(each.path, each) for each in before.disks))
    flags = libvirt.VIR_DOMAIN_AFFECT_CONFIG | (libvirt.VIR_DOMAIN_AFFECT_LIVE if domain.isActive() else 0)
    if merged != after:
        marks.keep(domain, merged, flags)


def _current(conn: Any, uuid: str, name: str, reverted: bool) -> bool:
    domain = machines.lookup(conn, uuid)
    snapshot = snapshotxml.lookup(domain, name) if domain is not None else None
    return snapshot is not None and (not reverted or bool(snapshot.isCurrent(0)))

"""Domains by the ids that the manager keeps, their owners, and one change at a time for each.

A machine's id is its domain's UUID, which stays whatever the domain is called. A name is taken, too: machines of upstream's provider are
known by theirs.
"""

import asyncio
import re
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import libvirt
import msgspec

from paddock.contract.messages import ObjectIdentity
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import domainview, failures
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.domainview import DomainView

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII)
_LONGEST = 255
# virDomainState
RUNNING, BLOCKED, PAUSED, SHUTDOWN, SHUTOFF, CRASHED, PMSUSPENDED = 1, 2, 3, 4, 5, 6, 7
_POWER = {RUNNING: "On", BLOCKED: "On", SHUTDOWN: "On", PAUSED: "Suspended", PMSUSPENDED: "Suspended", SHUTOFF: "Off", CRASHED: "Off"}


class LibvirtDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A domain with its definition: what runs, or what starts next when it is off."""

    view: DomainView
    state: int
    # the definition that the next start takes, of a domain that runs; else the same
    inactive: DomainView

    @property
    def uuid(self) -> str:
        return self.view.uuid

    @property
    def live(self) -> bool:
        """Return whether QEMU has it."""
        return is_live(self.state)

    @property
    def power(self) -> str:
        """Its power in the contract's words."""
        return power_word(self.state)


def power_word(state: int) -> str:
    """Return the contract's word for a virDomainState."""
    return _POWER.get(state, "Unknown")


def is_live(state: int) -> bool:
    """Return whether a virDomainState is one of a domain that QEMU has."""
    return state not in (SHUTOFF, CRASHED, 0)


def lookup(conn: Any, id: str) -> Any | None:
    """Return the virDomain of an id, None if libvirt positively has none. In a thread."""
    try:
        if _UUID.match(id):
            return conn.lookupByUUIDString(id)
        return conn.lookupByName(id) if 0 < len(id) <= _LONGEST and "\0" not in id else None
    except libvirt.libvirtError as error:
        if failures.code_of(error) == failures.NO_DOMAIN:
            return None
        raise


def read(domain: Any) -> LibvirtDomain:
    """Return a virDomain's machine. In a thread."""
    state, _ = domain.state()
    flags = libvirt.VIR_DOMAIN_XML_INACTIVE
    inactive = domainview.parse(domain.XMLDesc(flags))
    view = domainview.parse(domain.XMLDesc(0)) if is_live(state) else inactive
    return LibvirtDomain(view=view, state=state, inactive=inactive)


def existing(conn: Any, id: str) -> Any:
    """Return the virDomain of an id; raises NotFound. In a thread."""
    found = lookup(conn, id)
    if found is None:
        raise refusals.not_found("the machine does not exist", "it may have been undefined at the hypervisor")
    return found


def check_owner(view: DomainView, owner: ObjectIdentity | None) -> None:
    """Raise Conflict for a machine that belongs to another owner. One that belongs to nobody may be anybody's."""
    mine = view.marks.owner if view.marks is not None else ""
    if owner is not None and owner.uid and mine and mine != owner.uid:
        whose = f"{view.marks.namespace}/{view.marks.name}" if view.marks is not None and view.marks.name else "another owner"
        raise refusals.conflict(f"machine {view.name} is not changed", why=f"it belongs to {whose}")


class MachineStore:
    """Finds machines, and lets one call at a time change each."""

    def __init__(self, connection: LibvirtConnection) -> None:
        self.connection = connection
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def find(self, id: str) -> LibvirtDomain | None:
        """Return a machine, None if libvirt positively has none."""

        def work(conn: Any) -> LibvirtDomain | None:
            domain = lookup(conn, id)
            try:
                return read(domain) if domain is not None else None
            except libvirt.libvirtError as error:
                # It went between two calls.
                if failures.code_of(error) == failures.NO_DOMAIN:
                    return None
                raise

        return await self.connection.run(work)

    async def get(self, id: str, owner: ObjectIdentity | None = None) -> LibvirtDomain:
        """Return a machine; raises NotFound, and Conflict for another owner's."""
        found = await self.find(id)
        if found is None:
            raise refusals.not_found("the machine does not exist", "it may have been undefined at the hypervisor")
        check_owner(found.view, owner)
        return found

    @asynccontextmanager
    async def changing(self, uuid: str) -> AsyncIterator[None]:
        """Keep other changes of a machine out."""
        lock = self._locks.get(uuid)
        if lock is None:
            lock = self._locks[uuid] = asyncio.Lock()
        async with lock:
            yield

    def busy(self, uuid: str) -> bool:
        """Return whether a call changes a machine now."""
        lock = self._locks.get(uuid)
        return lock is not None and lock.locked()

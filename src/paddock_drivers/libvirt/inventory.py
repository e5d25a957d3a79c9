"""Describes machines: one, or all that the hypervisor has, foreign ones too.

Definitions are kept until libvirt reports a change of their domain, or a minute has passed, so a list of a thousand machines costs a few
calls. States are read each time. Without events nothing is kept.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import libvirt
import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock_drivers.libvirt import addresses, domainview, failures, machines, observed
from paddock_drivers.libvirt.addresses import NOWHERE, GuestAddresses
from paddock_drivers.libvirt.domainview import DomainView
from paddock_drivers.libvirt.machines import LibvirtDomain, MachineStore
from paddock_drivers.libvirt.storageport import MachineStorage, StoredDisk

_KEPT_SECONDS = 60.0
# Addresses that an agent told are believed for so long by lists, which ask no agents.
_TOLD_SECONDS = 600.0


class _Kept(msgspec.Struct, frozen=True):
    view: DomainView
    read: float
    active: bool


class DomainInventory:
    def __init__(self, store: MachineStore, storage: MachineStorage, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._storage = storage
        self._now = now
        self._kept: dict[str, _Kept] = {}
        self._sizes: dict[str, tuple[float, StoredDisk]] = {}
        self._known: dict[str, tuple[float, GuestAddresses]] = {}
        # counts changes, so that what was read before one is not kept after it
        self._changes = 0
        self._changed: dict[str, int] = {}
        store.connection.events.listen(self.forget)

    def forget(self, uuid: str) -> None:
        """Read a domain anew at the next list; all of them for the empty text."""
        self._changes += 1
        self._changed[uuid] = self._changes
        if uuid:
            self._kept.pop(uuid, None)
        else:
            self._kept.clear()

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state. It does not exist only if libvirt says so."""

        def work(conn: Any) -> tuple[LibvirtDomain, GuestAddresses] | None:
            domain = machines.lookup(conn, request.id)
            try:
                if domain is None:
                    return None
                machine = machines.read(domain)
                return machine, addresses.find(domain, machine.view) if machine.state == machines.RUNNING else NOWHERE
            except libvirt.libvirtError as error:
                if failures.code_of(error) == failures.NO_DOMAIN:
                    return None
                raise

        found = await self._store.connection.run(work)
        if found is None:
            self._kept.pop(request.id, None)
            return m.DescribeResponse()
        machine, guest_addresses = found
        if guest_addresses.source == "agent":
            self._known[machine.uuid] = (self._now(), guest_addresses)
        sizes = await self._measured(machine.view)
        return m.DescribeResponse(
            exists=True,
            power_state=machine.power,
            ips=guest_addresses.every(each.mac for each in machine.view.interfaces),
            console_url=observed.console(machine.view, self._store.connection.settings.endpoint) if machine.live else "",
            provider_raw_json=observed.details_json(machine, sizes, guest_addresses),
        )

    async def every(self) -> m.ListVMsResponse:
        """Return all machines of the hypervisor."""
        self._expire()
        known, before = dict(self._kept), self._changes
        states, fresh, leased = await self._store.connection.run(_read_all, known)
        views = {uuid: fresh[uuid] if uuid in fresh else known[uuid].view for uuid in states}
        self._keep(fresh, states, before)
        sizes = await self._measured(*views.values())
        ordered = sorted(views.values(), key=lambda each: each.name)
        return m.ListVMsResponse(
            vms=tuple(observed.listed(each, states[each.uuid], sizes, self._addresses(each, states[each.uuid], leased)) for each in ordered)
        )

    def _keep(self, fresh: Mapping[str, DomainView], states: Mapping[str, int], before: int) -> None:
        """Keep what was read, unless its domain changed meanwhile."""
        now = self._now()
        if self._store.connection.events.attached and self._changed.get("", 0) <= before:
            for uuid, view in fresh.items():
                if self._changed.get(uuid, 0) <= before:
                    self._kept[uuid] = _Kept(view, now, machines.is_live(states[uuid]))
        self._kept = {uuid: each for uuid, each in self._kept.items() if uuid in states}
        self._changed = {uuid: each for uuid, each in self._changed.items() if uuid in states or not uuid}

    def _addresses(self, view: DomainView, state: int, leased: GuestAddresses) -> GuestAddresses:
        if not machines.is_live(state):
            return NOWHERE
        known = self._known.get(view.uuid)
        return known[1] if known is not None and self._now() - known[0] < _TOLD_SECONDS else leased

    def _expire(self) -> None:
        limit = self._now() - _KEPT_SECONDS
        self._kept = {uuid: each for uuid, each in self._kept.items() if each.read > limit}
        self._sizes = {path: each for path, each in self._sizes.items() if each[0] > limit}
        self._known = {uuid: each for uuid, each in self._known.items() if self._now() - each[0] < _TOLD_SECONDS}

    async def _measured(self, *views: DomainView) -> Mapping[str, StoredDisk]:
        """The sizes of disks that the driver did not note. A pool that is away hides sizes, and no machine."""
        paths = {each.path for view in views for each in view.disks if each.path and each.device == "disk" and view.mark_of(each) is None}
        missing = [each for each in paths if each not in self._sizes]
        if missing:
            await self._remember(missing)
        return {path: self._sizes[path][1] for path in paths if path in self._sizes}

    async def _remember(self, paths: Iterable[str]) -> None:
        try:
            found = await self._storage.measured(paths)
        except ProviderError:
            found = {}
        now = self._now()
        self._sizes |= {path: (now, found.get(path) or StoredDisk(path=path)) for path in paths}


def _read_all(conn: Any, kept: Mapping[str, _Kept]) -> tuple[dict[str, int], dict[str, DomainView], GuestAddresses]:
    """The state of each domain, the definitions that are not kept, and the leases. In a thread."""
    states, domains = _states(conn)
    fresh: dict[str, DomainView] = {}
    for uuid, domain in domains.items():
        known = kept.get(uuid)
        if known is not None and known.active == machines.is_live(states[uuid]):
            continue
        try:
            fresh[uuid] = domainview.parse(domain.XMLDesc(0))
        except libvirt.libvirtError as error:
            if failures.code_of(error) != failures.NO_DOMAIN:
                raise
            # It went between two calls.
            del states[uuid]
    return states, fresh, addresses.leases(conn)


def _states(conn: Any) -> tuple[dict[str, int], dict[str, Any]]:
    try:
        pairs = [(domain, stats.get("state.state", 0)) for domain, stats in conn.getAllDomainStats(libvirt.VIR_DOMAIN_STATS_STATE, 0)]
    except libvirt.libvirtError as error:
        if failures.code_of(error) != failures.NO_SUPPORT:
            raise
        pairs = [(domain, domain.state()[0]) for domain in conn.listAllDomains()]
    states = {domain.UUIDString(): state for domain, state in pairs}
    return states, {domain.UUIDString(): domain for domain, _ in pairs}

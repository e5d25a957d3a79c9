"""The networks of simulated guests: MACs and addresses, and nothing behind them.

An address is derived from the card, so that the same card of the same owner has the same one on every server.
"""

import asyncio
import hashlib
import ipaddress
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct

from paddock.engine.machine.config import Tap
from paddock.engine.networks.addresses import check_networks, free_mac
from paddock.engine.networks.datagrams import Datagrams
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.networks import NetworkSettings
from paddock.engine.networks.nics import AttachedNic, NicPolicy, NicSpec, PublishedService, check_card
from paddock.engine.simulated import refusals
from paddock.engine.simulated.records import Records

# Nothing of it is on the host, so that it may be large and clashes with nothing.
POD_NETWORK = "10.128.0.0/9"
_GUEST4, _GUEST6 = "10.0.2.0/24", "fd10:0:2::/120"
# the network itself, the gateway; and the broadcast address
_FIRST, _LAST_FREE = 2, 1


class NicRecord(Struct, frozen=True):
    """The MAC and the number of a card."""

    owner: str
    name: str
    mac: str
    number: int


class SimulatedNetworks:
    """The calls of the engine's networks."""

    def __init__(self, settings: NetworkSettings, records: Records) -> None:
        wanted, wanted6 = check_networks(settings.pod_network or POD_NETWORK)
        self._network = ipaddress.IPv4Network(wanted) if wanted else None
        self._network6 = ipaddress.IPv6Network(wanted6) if wanted6 else None
        self._table = records.table("nics", NicRecord)
        self._nics = {(nic.owner, nic.name): nic for _, nic in self._table}
        self._macs = {nic.mac for nic in self._nics.values()}
        self._numbers = {nic.number for nic in self._nics.values()}
        self._owners: dict[str, set[str]] = {}
        for owner, name in self._nics:
            self._owners.setdefault(owner, set()).add(name)
        # cards of machines that live, by MAC
        self.plugged: dict[str, AttachedNic] = {}
        self.users = (0, 0)

    @property
    def mode(self) -> Literal["routed", "user"]:
        """As on a host that routes to its guests."""
        return "routed"

    @property
    def instance(self) -> str:
        """No text: nothing is on the host."""
        return ""

    @property
    def outside_addresses(self) -> tuple[str, ...]:
        """The address that Services of the type LoadBalancer get. Nothing listens there."""
        return ("127.0.0.1",)

    async def open(self) -> None:
        """Do nothing: the host has no part of it."""

    async def close(self) -> None:
        """Do nothing: there is no open socket."""

    async def destroy(self) -> None:
        """Nothing is on the host."""

    async def plug(self, nic: NicSpec) -> AttachedNic:
        """Return the card with its addresses, which it keeps until its owner is released."""
        check_card(nic)
        entry = self._entry(nic)
        attached = self._attached(nic, entry)
        self.plugged[entry.mac] = attached
        return attached

    def _attached(self, spec: NicSpec, entry: NicRecord) -> AttachedNic:
        address, address6 = (self._address(entry, each) if spec.bridge is None else "" for each in (self._network, self._network6))
        masqueraded = spec.binding == "masquerade"
        return AttachedNic(
            entry.mac,
            address,
            _inside(spec.network or _GUEST4) if masqueraded and address else self._with_prefix(address, self._network),
            Tap(f"sim{entry.number}", spec.queues),
            address6=address6,
            guest_address6=_inside(spec.network6 or _GUEST6) if masqueraded and address6 else self._with_prefix(address6, self._network6),
        )

    async def unplug(self, owner: str, name: str) -> None:
        """The card keeps its addresses."""
        if (entry := self._nics.get((owner, name))) is not None:
            self.plugged.pop(entry.mac, None)

    async def release(self, owners: AbstractSet[str]) -> None:
        """The cards of these owners have nothing any more."""
        for owner in owners:
            for name in self._owners.pop(owner, set()):
                entry = self._nics.pop((owner, name))
                self._macs.discard(entry.mac)
                self._numbers.discard(entry.number)
                self.plugged.pop(entry.mac, None)
                self._table.delete(_key(owner, name))

    def owners(self) -> set[str]:
        """Return the owners that have cards."""
        return set(self._owners)

    async def collect(self, owners: Collection[str]) -> None:
        """Nothing else is left of owners that are gone."""

    def mac(self, owner: str, name: str) -> str:
        """Return the MAC of a card; "" for one that there is not."""
        entry = self._nics.get((owner, name))
        return entry.mac if entry is not None else ""

    def device(self, owner: str, name: str) -> str:
        """Return no name: there is no tap."""
        return ""

    def forward_by(self, forward: Callable[..., object]) -> None:
        """Do nothing: no port of the host leads to a guest."""

    async def dial(self, owner: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Refuse: nothing listens in the guest."""
        raise refusals.connection(f"cannot connect to port {port} of {name}")

    async def datagrams(self, owner: str, name: str, port: int) -> Datagrams:
        """Refuse: nothing listens in the guest."""
        raise refusals.connection(f"cannot reach port {port} of {name}")

    async def publish(self, services: Collection[PublishedService]) -> Mapping[str, tuple[str, ...]]:
        """Nothing listens at the addresses of Services, and there is nothing to report: their objects say the same as on a real server."""
        return {}

    async def police(self, policies: Collection[NicPolicy]) -> None:
        """There are no packets to filter."""

    async def name(self, names: Mapping[str, Collection[str]]) -> None:
        """Do nothing: no guest asks for names."""

    def _entry(self, spec: NicSpec) -> NicRecord:
        known, wanted = self._nics.get(spec.key), spec.mac.lower()
        if known is not None and wanted in ("", known.mac):
            return known
        mac = wanted or free_mac(spec.key, self._macs)
        entry = NicRecord(*spec.key, mac, known.number if known is not None else self._free_number(spec.key))
        if known is not None:
            self._macs.discard(known.mac)
        self._macs.add(mac)
        self._numbers.add(entry.number)
        self._nics[spec.key] = entry
        self._owners.setdefault(spec.owner, set()).add(spec.name)
        self._table.put(_key(*spec.key), entry)
        return entry

    def _free_number(self, key: tuple[str, str]) -> int:
        network = next(each for each in (self._network, self._network6) if each is not None)
        count = min(network.num_addresses, 1 << 32) - _FIRST - _LAST_FREE
        start = int.from_bytes(hashlib.sha256("\0".join(("address", *key)).encode()).digest()[:8], "big")
        if len(self._numbers) >= count:
            fix = "delete machines, or choose a larger one: --pod-network"
            raise NetworkUnusable(f"cannot give {key[1]} an address", why=f"all {count} of {network} are in use", fix=fix)
        number = start % count
        while number + _FIRST in self._numbers:
            number = (number + 1) % count
        return number + _FIRST

    @staticmethod
    def _address(entry: NicRecord, network: ipaddress.IPv4Network | ipaddress.IPv6Network | None) -> str:
        return str(network[entry.number]) if network is not None else ""

    @staticmethod
    def _with_prefix(address: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network | None) -> str:
        return f"{address}/{network.prefixlen}" if address and network is not None else ""


def _inside(network: str) -> str:
    """Return the address that a guest sees behind masquerade: the second of its network."""
    found = ipaddress.ip_network(network, strict=False)
    return f"{found[2]}/{found.prefixlen}"


def _key(owner: str, name: str) -> str:
    return f"{owner}/{name}"

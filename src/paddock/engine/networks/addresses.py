"""The MAC and the address of each card. Pure: the same book, the same request, the same answer.

An address is a number in the pod network. It is derived from the card, moved on where another card has it, and kept until the owner is
released; after that it rests a while, so that a cached name does not lead to a stranger.
"""

import hashlib
import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct, field
from msgspec.structs import replace

from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.families import IP4, IP6

REST_SECONDS = 600.0
# Left to the network itself, the host and the broadcast address.
_FIRST, _LAST_FREE = 2, 1
Network, Network6 = ipaddress.IPv4Network, ipaddress.IPv6Network
# How large a network is that nobody wrote.
_PREFIX = 18
# The first ones lie far apart, for hosts whose own networks fill a whole range. None is in the default network of Services, 10.96.0.0/12.
_SPREAD = ("10.112.64.0/18", "10.125.64.0/18", "10.244.64.0/18", "172.30.64.0/18", "192.168.128.0/18")
_RANGES = ("10.112.0.0/12", "10.128.0.0/9", "172.16.0.0/12")
CANDIDATES = tuple(dict.fromkeys((*_SPREAD, *(str(each) for wide in _RANGES for each in Network(wide).subnets(new_prefix=_PREFIX)))))
# Every IPv4 network fits into the longest of these, and its numbers are those of IPv6, too.
_PREFIXES6 = range(16, 105)
# Behind user mode machines have no network; their numbers stand for loopback addresses.
_NUMBERS = 1 << (32 - _PREFIX)

Key = tuple[str, str]


class AddressEntry(Struct, frozen=True):
    """The addresses of a card."""

    owner: str
    name: str
    mac: str
    index: int

    @property
    def key(self) -> Key:
        """The identity of the card."""
        return (self.owner, self.name)


class Numbers(Struct, frozen=True):
    """The numbers that may be given: the first, the last and those between, without some and without spans that do not overlap."""

    first: int
    last: int
    without: frozenset[int] = frozenset()
    skipped: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> int:
        """The number of those that may be given."""
        return self.last - self.first + 1 - len(self.without) - sum(last - first + 1 for first, last in self.skipped)

    def skip(self, number: int) -> int:
        """Return the first number after the span that a number is in; the number itself if it is in none."""
        return next((last + 1 for first, last in self.skipped if first <= number <= last), number)


class AddressTable(Struct, frozen=True):
    """Everything that was given and not taken back."""

    # "" until machines have one
    network: str
    # 40 random bits of the host's own IPv6 network
    site: str = ""
    entries: Mapping[Key, AddressEntry] = field(default_factory=dict)
    # number -> when it was released
    resting: Mapping[int, float] = field(default_factory=dict)
    # "" as long as machines have no IPv6
    network6: str = ""

    def give(self, key: Key, now: float, mac: str = "", among: Numbers | None = None) -> tuple["AddressTable", AddressEntry]:
        """The card's entry, made when there is none. A MAC that the user wrote is taken as it is.

        `among`: the numbers that may be given; None: all but the network's, the host's and the last.
        """
        found = self.entries.get(key)
        if found is not None:
            wanted = mac.lower() or found.mac
            if wanted == found.mac:
                return self, found
            entry = replace(found, mac=wanted)
        else:
            chosen = mac.lower() or free_mac(key, {each.mac for each in self.entries.values()})
            entry = AddressEntry(*key, chosen, self._free_index(key, now, among or self._all_numbers()))
        return replace(self, entries={**self.entries, key: entry}), entry

    def release(self, owners: AbstractSet[str], now: float) -> "AddressTable":
        """The cards of these owners have nothing any more."""
        gone = [entry for entry in self.entries.values() if entry.owner in owners]
        if not gone:
            return self
        kept = {key: entry for key, entry in self.entries.items() if entry.owner not in owners}
        resting = {index: at for index, at in self.resting.items() if at + REST_SECONDS > now}
        return replace(self, entries=kept, resting={**resting, **{entry.index: now for entry in gone}})

    def _all_numbers(self) -> Numbers:
        count = Network(self.network).num_addresses if self.network else _NUMBERS
        return Numbers(_FIRST, count - _LAST_FREE - 1)

    def _free_index(self, key: Key, now: float, among: Numbers) -> int:
        used = {entry.index for entry in self.entries.values()} | among.without
        used |= {index for index, at in self.resting.items() if at + REST_SECONDS > now}
        count = among.last - among.first + 1
        index = among.first + int.from_bytes(_digest("address", *key)[:8], "big") % count
        # Each turn passes a used number or a span; the first one can begin within a span.
        for _ in range(len(used) + len(among.skipped) + 2):
            beyond = among.skip(index)
            if beyond == index and index not in used:
                return index
            index = beyond if beyond != index else index + 1
            if index > among.last:
                index = among.first
        network = self.network or self.network6
        raise NetworkUnusable(
            f"cannot give {key[0]}/{key[1]} an address",
            why=f"all {among.count} addresses{f' of {network}' * bool(network)} are in use",
            fix="delete machines, or choose a larger pod network",
        )

    def moved(self, network: str, network6: str = "") -> "AddressTable":
        """Return the book in other networks. Whoever has a number that these have not is given another."""
        if network == self.network:
            return replace(self, network6=network6)
        room = range(_FIRST, (Network(network).num_addresses if network else _NUMBERS) - _LAST_FREE)
        entries = {key: entry for key, entry in self.entries.items() if entry.index in room}
        resting = {index: at for index, at in self.resting.items() if index in room}
        return replace(self, network=network, network6=network6, entries=entries, resting=resting)

    def address(self, entry: AddressEntry) -> str:
        """Its address in the pod network; "" without IPv4."""
        return str(Network(self.network)[entry.index]) if self.network else ""

    def address6(self, entry: AddressEntry) -> str:
        """Its IPv6 address in the pod network; "" without IPv6."""
        return str(Network6(self.network6)[entry.index]) if self.network6 else ""

    def addresses(self) -> Iterator[str]:
        """All addresses that were given."""
        for entry in self.entries.values():
            yield self.address(entry) or self.address6(entry)

    @property
    def host(self) -> str:
        """The host's address in the pod network: the gateway, and the name server. "" without IPv4."""
        return str(Network(self.network)[1]) if self.network else ""

    @property
    def host6(self) -> str:
        """The host's IPv6 address in the pod network; "" without IPv6."""
        return str(Network6(self.network6)[1]) if self.network6 else ""


def free_mac(key: Key, taken: Collection[str]) -> str:
    """A MAC derived from the card; locally administered, not a group, and never the gateway's."""
    for attempt in range(1 << 16):
        digest = _digest("mac", *key, str(attempt))
        mac = "02:" + ":".join(f"{byte:02x}" for byte in digest[:5])
        if mac not in taken and any(digest[:5]):
            return mac
    raise NetworkUnusable(f"cannot find a free MAC for {key[0]}/{key[1]}")  # 65536 collisions in 40 bits


def loopback(index: int, *, high: bool = False) -> str:
    """The loopback address that stands for a machine where there is no pod network; see `UserMode` for `high`."""
    return str(ipaddress.IPv4Address("127.65.0.0" if high else "127.64.0.0") + index)


def choose_network(wanted: str, routes: Iterable[str], services: str) -> str:
    """The network for machines: the one wanted, or the first that the host does not use for anything else."""
    used = [Network(each, strict=False) for each in routes if ":" not in each]
    if own := IP4.network_of(services):
        used.append(Network(own))
    for candidate in (wanted,) if wanted else CANDIDATES:
        network = Network(candidate)
        clash = next((each for each in used if each.prefixlen and each.overlaps(network)), None)
        if clash is None:
            return candidate
        if wanted:
            raise NetworkUnusable(
                f"cannot use {wanted} as pod network",
                why=f"it overlaps {clash}, which the host, its Services or another server on it use",
                fix="choose another one",
            )
    why = f"the host and other servers on it use all {len(CANDIDATES)} that are known"
    raise NetworkUnusable("cannot choose a pod network", why=why, fix="name a private one: --pod-network")


def choose_network6(wanted: str, site: str, routes: Iterable[str], services: str) -> str:
    """The IPv6 network for machines: the one wanted, or the one of this site, whose 40 bits are random."""
    candidate = wanted or str(Network6(f"fd{site[:2]}:{site[2:6]}:{site[6:10]}::/64"))
    network = Network6(candidate)
    used = [Network6(each, strict=False) for each in (*routes, IP6.network_of(services)) if IP6.has(each)]
    clash = next((each for each in used if each.prefixlen and each.overlaps(network)), None)
    if clash is not None:
        why = f"it overlaps {clash}, which the host, its Services or another server on it use"
        raise NetworkUnusable(f"cannot use {candidate} as pod network", why=why, fix="choose another one: --pod-network")
    return candidate


def intruder(network: str, routes: Iterable[str]) -> str:
    """Return a route that leads a part of the network elsewhere; "" when there is none. A wider route does no harm."""
    own = ipaddress.ip_network(network)
    parts = ((each, ipaddress.ip_network(each, strict=False)) for each in routes)
    return next((each for each, part in parts if part.version == own.version and part.subnet_of(own)), "")  # type: ignore[arg-type]  # the same


def check_networks(text: str) -> tuple[str, str]:
    """Return the IPv4 and the IPv6 network that a user wrote, one of them or both; raises `NetworkUnusable`."""
    listed = [each.strip() for each in text.split(",")]
    ours = [_check_network6(each) for each in listed if ":" in each]
    theirs = [check_network(each) for each in listed if ":" not in each]
    if len(ours) > 1 or len(theirs) > 1:
        fix = "write it as 10.112.64.0/18,fd00:10:112::/64"
        raise NetworkUnusable(f"cannot use {text!r} as pod network", why="it has two networks of one family", fix=fix)
    return "".join(theirs), "".join(ours)


def _check_network6(text: str) -> str:
    fix = "write it as fd00:10:112::/64"
    try:
        network = Network6(text)
    except ValueError as error:
        raise NetworkUnusable(f"cannot use {text!r} as pod network", why=str(error), fix=fix) from error
    if network.prefixlen not in _PREFIXES6:
        why = f"its prefix is not {_PREFIXES6[0]} to {_PREFIXES6[-1]} bits long"
        raise NetworkUnusable(f"cannot use {text} as pod network", why=why, fix=fix)
    if network.is_link_local or network.is_multicast or network.is_loopback:
        raise NetworkUnusable(f"cannot use {text} as pod network", why="its addresses are not for hosts", fix=fix)
    return str(network)


def check_network(text: str) -> str:
    """An IPv4 network that a user wrote; raises `NetworkUnusable`."""
    try:
        network = Network(text)
    except ValueError as error:
        raise NetworkUnusable(f"cannot use {text!r} as pod network", why=str(error), fix="write it as 10.112.64.0/18") from error
    if not 8 <= network.prefixlen <= 28:
        raise NetworkUnusable(
            f"cannot use {text} as pod network", why="its prefix is not 8 to 28 bits long", fix="write it as 10.112.64.0/18"
        )
    return str(network)


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()

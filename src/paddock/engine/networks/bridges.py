"""Cards in bridges of the host: which bridge, which addresses, and the guest's leases. Pure."""

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine.networks.addresses import AddressTable, Numbers, free_mac
from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.dhcp6 import Dhcp6Lease
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.families import IP4, IP6, Family
from paddock.engine.networks.nics import HostBridge, NicSpec, Range
from paddock.engine.networks.resolver import ResolverConfig

_DEVICE_NAME = 15
# Of a range without an end the first ones are options, so that addresses are short.
_MOST_NUMBERS6 = 0xFFFF
_EVERYWHERE6 = "::/0"


class BridgeOptions(Struct, frozen=True):
    """The addresses and routes of a guest in a bridge, in one family; without them another server decides."""

    # with its prefix length
    address: str
    gateway: str
    routes: tuple[tuple[str, str], ...] = ()

    @property
    def own(self) -> str:
        """The address alone."""
        return self.address.partition("/")[0]


NOTHING = BridgeOptions("", "")


class BridgeRouter(Struct, frozen=True):
    """The host as the guests of a bridge know it in IPv6: a MAC and the link-local address made of it."""

    mac: str

    @classmethod
    def of(cls, directory: str, bridge: str) -> "BridgeRouter":
        """Return the router of a bridge, the same each time."""
        return cls(free_mac((directory, bridge), ()))

    @property
    def address(self) -> str:
        """Its address, formed as RFC 4291 says."""
        parts = bytes.fromhex(self.mac.replace(":", ""))
        return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + bytes([parts[0] ^ 2]) + parts[1:3] + b"\xff\xfe" + parts[3:]))


def segment(bridge: HostBridge) -> HostBridge:
    """Return the bridge that stands for a VLAN in a bridge of ours: no tags are visible there, and every kernel has bridges."""
    name = f"{bridge.name}.{bridge.vlan}"
    if len(name) > _DEVICE_NAME:
        name = f"{hashlib.sha256(bridge.name.encode()).hexdigest()[:8]}.{bridge.vlan}"
    return replace(bridge, name=name, vlan=0)


def book(of: Range) -> AddressTable:
    """The book of a range."""
    return AddressTable("", network6=of.network) if IP6.has(of.network) else AddressTable(of.network)


def numbers(of: Range, others: Iterable[AddressTable] = ()) -> Numbers:
    """The numbers of a range: all but the network's address, the gateway's, the broadcast address and those in other books of the link."""
    network = ipaddress.ip_network(of.network)
    is_ipv6 = network.version == 6
    base, end = int(network.network_address), network.num_addresses - (1 if is_ipv6 else 2)
    first = int(ipaddress.ip_address(of.first)) - base if of.first else 1
    usual = min(end, max(first, _MOST_NUMBERS6)) if is_ipv6 else end
    last = int(ipaddress.ip_address(of.last)) - base if of.last else usual
    gateway = int(ipaddress.ip_address(gateway_of(of))) - base
    # Where the gateway stands at an end it is left out; in the middle nobody gets it.
    if gateway == first:
        first += 1
    elif gateway == last:
        last -= 1
    skipped = tuple(_spans(of, base, first, last))
    taken = {int(ipaddress.ip_address(each)) - base for book in others for each in book.addresses() if IP6.has(each) == is_ipv6}
    found = Numbers(first, last, skipped=skipped)
    found = replace(found, without=frozenset(each for each in {gateway, *taken} if first <= each <= last and found.skip(each) == each))
    if not 1 <= first <= last <= end or found.count <= 0:
        fix = "mend rangeStart, rangeEnd and exclude"
        raise NetworkUnusable(f"cannot give addresses of {of.network}", why="its range is empty", fix=fix)
    return found


def _spans(of: Range, base: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """What is excluded of the numbers from the first to the last."""
    for each in ipaddress.collapse_addresses(ipaddress.ip_network(text) for text in of.excluded):  # type: ignore[type-var]  # of one family
        begin, end = int(each.network_address) - base, int(each.broadcast_address) - base
        if begin <= last and end >= first:
            yield max(begin, first), min(end, last)


def gateway_of(of: Range) -> str:
    """The gateway that a range says, or the first address of its network."""
    return of.gateway or str(ipaddress.ip_network(of.network)[1])


def ranges_of(bridge: HostBridge, family: Family) -> list[Range]:
    """The ranges of a family."""
    return [each for each in bridge.ranges if family.has(each.network)]


def fixed(bridge: HostBridge, family: Family) -> BridgeOptions | None:
    """The address that the bridge's definition itself says."""
    for address, gateway in bridge.static:
        if family.has(address):
            return BridgeOptions(address, gateway, _routes(bridge.routes, family))
    return None


def from_range(bridge: HostBridge, of: Range, address: str) -> BridgeOptions:
    """An address that was taken from a range."""
    prefix = ipaddress.ip_network(of.network).prefixlen
    gateway = gateway_of(of) if of.gateway or bridge.is_gateway else ""
    return BridgeOptions(f"{address}/{prefix}", gateway, (*_routes(bridge.routes, IP6 if ":" in address else IP4), *of.routes))


def _routes(routes: tuple[tuple[str, str], ...], family: Family) -> tuple[tuple[str, str], ...]:
    return tuple(each for each in routes if family.has(each[0]))


def _bridge_of(nic: NicSpec) -> HostBridge:
    if nic.bridge is None:
        raise ValueError(f"{nic.name} of {nic.owner} is in no bridge")
    return nic.bridge


def lease(nic: NicSpec, options: BridgeOptions, mac: str, mtu: int, host_search: tuple[str, ...] = ()) -> DhcpLease:
    """Return the guest's DHCP lease."""
    bridge = _bridge_of(nic)
    # A server needs an address; nothing is sent there, answers go to whoever answers DHCP in this bridge, which is us.
    server = options.gateway or str(ipaddress.IPv4Interface(options.address).network[1])
    resolver = _resolver(nic, bridge, IP4, host_search)
    return DhcpLease(
        mac=mac,
        address=options.address,
        server=server,
        gateway=options.gateway,
        dns=resolver.servers,
        mtu=mtu,
        hostname=nic.hostname,
        domain=bridge.domain or nic.domain,
        search=resolver.search,
        routes=options.routes,
        options=nic.dhcp,
    )


def lease6(nic: NicSpec, options: BridgeOptions, mac: str, mtu: int, router: BridgeRouter, host_search: tuple[str, ...] = ()) -> Dhcp6Lease:
    """Return the IPv6 configuration of the guest. Others on its link have its network."""
    bridge = _bridge_of(nic)
    resolver = _resolver(nic, bridge, IP6, host_search)
    network = ipaddress.IPv6Interface(options.address).network
    return Dhcp6Lease(
        mac=mac,
        address=options.own,
        router=router_of(options, router),
        router_mac=router.mac,
        # The bridge of somebody else has another MAC, and so has somebody else's router: guests ask for it.
        tells_mac=False,
        is_gateway=bool(options.gateway),
        dns=resolver.servers,
        search=resolver.search,
        mtu=mtu,
        on_link=str(network) if network.prefixlen < 128 else "",
        routes=tuple(destination for destination, _ in options.routes if destination != _EVERYWHERE6),
    )


def router_of(options: BridgeOptions, router: BridgeRouter) -> str:
    """The link-local address of the router of a guest: the gateway's if it is one, else the host's."""
    return options.gateway if is_link_local(options.gateway) else router.address


def _resolver(nic: NicSpec, bridge: HostBridge, family: Family, host_search: tuple[str, ...]) -> ResolverConfig:
    own = ResolverConfig(tuple(filter(family.has, bridge.dns)), bridge.search)
    return nic.resolver.of(family).over(own, host_search)


def own_addresses(bridge: HostBridge) -> list[tuple[str, int]]:
    """Return the host's own addresses at the bridge: (address, prefix length)."""
    if not bridge.is_gateway:
        return []
    found = [(gateway_of(each), ipaddress.ip_network(each.network).prefixlen) for each in bridge.ranges]
    found += [(gateway, ipaddress.ip_interface(address).network.prefixlen) for address, gateway in bridge.static if gateway]
    return list(dict.fromkeys(found))


def networks(bridge: HostBridge) -> list[str]:
    """The networks of a bridge that leave behind the host's address."""
    return list(dict.fromkeys(_networks(bridge))) if bridge.masquerade else []


def is_link_local(gateway: str) -> bool:
    """Return whether a gateway is somebody else's router on the link."""
    return bool(gateway) and ipaddress.ip_address(gateway).is_link_local


def _networks(bridge: HostBridge) -> Iterator[str]:
    yield from (each.network for each in bridge.ranges)
    yield from (str(ipaddress.ip_interface(address).network) for address, _ in bridge.static)

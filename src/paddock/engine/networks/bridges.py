"""Cards in bridges of the host: which bridge, which address, what is refused. Pure, but for the books of addresses it is handed."""

import hashlib
import ipaddress

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine.networks.addresses import AddressTable
from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.families import IP4
from paddock.engine.networks.nics import HostBridge, NicSpec, Range
from paddock.engine.networks.resolver import ResolverConfig

_DEVICE_NAME = 15


class BridgeOptions(Struct, frozen=True):
    """The DHCP options of a guest in a bridge; without them another DHCP server decides."""

    address: str
    gateway: str
    routes: tuple[tuple[str, str], ...] = ()


def segment(bridge: HostBridge) -> HostBridge:
    """Return the bridge that stands for a VLAN in a bridge of ours: no tags are visible there, and every kernel has bridges."""
    name = f"{bridge.name}.{bridge.vlan}"
    if len(name) > _DEVICE_NAME:
        name = f"{hashlib.sha256(bridge.name.encode()).hexdigest()[:8]}.{bridge.vlan}"
    return replace(bridge, name=name, vlan=0)


def book(of: Range) -> AddressTable:
    """The book of a range: all but the network's address, the gateway's and the broadcast address."""
    network = ipaddress.IPv4Network(of.network)
    base = int(network.network_address)
    lowest = int(ipaddress.IPv4Address(of.first)) - base if of.first else 1
    highest = int(ipaddress.IPv4Address(of.last)) - base if of.last else network.num_addresses - 2
    gateway = int(ipaddress.IPv4Address(gateway_of(of))) - base
    # Where the gateway stands at an end it is left out; in the middle nobody gets it, since it rests for ever.
    if gateway == lowest:
        lowest += 1
    elif gateway == highest:
        highest -= 1
    if not 1 <= lowest <= highest < network.num_addresses - 1:
        raise NetworkUnusable(f"cannot give addresses of {of.network}", why="its range is empty", fix="mend rangeStart and rangeEnd")
    resting = {gateway: float("inf")} if lowest < gateway < highest else {}
    return AddressTable(of.network, lowest=lowest, highest=highest, resting=resting)


def gateway_of(of: Range) -> str:
    """The gateway that a range says, or the first address of its network."""
    return of.gateway or str(ipaddress.IPv4Network(of.network)[1])


def fixed(bridge: HostBridge) -> BridgeOptions | None:
    """The address that the bridge's definition itself says."""
    for address, gateway in bridge.static:
        if ":" not in address:
            return BridgeOptions(address, gateway, bridge.routes)
    return None


def from_range(bridge: HostBridge, of: Range, address: str) -> BridgeOptions:
    """An address that was taken from a range."""
    prefix = ipaddress.IPv4Network(of.network).prefixlen
    gateway = gateway_of(of) if of.gateway or bridge.is_gateway else ""
    return BridgeOptions(f"{address}/{prefix}", gateway, (*bridge.routes, *of.routes))


def lease(card: NicSpec, given: BridgeOptions, mac: str, mtu: int, host_search: tuple[str, ...] = ()) -> DhcpLease:
    """Return the guest's DHCP lease."""
    bridge = card.bridge
    assert bridge is not None
    # A server needs an address; nothing is sent there, answers go to whoever answers DHCP in this bridge, which is us.
    server = given.gateway or str(ipaddress.IPv4Interface(given.address).network[1])
    own = ResolverConfig(tuple(each for each in bridge.dns if ":" not in each), bridge.search)
    told = card.resolver.of(IP4).over(own, host_search)
    return DhcpLease(
        mac=mac,
        address=given.address,
        server=server,
        gateway=given.gateway,
        dns=told.servers,
        mtu=mtu,
        hostname=card.hostname,
        domain=bridge.domain or card.domain,
        search=told.search,
        routes=given.routes,
        options=card.dhcp,
    )


def own_addresses(bridge: HostBridge) -> list[tuple[str, int]]:
    """Return the host's own addresses at the bridge: (address, prefix length)."""
    if not bridge.is_gateway:
        return []
    found = [(gateway_of(each), ipaddress.IPv4Network(each.network).prefixlen) for each in bridge.ranges]
    found += [
        (gateway, ipaddress.IPv4Interface(address).network.prefixlen)
        for address, gateway in bridge.static
        if gateway and ":" not in gateway
    ]
    return list(dict.fromkeys(found))


def networks(bridge: HostBridge) -> list[str]:
    """The IPv4 networks of a bridge that leave behind the host's address."""
    if not bridge.masquerade:
        return []
    found = [each.network for each in bridge.ranges]
    found += [str(ipaddress.IPv4Interface(address).network) for address, _ in bridge.static if ":" not in address]
    return list(dict.fromkeys(found))

"""The addresses of a card on a tap of its own: what everybody else uses, what the guest believes, and its leases. Pure."""

import ipaddress

from msgspec import Struct

from paddock.engine.networks import guestnames
from paddock.engine.networks.addresses import AddressEntry, AddressTable
from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.dhcp6 import Dhcp6Lease
from paddock.engine.networks.discovery import ROUTER
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.families import IP4, IP6
from paddock.engine.networks.nics import INNER_NETWORK, INNER_NETWORK6, NO_LIMIT, NicSpec
from paddock.engine.networks.resolver import ResolverConfig
from paddock.engine.networks.taps import GATEWAY_MAC

# In a namespace every link is of Paddock's making, and pasta carries a stream in large packets at a sixth of the cost.
USUAL_MTU, LARGEST_MTU = 1500, 65520


class GuestAddress(Struct, frozen=True):
    """A card's addresses in one family."""

    # what everybody else uses
    address: str
    # what the guest has, with its prefix length, and where it sends everything
    guest: str
    gateway: str
    # the same behind masquerade, and the network of both; "" where the guest has its true address
    inner: str = ""
    inner_gateway: str = ""
    network: str = ""


NONE = GuestAddress("", "", "")


def ipv4(nic: NicSpec, book: AddressTable, entry: AddressEntry) -> GuestAddress:
    """The IPv4 addresses of a card. Raises `NetworkUnusable`."""
    address = book.address(entry)
    if nic.binding != "masquerade":
        return GuestAddress(address, f"{address}/{ipaddress.IPv4Network(book.network).prefixlen}", book.host)
    inner = ipaddress.IPv4Network(nic.network or INNER_NETWORK)
    return _masqueraded(nic, address, inner, "vmNetworkCIDR")


def ipv6(nic: NicSpec, book: AddressTable, entry: AddressEntry) -> GuestAddress:
    """The IPv6 addresses of a card. Raises `NetworkUnusable`."""
    address = book.address6(entry)
    if nic.binding != "masquerade":
        # The guest is alone on its link: everybody else is behind the router.
        return GuestAddress(address, f"{address}/128", book.host6)
    inner = ipaddress.IPv6Network(nic.network6 or INNER_NETWORK6, strict=False)
    return _masqueraded(nic, address, inner, "vmIPv6NetworkCIDR")


def _masqueraded(nic: NicSpec, address: str, inner: ipaddress.IPv4Network | ipaddress.IPv6Network, field: str) -> GuestAddress:
    if inner.num_addresses < 4:
        raise NetworkUnusable(f"cannot use {inner} inside {nic.name}", why="it has no room", fix=f"set a larger {field}")
    own, gateway = str(inner[2]), str(inner[1])
    return GuestAddress(address, f"{own}/{inner.prefixlen}", gateway, own, gateway, str(inner))


def mtu(nic: NicSpec, outside: int, running: int) -> int:
    """Return the MTU of a card, whose guest runs with another one or 0."""
    # Other models than virtio have small buffers, and a limit of traffic drops whole packets.
    if outside <= USUAL_MTU or nic.model != "virtio" or nic.traffic != NO_LIMIT:
        return min(outside, USUAL_MTU)
    return running or outside


def lease(nic: NicSpec, mac: str, inside: GuestAddress, mtu: int, zone: str, host_search: tuple[str, ...]) -> DhcpLease:
    """Return the guest's DHCP lease."""
    resolver = nic.resolver.of(IP4).over(ResolverConfig((inside.gateway,), guestnames.search(nic.group, zone)), host_search)
    own = guestnames.own_names(nic, zone)
    return DhcpLease(
        mac=mac,
        address=inside.guest,
        server=inside.gateway,
        gateway=inside.gateway,
        dns=resolver.servers,
        mtu=mtu,
        hostname=nic.hostname,
        domain=own[0].partition(".")[2] if own else "",
        search=resolver.search,
        options=nic.dhcp,
    )


def lease6(nic: NicSpec, mac: str, inside: GuestAddress, mtu: int, zone: str, host_search: tuple[str, ...]) -> Dhcp6Lease:
    """Return the IPv6 configuration of the guest."""
    resolver = nic.resolver.of(IP6).over(ResolverConfig((inside.gateway,), guestnames.search(nic.group, zone)), host_search)
    own = inside.guest.partition("/")[0]
    return Dhcp6Lease(mac, own, ROUTER, GATEWAY_MAC, dns=resolver.servers, search=resolver.search, mtu=mtu)

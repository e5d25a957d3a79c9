"""The requests to networks and their answers, as data.

A card belongs to an owner, which is whatever should keep its addresses: as long as the owner is not released, the card of that name
has the same MAC and the same address, whichever process or start of a machine uses it.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from paddock.engine.machine.config import StreamNetwork, Tap, UserNetwork
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.resolver import GuestResolver

Protocol = Literal["tcp", "udp"]
Binding = Literal["masquerade", "bridge", "passt", "host-bridge"]
INNER_NETWORK = "10.0.2.0/24"
INNER_NETWORK6 = "fd10:0:2::/120"
# The lease of an address that Paddock gives to a guest: 999 days.
LEASE_SECONDS = 999 * 86400


class Ports(Struct, frozen=True):
    """A range of ports; `last` 0 means the first alone."""

    protocol: Protocol
    first: int
    last: int = 0

    @property
    def end(self) -> int:
        """The last port of the range."""
        return self.last or self.first


class DhcpOptions(Struct, frozen=True):
    """The DHCP options of a guest besides its address."""

    tftp_server: str = ""
    boot_file: str = ""
    ntp: tuple[str, ...] = ()
    # (224 to 254, value)
    private: tuple[tuple[int, str], ...] = ()


class Range(Struct, frozen=True):
    """Addresses that a bridge's own DHCP server hands out."""

    network: str
    first: str = ""
    last: str = ""
    gateway: str = ""
    # (destination, gateway or "")
    routes: tuple[tuple[str, str], ...] = ()
    # parts of the network that no guest gets
    excluded: tuple[str, ...] = ()


# A packet that is larger than a burst would never pass; those of virtio have up to 64 KiB.
LEAST_BURST = 128 << 10


class TrafficLimit(Struct, frozen=True):
    """The most bytes in a second to and from a guest, and the bytes that may come at once; 0: no limit."""

    to_guest: int = 0
    to_guest_burst: int = 0
    from_guest: int = 0
    from_guest_burst: int = 0


NO_LIMIT = TrafficLimit()


class HostBridge(Struct, frozen=True):
    """A bridge of the host that a card is put into."""

    name: str
    # made when it is missing, and removed with the last card
    create: bool = True
    # cards see only those of the same VLAN; 0: none
    vlan: int = 0
    mtu: int = 0
    # the host takes the gateway's address of each range
    is_gateway: bool = False
    masquerade: bool = False
    # (address/prefix, gateway or "") given to the one card that uses it
    static: tuple[tuple[str, str], ...] = ()
    ranges: tuple[Range, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    dns: tuple[str, ...] = ()
    domain: str = ""
    search: tuple[str, ...] = ()
    # of each card in it
    traffic: TrafficLimit = NO_LIMIT


class NicSpec(Struct, frozen=True):
    """A network card as it is wanted. (owner, name) says which one it is."""

    owner: str
    name: str
    binding: Binding = "masquerade"
    # "" gives it one of its own
    mac: str = ""
    # what the guest sees behind masquerade: 10.0.2.0/24 where empty
    network: str = ""
    # the same of IPv6: fd10:0:2::/120 where empty
    network6: str = ""
    bridge: HostBridge | None = None
    # what may be reached from outside; empty: everything
    ports: tuple[Ports, ...] = ()
    hostname: str = ""
    domain: str = ""
    resolver: GuestResolver = GuestResolver()
    dhcp: DhcpOptions = field(default_factory=DhcpOptions)
    model: str = "virtio"
    queues: int = 1
    # machines of a group find each other by their plain names
    group: str = ""
    # the user that may open the tap, and that a helper process runs as
    user: int = 0
    # where a helper process puts its socket
    directory: str = ""
    traffic: TrafficLimit = NO_LIMIT

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the card."""
        return (self.owner, self.name)


_MAC = re.compile(r"[0-9a-f][0-9a-f](:[0-9a-f][0-9a-f]){5}\Z")
# IFNAMSIZ, and what would be read as a path or an option
_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}\Z")
_DOMAIN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?\Z")


def check_card(nic: NicSpec) -> None:
    """Raise `NetworkUnusable` for invalid values of a user: they go into packet filters, command lines and packets."""
    wrong = next(_wrong(nic), "")
    if wrong:
        raise NetworkUnusable(f"cannot plug the card {nic.name!r}", why=wrong, fix="correct the interface or its network")


def _wrong(nic: NicSpec) -> Iterator[str]:
    if nic.mac and not _is_mac(nic.mac.lower()):
        yield f"{nic.mac!r} is no MAC of a single card"
    if nic.network and not _is_network(nic.network, 4):
        yield f"{nic.network!r} is no IPv4 network"
    if nic.network6 and not _is_network(nic.network6, 6):
        yield f"{nic.network6!r} is no IPv6 network"
    if nic.bridge is not None:
        if not _DEVICE.match(nic.bridge.name) or nic.bridge.name in (".", ".."):
            yield f"{nic.bridge.name!r} is no name of a device"
        if not 0 <= nic.bridge.mtu <= 65535 or 0 < nic.bridge.mtu < 576:
            yield f"{nic.bridge.mtu} is no MTU"
        if not 0 <= nic.bridge.vlan <= 4094:
            yield f"{nic.bridge.vlan} is no VLAN: they go from 1 to 4094"
    for text in (nic.hostname, nic.domain, *nic.resolver.given.search):
        if text and not _DOMAIN.match(text):
            yield f"{text!r} is no name of a host"
    for ports in nic.ports:
        if not 1 <= ports.first <= ports.end <= 65535 or ports.protocol not in ("tcp", "udp"):
            yield f"{ports.first} to {ports.end} are no ports"
    for text in nic.dhcp.ntp:
        if not _is_address(text, 4):
            yield f"{text!r} is no IPv4 address"
    for text in nic.resolver.given.servers:
        if not _is_address(text):
            yield f"{text!r} is no address"


def _is_mac(text: str) -> bool:
    return bool(_MAC.match(text)) and not int(text[:2], 16) & 1 and text != "00:00:00:00:00:00"


def _is_address(text: str, version: int = 0) -> bool:
    try:
        return version in (0, ipaddress.ip_address(text).version)
    except ValueError:
        return False


def _is_network(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_network(text, strict=version == 4).version == version
    except ValueError:
        return False


class AttachedNic(Struct, frozen=True):
    """A card that is ready for a machine."""

    mac: str
    # what everybody else reaches it by; "" without IPv4
    address: str
    # what the guest believes, with its prefix length; "" when somebody else's DHCP server decides
    guest_address: str
    backend: Tap | UserNetwork | StreamNetwork
    mtu: int = 1500
    # what does not work, as sentences for the user; always the same for the same card
    limits: tuple[str, ...] = ()
    # the same of IPv6; "" without IPv6
    address6: str = ""
    guest_address6: str = ""
    gateway: str = ""
    dns: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that everybody else uses, IPv4 first."""
        return tuple(each for each in (self.address, self.address6) if each)


class ForwardTarget(Struct, frozen=True):
    """A port of a card that a published port leads to."""

    owner: str
    name: str
    port: int


class PublishedPort(Struct, frozen=True):
    """A port and where it leads."""

    protocol: Protocol
    port: int
    targets: tuple[ForwardTarget, ...]
    # the same on every address of the host; 0: not
    node_port: int = 0


class PublishedService(Struct, frozen=True):
    """A service: addresses inside, ports of the host, addresses outside."""

    # whose it is, in problems and statistics
    name: str
    ports: tuple[PublishedPort, ...]
    # its own addresses, which exist nowhere else
    addresses: tuple[str, ...] = ()
    # addresses of the host, on which each port itself is listened at
    outside: tuple[str, ...] = ()
    # networks that may use `outside` and the node ports; empty: all
    sources: tuple[str, ...] = ()
    # a client stays with its target for so long; 0: each connection is on its own
    affinity_seconds: int = 0
    # of its node ports
    families: tuple[int, ...] = (4,)


class NicPeer(Struct, frozen=True):
    """A permitted peer: an address block without some parts, or cards by their owners."""

    block: str = ""
    without: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


class PolicyAllowance(Struct, frozen=True):
    """A permission: any of the peers (None: everybody) on any of the ports (None: every protocol and port)."""

    peers: tuple[NicPeer, ...] | None = None
    ports: tuple[Ports, ...] | None = None


class NicPolicy(Struct, frozen=True):
    """The connections that the cards of some owners may receive and open. None: no limit in that direction. Policies add up."""

    name: str
    owners: tuple[str, ...]
    ingress: tuple[PolicyAllowance, ...] | None = None
    egress: tuple[PolicyAllowance, ...] | None = None

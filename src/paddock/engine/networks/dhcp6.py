"""DHCPv6 and router advertisements for one guest: frames in, frames out. Pure.

The router is the host's side of the guest's own link, or of a bridge. It advertises itself and no prefix that addresses are made of: the
guest asks DHCPv6, which has the one address of the card. RFC 8415, RFC 4861, RFC 4191 and RFC 8106; the lifetime of a router is that of
RFC 8319.
"""

import ipaddress
import struct
from collections.abc import Iterable, Iterator

from msgspec import Struct

from paddock.engine.networks import dhcp
from paddock.engine.networks.nics import LEASE_SECONDS

CLIENT_PORT, SERVER_PORT = 546, 547
SOLICITATION, _ADVERTISEMENT = 133, 134
SOLICIT, ADVERTISE, REQUEST, CONFIRM, RENEW, REBIND, REPLY, RELEASE, DECLINE = range(1, 10)
INFORMATION = 11
_CLIENT, _SERVER, _NON_TEMPORARY, _ADDRESS, _STATUS, _RAPID = 1, 2, 3, 5, 13, 14
_NAME_SERVERS, _SEARCH, _PREFIXES = 23, 24, 25
_OK, _NO_ADDRESS, _NOT_ON_LINK, _NO_PREFIX = 0, 2, 4, 6
# Messages that are for one server alone.
_NAMED = (REQUEST, RENEW, RELEASE, DECLINE)
_ANSWERED = (SOLICIT, *_NAMED, CONFIRM, REBIND, INFORMATION)
_MANAGED_AND_OTHER = 0xC0
# Of a prefix: it is on the link, and nobody makes an address of it.
_ON_LINK = 0x80
_ROUTER_SECONDS, _FOR_EVER = 65535, 0xFFFFFFFF
_ETHERNET, _IP, _UDP = struct.Struct("!6s6sH"), struct.Struct("!IHBB16s16s"), struct.Struct("!HHHH")
_ALL_NODES = "ff02::1"


class Dhcp6Lease(Struct, frozen=True):
    """The IPv6 configuration of a guest."""

    mac: str
    address: str
    # link-local, as routers are
    router: str
    router_mac: str
    # its advertisements say the MAC; else guests ask for it
    tells_mac: bool = True
    # the guest may send everything to it
    is_gateway: bool = True
    # the network of others on the guest's link; "" where everybody is behind the router
    on_link: str = ""
    # networks that the router leads to besides
    routes: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    mtu: int = 0


class _Message(Struct, frozen=True):
    kind: int
    transaction: bytes
    options: tuple[tuple[int, bytes], ...]

    def first(self, code: int) -> bytes | None:
        return next((value for known, value in self.options if known == code), None)


def answer(frame: bytes, lease: Dhcp6Lease) -> bytes | None:
    """The frame that answers a guest's; None when there is none."""
    found = _opened(frame)
    if found is None or found[0] != lease.mac:
        return None
    _, source, protocol, body = found
    if protocol == 58:
        return advertisement(lease) if body[:1] == bytes([SOLICITATION]) else None
    message = _read(body[_UDP.size :])
    said = _answered(message, lease) if message is not None else None
    return _datagram(said, lease, source) if said is not None else None


def advertisement(lease: Dhcp6Lease) -> bytes:
    """The frame in which the router says that it is there."""
    body = struct.pack("!BBHII", 64, _MANAGED_AND_OTHER, _ROUTER_SECONDS if lease.is_gateway else 0, 0, 0)
    if lease.tells_mac:
        body += bytes([1, 1]) + _mac(lease.router_mac)
    if lease.on_link:
        network = ipaddress.IPv6Network(lease.on_link)
        body += struct.pack("!BBBBIII", 3, 4, network.prefixlen, _ON_LINK, _FOR_EVER, _FOR_EVER, 0) + network.network_address.packed
    for each in map(ipaddress.IPv6Network, lease.routes):
        body += struct.pack("!BBBBI", 24, 3, each.prefixlen, 0, _FOR_EVER) + each.network_address.packed
    if lease.mtu:
        body += struct.pack("!BBHI", 5, 1, 0, lease.mtu)
    if lease.dns:
        body += struct.pack("!BBHI", 25, 1 + 2 * len(lease.dns), 0, _FOR_EVER) + _packed(lease.dns)
    if names := dhcp.names(lease.search):
        names += bytes(-len(names) % 8)
        body += struct.pack("!BBHI", 31, 1 + len(names) // 8, 0, _FOR_EVER) + names
    target = ipaddress.IPv6Address(_ALL_NODES).packed
    source = ipaddress.IPv6Address(lease.router).packed
    message = bytes([_ADVERTISEMENT, 0, 0, 0]) + body
    summed = _checksum(source, target, 58, message)
    packet = _IP.pack(6 << 28, len(message), 58, 255, source, target) + message[:2] + struct.pack("!H", summed) + message[4:]
    return _ETHERNET.pack(b"\x33\x33" + target[-4:], _mac(lease.router_mac), 0x86DD) + packet


def _opened(frame: bytes) -> tuple[str, bytes, int, bytes] | None:
    """The sender's MAC and address, the protocol and what it carries, of a frame that is for us."""
    start = _ETHERNET.size + _IP.size
    if len(frame) < start + 4:
        return None
    _, sender, kind = _ETHERNET.unpack_from(frame)
    first, length, protocol, _, source, _ = _IP.unpack_from(frame, _ETHERNET.size)
    body = frame[start : start + length]
    if kind != 0x86DD or first >> 28 != 6 or len(body) < length:
        return None
    if protocol == 17:
        if len(body) < _UDP.size or _UDP.unpack_from(body)[1] != SERVER_PORT:
            return None
    elif protocol != 58:
        return None
    return sender.hex(":"), source, protocol, body


def _read(payload: bytes) -> _Message | None:
    if len(payload) < 4 or payload[0] not in _ANSWERED:
        return None
    options = _options(payload[4:])
    return _Message(payload[0], payload[1:4], tuple(options)) if options is not None else None


def _options(data: bytes) -> list[tuple[int, bytes]] | None:
    """The options; None when they are malformed."""
    found = []
    while data:
        if len(data) < 4:
            return None
        code, length = struct.unpack_from("!HH", data)
        if len(data) < 4 + length:
            return None
        found.append((code, data[4 : 4 + length]))
        data = data[4 + length :]
    return found


def _identity(lease: Dhcp6Lease) -> bytes:
    """The server's: DUID-LL of an Ethernet card."""
    return struct.pack("!HH", 3, 1) + _mac(lease.router_mac)


def _answered(message: _Message, lease: Dhcp6Lease) -> bytes | None:
    client, server = message.first(_CLIENT), message.first(_SERVER)
    if client is None and message.kind != INFORMATION:
        return None
    if (server != _identity(lease)) if message.kind in _NAMED else (server is not None and message.kind != INFORMATION):
        return None
    is_rapid = message.kind == SOLICIT and message.first(_RAPID) is not None
    options = [(_CLIENT, client)] if client is not None else []
    options.append((_SERVER, _identity(lease)))
    if is_rapid:
        options.append((_RAPID, b""))
    options += _wanted_options(message, lease)
    kind = ADVERTISE if message.kind == SOLICIT and not is_rapid else REPLY
    return bytes([kind]) + message.transaction + b"".join(_option(code, value) for code, value in options)


def _wanted_options(message: _Message, lease: Dhcp6Lease) -> Iterator[tuple[int, bytes]]:
    if message.kind == CONFIRM:
        wanted = {address for code, value in message.options if code == _NON_TEMPORARY for address in _asked(value)}
        own = ipaddress.IPv6Address(lease.address).packed
        yield _STATUS, struct.pack("!H", _OK if wanted <= {own} else _NOT_ON_LINK)
        return
    if message.kind in (RELEASE, DECLINE):
        # There is nobody else who could get it.
        yield _STATUS, struct.pack("!H", _OK)
        return
    if message.kind != INFORMATION:
        yield from _associations(message, lease)
    if lease.dns:
        yield _NAME_SERVERS, _packed(lease.dns)
    if names := dhcp.names(lease.search):
        yield _SEARCH, names


def _associations(message: _Message, lease: Dhcp6Lease) -> Iterator[tuple[int, bytes]]:
    """The first association gets the address; nobody gets more, and no prefix."""
    own = ipaddress.IPv6Address(lease.address).packed
    given = False
    for code, value in message.options:
        if code == _NON_TEMPORARY and len(value) >= 12:
            if given:
                yield code, value[:4] + struct.pack("!II", 0, 0) + _option(_STATUS, struct.pack("!H", _NO_ADDRESS))
                continue
            given = True
            listed = _option(_ADDRESS, own + struct.pack("!II", LEASE_SECONDS, LEASE_SECONDS))
            for other in _asked(value):
                if other != own:
                    listed += _option(_ADDRESS, other + struct.pack("!II", 0, 0))
            yield code, value[:4] + struct.pack("!II", LEASE_SECONDS // 2, LEASE_SECONDS // 5 * 4) + listed
        elif code == _PREFIXES and len(value) >= 12:
            yield code, value[:4] + struct.pack("!II", 0, 0) + _option(_STATUS, struct.pack("!H", _NO_PREFIX))


def _asked(association: bytes) -> Iterator[bytes]:
    """The addresses that a client names in an association."""
    for code, value in _options(association[12:]) or ():
        if code == _ADDRESS and len(value) >= 24:
            yield value[:16]


def _datagram(payload: bytes, lease: Dhcp6Lease, target: bytes) -> bytes:
    source = ipaddress.IPv6Address(lease.router).packed
    length = _UDP.size + len(payload)
    summed = _checksum(source, target, 17, _UDP.pack(SERVER_PORT, CLIENT_PORT, length, 0) + payload) or 0xFFFF
    packet = _IP.pack(6 << 28, length, 17, 64, source, target) + _UDP.pack(SERVER_PORT, CLIENT_PORT, length, summed) + payload
    return _ETHERNET.pack(_mac(lease.mac), _mac(lease.router_mac), 0x86DD) + packet


def _checksum(source: bytes, target: bytes, protocol: int, message: bytes) -> int:
    return dhcp.checksum(source + target + struct.pack("!II", len(message), protocol) + message)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("!HH", code, len(value)) + value


def _packed(addresses: Iterable[str]) -> bytes:
    return b"".join(ipaddress.IPv6Address(each).packed for each in addresses)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))

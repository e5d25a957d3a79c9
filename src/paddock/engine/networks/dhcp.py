"""DHCP for one guest: packets in, packets out. Pure.

The answer is always the same offer, the one address that the card has; only the card's own MAC gets it. RFC 2131 and 2132, 3442 for
classless routes, 3397 for the search list.
"""

import ipaddress
import socket
import struct
from collections.abc import Iterable

from msgspec import Struct, field

from paddock.engine.networks.nics import LEASE_SECONDS, DhcpOptions

CLIENT_PORT, SERVER_PORT = 68, 67
DISCOVER, OFFER, REQUEST, DECLINE, ACK, NAK, RELEASE, INFORM = range(1, 9)
_COOKIE = b"\x63\x82\x53\x63"
_FIXED = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_NO_ADDRESS = bytes(4)
_ETHERNET, _IP, _UDP = struct.Struct("!6s6sH"), struct.Struct("!BBHHHBBH4s4s"), struct.Struct("!HHHH")
_SMALLEST = 300
_MOST_IN_OPTION = 255


class DhcpLease(Struct, frozen=True):
    """The values that DHCP gives a guest."""

    mac: str
    # with its prefix length
    address: str
    server: str
    gateway: str = ""
    dns: tuple[str, ...] = ()
    mtu: int = 0
    hostname: str = ""
    domain: str = ""
    search: tuple[str, ...] = ()
    # (destination, gateway; "" where it is on the link)
    routes: tuple[tuple[str, str], ...] = ()
    options: DhcpOptions = field(default_factory=DhcpOptions)


class DhcpRequest(Struct, frozen=True):
    """A request of a client."""

    kind: int
    transaction: int
    flags: int
    client: bytes
    mac: str
    # what it has (0.0.0.0: nothing), what it wants, whom it asks
    has: str
    wants: str
    server: str


def read(payload: bytes) -> DhcpRequest | None:
    """The request in a UDP payload; None when it is none that we understand."""
    if len(payload) < _FIXED.size + 4 or payload[_FIXED.size : _FIXED.size + 4] != _COOKIE:
        return None
    op, kind, length, _, transaction, _, flags, has, _, _, _, hardware, _, _ = _FIXED.unpack_from(payload)
    if (op, kind, length) != (1, 1, 6):
        return None
    options = _options(payload[_FIXED.size + 4 :])
    said = options.get(53, b"")
    if len(said) != 1 or not DISCOVER <= said[0] <= INFORM:
        return None
    return DhcpRequest(
        said[0], transaction, flags, has, hardware[:6].hex(":"), _text(has), _text(options.get(50, b"")), _text(options.get(54, b""))
    )


def _text(raw: bytes) -> str:
    return socket.inet_ntoa(raw) if len(raw) == 4 and raw != _NO_ADDRESS else ""


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    place = 0
    while place < len(data):
        code = data[place]
        if code == 255:
            break
        if code == 0:
            place += 1
            continue
        if place + 1 >= len(data):
            break
        length = data[place + 1]
        value = data[place + 2 : place + 2 + length]
        if len(value) < length:
            break
        found[code] = found.get(code, b"") + value
        place += 2 + length
    return found


def answer(asked: DhcpRequest, lease: DhcpLease) -> bytes | None:
    """The payload of the answer; None when there is none."""
    if asked.mac != lease.mac:
        return None
    own = lease.address.partition("/")[0]
    if asked.kind == DISCOVER:
        return _reply(asked, lease, OFFER)
    if asked.kind == INFORM:
        return _reply(asked, lease, ACK)
    if asked.kind != REQUEST:
        return None
    if asked.server and asked.server != lease.server:
        # It chose another server's offer.
        return None
    return _reply(asked, lease, ACK if (asked.wants or asked.has) == own else NAK)


def _reply(asked: DhcpRequest, lease: DhcpLease, kind: int) -> bytes:
    own = socket.inet_aton(lease.address.partition("/")[0])
    given = _NO_ADDRESS if kind == NAK or asked.kind == INFORM else own
    has = asked.client if asked.kind == INFORM else _NO_ADDRESS
    server = socket.inet_aton(lease.server)
    mac = bytes.fromhex(asked.mac.replace(":", ""))
    fixed = _FIXED.pack(2, 1, 6, 0, asked.transaction, 0, asked.flags, has, given, server, _NO_ADDRESS, mac, b"", b"")
    options = [(53, bytes([kind])), (54, server)]
    if kind != NAK:
        if asked.kind != INFORM:
            options.append((51, struct.pack("!I", LEASE_SECONDS)))
        options += _lease_options(lease)
    body = fixed + _COOKIE + b"".join(_option(code, value) for code, value in options) + b"\xff"
    return body.ljust(_SMALLEST, b"\0")


def _lease_options(lease: DhcpLease) -> Iterable[tuple[int, bytes]]:
    interface = ipaddress.IPv4Interface(lease.address)
    yield 1, interface.netmask.packed
    # A client that understands 121 ignores 3: both say the same.
    if lease.gateway:
        yield 3, socket.inet_aton(lease.gateway)
    routes = [*lease.routes, *([("0.0.0.0/0", lease.gateway)] if lease.gateway else ())]
    if routes and (lease.routes or not _is_on_link(interface, lease.gateway)):
        yield 121, classless(routes, interface, lease.gateway)
    if lease.dns:
        yield 6, b"".join(map(socket.inet_aton, lease.dns[:8]))
    if lease.mtu:
        yield 26, struct.pack("!H", lease.mtu)
    if lease.hostname:
        yield 12, lease.hostname.encode()
    if lease.domain:
        yield 15, lease.domain.encode()
    if searched := names(lease.search):
        yield 119, searched
    yield from _given(lease.options)


def _given(options: DhcpOptions) -> Iterable[tuple[int, bytes]]:
    if options.ntp:
        yield 42, b"".join(map(socket.inet_aton, options.ntp))
    if options.tftp_server:
        yield 66, options.tftp_server.encode()
    if options.boot_file:
        yield 67, options.boot_file.encode()
    for code, value in options.private:
        if 224 <= code <= 254:
            yield code, value.encode()


def _is_on_link(interface: ipaddress.IPv4Interface, gateway: str) -> bool:
    return not gateway or ipaddress.IPv4Address(gateway) in interface.network


def classless(routes: Iterable[tuple[str, str]], interface: ipaddress.IPv4Interface, gateway: str) -> bytes:
    """The value of option 121. A gateway outside the network gets a route of its own on the link."""
    found = b""
    if not _is_on_link(interface, gateway):
        found += _route(f"{gateway}/32", "")
    for destination, through in routes:
        found += _route(destination, through)
    return found


def _route(destination: str, gateway: str) -> bytes:
    network = ipaddress.IPv4Network(destination, strict=False)
    return (
        bytes([network.prefixlen]) + network.network_address.packed[: -(-network.prefixlen // 8)] + socket.inet_aton(gateway or "0.0.0.0")
    )


def names(domains: Iterable[str]) -> bytes:
    """Domain names as DNS writes them, without compression; those that are none are left out."""
    found = b""
    for domain in domains:
        labels = [label.encode("ascii", "replace") for label in domain.rstrip(".").split(".")]
        if labels and all(0 < len(label) < 64 for label in labels) and sum(map(len, labels)) + len(labels) < 255:
            found += b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return found


def _option(code: int, value: bytes) -> bytes:
    """An option; a long one in several parts (RFC 3396)."""
    parts = [value[place : place + _MOST_IN_OPTION] for place in range(0, len(value), _MOST_IN_OPTION)]
    return b"".join(bytes([code, len(part)]) + part for part in parts)


def unframe(frame: bytes) -> tuple[str, bytes] | None:
    """The sender's MAC and the payload of a frame that holds a UDP packet to a DHCP server; None for everything else."""
    if len(frame) < _ETHERNET.size + _IP.size + _UDP.size:
        return None
    _, source, kind = _ETHERNET.unpack_from(frame)
    first, _, length, _, fragment, _, protocol, _, _, _ = _IP.unpack_from(frame, _ETHERNET.size)
    header = (first & 15) * 4
    start = _ETHERNET.size + header
    if kind != 0x0800 or first >> 4 != 4 or header < 20 or protocol != 17 or fragment & 0x3FFF or len(frame) < start + _UDP.size:
        return None
    _, to, size, _ = _UDP.unpack_from(frame, start)
    if to != SERVER_PORT or size < _UDP.size or length > len(frame) - _ETHERNET.size or start + size > _ETHERNET.size + length:
        return None
    return source.hex(":"), frame[start + _UDP.size : start + size]


def frame(payload: bytes, lease: DhcpLease, gateway_mac: str) -> bytes:
    """The frame that carries an answer to the guest: to its MAC, and to everybody's address, since it may have none yet."""
    source, target = socket.inet_aton(lease.server), b"\xff\xff\xff\xff"
    length = _UDP.size + len(payload)
    ip = _IP.pack(0x45, 0xC0, _IP.size + length, 0, 0x4000, 64, 17, 0, source, target)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    pseudo = source + target + struct.pack("!BBH", 0, 17, length)
    head = _UDP.pack(SERVER_PORT, CLIENT_PORT, length, 0)
    summed = checksum(pseudo + head + payload) or 0xFFFF
    udp = _UDP.pack(SERVER_PORT, CLIENT_PORT, length, summed) + payload
    return _ETHERNET.pack(_mac(lease.mac), _mac(gateway_mac), 0x0800) + ip + udp


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def checksum(data: bytes) -> int:
    """The checksum of the Internet protocols."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

"""The little of rtnetlink that cards need: links, addresses, routes, neighbours, rules. A call takes a fraction of a millisecond.

Asking for what is there already is no error, nor is removing what is not.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from paddock.engine import namespace
from paddock.engine.networks.errors import NetworkBusy

NEWLINK, DELLINK, GETLINK, SETLINK = 16, 17, 18, 19
NEWADDR, DELADDR, GETADDR, NEWROUTE, DELROUTE, GETROUTE, NEWNEIGH, NEWRULE, DELRULE = 20, 21, 22, 24, 25, 26, 28, 32, 33
_REQUEST, _ACK, _DUMP, _REPLACE, _EXCLUSIVE, _CREATE = 1, 4, 0x300, 0x100, 0x200, 0x400
_ERROR, _DONE = 2, 3
_NETLINK_OPTIONS, _CAPPED_ACK, _EXTENDED_ACK, _SAID = 270, 10, 11, 1
_UP, _ALIAS, _CARRIER = 1, 20, 33
_LONGEST_ALIAS = 255
_HEADER, _LINK = struct.Struct("=IHHII"), struct.Struct("=BxHiII")
_NESTED = 0x8000
UNICAST, UNREACHABLE = 1, 7
MAIN = 254
_PERMANENT, _PROXY = 0x80, 0x08
# IFA_F_NODAD and IFA_F_NOPREFIXROUTE
_NO_SEARCH, _NO_ROUTE = 0x02, 0x200
_BRIDGE_FAMILY, _BRIDGE_SPEC, _VLAN_INFO = 7, 26, 2
_VLAN_OF_PORT, _UNTAGGED, _FIRST_VLAN = 2, 4, 1


class NetworkDevice(NamedTuple):
    """A device as it is."""

    number: int
    name: str
    kind: str
    mac: str
    mtu: int
    # index of the bridge it is in; 0: none
    master: int
    up: bool
    # of a tap: whether it was made for several queues
    many_queues: bool = False
    # of a bridge: whether it keeps VLANs apart
    filters: bool = False
    # of a tap: a process has it open
    running: bool = False
    # what its maker wrote on it
    alias: str = ""


def index(name: str) -> int:
    """The number of a device; 0 when there is none."""
    try:
        return namespace.call(socket.if_nametoindex, name)
    except OSError:
        return 0


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute with its padding."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of a message; ends at the first that is malformed."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4 or length > len(data):
            return
        yield kind & 0x3FFF, data[4:length]
        data = data[length + 3 & ~3 :]


def _address(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def _family(text: str) -> int:
    return socket.AF_INET6 if ":" in text else socket.AF_INET


class Netlink:
    """A socket to the kernel. Not for more than one thread. `is_host`: to the host's network, wherever that of machines is."""

    def __init__(self, *, is_host: bool = False) -> None:
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        words = (socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)
        self._socket = socket.socket(*words) if is_host else namespace.call(socket.socket, *words)
        # The kernel says in words what is wrong with a request, behind the head of that.
        for option in (_EXTENDED_ACK, _CAPPED_ACK):
            self._socket.setsockopt(_NETLINK_OPTIONS, option, 1)
        self._socket.bind((0, 0))
        self._count = 0

    def close(self) -> None:
        self._socket.close()

    def link(self, name: str) -> NetworkDevice | None:
        number = index(name)
        if not number:
            return None
        answer = self._ask(GETLINK, 0, _LINK.pack(0, 0, number, 0, 0), errno.ENODEV)
        return _read_link(answer[0]) if answer else None

    def links(self) -> dict[str, NetworkDevice]:
        found = (_read_link(body) for body in self._ask(GETLINK, _DUMP, _LINK.pack(0, 0, 0, 0, 0)))
        return {link.name: link for link in found}

    def make_bridge(self, name: str) -> int:
        """A bridge, when there is no device of that name; returns its number."""
        if not index(name):
            kind = attribute(18 | _NESTED, attribute(1, b"bridge"))
            self._ask(NEWLINK, _CREATE | _EXCLUSIVE, _LINK.pack(0, 0, 0, 0, 0) + attribute(3, name.encode() + b"\0") + kind, errno.EEXIST)
        return index(name)

    def set_link(self, number: int, *, up: bool = True, mtu: int = 0, mac: str = "", master: int | None = None) -> None:
        body = _LINK.pack(0, 0, number, _UP if up else 0, _UP)
        if mtu:
            body += attribute(4, struct.pack("=I", mtu))
        if mac:
            body += attribute(1, bytes.fromhex(mac.replace(":", "")))
        if master is not None:
            body += attribute(10, struct.pack("=I", master))
        self._ask(NEWLINK, 0, body)

    def set_alias(self, number: int, text: str) -> None:
        """Write on a device whose it is. A text that does not fit is not written."""
        if len(text.encode()) <= _LONGEST_ALIAS:
            self._ask(NEWLINK, 0, _LINK.pack(0, 0, number, 0, 0) + attribute(_ALIAS, text.encode()))

    def set_vlan(self, number: int, vlan: int) -> None:
        """A port of a bridge is in this VLAN, and no more in the one that every port is in at first."""
        self._ask(SETLINK, 0, self._port(number, vlan, _VLAN_OF_PORT | _UNTAGGED))
        if vlan != _FIRST_VLAN:
            self._ask(DELLINK, 0, self._port(number, _FIRST_VLAN, 0), errno.ENOENT)

    @staticmethod
    def _port(number: int, vlan: int, flags: int) -> bytes:
        about = attribute(_VLAN_INFO, struct.pack("=HH", flags, vlan))
        return _LINK.pack(_BRIDGE_FAMILY, 0, number, 0, 0) + attribute(_BRIDGE_SPEC, about)

    def delete_link(self, name: str) -> None:
        """Remove a device, and its routes and neighbours with it."""
        if number := index(name):
            self._ask(DELLINK, 0, _LINK.pack(0, 0, number, 0, 0), errno.ENODEV)

    def add_address(self, number: int, address: str, prefix: int, *, with_route: bool = True) -> None:
        """Give a device an address, and IPv6 the route to its network besides unless somebody else makes one."""
        body = struct.pack("=BBBBI", _family(address), prefix, 0, 0, number)
        body += attribute(2, _address(address)) + attribute(1, _address(address))
        if ":" in address:
            # No search for duplicates: it is ours alone, and would take a second.
            body += attribute(8, struct.pack("=I", _NO_SEARCH if with_route else _NO_SEARCH | _NO_ROUTE))
        self._ask(NEWADDR, _CREATE | _EXCLUSIVE, body, errno.EEXIST)

    def delete_address(self, number: int, address: str) -> None:
        """Take an address from a device, which is all of its network there."""
        body = struct.pack("=BBBBI", _family(address), 128 if ":" in address else 32, 0, 0, number)
        self._ask(DELADDR, 0, body + attribute(2, _address(address)), errno.EADDRNOTAVAIL)

    def addresses(self) -> Iterator[tuple[int, str]]:
        """Every address, with the number of its device."""
        for body in self._ask(GETADDR, _DUMP, struct.pack("=BBBBI", socket.AF_UNSPEC, 0, 0, 0, 0)):
            family, _, _, _, device = struct.unpack_from("=BBBBI", body)
            said = dict(attributes(body[8:]))
            # Between two ends, the first attribute is the other end's.
            if family in (socket.AF_INET, socket.AF_INET6) and (own := said.get(2) or said.get(1)):
                yield device, socket.inet_ntop(family, own)

    def addresses6(self, number: int) -> list[str]:
        """The IPv6 addresses of a device, with their prefix lengths."""
        found = []
        for body in self._ask(GETADDR, _DUMP, struct.pack("=BBBBI", socket.AF_INET6, 0, 0, 0, 0)):
            _, prefix, _, _, device = struct.unpack_from("=BBBBI", body)
            if device == number:
                found.append(f"{socket.inet_ntop(socket.AF_INET6, dict(attributes(body[8:]))[1])}/{prefix}")
        return found

    def set_route(self, network: str, number: int, *, source: str = "", table: int = MAIN, kind: int = UNICAST) -> None:
        """Lead a network to a device, or nowhere with `UNREACHABLE`."""
        address, _, prefix = network.partition("/")
        body = self._route(address, int(prefix), table, kind)
        if number:
            body += attribute(4, struct.pack("=I", number))
        if source:
            body += attribute(7, _address(source))
        self._ask(NEWROUTE, _CREATE | _REPLACE, body)

    def delete_route(self, network: str, *, table: int = MAIN, kind: int = UNICAST) -> None:
        address, _, prefix = network.partition("/")
        self._ask(DELROUTE, 0, self._route(address, int(prefix), table, kind), errno.ESRCH)

    def networks(self, table: int, family: socket.AddressFamily = socket.AF_INET) -> list[str]:
        """The networks of a family that a table has routes for."""
        found = []
        empty = bytes(4 if family == socket.AF_INET else 16)
        for body in self._ask(GETROUTE, _DUMP, struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 0, 0)):
            said = dict(attributes(body[12:]))
            if struct.unpack("=I", said[15])[0] == table:
                found.append(f"{socket.inet_ntop(family, said.get(1, empty))}/{body[1]}")
        return found

    @staticmethod
    def _route(address: str, prefix: int, table: int, kind: int) -> bytes:
        # protocol 196 marks what is ours, as `ip route show proto 196` does; scope: link, or nothing for what leads nowhere
        scope = 253 if kind == UNICAST and ":" not in address else 0
        small = table if table < 256 else 0
        body = struct.pack("=BBBBBBBBI", _family(address), prefix, 0, 0, small, 196, scope, kind, 0)
        body += attribute(1, _address(address)) + attribute(15, struct.pack("=I", table))
        if kind == UNREACHABLE:
            body += attribute(6, struct.pack("=I", 4000))
        return body

    def set_neighbour(self, number: int, address: str, mac: str) -> None:
        """The MAC behind an address, for ever."""
        body = struct.pack("=BxxxiHBB", _family(address), number, _PERMANENT, 0, 0)
        self._ask(NEWNEIGH, _CREATE | _REPLACE, body + attribute(1, _address(address)) + attribute(2, bytes.fromhex(mac.replace(":", ""))))

    def answer_for(self, number: int, address: str) -> None:
        """Answer neighbour discovery at a device for an IPv6 address."""
        body = struct.pack("=BxxxiHBB", socket.AF_INET6, number, _PERMANENT, _PROXY, 0) + attribute(1, _address(address))
        self._ask(NEWNEIGH, _CREATE | _REPLACE, body)

    def add_rule(self, table: int, priority: int, family: int = socket.AF_INET) -> None:
        """Look into a table after the others."""
        self._ask(NEWRULE, _CREATE | _EXCLUSIVE, self._rule(table, priority, family), errno.EEXIST)

    def delete_rule(self, table: int, priority: int, family: int = socket.AF_INET) -> None:
        self._ask(DELRULE, 0, self._rule(table, priority, family), errno.ENOENT)

    @staticmethod
    def _rule(table: int, priority: int, family: int) -> bytes:
        body = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 1, 0)
        return body + attribute(15, struct.pack("=I", table)) + attribute(6, struct.pack("=I", priority))

    def _ask(self, kind: int, flags: int, body: bytes, *fine: int) -> list[bytes]:
        self._count += 1
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, flags | _REQUEST | _ACK, self._count, 0) + body)
        found: list[bytes] = []
        while True:
            data = self._socket.recv(1 << 18)
            while len(data) >= _HEADER.size:
                length, answer, _, count, _ = _HEADER.unpack_from(data)
                content, data = data[_HEADER.size : length], data[max(length + 3 & ~3, _HEADER.size) :]
                if count != self._count:
                    continue
                if answer in (_ERROR, _DONE):
                    code = -struct.unpack_from("=i", content)[0] if len(content) >= 4 else 0
                    if code and code not in fine:
                        raise NetworkBusy("cannot change the host's network", why=f"{_reason(code, content)} (rtnetlink request {kind})")
                    return found
                found.append(content)


def _reason(code: int, content: bytes) -> str:
    """Return the kernel's word for a code, and what it says besides, if it does."""
    said = dict(attributes(content[4 + _HEADER.size :])).get(_SAID, b"").rstrip(b"\0").decode(errors="replace")
    return f"{os.strerror(code)}: {said}" if said else os.strerror(code)


def _read_link(body: bytes) -> NetworkDevice:
    _, _, number, flags, _ = _LINK.unpack_from(body)
    said = dict(attributes(body[_LINK.size :]))
    about = dict(attributes(said.get(18, b"")))
    kind = about.get(1, b"").rstrip(b"\0").decode(errors="replace")
    data = dict(attributes(about.get(2, b"")))
    return NetworkDevice(
        number,
        said.get(3, b"").rstrip(b"\0").decode(errors="replace"),
        kind,
        said.get(1, b"").hex(":"),
        struct.unpack("=I", said[4])[0] if len(said.get(4, b"")) == 4 else 0,
        struct.unpack("=I", said[10])[0] if len(said.get(10, b"")) == 4 else 0,
        bool(flags & _UP),
        kind == "tun" and data.get(7, b"\0") != b"\0",
        kind == "bridge" and data.get(7, b"\0") != b"\0",
        said.get(_CARRIER, b"\0") != b"\0",
        said.get(_ALIAS, b"").rstrip(b"\0").decode(errors="replace"),
    )

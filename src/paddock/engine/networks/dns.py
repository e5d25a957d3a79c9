"""DNS messages and what is known by name. Pure.

Names of machines come from `guestnames`; names of Services are given as they are to be asked for. What lies in the zone and is not known
does not exist; everything else is somebody else's.
"""

import ipaddress
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field

A, PTR, SOA, AAAA, ANY, OPT = 1, 12, 6, 28, 255, 41
_IN = 1
OK, FORMAT, FAILURE, NO_NAME, NOT_IMPLEMENTED, REFUSED = range(6)
_HEADER = struct.Struct("!HHHHHH")
# Short, since machines come and go.
TTL = 5
_LARGEST_UDP = 512
_MOST_ANSWERS = 64


class DnsQuestion(Struct, frozen=True):
    """The question of a query."""

    id: int
    name: str
    kind: int
    recursion: bool
    # the question as it was sent: answers repeat it
    raw: bytes
    # the largest datagram the client takes
    size: int = _LARGEST_UDP


class MalformedQuery(ValueError):
    """No query. `id` is 0 where not even that can be read."""

    def __init__(self, id: int, code: int) -> None:
        super().__init__("malformed DNS query")
        self.id = id
        self.code = code


def read(data: bytes) -> DnsQuestion:
    """The question of a query; raises `MalformedQuery`."""
    if len(data) < _HEADER.size:
        raise MalformedQuery(0, FORMAT)
    number, flags, questions, answers, authorities, more = _HEADER.unpack_from(data)
    if flags & 0x8000:
        raise MalformedQuery(0, FORMAT)
    if flags & 0x7800:
        raise MalformedQuery(number, NOT_IMPLEMENTED)
    if questions != 1 or answers or authorities:
        raise MalformedQuery(number, FORMAT)
    name, place = _name(data, _HEADER.size, number)
    if len(data) < place + 4:
        raise MalformedQuery(number, FORMAT)
    kind, kind_class = struct.unpack_from("!HH", data, place)
    if kind_class != _IN:
        raise MalformedQuery(number, REFUSED)
    raw = data[_HEADER.size : place + 4]
    return DnsQuestion(number, name, kind, bool(flags & 0x0100), raw, _size(data, place + 4, more))


def _name(data: bytes, place: int, number: int) -> tuple[str, int]:
    labels: list[str] = []
    total = 0
    while True:
        if place >= len(data):
            raise MalformedQuery(number, FORMAT)
        length = data[place]
        place += 1
        if not length:
            return ".".join(labels).lower(), place
        total += length + 1
        # A question holds no pointers: there is nothing before it.
        if length > 63 or total > 254 or place + length > len(data):
            raise MalformedQuery(number, FORMAT)
        labels.append(data[place : place + length].decode("latin-1"))
        place += length


def _size(data: bytes, place: int, more: int) -> int:
    """Return the UDP size in an OPT record, if it is the first after the question."""
    if more and len(data) >= place + 11 and data[place] == 0:
        kind = int.from_bytes(data[place + 1 : place + 3], "big")
        if kind == OPT:
            return min(max(int.from_bytes(data[place + 3 : place + 5], "big"), _LARGEST_UDP), 4096)
    return _LARGEST_UDP


def error(number: int, code: int) -> bytes:
    """An answer that says nothing but why."""
    return _HEADER.pack(number, 0x8080 | code, 0, 0, 0, 0)


def answer(question: DnsQuestion, code: int, values: Iterable[bytes] = (), *, truncate: bool = True) -> bytes:
    """An answer of ours. `truncate`: what does not fit a datagram is asked for again by TCP."""
    listed = list(values)[:_MOST_ANSWERS]
    records = b"".join(struct.pack("!HHHIH", 0xC00C, question.kind, _IN, TTL, len(value)) + value for value in listed)
    flags = 0x8480 | (0x0100 if question.recursion else 0) | code
    if truncate and _HEADER.size + len(question.raw) + len(records) > question.size:
        return _HEADER.pack(question.id, flags | 0x0200, 1, 0, 0, 0) + question.raw
    return _HEADER.pack(question.id, flags, 1, len(listed), 0, 0) + question.raw + records


def wire(name: str) -> bytes:
    """A name as it is sent."""
    return (
        b"".join(bytes([len(label)]) + label for label in (each.encode("latin-1", "replace") for each in name.split(".")) if label) + b"\0"
    )


class Zone(Struct, frozen=True):
    """Everything that has a name here."""

    suffix: str
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # addresses that nobody else can know about
    networks: tuple[str, ...] = ()
    # from an address in its usual form to a name
    reverse: Mapping[str, str] = field(default_factory=dict)
    # what stands before a name that exists
    parents: Collection[str] = frozenset()

    @classmethod
    def of(
        cls, suffix: str, cards: Iterable[tuple[Sequence[str], Collection[str]]], names: Mapping[str, Collection[str]], *networks: str
    ) -> "Zone":
        """From cards' names with their addresses in the usual form, and names as they are. A card's addresses lead to its first name."""
        found: dict[str, tuple[str, ...]] = {}
        reverse: dict[str, str] = {}
        for own, addresses in cards:
            for name in own:
                found[name] = _joined(found.get(name), addresses)
            for address in addresses if own else ():
                reverse[address] = own[0]
        for given, listed in names.items():
            name = given.lower().rstrip(".")
            found[name] = _joined(found.get(name), listed)
            for address in listed:
                reverse.setdefault(_usual(address), name)
        return cls(suffix, found, networks, reverse, _parents(found))

    def answer(self, question: DnsQuestion) -> tuple[int, list[bytes]] | None:
        """The answer's code and values; None when somebody else has to be asked."""
        name = question.name
        if name in self.names:
            return OK, list(_values(self.names[name], question.kind))
        if name == self.suffix or name.endswith("." + self.suffix) or name in self.parents:
            return (OK if name in self.parents or name == self.suffix else NO_NAME), []
        if name.endswith((".in-addr.arpa", ".ip6.arpa")):
            address = _pointed(name)
            known = self.reverse.get(str(address))
            if known is not None:
                return OK, [wire(known)] if question.kind in (PTR, ANY) else []
            return (NO_NAME, []) if address is not None and self._is_ours(address) else None
        # A name without a dot is nobody's outside; asking for it would tell them about our machines.
        return (NO_NAME, []) if "." not in name and name else None

    def _is_ours(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in ipaddress.ip_network(network) for network in self.networks)


def _joined(known: tuple[str, ...] | None, addresses: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(known or ()), *addresses)))


def _usual(address: str) -> str:
    """Return an address in the form in which it is looked up; one of IPv4 has no other."""
    return str(ipaddress.IPv6Address(address)) if ":" in address else address


def _pointed(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a name below in-addr.arpa or ip6.arpa leads back from."""
    suffix = ".in-addr.arpa" if name.endswith(".in-addr.arpa") else ".ip6.arpa"
    parts = name.removesuffix(suffix).split(".")[::-1]
    try:
        if suffix == ".in-addr.arpa":
            return ipaddress.IPv4Address(".".join(parts))
        digits = "".join(parts)
        return ipaddress.IPv6Address(int(digits, 16)) if len(parts) == len(digits) == 32 else None
    except ValueError:
        return None


def _parents(names: Iterable[str]) -> Collection[str]:
    """Return what stands behind the dots of these names."""
    found: set[str] = set()
    for name in names:
        rest = name.partition(".")[2]
        # Those of one that is known are known, too.
        while rest and rest not in found:
            found.add(rest)
            rest = rest.partition(".")[2]
    return found


def _values(addresses: Iterable[str], kind: int) -> Iterable[bytes]:
    for text in addresses:
        address = ipaddress.ip_address(text)
        if kind == (A if address.version == 4 else AAAA):
            yield address.packed


def lifetime(data: bytes) -> int:
    """For how many seconds an answer of somebody else's holds; 0 for one that should not be kept."""
    if len(data) < _HEADER.size:
        return 0
    _, flags, questions, answers, authorities, _ = _HEADER.unpack_from(data)
    if flags & 0x020F not in (OK, NO_NAME) or not flags & 0x8000:
        return 0
    place = _HEADER.size
    try:
        for _ in range(questions):
            place = _skipped(data, place) + 4
        found = []
        for _ in range(answers + authorities):
            place = _skipped(data, place)
            _, _, ttl, length = struct.unpack_from("!HHIH", data, place)
            found.append(ttl)
            place += 10 + length
    except (IndexError, struct.error):
        return 0
    return min(found, default=0) if place <= len(data) else 0


def _skipped(data: bytes, place: int) -> int:
    while True:
        length = data[place]
        if length >= 0xC0:
            return place + 2
        if not length:
            return place + 1
        place += length + 1

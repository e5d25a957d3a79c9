"""The values of expressions: Python's own where they fit, and the few types that Python lacks.

bool, int (64 bits), float, str, bytes, None, list, dict are themselves; the rest is below.
"""

import ipaddress
from collections.abc import Callable, Iterable
from functools import total_ordering
from typing import Any

import msgspec

from paddock.schema.cel.errors import EvaluationError

SECOND = 10**9


class UInt(int):
    """An unsigned whole number of 64 bits."""

    __slots__ = ()


class CelType(msgspec.Struct, frozen=True):
    """A type as a value."""

    name: str


class Optional(msgspec.Struct, frozen=True):
    """A value that may be absent."""

    value: Any = None
    there: bool = False


NONE = Optional()


@total_ordering
class Duration(msgspec.Struct, frozen=True):
    """A length of time in nanoseconds."""

    ns: int

    def __lt__(self, other: "Duration") -> bool:
        return self.ns < other.ns


@total_ordering
class Timestamp(msgspec.Struct, frozen=True):
    """A moment, in nanoseconds since 1970."""

    ns: int

    def __lt__(self, other: "Timestamp") -> bool:
        return self.ns < other.ns


class Url(msgspec.Struct, frozen=True):
    """An absolute URL, taken apart."""

    text: str
    scheme: str
    host: str
    port: str
    path: str
    query: dict[str, list[str]]


class Quantity(msgspec.Struct, frozen=True):
    """An amount, in billionths."""

    value: int


class Ip(msgspec.Struct, frozen=True):
    """An address."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address


class Cidr(msgspec.Struct, frozen=True):
    """A network, with the address it was written with."""

    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface


class Semver(msgspec.Struct, frozen=True):
    """A version by semver.org."""

    major: int
    minor: int
    patch: int
    before: tuple[str, ...] = ()
    text: str = ""


class NamedFormat(msgspec.Struct, frozen=True):
    """A syntax of texts."""

    name: str
    accepts: Callable[[str], bool]
    why: str


class Message(dict[str, Any]):
    """A value that an expression constructs from a type it names."""

    __slots__ = ("name",)

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.name = name


class UnorderedList(list[Any]):
    """A list whose order is none: a set, or, with `keys`, entries with these members as their identity."""

    __slots__ = ("keys",)

    def __init__(self, entries: Iterable[Any] = (), keys: tuple[str, ...] = ()) -> None:
        super().__init__(entries)
        self.keys = keys

    def place(self, entry: Any) -> Any:
        """Return the key of an entry."""
        if self.keys:
            return tuple(_hashable(entry.get(key)) for key in self.keys) if isinstance(entry, dict) else None
        return _hashable(entry)

    def equals(self, other: list[Any]) -> bool:
        """The same entries in any order."""
        if len(self) != len(other):
            return False
        mine = {self.place(entry): entry for entry in self}
        return all((place := self.place(entry)) in mine and (not self.keys or equal(mine[place], entry)) for entry in other)

    def merged(self, other: list[Any]) -> "UnorderedList":
        """Its entries, those that the other has, too, as they are there; then the other's own."""
        made = {self.place(entry): entry for entry in self}
        for entry in other:
            if self.keys or self.place(entry) not in made:
                made[self.place(entry)] = entry
        return UnorderedList(made.values(), self.keys)


def _hashable(value: Any) -> Any:
    """A value that can be looked up; to Python true is 1."""
    return msgspec.json.encode(value, order="sorted") if isinstance(value, dict | list) else (type(value), value)


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    UnorderedList: "list",
    dict: "map",
    CelType: "type",
    Optional: "optional_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Url: "kubernetes.URL",
    Quantity: "kubernetes.Quantity",
    Ip: "net.IP",
    Cidr: "net.CIDR",
    Semver: "kubernetes.Semver",
    NamedFormat: "kubernetes.NamedFormat",
}
# Names that stand for types in expressions.
TYPES = {name: CelType(name) for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type", "list", "map", "type")}


def name_of(value: Any) -> str:
    """The name of a value's type."""
    return _NAMES.get(type(value), "dyn")


def is_number(value: Any) -> bool:
    """Return whether a value is one of the three kinds of numbers; true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Equality across types: numbers by value, everything else only with its own kind."""
    if isinstance(one, UnorderedList):
        return isinstance(other, list) and one.equals(other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return all((found := find_key(other, key)) is not None and equal(value, other[found[0]]) for key, value in one.items())
    if is_number(one):
        return is_number(other) and bool(one == other)
    if isinstance(one, Optional):
        return isinstance(other, Optional) and one.there == other.there and equal(one.value, other.value)
    if isinstance(one, Semver) and isinstance(other, Semver):
        return (one.major, one.minor, one.patch, one.before) == (other.major, other.minor, other.patch, other.before)
    return type(one) is type(other) and bool(one == other)


def find_key(mapping: dict[Any, Any], key: Any) -> tuple[Any] | None:
    """The key of a map that equals a value, wrapped; None without one."""
    try:
        if key not in mapping:
            return None
    except TypeError:
        raise EvaluationError(f"unsupported key type: {name_of(key)}") from None
    if isinstance(key, bool) or key in (0, 1):
        # To Python true is 1.
        found = next((each for each in mapping if each == key), None)
        return (key,) if isinstance(found, bool) == isinstance(key, bool) else None
    return (key,)


def no_overload(name: str, *values: Any) -> EvaluationError:
    """A function does not take such values."""
    return EvaluationError(f"no such overload: {name}({', '.join(name_of(each) for each in values)})")


def checked(value: int) -> int:
    """A whole number, if it fits into 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise EvaluationError("integer overflow")
    return value


def checked_unsigned(value: int) -> UInt:
    """An unsigned whole number, if it fits into 64 bits."""
    if not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)

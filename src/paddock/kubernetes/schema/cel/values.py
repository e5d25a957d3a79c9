"""The values of expressions: Python's own where they fit, and the few types that Python lacks.

bool, int (64 bits), float, str, bytes, None, list, dict are themselves; the rest is below.
"""

import ipaddress
from collections.abc import Callable, Iterable
from functools import total_ordering
from typing import Any

import msgspec

from paddock.kubernetes.schema.cel.errors import EvaluationError

SECOND = 10**9
# Takes units of the budget of an expression; raises `OutOfBudget` when there are not so many.
Spend = Callable[[int], None]
# Characters that are compared for a unit: comparing them is fast, and a kube-apiserver takes nothing for those inside of lists.
_CHARACTERS = 1000


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

    def place(self, spend: Spend, entry: Any) -> Any:
        """Return the key of an entry."""
        spend(1)
        if self.keys:
            return tuple(_hashable(spend, entry.get(key)) for key in self.keys) if isinstance(entry, dict) else None
        return _hashable(spend, entry)

    def equals(self, spend: Spend, other: list[Any]) -> bool:
        """The same entries in any order."""
        if len(self) != len(other):
            return False
        mine = {self.place(spend, entry): entry for entry in self}
        for entry in other:
            place = self.place(spend, entry)
            if place not in mine or (self.keys and not equal(spend, mine[place], entry)):
                return False
        return True

    def merged(self, spend: Spend, other: list[Any]) -> "UnorderedList":
        """Its entries, those that the other has, too, as they are there; then the other's own."""
        made = {self.place(spend, entry): entry for entry in self}
        for entry in other:
            place = self.place(spend, entry)
            if self.keys or place not in made:
                made[place] = entry
        return UnorderedList(made.values(), self.keys)


def _hashable(spend: Spend, value: Any) -> Any:
    """A value that can be looked up; to Python true is 1."""
    if not isinstance(value, dict | list):
        return type(value), value
    text = msgspec.json.encode(value, order="sorted")
    spend(len(text) // 10)
    return text


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


def equal(spend: Spend, one: Any, other: Any) -> bool:
    """Equality across types: numbers by value, everything else only with its own kind.

    Pays a unit for each value inside that is compared. The two themselves are the caller's to pay. A value need not equal itself:
    NaN does not, nor does what holds it.
    """
    if isinstance(one, str):
        # first, because most values are texts
        return isinstance(other, str) and _equal_texts(spend, one, other)
    if isinstance(one, UnorderedList):
        return isinstance(other, list) and one.equals(spend, other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and _equal_pairs(spend, zip(one, other, strict=True))
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return _equal_pairs(spend, ((value, other[key] if has_key(other, key) else _NOTHING) for key, value in one.items()))
    if is_number(one):
        return is_number(other) and bool(one == other)
    if isinstance(one, Optional):
        return isinstance(other, Optional) and one.there == other.there and equal(spend, one.value, other.value)
    if isinstance(one, Semver) and isinstance(other, Semver):
        return (one.major, one.minor, one.patch, one.before) == (other.major, other.minor, other.patch, other.before)
    if isinstance(one, bytes):
        return isinstance(other, bytes) and _equal_texts(spend, one, other)
    return type(one) is type(other) and bool(one == other)


# Equals no value.
_NOTHING = object()


def _equal_texts(spend: Spend, one: str | bytes, other: str | bytes) -> bool:
    if len(one) != len(other):
        return False
    spend(len(one) // _CHARACTERS)
    return one == other


def _equal_pairs(spend: Spend, pairs: Iterable[tuple[Any, Any]]) -> bool:
    for one, other in pairs:
        spend(1)
        if not equal(spend, one, other):
            return False
    return True


class _Key:
    """A key that is found only by its own kind: to Python true is 1."""

    __slots__ = ("_key",)

    def __init__(self, key: Any) -> None:
        self._key = key

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, bool) is isinstance(self._key, bool) and bool(other == self._key)


def has_key(mapping: dict[Any, Any], key: Any) -> bool:
    """Return whether a map has a key that equals a value."""
    try:
        return key in mapping and (isinstance(key, str) or _Key(key) in mapping)
    except TypeError:
        raise EvaluationError(f"unsupported key type: {name_of(key)}") from None


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

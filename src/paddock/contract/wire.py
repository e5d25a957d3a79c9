"""Messages to and from protobuf's bytes, driven by the numbers that `messages` declares.

Writing follows proto3: a zero is not written. Reading skips what it does not know, takes the last of repeated scalars and merges
repeated messages. Whatever the bytes are, reading ends in a message or in `MalformedMessage`, in time and memory that the limits
bound.
"""

import enum
from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from paddock.base import protobuf
from paddock.base.errors import Terminal
from paddock.base.protobuf import BYTES, VARINT, MalformedProtobuf
from paddock.contract.messages import WireField, WireMessage

M = TypeVar("M", bound=WireMessage)


class MalformedMessage(Terminal):
    """Bytes that are no message, or a message that has no bytes."""


class WireLimits(msgspec.Struct, frozen=True):
    """What a message may have at most."""

    # bytes
    size: int = 4 << 20
    # messages inside messages
    depth: int = 8
    # fields, of all messages inside it together
    fields: int = 500_000


_LIMITS = WireLimits()


class _Shape(enum.Enum):
    SINGLE = 0
    REPEATED = 1
    MAP = 2


class _Codec(msgspec.Struct, frozen=True):
    """A field: where it is, and the type of its values."""

    name: str
    number: int
    bits: int
    shape: _Shape
    value: type[Any]

    @property
    def wire_type(self) -> int:
        return VARINT if issubclass(self.value, int) else BYTES


def encode(message: WireMessage) -> bytes:
    """Return the bytes of a message; raise `MalformedMessage` if a value does not fit its type on the wire."""
    try:
        return bytes(_encoded(message))
    except (UnicodeEncodeError, OverflowError) as error:
        # The error of the codec quotes the text.
        why = "a text is not Unicode" if isinstance(error, UnicodeEncodeError) else str(error)
        raise MalformedMessage(f"cannot encode {type(message).__name__}", why=why) from None


def decode(data: bytes, kind: type[M], limits: WireLimits = _LIMITS) -> M:
    """Return the message of bytes; raise `MalformedMessage` if there is none."""
    if len(data) > limits.size:
        raise MalformedMessage(f"cannot decode {kind.__name__}", why=f"it has {len(data)} bytes; at most {limits.size} are allowed")
    try:
        return _Reader(limits).message(data, kind, 1)
    except UnicodeDecodeError:
        raise MalformedMessage(f"cannot decode {kind.__name__}", why="a text is not UTF-8") from None
    except MalformedProtobuf as error:
        raise MalformedMessage(f"cannot decode {kind.__name__}", why=str(error)) from None


def _encoded(message: WireMessage) -> bytearray:
    out = bytearray()
    for codec in _codecs(type(message)):
        value = getattr(message, codec.name)
        if codec.shape is _Shape.MAP:
            for key in sorted(value):
                entry = bytearray()
                protobuf.append_bytes(entry, 1, key.encode())
                protobuf.append_bytes(entry, 2, value[key].encode())
                protobuf.append_bytes(out, codec.number, entry)
        elif codec.shape is _Shape.REPEATED:
            for each in value:
                protobuf.append_bytes(out, codec.number, _raw(each))
        elif isinstance(value, int):
            _append_number(out, codec, value)
        elif isinstance(value, WireMessage) or value:
            protobuf.append_bytes(out, codec.number, _raw(value))
    return out


def _append_number(out: bytearray, codec: _Codec, value: int) -> None:
    if not -(1 << (codec.bits - 1)) <= value < 1 << (codec.bits - 1):
        raise OverflowError(f"{codec.name} does not fit {codec.bits} bits")
    if value:
        protobuf.append_number(out, codec.number, value)


def _raw(value: str | bytes | WireMessage) -> bytes | bytearray:
    if isinstance(value, WireMessage):
        return _encoded(value)
    return value.encode() if isinstance(value, str) else value


class _Reader:
    """Reads one message with all that is inside it."""

    def __init__(self, limits: WireLimits) -> None:
        self._limits = limits
        self._fields = 0

    def message(self, data: bytes, kind: type[M], depth: int) -> M:
        if depth > self._limits.depth:
            raise MalformedProtobuf("messages are nested too deeply")
        singles: dict[str, Any] = {}
        lists: dict[str, list[Any]] = {}
        parts: dict[str, list[bytes]] = {}
        codecs = _by_number(kind)
        for number, wire_type, raw in self._counted(data):
            codec = codecs.get(number)
            if codec is None or codec.wire_type != wire_type:
                continue
            if codec.shape is _Shape.MAP:
                key, value = self._entry(raw)
                singles.setdefault(codec.name, {})[key] = value
            elif codec.shape is _Shape.REPEATED:
                lists.setdefault(codec.name, []).append(self._value(codec, raw, depth))
            elif issubclass(codec.value, WireMessage) and isinstance(raw, bytes):
                parts.setdefault(codec.name, []).append(raw)
            else:
                singles[codec.name] = self._value(codec, raw, depth)
        made = {**singles, **{name: tuple(values) for name, values in lists.items()}}
        # The bytes of two messages in a row are those of the merged message.
        nested = _nested(kind)
        made |= {name: self.message(b"".join(raws), nested[name], depth + 1) for name, raws in parts.items()}
        return kind(**made)

    def _counted(self, data: bytes) -> Iterable[tuple[int, int, bytes | int]]:
        for field in protobuf.fields(data):
            self._fields += 1
            if self._fields > self._limits.fields:
                raise MalformedProtobuf(f"it has more than {self._limits.fields} fields")
            yield field

    def _value(self, codec: _Codec, raw: bytes | int, depth: int) -> Any:
        if isinstance(raw, int):
            return _NUMBERS.get(codec.value, _enumerated)(codec, raw)
        if codec.value is str:
            return raw.decode()
        if codec.value is bytes:
            return raw
        return self.message(raw, codec.value, depth + 1)

    def _entry(self, raw: bytes | int) -> tuple[str, str]:
        found = {1: b"", 2: b""}
        for number, wire_type, value in self._counted(raw if isinstance(raw, bytes) else b""):
            if wire_type == BYTES and number in found and isinstance(value, bytes):
                found[number] = value
        return found[1].decode(), found[2].decode()


_NUMBERS: dict[type[Any], Callable[[_Codec, int], int]] = {
    bool: lambda codec, raw: raw != 0,
    int: lambda codec, raw: protobuf.signed(raw, codec.bits),
}


def _enumerated(codec: _Codec, raw: int) -> int:
    """A member of an enumeration; a number that nobody knows is as good as none."""
    number = protobuf.signed(raw, 32)
    known: bool = number in codec.value._value2member_map_
    return codec.value(number if known else 0)  # type: ignore[no-any-return]


@cache
def _codecs(kind: type[WireMessage]) -> tuple[_Codec, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_codec(name, field, hints[name]) for name, field in kind.wire_fields().items())


@cache
def _by_number(kind: type[WireMessage]) -> dict[int, _Codec]:
    return {codec.number: codec for codec in _codecs(kind)}


@cache
def _nested(kind: type[WireMessage]) -> dict[str, type[WireMessage]]:
    return {codec.name: codec.value for codec in _codecs(kind) if codec.shape is _Shape.SINGLE and issubclass(codec.value, WireMessage)}


def _codec(name: str, field: WireField, hint: Any) -> _Codec:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    shape, value = _Shape.SINGLE, plain
    if isinstance(plain, UnionType):
        (value,) = (each for each in get_args(plain) if each is not NoneType)
    elif get_origin(plain) is tuple:
        shape, value = _Shape.REPEATED, get_args(plain)[0]
    elif get_origin(plain) is dict:
        shape, value = _Shape.MAP, get_args(plain)[1]
    if not issubclass(value, (str, bytes, int, WireMessage)) or (shape is _Shape.REPEATED and issubclass(value, int)):
        raise TypeError(f"the wire has no form for {name}: {hint!r}")
    return _Codec(name, field.number, field.bits, shape, value)

"""The encoding of protobuf, below any message: fields as numbers, wire types and raw values. What it means is the reader's business."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_LARGEST_NUMBER = (1 << 29) - 1
_MASK = (1 << 64) - 1


class MalformedProtobuf(ValueError):
    """Bytes that are not protobuf."""


def fields(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """The fields of a message, undecoded: number, wire type, and an integer for a varint or else bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not 0 < number <= _LARGEST_NUMBER:
            raise MalformedProtobuf(f"a field has the number {number}")
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif (size := _WIDTHS.get(kind, 0)) == 0:
            raise MalformedProtobuf(f"unknown wire type {kind}")
        if size > end - at:
            raise MalformedProtobuf("it ends too early")
        yield number, kind, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of 64 bits, and where it ends."""
    result = shift = 0
    while True:
        try:
            byte = data[at]
        except IndexError:
            raise MalformedProtobuf("it ends too early") from None
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK, at
        shift += 7
        if shift > 63:
            raise MalformedProtobuf("a number is too long")


def signed(value: int, bits: int = 64) -> int:
    """The signed number that the low bits of an unsigned one hold."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def append_varint(out: bytearray, value: int) -> None:
    """Write a number; a negative one as its 64 bits."""
    value &= _MASK
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def append_number(out: bytearray, number: int, value: int) -> None:
    """Write a field that is a number."""
    append_varint(out, number << 3 | VARINT)
    append_varint(out, value)


def append_bytes(out: bytearray, number: int, value: bytes | bytearray) -> None:
    """Write a field that is a text, bytes or a message."""
    append_varint(out, number << 3 | BYTES)
    append_varint(out, len(value))
    out += value

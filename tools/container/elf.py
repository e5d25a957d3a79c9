"""Libraries that a program or library asks its loader for. Pure."""

import struct
from collections.abc import Iterator

_DYNAMIC, _LOAD = 2, 1
_NEEDED, _STRINGS = 1, 5


def needed(data: bytes) -> tuple[str, ...]:
    """Return the names of the libraries; none for what is no 64-bit ELF file of a little-endian processor."""
    if data[:6] != b"\x7fELF\x02\x01":
        return ()
    segments = list(_segments(data))
    entries = [entry for kind, offset, _, size in segments if kind == _DYNAMIC for entry in _entries(data, offset, size)]
    tables = [value for tag, value in entries if tag == _STRINGS]
    if not tables:
        return ()
    start = next(
        offset + tables[0] - address for kind, offset, address, size in segments if kind == _LOAD and 0 <= tables[0] - address < size
    )
    return tuple(_text(data, start + value) for tag, value in entries if tag == _NEEDED)


def _segments(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Kind, offset in the file, address and size of each segment."""
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for place in range(table, table + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, place)
        yield kind, offset, address, length


def _entries(data: bytes, offset: int, size: int) -> Iterator[tuple[int, int]]:
    for place in range(offset, offset + size, 16):
        yield struct.unpack_from("<qQ", data, place)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()

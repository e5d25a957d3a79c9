"""The header of VMDK files that are complete in themselves: monolithicSparse and streamOptimized.

A descriptor inside the file can name extents and parents, and QEMU opens what it names, also for a mere look. So the descriptor is
read here, and only the one form is taken that names nothing but the file itself.
"""

import re
import struct
import sys
from array import array

from paddock.engine.images.errors import ImageRefused
from paddock.engine.images.facts import Bytes, Facts, damaged, truncated, unsafe

_SECTOR = 512
# As much as QEMU reads of a descriptor, wherever it begins.
_DESCRIPTOR = 20 * _SECTOR
_AT_END = 0xFFFFFFFFFFFFFFFF
_HEADER = "<4sIIQQQQIQQQ"
_SELF_CONTAINED = ("monolithicSparse", "streamOptimized")


def inspect(data: Bytes) -> Facts:
    """The header, the descriptor in it, and the footer that can stand in the header's place."""
    capacity, directory, tables = _sparse_header(data, 0)
    if directory == _AT_END:
        if data.size < 3 * _SECTOR + struct.calcsize(_HEADER):
            raise damaged("it has no footer")
        if data.at(data.size - 1024, 4) == b"KDMV":
            footer, directory, tables = _sparse_header(data, data.size - 1024)
            capacity = max(capacity, footer)
        else:
            raise damaged("it has no footer")
    _grains(data, directory, *tables)
    return Facts("vmdk", capacity * _SECTOR)


def _grains(data: Bytes, directory: int, count: int, entries: int) -> None:
    """Every grain begins inside the file: QEMU would read zeros for those that do not."""
    if count > 1 << 24 or directory == _AT_END:
        raise ImageRefused("TooLarge", "the image claims a disk that its tables do not hold")
    seen = set()
    for table in filter(None, _words(data.at(directory * _SECTOR, count * 4))):
        if table in seen:
            raise damaged("a table is used twice")
        seen.add(table)
        if max(_words(data.at(table * _SECTOR, entries * 4))) * _SECTOR >= data.size:
            raise truncated()


def _words(raw: bytes) -> "array[int]":
    words = array("I", raw)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _sparse_header(data: Bytes, offset: int) -> tuple[int, int, tuple[int, int]]:
    """The capacity in sectors, where the directory of tables is, and how many tables of how many entries there are."""
    _, version, _, capacity, grain, descriptor, length, entries, _, directory, _ = data.numbers(_HEADER, offset)
    if not 1 <= version <= 3:
        raise ImageRefused("Unsupported", f"the image is a VMDK of version {version}")
    # Without a capacity QEMU takes the file for a descriptor that names others.
    if not capacity or capacity > 1 << 53:
        raise damaged("the capacity")
    if not 1 <= grain <= 0x200000 or not 1 <= entries <= 512:
        raise damaged("the size of its grains or tables")
    if descriptor:
        if descriptor > data.size // _SECTOR or length > 1 << 20:
            raise damaged("the descriptor is outside the file")
        start = descriptor * _SECTOR
        _judge(data.at(start, min(max(_DESCRIPTOR, length * _SECTOR), data.size - start, 1 << 20)))
    return capacity, directory, (-(-capacity // (grain * entries)), entries)


def _judge(raw: bytes) -> None:
    if b"parentFileNameHint" in raw:
        raise unsafe("is a delta of another file, which would be read from this host")
    # QEMU's text ends at a zero byte; what follows is the next structure of the file.
    text = raw.split(b"\0")[0].decode("latin-1")
    kind = re.search(r'createType\s*=\s*"([^"]*)"', text)
    if kind and kind[1] not in _SELF_CONTAINED:
        raise unsafe(f"is a VMDK of the type {kind[1][:40]}, which keeps its data in other files")
    parents = re.findall(r"parentCID\s*=\s*([0-9A-Za-z]+)", text)
    if any(parent.lower() != "ffffffff" for parent in parents):
        raise unsafe("is a delta of another file, which would be read from this host")
    extents = re.findall(r"^\s*(?:RW|RDONLY|NOACCESS)\s+\S+\s+(\S+)", text, re.MULTILINE)
    if any(extent != "SPARSE" for extent in extents) or len(extents) > 1:
        raise unsafe("names other files that hold its data, which would be read from this host")

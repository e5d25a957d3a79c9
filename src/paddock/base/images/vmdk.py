"""The header of VMDK files that are complete in themselves: monolithicSparse and streamOptimized.

A descriptor inside the file can name extents and parents, and QEMU opens what it names, also for a mere look. So the descriptor is
read here, and only the one form is taken that names nothing but the file itself.
"""

import re
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace

from paddock.base.images.errors import ImageRefused
from paddock.base.images.facts import ImageBytes, ImageFacts, damaged, oversized, truncated, unsafe

_SECTOR = 512
# As much as QEMU reads of a descriptor inside a file, and where it looks for a parent, whatever the header says.
_DESCRIPTOR = 20 * _SECTOR
_PARENT = _SECTOR
_AT_END = 0xFFFFFFFFFFFFFFFF
_HEADER = "<4sIIQQQQIQQQ"
# Flags: every grain is packed; where the header says by which method.
_PACKED, _METHOD, _DEFLATE = 1 << 16, 77, 1
# Sectors of a grain that is taken into memory as a whole; exports have 128.
_SMALL = 2048
_SELF_CONTAINED = ("monolithicSparse", "streamOptimized")


@dataclass(frozen=True)
class Layout:
    """The places of the grains in a file."""

    # in sectors: of the disk, and of a grain
    capacity: int
    grain: int
    # the sector of the directory of tables, how many tables there are, and how many grains one has
    directory: int
    count: int
    entries: int
    # every grain is packed, behind its place on the disk and its length, and small
    packed: bool


def inspect(data: ImageBytes) -> ImageFacts:
    """The header, the descriptor in it, and the footer that can stand in the header's place."""
    header = header_of(data)
    for _ in tables(data, header):
        pass
    return ImageFacts("vmdk", header.capacity * _SECTOR, compressed=header.packed)


def tables(data: ImageBytes, header: Layout) -> Iterator["array[int] | None"]:
    """For each table the sectors of its grains; None for one that is not there. Every grain begins inside the file."""
    if header.count > 1 << 24 or header.directory == _AT_END:
        raise oversized("the image claims a disk that its tables do not hold")
    seen = set()
    for table in _words(data.at(header.directory * _SECTOR, header.count * 4)):
        if not table:
            yield None
            continue
        if table in seen:
            raise damaged("a table is used twice")
        seen.add(table)
        grains = _words(data.at(table * _SECTOR, header.entries * 4))
        # QEMU would read zeros for those that do not.
        if max(grains) * _SECTOR >= data.size:
            raise truncated()
        yield grains


def header_of(data: ImageBytes) -> Layout:
    header = _sparse_header(data, 0)
    if header.directory != _AT_END:
        return header
    if data.size < 3 * _SECTOR + struct.calcsize(_HEADER):
        raise damaged("it has no footer")
    if data.at(data.size - 1024, 4) != b"KDMV":
        raise damaged("it has no footer")
    footer = _sparse_header(data, data.size - 1024)
    return replace(footer, capacity=max(header.capacity, footer.capacity))


def _words(raw: bytes) -> "array[int]":
    words = array("I", raw)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _sparse_header(data: ImageBytes, offset: int) -> Layout:
    _, version, flags, capacity, grain, descriptor, length, entries, _, directory, _ = data.numbers(_HEADER, offset)
    if not 1 <= version <= 3:
        raise ImageRefused("Unsupported", f"the image is a VMDK of version {version}")
    # Without a capacity QEMU takes the file for a descriptor that names others.
    if not capacity or capacity > 1 << 53:
        raise damaged("the capacity")
    if not 1 <= grain <= 0x200000 or not 1 <= entries <= 512:
        raise damaged("the size of its grains or tables")
    if descriptor and (descriptor > data.size // _SECTOR or length > 1 << 20):
        raise damaged("the descriptor is outside the file")
    for start in {descriptor * _SECTOR, _PARENT} - {0}:
        _judge(data.at(start, min(_DESCRIPTOR, max(data.size - start, 0))))
    method, *_ = data.numbers("<H", offset + _METHOD)
    packed = bool(flags & _PACKED) and method == _DEFLATE and grain <= _SMALL
    return Layout(capacity, grain, directory, -(-capacity // (grain * entries)), entries, packed)


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
    # The blanks before a word end with their line: a text of line feeds alone would take quadratic time, with the interpreter held.
    extents = re.findall(r"^[^\S\n]*(?:RW|RDONLY|NOACCESS)\s+\S+\s+(\S+)", text, re.MULTILINE)
    if any(extent != "SPARSE" for extent in extents) or len(extents) > 1:
        raise unsafe("names other files that hold its data, which would be read from this host")

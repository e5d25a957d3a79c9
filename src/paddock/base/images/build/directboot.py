"""A boot loader for a BIOS that copies a bare kernel and its initial RAM file system into memory, and starts it by PVH. Pure.

GRUB moves a file byte by byte, and a packed kernel unpacks itself: emulated, that is more work than all that follows. Here the disk
holds the kernel as it lies in memory. The loader has a virtio disk write it there; it reads any other disk by the BIOS, and copies in
words. `tinyboot/boot.s` is the loader's source.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from paddock.base.images.build import tinyboot
from paddock.base.images.build.disk import SECTOR
from paddock.base.images.build.programs import BuildError

# Of boot.bin: the first sector's packet with the length and the place of the rest, and where Python's part begins in memory.
_PACKET_SECTORS, _PACKET_FIRST = 424 + 2, 424 + 8
_CODE_SIZE = 3 * SECTOR
_DATA, _TABLE, _DATA_SIZE = 0x8400, 96, 4096
_LOADER_SIZE = _CODE_SIZE + _DATA_SIZE
_START_MAGIC, _MAP = 0x336EC578, 0xA000
_ELF_LOAD, _ELF_NOTE, _PVH_NOTE = 1, 4, 18
# Pieces lie where any disk reads them directly. Shorter zeros than this are read, not written.
_PAGE, _ZEROS = 4096, 256 << 10
_RAMDISK_ALIGNMENT = 2 << 20


@dataclass(frozen=True)
class Piece:
    """A range of memory, and its content; None for zeros."""

    address: int
    size: int
    data: bytes | None


@dataclass(frozen=True)
class BareKernel:
    """The parts of an ELF kernel that lie in memory, and its 32-bit entry."""

    pieces: tuple[Piece, ...]
    entry: int

    @property
    def end(self) -> int:
        """The first address behind it."""
        return max(piece.address + piece.size for piece in self.pieces)


def kernel(image: bytes) -> BareKernel:
    """Read a 64-bit ELF kernel."""
    if image[:5] != b"\x7fELF\x02":
        raise BuildError("cannot start this kernel directly", why="it is no 64-bit ELF file", fix="use Debian's kernel")
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    pieces, entry = list[Piece](), 0
    for number in range(count):
        kind, _, offset, _, address, length, memory, _ = struct.unpack_from("<IIQQQQQQ", image, table + number * size)
        if kind == _ELF_LOAD:
            pieces += _pieces(address, image[offset : offset + length], memory)
        elif kind == _ELF_NOTE:
            entry = entry or _entry(image[offset : offset + length])
    if not entry or not pieces:
        raise BuildError("cannot start this kernel directly", why="it has no PVH entry", fix="use Debian's kernel")
    return BareKernel(tuple(pieces), entry)


def _entry(notes: bytes) -> int:
    """Return the address that Xen's note on PVH names; 0 if there is none."""
    position = 0
    while position + 12 <= len(notes):
        name, length, kind = struct.unpack_from("<III", notes, position)
        data = position + 12 + -(-name // 4) * 4
        if kind == _PVH_NOTE and notes[position + 12 : position + 12 + name] == b"Xen\0":
            return int.from_bytes(notes[data : data + length], "little")
        position = data + -(-length // 4) * 4
    return 0


def _pieces(address: int, data: bytes, memory: int) -> Iterator[Piece]:
    """Split a segment at its long runs of zeros, which need no reading."""
    size = -(-max(memory, len(data)) // _PAGE) * _PAGE
    whole = data + bytes(size - len(data))
    begin = 0
    for is_zero, pages in groupby(range(0, size, _PAGE), lambda at: whole.count(0, at, at + _PAGE) == _PAGE):
        places = list(pages)
        start, stop = places[0], places[-1] + _PAGE
        if is_zero and (stop - start >= _ZEROS or stop == size):
            if start > begin:
                yield Piece(address + begin, start - begin, whole[begin:start])
            yield Piece(address + start, stop - start, None)
            begin = stop
    if begin < size:
        yield Piece(address + begin, size - begin, whole[begin:])


def build(image: bytes, ramdisk: bytes, arguments: str, first: int) -> tuple[bytes, bytes]:
    """(the code of the first sector, what lies on the disk from sector `first` on) for a kernel, its RAM file system and arguments."""
    bare = kernel(image)
    place = -(-bare.end // _RAMDISK_ALIGNMENT) * _RAMDISK_ALIGNMENT
    pieces = [*bare.pieces, Piece(place, -(-len(ramdisk) // _PAGE) * _PAGE, ramdisk)]
    table, content = b"", bytearray(-(-_LOADER_SIZE // _PAGE) * _PAGE)
    for piece in pieces:
        sector = 0 if piece.data is None else first + len(content) // SECTOR
        table += struct.pack("<IIQ", sector, piece.size, piece.address)
        if piece.data is not None:
            content += piece.data + bytes(piece.size - len(piece.data))
    words = _data(bare.entry, (place, len(ramdisk)), table + bytes(16), arguments.encode() + b"\0")
    code = bytearray((files(tinyboot) / "boot.bin").read_bytes())
    struct.pack_into("<H", code, _PACKET_SECTORS, _LOADER_SIZE // SECTOR)
    struct.pack_into("<Q", code, _PACKET_FIRST, first)
    content[: _CODE_SIZE + len(words)] = code[SECTOR:] + words
    return bytes(code[:440]), bytes(content)


def _data(entry: int, ramdisk: tuple[int, int], table: bytes, arguments: bytes) -> bytes:
    """Python's part: entry, hvm_start_info with one module, the table of pieces, the command line."""
    line = _DATA + _TABLE + len(table)
    start = struct.pack("<IIIIQQQQII", _START_MAGIC, 1, 0, 1, _DATA + 64, line, 0, _MAP, 0, 0)
    words = struct.pack("<II", entry, 0) + start + struct.pack("<QQQQ", *ramdisk, 0, 0) + table + arguments
    if len(words) > _DATA_SIZE:
        raise BuildError("cannot start this kernel directly", why="its pieces and arguments are too long", fix="use Debian's kernel")
    return words

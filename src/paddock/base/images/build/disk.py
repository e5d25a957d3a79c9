"""A disk with a GUID partition table, and GRUB's two pieces for a BIOS in it. Pure: positions and bytes; `write` puts them into a file."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import UUID, uuid5

SECTOR = 512
# Everything begins at a whole MiB.
ALIGNMENT = 1 << 20
BIOS_BOOT = UUID("21686148-6449-6e6f-744e-656564454649")
EFI_SYSTEM = UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
LINUX = UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
LINUX_ROOT = UUID("4f68bce3-e8cd-4db1-96e7-fbcaf984b709")

_ENTRIES = 128
_ENTRY_BYTES = 128
_TABLE_SECTORS = _ENTRIES * _ENTRY_BYTES // SECTOR
_SPACE = UUID("6f6c5a5e-24b5-4a86-90ab-6ad5b8b58f53")
_CHUNK = 64 << 10
# Where GRUB's boot sector keeps the place of what it loads next, and two bytes that make it believe the BIOS's drive number.
_BOOT_NEXT, _BOOT_DRIVE_CHECK = 0x5C, 0x66
# In the first sector of what is loaded: where the rest is, how long, and the segment it is put into.
_CORE_BLOCKLIST = 0x1F4
_CORE_SEGMENT = 0x820


@dataclass(frozen=True)
class Partition:
    """A partition: its kind, its name, and how large it is. `content` is written at its beginning."""

    kind: UUID
    name: str
    size: int
    content: Path | bytes = b""


@dataclass(frozen=True)
class PlacedPartition:
    """A partition with its place."""

    partition: Partition
    first: int
    last: int


def place(partitions: Sequence[Partition]) -> tuple[tuple[PlacedPartition, ...], int]:
    """The partitions one after the other, and how large the disk is."""
    placed = []
    position = ALIGNMENT
    for partition in partitions:
        end = position + -(-partition.size // ALIGNMENT) * ALIGNMENT
        placed.append(PlacedPartition(partition, position // SECTOR, end // SECTOR - 1))
        position = end
    return tuple(placed), position + ALIGNMENT


def table(placed: Sequence[PlacedPartition], size: int, name: str) -> tuple[bytes, bytes]:
    """The table at the beginning of the disk, with its protective record, and its copy at the end."""
    sectors = size // SECTOR
    identity = uuid5(_SPACE, name)
    entries = b"".join(_entry(one, uuid5(identity, str(number))) for number, one in enumerate(placed))
    entries += bytes(_ENTRIES * _ENTRY_BYTES - len(entries))
    last = sectors - 1
    head = _header(1, last, 2, identity, entries)
    tail = _header(last, 1, last - _TABLE_SECTORS, identity, entries)
    return _protective(sectors) + head + entries, entries + tail


def _entry(placed: PlacedPartition, identity: UUID) -> bytes:
    name = placed.partition.name.encode("utf-16-le")[:72]
    return struct.pack("<16s16sQQQ72s", placed.partition.kind.bytes_le, identity.bytes_le, placed.first, placed.last, 0, name)


def _header(here: int, other: int, entries_at: int, identity: UUID, entries: bytes) -> bytes:
    last = max(here, other)
    usable = (2 + _TABLE_SECTORS, last - _TABLE_SECTORS - 1)
    places = struct.pack("<QQQQ16sQIII", here, other, *usable, identity.bytes_le, entries_at, _ENTRIES, _ENTRY_BYTES, zlib.crc32(entries))
    blank = struct.pack("<8sIIII", b"EFI PART", 0x10000, 92, 0, 0) + places
    checked = struct.pack("<8sIIII", b"EFI PART", 0x10000, 92, zlib.crc32(blank), 0) + places
    return checked + bytes(SECTOR - len(checked))


def _protective(sectors: int) -> bytes:
    record = struct.pack("<B3sB3sII", 0, b"\x00\x02\x00", 0xEE, b"\xff\xff\xff", 1, min(sectors - 1, 0xFFFFFFFF))
    return bytes(446) + record + bytes(48) + b"\x55\xaa"


def boot_sector(boot: bytes, core_at: int) -> bytes:
    """GRUB's first sector, told where the rest of it is. Only the part before the partition record is code."""
    code = bytearray(boot[:440])
    struct.pack_into("<Q", code, _BOOT_NEXT, core_at)
    code[_BOOT_DRIVE_CHECK : _BOOT_DRIVE_CHECK + 2] = b"\x90\x90"
    return bytes(code)


def core_image(core: bytes, core_at: int) -> bytes:
    """GRUB's second piece, told where its own remaining sectors are."""
    sectors = -(-len(core) // SECTOR)
    whole = bytearray(core + bytes(sectors * SECTOR - len(core)))
    struct.pack_into("<QHH", whole, _CORE_BLOCKLIST, core_at + 1, sectors - 1, _CORE_SEGMENT)
    return bytes(whole)


def write(path: Path, placed: Sequence[PlacedPartition], size: int, boot: bytes = b"") -> None:
    """The disk as a sparse raw file; `boot` is the code of its first sector."""
    head, tail = table(placed, size, path.stem)
    with path.open("wb") as file:
        file.truncate(size)
        file.write(boot + head[len(boot) :])
        file.seek(size - len(tail))
        file.write(tail)
        for one in placed:
            file.seek(one.first * SECTOR)
            _write_content(file, one.partition.content)


def _write_content(file: BinaryIO, content: Path | bytes) -> None:
    if isinstance(content, bytes):
        file.write(content)
        return
    with content.open("rb") as source:
        while chunk := source.read(_CHUNK):
            if chunk.count(0) == len(chunk):
                file.seek(len(chunk), 1)
            else:
                file.write(chunk)

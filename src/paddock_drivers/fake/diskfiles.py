"""Disk files: what an export writes and an import reads, as real qcow2 and raw files that QEMU can open.

A disk in memory is a size and the data of its first 64 KiB; everything behind that reads as zeros. A file with more data is refused,
because an import must not lose any.
"""

import os
import struct
from pathlib import Path
from typing import NamedTuple

CLUSTER = 64 << 10
QCOW2, RAW = "qcow2", "raw"
FORMATS = (QCOW2, RAW)
_MAGIC = b"QFI\xfb"
_CLUSTER_BITS = 16
# L2 entries in a cluster, and the bytes of a disk that one L2 table covers
_ENTRIES = CLUSTER // 8
_COVERED = CLUSTER * _ENTRIES
_COPIED = 1 << 63
_HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQII")
_MOST_L1 = 32 << 20


class UnreadableDisk(ValueError):
    """A file that is no disk of the format, or holds more than a disk in memory can keep."""


class DiskFile(NamedTuple):
    """The contents of a disk file."""

    virtual_size: int
    data: bytes


def write(path: Path, format: str, disk: DiskFile) -> None:
    """Write the disk as a file of the format."""
    if format == RAW:
        with path.open("wb") as file:
            file.write(disk.data)
            file.truncate(disk.virtual_size)
    else:
        path.write_bytes(_qcow2(disk))


def read(path: Path, format: str) -> DiskFile:
    """Read a file of the format; raise `UnreadableDisk`."""
    return _read_raw(path) if format == RAW else _read_qcow2(path)


def _qcow2(disk: DiskFile) -> bytes:
    """Return the file: header, refcount table, refcount block, L1, one L2 and one cluster of data."""
    tables = -(-disk.virtual_size // _COVERED)
    l1_clusters = -(-tables * 8 // CLUSTER)
    l1, l2 = 3, 3 + l1_clusters
    header = _HEADER.pack(
        *(_MAGIC, 3, 0, 0, _CLUSTER_BITS, disk.virtual_size, 0, tables, l1 * CLUSTER, CLUSTER, 1, 0, 0),
        *(0, 0, 0, 4, _HEADER.size),
    )
    clusters = [
        header,
        struct.pack(">Q", 2 * CLUSTER),
        struct.pack(">H", 1) * (l2 + 2),
        *[b""] * l1_clusters,
        struct.pack(">Q", _COPIED | (l2 + 1) * CLUSTER),
        disk.data,
    ]
    clusters[l1] = struct.pack(">Q", _COPIED | l2 * CLUSTER)
    return b"".join(each.ljust(CLUSTER, b"\0") for each in clusters)


def _read_qcow2(path: Path) -> DiskFile:
    raw = path.read_bytes() if path.stat().st_size <= _MOST_L1 else b""
    if len(raw) < _HEADER.size or raw[:4] != _MAGIC:
        raise UnreadableDisk("it is no qcow2 file, or one of more than 32 MiB")
    _, _, backing, _, bits, size, crypt, tables, l1, *_ = _HEADER.unpack_from(raw)
    if backing or crypt or bits != _CLUSTER_BITS:
        raise UnreadableDisk("it has a backing file, encryption or clusters that are not of 64 KiB")
    found = [(place, data) for place, data in _mapped(raw, l1, tables) if data.strip(b"\0")]
    if any(place for place, _ in found):
        raise UnreadableDisk("it has data behind the first 64 KiB")
    return DiskFile(size, found[0][1].rstrip(b"\0") if found else b"")


def _mapped(raw: bytes, l1: int, tables: int) -> list[tuple[int, bytes]]:
    """Return every mapped cluster with its number on the disk."""
    found = []
    for table, l2 in enumerate(_table(raw, l1, min(tables, _MOST_L1 // 8))):
        for index, entry in enumerate(_table(raw, l2, _ENTRIES) if l2 else ()):
            if entry:
                found.append((table * _ENTRIES + index, raw[entry : entry + CLUSTER]))
    return found


def _table(raw: bytes, start: int, entries: int) -> tuple[int, ...]:
    part = raw[start : start + entries * 8]
    if len(part) != entries * 8:
        raise UnreadableDisk("a table of it lies behind its end")
    return tuple(each & 0x00FF_FFFF_FFFF_FE00 for each in struct.unpack(f">{entries}Q", part))


def _read_raw(path: Path) -> DiskFile:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(CLUSTER)
        if size > CLUSTER and _has_data(file.fileno(), CLUSTER, size):
            raise UnreadableDisk("it has data behind the first 64 KiB")
    return DiskFile(size, data.rstrip(b"\0"))


def _has_data(file: int, start: int, end: int) -> bool:
    """Return True if the file has bytes other than zero from `start` on; holes are not read."""
    while start < end:
        try:
            start = os.lseek(file, start, os.SEEK_DATA)
        except OSError:
            # ENXIO: nothing but a hole follows.
            return False
        if os.pread(file, 1 << 20, start).strip(b"\0"):
            return True
        start += 1 << 20
    return False

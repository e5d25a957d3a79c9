"""An empty qcow2 layer over a disk, as bytes (docs/interop/qcow2.txt of QEMU describes the format). Pure.

Why not `qemu-img create`: it takes fifteen milliseconds to start, and every machine that is started from an image waits for one or two.

    0  header, extensions, name of what is below | 1  refcount table | 2  refcount block | 3 ...  L1 table, of zeros
"""

import os
import struct
from pathlib import Path

from msgspec import Struct

from paddock.base.disksizes import LARGEST

CLUSTER = 1 << 16
# One entry of the L1 table names an L2 table, which names a cluster's worth of clusters.
_PER_L1_ENTRY = CLUSTER * (CLUSTER // 8)
_LAZY_REFCOUNTS = 1
_REFCOUNT_BITS_EXPONENT = 4
_BACKING_FORMAT = 0xE2792ACA
_LONGEST_NAME = 1023
_HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQIIB7x")
# Up to the length of the L1 table.
_START = struct.Struct(">4sIQIIQII")


class SparseImage(Struct, frozen=True):
    """The file: `head` from its beginning, zeros after it up to `length`."""

    head: bytes
    length: int


def name_of(below: Path, directory: Path) -> str:
    """Return the name of the lower file for a header, for people who read it. QEMU would read a colon in it as a protocol."""
    found = os.path.relpath(below, directory)
    return found if ":" not in found else os.path.join(".", found)


def empty(size: int, below: str, below_format: str) -> SparseImage:
    """A layer of `size` bytes in which nothing is written. Raises `ValueError` when the format has no room for the size or the name."""
    name, kind = below.encode(), below_format.encode()
    if not 0 < len(name) <= _LONGEST_NAME:
        raise ValueError(f"the name of what is below has {len(name)} bytes; 1 to {_LONGEST_NAME} have room")
    if not 0 < size <= LARGEST or size % 512:
        raise ValueError(f"a layer cannot have {size} bytes")
    entries = -(-size // _PER_L1_ENTRY)
    clusters = _clusters(entries)
    extensions = struct.pack(">II", _BACKING_FORMAT, len(kind)) + kind.ljust(-(-len(kind) // 8) * 8, b"\0") + bytes(8)
    header = _HEADER.pack(
        *(b"QFI\xfb", 3, _HEADER.size + len(extensions), len(name), CLUSTER.bit_length() - 1, size, 0),
        *(entries, 3 * CLUSTER, CLUSTER, 1, 0, 0),
        *(0, _LAZY_REFCOUNTS, 0, _REFCOUNT_BITS_EXPONENT, _HEADER.size, 0),
    )
    table = struct.pack(">Q", 2 * CLUSTER)
    counts = struct.pack(">H", 1) * clusters
    head = (header + extensions + name).ljust(CLUSTER, b"\0") + table.ljust(CLUSTER, b"\0") + counts
    return SparseImage(head, clusters * CLUSTER)


def is_empty(path: Path) -> bool:
    """Return whether nothing was ever written to a layer: the first write adds clusters to its file."""
    with open(path, "rb") as file:
        head = file.read(_HEADER.size)
        magic, *_, entries = _START.unpack_from(head) if len(head) == _HEADER.size else (b"", 0)
        return magic == b"QFI\xfb" and os.fstat(file.fileno()).st_size == _clusters(entries) * CLUSTER


def _clusters(entries: int) -> int:
    """Return the clusters of an empty layer, from the length of its L1 table."""
    return 3 + -(-entries * 8 // CLUSTER)

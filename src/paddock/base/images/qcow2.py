"""The header of qcow2, versions 2 and 3 (docs/interop/qcow2.txt of QEMU describes it)."""

import sys
from array import array

from paddock.base.images.errors import ImageRefused
from paddock.base.images.facts import ImageBytes, ImageFacts, damaged, oversized, truncated, unsafe

_OFFSET = 0x00FFFFFFFFFFFE00
_COMPRESSED = 1 << 62
_DIRTY, _CORRUPT, _DATA_FILE, _COMPRESSION, _EXTENDED = 1, 2, 4, 8, 16
_BACKING_FORMAT, _DATA_FILE_NAME, _LUKS = 0xE2792ACA, 0x44415441, 0x0537BE77
_MOST_EXTENSIONS = 64
# QEMU's own bound on the L1 table, in bytes
_LARGEST_L1 = 32 << 20


def inspect(data: ImageBytes) -> ImageFacts:
    """Refuse what refers elsewhere; then look whether every cluster is inside the file."""
    version, backing, backing_size, cluster_bits, size, crypt = data.numbers(">IQIIQI", 4)
    if version not in (2, 3):
        raise ImageRefused("Unsupported", f"the image is qcow of version {version}; versions 2 and 3 can be read")
    if backing or backing_size:
        raise unsafe("has a backing file, which would be read from this host")
    if crypt:
        raise ImageRefused("Encrypted", "the image is encrypted", fix="decrypt it first; volumes hold plain disks")
    if not 9 <= cluster_bits <= 21:
        raise damaged("the cluster size")
    incompatible, header_length = 0, 72
    if version == 3:
        incompatible, _, _, _, header_length = data.numbers(">QQQII", 72)
        if not 104 <= header_length <= 1 << cluster_bits:
            raise damaged("its length")
    _judge(incompatible)
    _extensions(data, header_length, 1 << cluster_bits)
    if size > 1 << 62:
        raise oversized(f"the image claims a disk of {size} bytes")
    compressed = _clusters(data, cluster_bits, size, bool(incompatible & _EXTENDED))
    # One that was not closed properly has to be repaired before it is right; converting does that on the way.
    return ImageFacts("qcow2", size, layerable=not incompatible & _DIRTY and size % 512 == 0 and size > 0, compressed=compressed)


def _judge(incompatible: int) -> None:
    if incompatible & _DATA_FILE:
        raise unsafe("keeps its data in another file, which would be read from this host")
    if incompatible & _CORRUPT:
        raise damaged("it is marked as corrupt")
    if incompatible & ~(_DIRTY | _COMPRESSION | _EXTENDED):
        raise ImageRefused("Unsupported", "the image uses features of qcow2 that are not known here")


def _extensions(data: ImageBytes, offset: int, cluster: int) -> None:
    for _ in range(_MOST_EXTENSIONS):
        if offset + 8 > min(cluster, data.size):
            return
        kind, length = data.numbers(">II", offset)
        if not kind:
            return
        if kind == _BACKING_FORMAT:
            raise unsafe("has a backing file, which would be read from this host")
        if kind == _DATA_FILE_NAME:
            raise unsafe("names a data file, which would be read from this host")
        if kind == _LUKS:
            raise ImageRefused("Encrypted", "the image is encrypted (LUKS)", fix="decrypt it first; volumes hold plain disks")
        if length > cluster - offset - 8:
            raise damaged("an extension is longer than it can be")
        offset += 8 + length + -length % 8
    raise damaged("it has too many extensions")


def _clusters(data: ImageBytes, cluster_bits: int, size: int, extended: bool) -> bool:
    """Return whether clusters are compressed. All must be inside the file: QEMU would read zeros for those that are not."""
    l1_size, l1_offset, refcounts, refcount_clusters, snapshots = data.numbers(">IQQII", 36)
    cluster, entry_size = 1 << cluster_bits, 16 if extended else 8
    covered = cluster // entry_size * cluster
    needed = -(-size // covered)
    if l1_size < needed or needed * 8 > _LARGEST_L1:
        raise oversized(f"the image claims a disk of {size} bytes, which its tables do not hold")
    if snapshots > 65536 or refcount_clusters * cluster > 8 << 20:
        raise damaged("it has more snapshots or references than QEMU takes")
    if refcounts % cluster or l1_offset % cluster:
        raise damaged("a table is not where one can be")
    data.at(refcounts, refcount_clusters * cluster)
    if not needed:
        return False
    compressed, seen = False, set()
    for entry in _words(data.at(l1_offset, needed * 8)):
        table = entry & _OFFSET
        if not table:
            continue
        if table % cluster or table in seen:
            raise damaged("a table is used twice, or is not where one can be")
        seen.add(table)
        compressed |= _table(data, table, cluster_bits, extended)
    return compressed


def _table(data: ImageBytes, offset: int, cluster_bits: int, extended: bool) -> bool:
    cluster = 1 << cluster_bits
    entries = _words(data.at(offset, cluster))
    if extended:
        entries = entries[::2]
    compressed = False
    shift = 62 - (cluster_bits - 8)
    for entry in filter(None, entries):
        if entry & _COMPRESSED:
            compressed = True
            start = entry & ((1 << shift) - 1)
        else:
            start = entry & _OFFSET
        if start >= data.size:
            raise truncated()
    return compressed


def _words(raw: bytes) -> "array[int]":
    words = array("Q", raw)
    if sys.byteorder == "little":
        words.byteswap()
    return words

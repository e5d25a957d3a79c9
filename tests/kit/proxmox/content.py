"""The bytes of disks, kept sparsely, and their form as raw and qcow2 files."""

import struct
from collections.abc import Iterator, Mapping

BLOCK = 64 << 10
_MAGIC = b"QFI\xfb"
_COPIED = 1 << 63
_OFFSET = 0x00FF_FFFF_FFFF_FE00
_HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQII")


class UnreadableImage(ValueError):
    """An uploaded file that is no image of its format."""


class Content:
    """The data of a disk of some size; what was never written reads as zeros. Values of this class never change."""

    def __init__(self, size: int, blocks: Mapping[int, bytes] | None = None) -> None:
        self.size = size
        self.blocks = dict(blocks or {})

    @classmethod
    def of_raw(cls, data: bytes) -> "Content":
        """Return the disk that a raw file holds."""
        pieces = ((start // BLOCK, data[start : start + BLOCK].ljust(BLOCK, b"\0")) for start in range(0, len(data), BLOCK))
        return cls(len(data), {number: piece for number, piece in pieces if piece.strip(b"\0")})

    @classmethod
    def of_file(cls, data: bytes, format: str) -> "Content":
        """Return the disk that a file of the format holds; raise `UnreadableImage`."""
        if format == "raw":
            return cls.of_raw(data)
        if format == "qcow2":
            return _read_qcow2(data)
        if not data.startswith((b"KDMV", b"# Disk Descriptor")):
            raise UnreadableImage(f"Could not open image: Image is not in {format} format")
        return cls.of_raw(data)

    def resized(self, size: int) -> "Content":
        """Return the same data on a disk of another size."""
        return Content(size, self.blocks)

    def written(self, offset: int, data: bytes) -> "Content":
        """Return the content after a guest's write."""
        blocks = dict(self.blocks)
        for start in range(offset - offset % BLOCK, offset + len(data), BLOCK):
            block = bytearray(blocks.get(start // BLOCK, bytes(BLOCK)))
            low, high = max(start, offset), min(start + BLOCK, offset + len(data))
            block[low - start : high - start] = data[low - offset : high - offset]
            blocks[start // BLOCK] = bytes(block)
        return Content(self.size, blocks)

    def read(self, offset: int, length: int) -> bytes:
        """Return a part of the disk."""
        first, last = offset // BLOCK, (offset + length + BLOCK - 1) // BLOCK
        data = b"".join(self.blocks.get(number, bytes(BLOCK)) for number in range(first, last))
        return data[offset - first * BLOCK :][:length]

    def raw(self) -> Iterator[bytes]:
        """Yield the whole disk in pieces."""
        for number in range(-(-self.size // BLOCK)):
            yield self.blocks.get(number, bytes(BLOCK))[: self.size - number * BLOCK]

    @property
    def allocated(self) -> int:
        return len(self.blocks) * BLOCK

    def qcow2(self) -> bytes:
        """Return the disk as a qcow2 file: header, reference table, reference blocks, L1, L2 tables, data."""
        covered = BLOCK // 8 * BLOCK
        tables = max(1, -(-self.size // covered))
        used = sorted({number * BLOCK // covered for number in self.blocks})
        l1_clusters = -(-tables * 8 // BLOCK)
        total = 2 + l1_clusters + len(used) + len(self.blocks)
        counters = -(-total // (BLOCK // 2 - 1))
        l1_at = 1 + 1 + counters
        data_at = l1_at + l1_clusters + len(used)
        header = _HEADER.pack(_MAGIC, 3, 0, 0, 16, self.size, 0, tables, l1_at * BLOCK, BLOCK, 1, 0, 0, 0, 0, 0, 4, _HEADER.size)
        references = struct.pack(f">{counters}Q", *((2 + number) * BLOCK for number in range(counters)))
        counts = struct.pack(">H", 1) * (data_at + len(self.blocks))
        first, seconds = [0] * tables, {table: [0] * (BLOCK // 8) for table in used}
        for position, table in enumerate(used):
            first[table] = _COPIED | (l1_at + l1_clusters + position) * BLOCK
        for position, number in enumerate(sorted(self.blocks)):
            seconds[number * BLOCK // covered][number % (BLOCK // 8)] = _COPIED | (data_at + position) * BLOCK
        parts = [header.ljust(BLOCK, b"\0"), references.ljust(BLOCK, b"\0"), counts.ljust(counters * BLOCK, b"\0")]
        parts.append(struct.pack(f">{tables}Q", *first).ljust(l1_clusters * BLOCK, b"\0"))
        parts += [struct.pack(f">{BLOCK // 8}Q", *seconds[table]) for table in used]
        return b"".join([*parts, *(self.blocks[number] for number in sorted(self.blocks))])


def _read_qcow2(data: bytes) -> Content:
    if len(data) < 72 or data[:4] != _MAGIC:
        raise UnreadableImage("Could not open image: Image is not in qcow2 format")
    _, version, backing, _, bits, size, crypt, tables, l1 = struct.unpack_from(">4sIQIIQIIQ", data)
    if backing:
        raise UnreadableImage("backing file not allowed for untrusted image")
    if version not in (2, 3) or crypt or not 9 <= bits <= 21:
        raise UnreadableImage("Could not open image: unsupported qcow2 feature")
    cluster = 1 << bits
    disk = Content(size)
    for table, second in enumerate(_table(data, l1, tables)):
        for index, entry in enumerate(_table(data, second & _OFFSET, cluster // 8) if second else ()):
            place = (table * (cluster // 8) + index) * cluster
            if entry >> 62 & 1:
                raise UnreadableImage("the simulator reads no compressed clusters")
            if entry & _OFFSET and not entry & 1:
                disk = disk.written(place, data[entry & _OFFSET :][: min(cluster, max(0, size - place))])
    return disk


def _table(data: bytes, start: int, entries: int) -> tuple[int, ...]:
    if start + entries * 8 > len(data):
        raise UnreadableImage("Could not open image: a table lies behind its end")
    return struct.unpack_from(f">{entries}Q", data, start)

"""Reads ISO 9660 by the book, independently of what writes it: its plain names, Rock Ridge's, or Joliet's."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SECTOR = 2048


@dataclass(frozen=True)
class Record:
    """A directory record."""

    name: bytes
    at: int
    size: int
    is_directory: bool
    system_use: bytes


class Iso:
    """An image."""

    def __init__(self, image: bytes) -> None:
        self.image = image
        assert len(image) % SECTOR == 0
        assert image[16 * SECTOR : 16 * SECTOR + 7] == b"\x01CD001\x01"
        assert image[17 * SECTOR : 17 * SECTOR + 7] == b"\x02CD001\x01"
        assert image[18 * SECTOR : 18 * SECTOR + 7] == b"\xffCD001\x01"
        self.primary = image[16 * SECTOR : 17 * SECTOR]
        self.joliet = image[17 * SECTOR : 18 * SECTOR]
        assert struct.unpack("<I", self.primary[80:84])[0] * SECTOR == len(image)

    def label(self) -> str:
        return self.primary[40:72].decode().rstrip()

    def joliet_label(self) -> str:
        return self.joliet[40:72].decode("utf-16-be").rstrip()

    def plain(self) -> dict[str, bytes]:
        return dict(self._files(self.primary, lambda record: record.name.decode()))

    def rock_ridge(self) -> dict[str, bytes]:
        return dict(self._files(self.primary, self._real_name))

    def with_joliet(self) -> dict[str, bytes]:
        return dict(self._files(self.joliet, lambda record: record.name.decode("utf-16-be")))

    def modes(self) -> set[int]:
        return {
            struct.unpack("<I", use[4:8])[0] for record in self._all(self.primary) for sig, use in self._entries(record) if sig == b"PX"
        }

    def path_table(self, descriptor: bytes) -> list[tuple[bytes, int, int]]:
        (size,) = struct.unpack("<I", descriptor[132:136])
        little, big = struct.unpack("<I", descriptor[140:144])[0], struct.unpack(">I", descriptor[148:152])[0]
        found = [list(self._table(self.image[at * SECTOR : at * SECTOR + size], order)) for at, order in ((little, "<"), (big, ">"))]
        assert found[0] == found[1]
        return found[0]

    def directories(self, descriptor: bytes) -> set[int]:
        return {record.at for record in self._all(descriptor) if record.is_directory} | {self._root(descriptor).at}

    @staticmethod
    def _table(data: bytes, order: str) -> Iterator[tuple[bytes, int, int]]:
        at = 0
        while at < len(data):
            length, _, extent, parent = struct.unpack(f"{order}BBIH", data[at : at + 8])
            yield data[at + 8 : at + 8 + length], extent, parent
            at += 8 + length + length % 2

    @staticmethod
    def _root(descriptor: bytes) -> Record:
        (record,) = Iso._records(descriptor[156:190])
        return record

    @staticmethod
    def _records(data: bytes) -> Iterator[Record]:
        at = 0
        while at < len(data):
            length = data[at]
            if not length:
                at += SECTOR - at % SECTOR
                continue
            assert length % 2 == 0 and at % SECTOR + length <= SECTOR
            record = data[at : at + length]
            extent, extent_big = struct.unpack("<I", record[2:6])[0], struct.unpack(">I", record[6:10])[0]
            size, size_big = struct.unpack("<I", record[10:14])[0], struct.unpack(">I", record[14:18])[0]
            assert (extent, size) == (extent_big, size_big)
            named = 33 + record[32]
            yield Record(record[33:named], extent, size, bool(record[25] & 2), record[named + (1 - record[32] % 2) :])
            at += length

    def _children(self, directory: Record) -> list[Record]:
        found = list(self._records(self.image[directory.at * SECTOR : directory.at * SECTOR + directory.size]))
        assert [record.name for record in found[:2]] == [b"\0", b"\1"]
        names = [record.name for record in found[2:]]
        assert names == sorted(names) and len(set(names)) == len(names)
        return found[2:]

    def _all(self, descriptor: bytes) -> Iterator[Record]:
        stack = [self._root(descriptor)]
        while stack:
            for record in self._children(stack.pop()):
                yield record
                if record.is_directory:
                    stack.append(record)

    def _files(self, descriptor: bytes, name: Callable[[Record], str]) -> Iterator[tuple[str, bytes]]:
        stack = [("", self._root(descriptor))]
        while stack:
            path, directory = stack.pop()
            for record in self._children(directory):
                if record.is_directory:
                    stack.append((f"{path}{name(record)}/", record))
                else:
                    yield f"{path}{name(record)}", self.image[record.at * SECTOR : record.at * SECTOR + record.size]

    def _entries(self, record: Record) -> Iterator[tuple[bytes, bytes]]:
        use = record.system_use
        while len(use) >= 4:
            length = use[2]
            yield use[:2], use[:length]
            if use[:2] == b"CE":
                block, offset, size = (struct.unpack("<I", use[start : start + 4])[0] for start in (4, 12, 20))
                assert offset + size <= SECTOR
                use = self.image[block * SECTOR + offset : block * SECTOR + offset + size]
            else:
                use = use[length:]

    def _real_name(self, record: Record) -> str:
        return b"".join(use[5:] for sig, use in self._entries(record) if sig == b"NM").decode()

    def signatures_of_root(self) -> list[bytes]:
        root = self._root(self.primary)
        here = next(self._records(self.image[root.at * SECTOR : root.at * SECTOR + root.size]))
        return [sig for sig, _ in self._entries(here)]

"""Reads tar archives from a stream, and trusts nothing in them: no header makes it hold more than a few kilobytes.

Only what is needed to find a file is understood: ustar, GNU long names, pax `path`, `linkpath` and `size`. Nothing is ever written under
a name that an archive gives.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from paddock.engine.images.errors import ImageRefused

_BLOCK = 512
_LONGEST_NAME = 8192
# Linux opens no longer path.
_LONGEST_PATH = 4096
_LONGEST_PAX = 1 << 20
_MOST_ENTRIES = 2_000_000

Kind = Literal["file", "directory", "symlink", "hardlink", "device", "fifo", "sparse file", "other"]
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"3": "device",
    b"4": "device",
    b"5": "directory",
    b"6": "fifo",
    b"S": "sparse file",
}


@dataclass(frozen=True, slots=True)
class TarEntry:
    """The fields of one header."""

    name: str
    kind: Kind
    size: int
    # where its data begins in the archive
    offset: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """The name's parts below the archive's root; a name that leaves it is refused."""
        if self.name.startswith("/"):
            raise ImageRefused("Unsafe", f"the archive holds the absolute name {self.shown}")
        parts = tuple(part for part in self.name.split("/") if part not in ("", "."))
        if ".." in parts:
            raise ImageRefused("Unsafe", f"the archive holds a name that leaves it: {self.shown}")
        return parts

    @property
    def shown(self) -> str:
        """The name as messages show it."""
        return "".join(c if c.isprintable() else "?" for c in self.name)[:200]


class Tar:
    """Iterate for the entries; `read` gives the data of the entry that came last."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._more = read
        self._held = b""
        self._left = 0
        self._padding = 0
        self._count = 0
        self._position = 0

    def __iter__(self) -> Iterator[TarEntry]:
        name = ""
        size: int | None = None
        while (header := self._header()) is not None:
            kind = header[156:157]
            length = _number(header[124:136])
            if kind in (b"L", b"K", b"x", b"g"):
                data = self._small(length, _LONGEST_PAX if kind in (b"x", b"g") else _LONGEST_NAME)
                if kind == b"L":
                    name = data.split(b"\0")[0].decode("utf-8", "surrogateescape")
                elif kind == b"x":
                    name, size = _pax(data, name)
                continue
            name = name or _name(header)
            if len(name) > _LONGEST_PATH:
                raise ImageRefused("Unsafe", f"the archive holds a name of more than {_LONGEST_PATH} characters")
            known = _KINDS.get(kind, "other")
            entry = TarEntry(name, known, (length if size is None else size) if known == "file" else 0, self._position)
            # Links and directories carry no data, whatever their size says; what is unknown carries what it says.
            self._expect(entry.size if known == "file" else length if known in ("other", "sparse file") else 0)
            name, size = "", None
            yield entry

    def read(self, limit: int) -> bytes:
        """Data of the current entry; empty at its end."""
        data = self._take(min(limit, self._left))
        self._left -= len(data)
        return data

    def _header(self) -> bytes | None:
        self._skip()
        self._count += 1
        if self._count > _MOST_ENTRIES:
            raise ImageRefused("Unsafe", "the archive holds too many entries")
        header = self._exactly(_BLOCK, end=True)
        if not header or not header.strip(b"\0"):
            return None
        if _number(header[148:156]) != sum(header[:148]) + 8 * 32 + sum(header[156:]):
            raise ImageRefused("NotAnImage", "the archive is damaged: the checksum of a header is wrong")
        return header

    def _expect(self, size: int) -> None:
        self._left = size
        self._padding = -size % _BLOCK

    def _skip(self) -> None:
        left = self._left + self._padding
        self._left = self._padding = 0
        while left:
            data = self._take(min(left, 1 << 20))
            left -= len(data)

    def _small(self, size: int, most: int) -> bytes:
        if size > most:
            raise ImageRefused("Unsafe", "the archive holds a name or attribute that is too long")
        return self._exactly(size + -size % _BLOCK)[:size]

    def _exactly(self, size: int, *, end: bool = False) -> bytes:
        parts: list[bytes] = []
        while size:
            data = self._take(size, end=end and not parts)
            if not data:
                break
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _take(self, limit: int, *, end: bool = False) -> bytes:
        """Return the next bytes, at most `limit`. The end of the archive is an error unless `end` allows it."""
        if not limit:
            return b""
        if not self._held:
            self._held = self._more(max(limit, 65536) if limit < 65536 else limit)
            if not self._held:
                if end:
                    return b""
                raise ImageRefused("Truncated", "the archive ends in its middle")
        data = self._held[:limit] if len(self._held) > limit else self._held
        self._held = self._held[limit:] if len(self._held) > limit else b""
        self._position += len(data)
        return data


def _number(field: bytes) -> int:
    """Octal, or the base-256 form for large numbers."""
    if field[0] & 0x80:
        if field[0] == 0xFF:
            raise ImageRefused("Unsafe", "the archive holds a negative number")
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.strip(b" \0")
    try:
        value = int(text or b"0", 8)
    except ValueError as error:
        raise ImageRefused("NotAnImage", "the archive is damaged: a header holds no number") from error
    if value < 0:
        raise ImageRefused("Unsafe", "the archive holds a negative number")
    return value


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "surrogateescape")


def _pax(data: bytes, name: str) -> tuple[str, int | None]:
    size: int | None = None
    while data:
        length, found, _ = data.partition(b" ")
        if not found or not length.isdigit() or len(length) > 8 or not len(length) + 1 < int(length) <= len(data):
            raise ImageRefused("NotAnImage", "the archive is damaged: an attribute cannot be read")
        key, _, value = data[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            name = value.decode("utf-8", "surrogateescape")
        elif key == b"size" and value.isdigit() and len(value) < 20:
            size = int(value)
        elif key.startswith(b"GNU.sparse"):
            raise ImageRefused("Unsupported", "the archive holds a sparse file", fix="pack it without --sparse")
        data = data[int(length) :]
    return name, size

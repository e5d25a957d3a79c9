"""Reads tar archives from a stream, and trusts nothing in them: no header makes it hold more than a few megabytes.

Only what is needed to find a file, and to unpack it, is understood: ustar, GNU long names, pax `path`, `linkpath`, `size` and `mtime`,
and, for those who ask for it, sparse files. Nothing is written here.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from paddock.base.images.errors import ImageRefused

_BLOCK = 512
_LONGEST_NAME = 8192
# Linux opens no longer path.
_LONGEST_PATH = 4096
_LONGEST_PAX = 1 << 20
_MOST_ENTRIES = 2_000_000
# Parts of a sparse file that hold data.
_MOST_PIECES = 100_000
_LATEST = 1 << 40

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


Pieces = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TarEntry:
    """The fields of one header."""

    name: str
    kind: Kind
    size: int
    # where its data begins in the archive
    offset: int = 0
    link: str = ""
    mode: int = 0
    modified: float = 0
    # of a sparse file, which has `size` bytes: where the data lies that the archive holds, (offset, size)
    pieces: Pieces | None = None

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

    def __init__(self, read: Callable[[int], bytes], *, sparse: bool = False) -> None:
        self._more = read
        self._sparse = sparse
        self._held = b""
        self._left = 0
        self._padding = 0
        self._count = 0
        self.position = 0

    def __iter__(self) -> Iterator[TarEntry]:
        pax: dict[bytes, bytes] = {}
        while (header := self._header()) is not None:
            kind = header[156:157]
            if kind in (b"L", b"K", b"x", b"g"):
                data = self._small(_number(header[124:136]), _LONGEST_PAX if kind in (b"x", b"g") else _LONGEST_NAME)
                if kind == b"x":
                    pax |= _pax(data, sparse=self._sparse)
                elif kind != b"g":
                    pax[b"path" if kind == b"L" else b"linkpath"] = data.split(b"\0")[0]
                continue
            yield self._entry(header, pax)
            pax = {}

    def _entry(self, header: bytes, pax: Mapping[bytes, bytes]) -> TarEntry:
        name = _text(pax.get(b"GNU.sparse.name") or pax.get(b"path") or _name(header))
        if len(name) > _LONGEST_PATH:
            raise ImageRefused("Unsafe", f"the archive holds a name of more than {_LONGEST_PATH} characters")
        kind = _KINDS.get(header[156:157], "other")
        if header[156:157] == b"\0" and name.endswith("/"):
            kind = "directory"
        stored = _number(header[124:136])
        pieces, size = None, 0
        if kind == "file":
            stored = size = _decimal(pax.get(b"size"), stored)
        # Links and directories carry no data, whatever their size says; what is unknown carries what it says.
        if self._sparse and kind == "sparse file":
            pieces, size = self._header_map(header), _number(header[483:495])
        self._expect(stored if kind in ("file", "other", "sparse file") else 0)
        if kind == "file" and any(key.startswith(b"GNU.sparse.") for key in pax):
            kind, pieces = "sparse file", self._stored_map() if b"GNU.sparse.major" in pax else _pairs(pax.get(b"GNU.sparse.map", b""))
            size = _decimal(pax.get(b"GNU.sparse.realsize") or pax.get(b"GNU.sparse.size"), 0)
        if pieces is not None:
            _check_pieces(pieces, size, self._left)
        link = _text(pax.get(b"linkpath") or header[157:257].split(b"\0")[0])
        return TarEntry(name, kind, size, self.position, link, _attribute(header[100:108]) & 0o7777, _modified(header, pax), pieces)

    def _header_map(self, header: bytes) -> Pieces:
        """The map of GNU's old form: in the header, and in blocks behind it."""
        found: list[tuple[int, int]] = []
        fields, more = header[386:482], header[482]
        while True:
            pairs = (fields[at : at + 24] for at in range(0, len(fields), 24))
            found += [(_number(pair[:12]), _number(pair[12:])) for pair in pairs if pair.strip(b"\0")]
            if not more:
                return tuple(found)
            if len(found) > _MOST_PIECES:
                raise _too_sparse()
            block = self._exactly(_BLOCK)
            fields, more = block[:504], block[504]

    def _stored_map(self) -> Pieces:
        """The map of the pax form 1.0: decimal lines before the data, filled up to a block."""
        lines: list[int] = []
        rest = b""
        while not lines or len(lines) <= 2 * lines[0]:
            if self._left < _BLOCK:
                raise _unreadable()
            self._left -= _BLOCK
            *whole, rest = (rest + self._exactly(_BLOCK)).split(b"\n")
            if len(rest) > _BLOCK:
                raise _unreadable()
            lines += [_decimal(line, -1) for line in whole]
            if lines and lines[0] > _MOST_PIECES:
                raise _too_sparse()
            if -1 in lines[:1]:
                raise _unreadable()
        numbers = iter(lines[1 : 1 + 2 * lines[0]])
        return tuple(zip(numbers, numbers, strict=True))

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
        self.position += len(data)
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


def _attribute(field: bytes) -> int:
    """A number that nothing depends on: 0 if it cannot be read."""
    try:
        return _number(field)
    except ImageRefused:
        return 0


def _decimal(text: bytes | None, otherwise: int) -> int:
    return int(text) if text is not None and re.fullmatch(rb"[0-9]{1,19}", text) else otherwise


def _modified(header: bytes, pax: Mapping[bytes, bytes]) -> float:
    text = pax.get(b"mtime", b"")
    return float(text) if re.fullmatch(rb"[0-9]{1,12}(\.[0-9]{0,18})?", text) else min(_attribute(header[136:148]), _LATEST)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _name(header: bytes) -> bytes:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _pax(data: bytes, *, sparse: bool) -> dict[bytes, bytes]:
    """The attributes that are understood. What others say is passed over."""
    pax: dict[bytes, bytes] = {}
    pairs: list[bytes] = []
    at = 0
    while at < len(data):
        # A record begins with its length, which has at most eight digits.
        length, found, _ = data[at : at + 9].partition(b" ")
        end = at + int(length) if found and length.isdigit() else 0
        if not at + len(length) + 1 < end <= len(data):
            raise ImageRefused("NotAnImage", "the archive is damaged: an attribute cannot be read")
        key, _, value = data[at + len(length) + 1 : end - 1].partition(b"=")
        if key.startswith(b"GNU.sparse") and not sparse:
            raise ImageRefused("Unsupported", "the archive holds a sparse file", fix="pack it without --sparse")
        if key in (b"GNU.sparse.offset", b"GNU.sparse.numbytes"):
            pairs.append(value)
        elif key in _UNDERSTOOD:
            pax[key] = value
        at = end
    return {b"GNU.sparse.map": b",".join(pairs), **pax} if pairs else pax


_SPARSE = ("major", "name", "realsize", "size", "map")
_UNDERSTOOD = {b"path", b"linkpath", b"size", b"mtime", *(b"GNU.sparse." + key.encode() for key in _SPARSE)}


def _pairs(text: bytes) -> Pieces:
    """The map of the pax forms 0.0 and 0.1: an offset, a size, and so on."""
    numbers = [_decimal(number, -1) for number in text.split(b",")] if text else []
    if len(numbers) % 2:
        raise _unreadable()
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _check_pieces(pieces: Pieces, size: int, stored: int) -> None:
    """Refuse a map whose pieces do not follow each other, end behind the file, or hold other than what is stored."""
    end = 0
    for offset, length in pieces:
        if offset < end or length < 0:
            raise _unreadable()
        end = offset + length
    if end > size or sum(length for _, length in pieces) != stored:
        raise _unreadable()


def _unreadable() -> ImageRefused:
    return ImageRefused("NotAnImage", "the archive is damaged: the map of a sparse file cannot be read")


def _too_sparse() -> ImageRefused:
    return ImageRefused("Unsafe", f"the archive holds a sparse file of more than {_MOST_PIECES} pieces", fix="pack it without --sparse")

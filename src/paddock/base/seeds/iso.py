"""Writes ISO 9660 with Rock Ridge (for Linux) and Joliet (for Windows): a label, directories and files, and no time of day.

Plain ISO names are shortened; both extensions have the real ones, Joliet up to 64 characters. Linux reads any depth of directories, so
deep ones stay where they are.
"""

import struct
from collections.abc import Mapping
from typing import Literal

import msgspec

from paddock.base.seeds.errors import SeedError

SECTOR = 2048
_LABEL_LENGTH = 32
_JOLIET_LENGTH = 64
_NAME_BYTES = 255
# A directory record is at most 255 bytes, and even.
_RECORD = 254
# At the end, as other writers of images have them: who looks what a disk is reads ahead, and some take an error there for an answer.
_PADDING = 150
# 2020-01-01, as good as any day: a real one would make equal seeds differ.
_DAY = bytes((120, 1, 1, 0, 0, 0, 0))
_NO_TIME = b"0" * 16 + b"\0"
_FILE_MODE, _DIRECTORY_MODE = 0o100444, 0o040555
_ROCK_RIDGE = (
    b"RRIP_1991A",
    b"THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS",
    (
        b"PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  "
        b"SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION."
    ),
)
_Tree = Literal["iso", "joliet"]


class _Node(msgspec.Struct, eq=False):
    """A file or a directory, under its three names. `at` and `size` are found when everything is placed."""

    name: str
    data: bytes | None = None
    children: dict[str, "_Node"] = msgspec.field(default_factory=dict)
    names: dict[str, bytes] = msgspec.field(default_factory=dict)
    # where it is: a file has one place, a directory one in each tree
    at: dict[str, int] = msgspec.field(default_factory=dict)
    size: dict[str, int] = msgspec.field(default_factory=dict)

    def sorted(self, tree: _Tree) -> list["_Node"]:
        return sorted(self.children.values(), key=lambda node: node.names[tree])


def build(label: str, files: Mapping[str, bytes]) -> bytes:
    """The image. `files` has paths with "/" between their parts."""
    _check_label(label)
    root = _Node("")
    for path in sorted(files):
        _add(root, path, files[path])
    _name(root)
    return _Writer(label, root).image()


def _check_label(label: str) -> None:
    if not label.isascii() or not label.isprintable() or not 1 <= len(label) <= _LABEL_LENGTH:
        raise SeedError(
            f"cannot give a disk the label {label[:100]!r}",
            why=f"a label has 1 to {_LABEL_LENGTH} ASCII characters",
            fix="choose a shorter or plainer one",
        )


def _add(root: _Node, path: str, data: bytes) -> None:
    parts = path.split("/")
    for part in parts:
        if part in ("", ".", "..") or "\0" in part or len(part.encode(errors="replace")) > _NAME_BYTES:
            raise SeedError(f"cannot put {path[:300]!r} on a disk", why="that is no path of plain names of up to 255 bytes")
    node = root
    for part in parts[:-1]:
        node = node.children.setdefault(part, _Node(part))
        if node.data is not None:
            raise SeedError(f"cannot put {path[:300]!r} on a disk", why=f"{part!r} is a file there already")
    if parts[-1] in node.children:
        raise SeedError(f"cannot put {path[:300]!r} on a disk", why="that is a directory there already")
    node.children[parts[-1]] = _Node(parts[-1], data)


def _name(root: _Node) -> None:
    """Gives each node its plain and its Joliet name, unique among its neighbours."""
    plain: set[bytes] = set()
    joliet: set[bytes] = set()
    for name, node in root.children.items():
        node.names["iso"] = _plain(name, node.data is None, plain)
        node.names["joliet"] = _joliet(name, joliet)
        _name(node)


def _plain(name: str, is_directory: bool, taken: set[bytes]) -> bytes:
    """Eight characters, a dot and three; a number where that says two things the same."""
    stem, _, suffix = name.rpartition(".") if "." in name[1:] else (name, "", "")
    if is_directory:
        stem, suffix = name, ""
    stem, suffix = _capital(stem)[:8] or "_", _capital(suffix)[:3]
    for number in range(len(taken) + 2):
        tried = stem if not number else f"{stem[: 8 - len(str(number))]}{number}"
        found = tried.encode() if is_directory else f"{tried}.{suffix};1".encode()
        if found not in taken:
            break
    taken.add(found)
    return found


def _capital(text: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text.upper())


def _joliet(name: str, taken: set[bytes]) -> bytes:
    clean = "".join("_" if letter in "*/:;?\\" or ord(letter) < 32 else letter for letter in name)
    stem, dot, suffix = clean.rpartition(".") if "." in clean[1:] and len(clean.rpartition(".")[2]) <= 8 else (clean, "", "")
    for number in range(len(taken) + 2):
        mark = f"~{number}" if number else ""
        found = _cut(stem, _JOLIET_LENGTH - len(mark) - len(_utf16(dot + suffix)) // 2) + _utf16(mark + dot + suffix)
        if found not in taken:
            break
    taken.add(found)
    return found


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", errors="replace")


def _cut(text: str, units: int) -> bytes:
    """As many UTF-16 units of a text, without half a character at the end."""
    whole = _utf16(text)[: units * 2]
    return whole[:-2] if whole[-2:-1] and 0xD8 <= whole[-2] <= 0xDB else whole


def _both(number: int) -> bytes:
    return struct.pack("<I", number) + struct.pack(">I", number)


def _both_short(number: int) -> bytes:
    return struct.pack("<H", number) + struct.pack(">H", number)


def _sectors(size: int) -> int:
    return -(-size // SECTOR)


class _Writer:
    """Places everything, then writes it. Directories are written twice: their sizes are known before what they point to is placed."""

    def __init__(self, label: str, root: _Node) -> None:
        self._label = label
        self._root = root
        self._directories: dict[_Tree, list[tuple[_Node, _Node]]] = {"iso": self._walk("iso"), "joliet": self._walk("joliet")}
        nodes = [child for node, _ in self._directories["iso"] for child in node.sorted("iso")]
        self._files = [(node, node.data) for node in nodes if node.data is not None]
        # what does not fit into a directory record; at its own sectors
        self._overflow = bytearray()
        self._overflow_at = 0

    def image(self) -> bytes:
        tables = {tree: self._path_table(tree, "<") for tree in self._directories}
        at = 19
        places: dict[_Tree, tuple[int, int]] = {}
        for tree, table in tables.items():
            places[tree] = (at, at + _sectors(len(table)))
            at += 2 * _sectors(len(table))
        at = self._place(at) + _PADDING
        parts = [bytes(16 * SECTOR)]
        parts += [self._descriptor(tree, len(tables[tree]), places[tree], at) for tree in tables]
        parts.append(b"\xffCD001\x01" + bytes(SECTOR - 7))
        for tree in tables:
            parts += [self._path_table(tree, "<"), self._path_table(tree, ">")]
        for tree in tables:
            parts += [self._directory(node, parent, tree) for node, parent in self._directories[tree]]
        parts.append(bytes(self._overflow))
        parts += [data for _, data in self._files]
        parts.append(bytes(_PADDING * SECTOR))
        return b"".join(part + bytes(-len(part) % SECTOR) for part in parts)

    def _walk(self, tree: _Tree) -> list[tuple[_Node, _Node]]:
        """Every directory with its parent, level by level, as path tables want them."""
        found = level = [(self._root, self._root)]
        while level:
            level = [(child, node) for node, _ in level for child in node.sorted(tree) if child.data is None]
            found = found + level
        return found

    def _place(self, at: int) -> int:
        for tree, directories in self._directories.items():
            for node, parent in directories:
                node.size[tree] = node.size.get(tree, 0) or SECTOR
                node.size[tree] = len(self._directory(node, parent, tree))
                node.at[tree] = at
                at += _sectors(node.size[tree])
        self._overflow_at = at
        at += _sectors(len(self._overflow))
        self._overflow.clear()
        for node, data in self._files:
            node.at = {"iso": at, "joliet": at}
            node.size = {"iso": len(data), "joliet": len(data)}
            at += _sectors(len(data))
        return at

    def _directory(self, node: _Node, parent: _Node, tree: _Tree) -> bytes:
        records = [self._record(node, b"\0", tree, is_root=node is self._root), self._record(parent, b"\1", tree)]
        records += [self._record(child, child.names[tree], tree) for child in node.sorted(tree)]
        whole = bytearray()
        for record in records:
            # A record lies within one sector.
            if len(whole) % SECTOR + len(record) > SECTOR:
                whole += bytes(-len(whole) % SECTOR)
            whole += record
        return bytes(whole + bytes(-len(whole) % SECTOR))

    def _record(self, node: _Node, name: bytes, tree: _Tree, *, is_root: bool = False) -> bytes:
        flags = 2 if node.data is None else 0
        body = _both(node.at.get(tree, 0)) + _both(node.size.get(tree, 0)) + _DAY + bytes((flags, 0, 0)) + _both_short(1)
        body += bytes((len(name),)) + name + bytes(1 - len(name) % 2)
        if tree == "iso":
            body += self._rock_ridge(node, _RECORD - 2 - len(body), is_root=is_root, is_named=name not in (b"\0", b"\1"))
        body += bytes(len(body) % 2)
        return bytes((len(body) + 2, 0)) + body

    def _rock_ridge(self, node: _Node, room: int, *, is_root: bool, is_named: bool) -> bytes:
        """Mode, times and the real name; what does not fit goes where a pointer says."""
        is_directory = node.data is None
        links = 2 + sum(child.data is None for child in node.children.values()) if is_directory else 1
        mode = _DIRECTORY_MODE if is_directory else _FILE_MODE
        said = b"SP\x07\x01\xbe\xef\x00" if is_root else b""
        said += b"PX\x24\x01" + _both(mode) + _both(links) + _both(0) + _both(0) + b"TF\x1a\x01\x0e" + _DAY * 3
        more = self._names(node.name) if is_named else (self._extension() if is_root else b"")
        if len(said) + len(more) <= room and not is_root:
            return said + more
        if not more:
            return said
        # A continuation lies within one sector.
        if len(self._overflow) % SECTOR + len(more) > SECTOR:
            self._overflow += bytes(-len(self._overflow) % SECTOR)
        sector, offset = divmod(len(self._overflow), SECTOR)
        self._overflow += more
        return said + b"CE\x1c\x01" + _both(self._overflow_at + sector) + _both(offset) + _both(len(more))

    @staticmethod
    def _names(name: str) -> bytes:
        text = name.encode(errors="replace")
        pieces = [text[start : start + 250] for start in range(0, len(text), 250)]
        # The flag says that the next entry goes on.
        return b"".join(
            b"NM" + bytes((5 + len(piece), 1, int(number < len(pieces)))) + piece for number, piece in enumerate(pieces, start=1)
        )

    @staticmethod
    def _extension() -> bytes:
        lengths = bytes(len(text) for text in _ROCK_RIDGE)
        return b"ER" + bytes((8 + sum(lengths), 1)) + lengths + b"\x01" + b"".join(_ROCK_RIDGE)

    def _path_table(self, tree: _Tree, order: str) -> bytes:
        numbers = {id(node): number for number, (node, _) in enumerate(self._directories[tree], start=1)}
        entries = []
        for node, parent in self._directories[tree]:
            name = node.names[tree] if node is not self._root else b"\0"
            head = struct.pack(f"{order}BBIH", len(name), 0, node.at.get(tree, 0), numbers[id(parent)])
            entries.append(head + name + bytes(len(name) % 2))
        return b"".join(entries)

    def _descriptor(self, tree: _Tree, table: int, places: tuple[int, int], sectors: int) -> bytes:
        is_joliet = tree == "joliet"
        text = _joliet_text if is_joliet else _plain_text
        head = (b"\x02" if is_joliet else b"\x01") + b"CD001\x01\x00" + text("", 32) + text(self._label, 32)
        body = bytes(8) + _both(sectors) + (b"%/E" if is_joliet else b"").ljust(32, b"\0")
        body += _both_short(1) + _both_short(1) + _both_short(SECTOR) + _both(table)
        body += struct.pack("<II", places[0], 0) + struct.pack(">II", places[1], 0)
        # The record of the root in a descriptor has no room for Rock Ridge.
        body += b"\x22" + self._record(self._root, b"\0", tree)[1:34]
        body += b"".join(text("", size) for size in (128, 128, 128, 128, 37, 37, 37)) + _NO_TIME * 4 + b"\x01"
        return head + body


def _plain_text(value: str, size: int) -> bytes:
    return value.encode().ljust(size, b" ")


def _joliet_text(value: str, size: int) -> bytes:
    found = _utf16(value)[: size // 2 * 2]
    return found + b"\0 " * ((size - len(found)) // 2) + bytes(size % 2)

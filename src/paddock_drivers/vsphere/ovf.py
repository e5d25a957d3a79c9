"""Appliances: the descriptor of an OVF, its manifest, and the archive that an OVA is. Pure but for reading one open file.

All of it comes from anybody. A descriptor has no document type, so no entity can stand for a file or for much text; names are those of
files beside it, never paths; an archive is read where it lies, and nothing is written under a name that it gives.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

import msgspec

from paddock_drivers.kit import refusals

# The longest descriptor and manifest, and the most files of an appliance.
MOST_TEXT, MOST_FILES = 4 << 20, 64
_MOST_ELEMENTS, _DEEPEST = 50_000, 64
_BLOCK = 512
_NAME = re.compile(r"[^/\\\x00-\x1f\x7f:]{1,200}\Z")
_SUM = re.compile(r"(SHA1|SHA256|SHA512)[ \t]*\(([^()\r\n]{1,200})\)[ \t]*=[ \t]*([0-9a-fA-F]{40,128})[ \t]*\Z")
_DIGITS = {"sha1": 40, "sha256": 64, "sha512": 128}
_SEPARATOR = "|"
_UNITS = re.compile(r"byte(?:[ \t]*\*[ \t]*2[ \t]*\^[ \t]*([0-9]{1,2}))?\Z", re.IGNORECASE)
_DESCRIPTOR, _MANIFEST = ".ovf", ".mf"


class OvfFile(msgspec.Struct, frozen=True):
    """A file that a descriptor names."""

    id: str
    name: str
    # 0: the descriptor does not say it
    size: int = 0


class OvfDisk(msgspec.Struct, frozen=True):
    """A disk that a descriptor names; without a file it is empty."""

    id: str
    file: str
    # bytes
    capacity: int
    format: str = ""


class OvfDescriptor(msgspec.Struct, frozen=True):
    """The facts of a descriptor that the driver has to know; vSphere reads the rest."""

    text: str
    files: tuple[OvfFile, ...]
    disks: tuple[OvfDisk, ...]
    # the networks that its cards are on
    networks: tuple[str, ...] = ()


def _malformed(why: str) -> Exception:
    return refusals.invalid("the appliance cannot be read", why=why)


def file_name(text: str) -> str:
    """Return the name of a file beside a descriptor; raises InvalidSpec for a path, a URL and an empty text."""
    if _NAME.match(text) is None or text in (".", ".."):
        raise _malformed("it names a file that is not beside its descriptor")
    return text


# --- the descriptor ---------------------------------------------------------------------------------------------------------------


def read(data: bytes) -> OvfDescriptor:
    """Return what a descriptor says; raises InvalidSpec."""
    if len(data) > MOST_TEXT:
        raise _malformed("its descriptor is too long")
    reader = _DescriptorReader()
    reader.read(data)
    if not reader.machines:
        raise _malformed("its descriptor has no machine")
    if reader.machines > 1 or reader.collections:
        what = "the appliance has several machines"
        raise refusals.not_supported(what, why="a template is one machine", fix="export the machine on its own")
    known = {each.id for each in reader.files}
    if len(known) < len(reader.files) or len({each.name for each in reader.files}) < len(reader.files):
        raise _malformed("it names a file twice")
    if any(each.file and each.file not in known for each in reader.disks):
        raise _malformed("a disk of it has a file that it does not name")
    return OvfDescriptor(data.decode("utf-8"), tuple(reader.files), tuple(reader.disks), tuple(reader.networks))


class _DescriptorReader:
    def __init__(self) -> None:
        self.files: list[OvfFile] = []
        self.disks: list[OvfDisk] = []
        self.networks: list[str] = []
        self.machines = self.collections = 0
        self._depth = self._count = 0

    def read(self, data: bytes) -> None:
        parser = expat.ParserCreate(encoding="UTF-8", namespace_separator=_SEPARATOR)
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        try:
            data.decode("utf-8")
            parser.Parse(data, True)
        except (expat.ExpatError, UnicodeDecodeError):
            raise _malformed("its descriptor is no XML in UTF-8") from None

    def _refuse(self, *_: object) -> int:
        raise _malformed("its descriptor has a document type or entities, which no descriptor needs")

    def _end(self, _: str) -> None:
        self._depth -= 1

    def _begin(self, element: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > _DEEPEST or self._count > _MOST_ELEMENTS:
            raise _malformed("its descriptor has too many elements")
        name = element.rpartition(_SEPARATOR)[2]
        given = {key.rpartition(_SEPARATOR)[2]: value for key, value in attributes.items()}
        match name:
            case "File":
                self._file(given)
            case "Disk":
                self._disk(given)
            case "Network":
                self.networks.append(given.get("name", ""))
            case "VirtualSystem":
                self.machines += 1
            case "VirtualSystemCollection":
                self.collections += 1

    def _file(self, given: Mapping[str, str]) -> None:
        if len(self.files) >= MOST_FILES:
            raise _malformed("it has too many files")
        if given.get("compression") not in (None, "", "identity") or given.get("chunkSize"):
            what = "the files of the appliance are compressed or in pieces"
            raise refusals.not_supported(what, fix="export it again without compression and without chunks")
        size = given.get("size", "0")
        self.files.append(OvfFile(given.get("id", ""), file_name(given.get("href", "")), int(size) if size.isdecimal() else 0))

    def _disk(self, given: Mapping[str, str]) -> None:
        if "diskId" not in given:
            return
        capacity, unit = given.get("capacity", ""), _UNITS.match(given.get("capacityAllocationUnits", "byte").strip())
        if not capacity.isdecimal() or len(capacity) > 20 or unit is None:
            # A capacity can be the name of a property, which vSphere knows.
            capacity, unit = "0", None
        shift = int(unit[1] or 0) if unit is not None else 0
        self.disks.append(
            OvfDisk(
                given["diskId"],
                given.get("fileRef", ""),
                int(capacity) << shift,
                given.get("format", ""),
            )
        )


# --- the manifest -----------------------------------------------------------------------------------------------------------------


def manifest(data: bytes) -> dict[str, tuple[str, str]]:
    """Return the digest of each file in a manifest: its kind and its digits; raises InvalidSpec."""
    found: dict[str, tuple[str, str]] = {}
    for line in data[:MOST_TEXT].decode("utf-8", "replace").splitlines():
        if not line.strip():
            continue
        parts = _SUM.match(line.strip())
        if parts is None or len(parts[3]) != _DIGITS[parts[1].lower()]:
            raise _malformed("its manifest has a line that is no checksum")
        name = file_name(parts[2])
        if name in found:
            raise _malformed("its manifest has two checksums of a file")
        found[name] = (parts[1].lower(), parts[3].lower())
    return found


# --- the archive ------------------------------------------------------------------------------------------------------------------


class OvaMember(msgspec.Struct, frozen=True):
    """A file of an archive, where it lies."""

    name: str
    offset: int
    size: int


class OvaArchive(msgspec.Struct, frozen=True):
    """The files of an archive by name; the descriptor is one of them."""

    path: Path
    members: dict[str, OvaMember]
    descriptor: str

    def text(self, name: str) -> bytes:
        found = self.members[name]
        if found.size > MOST_TEXT:
            raise _malformed(f"its file {name} is too long")
        with self.path.open("rb") as file:
            file.seek(found.offset)
            return file.read(found.size)

    @property
    def manifest(self) -> str:
        """The name of the manifest; empty when there is none."""
        name = self.descriptor.removesuffix(_DESCRIPTOR) + _MANIFEST
        return name if name in self.members else ""


def archive(path: Path) -> OvaArchive:
    """Return the files of an archive. Links, devices, folders and names that are paths are refused."""
    members: dict[str, OvaMember] = {}
    for each in _members(path):
        if each.name in members:
            raise _malformed("its archive has two files of one name")
        members[each.name] = each
        if len(members) > MOST_FILES:
            raise _malformed("it has too many files")
    named = [name for name in members if name.lower().endswith(_DESCRIPTOR)]
    if len(named) != 1:
        raise _malformed(f"its archive has {len(named)} descriptors")
    return OvaArchive(path, members, named[0])


def _members(path: Path) -> Iterator[OvaMember]:
    size, at = path.stat().st_size, 0
    with path.open("rb") as file:
        while at + _BLOCK <= size:
            file.seek(at)
            header = file.read(_BLOCK)
            if not header.strip(b"\0"):
                return
            length = _number(header[124:136])
            if _number(header[148:156]) != sum(header[:148]) + 8 * 32 + sum(header[156:]):
                raise _malformed("its archive is damaged")
            if header[156:157] not in (b"0", b"\0"):
                raise _malformed("its archive has something that is no file")
            if at + _BLOCK + length > size:
                raise _malformed("its archive ends too early")
            prefix = header[345:500].split(b"\0")[0] if header[257:262] == b"ustar" else b""
            if prefix:
                raise _malformed("its archive has a file in a folder")
            name = header[:100].split(b"\0")[0].decode("utf-8", "replace")
            yield OvaMember(file_name(name), at + _BLOCK, length)
            at += _BLOCK + length + -length % _BLOCK


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or the binary form for large ones."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if text and not text.isdigit():
        raise _malformed("its archive is damaged")
    try:
        return int(text or b"0", 8)
    except ValueError:
        raise _malformed("its archive is damaged") from None

"""The driver's own element in a domain's metadata: the owner, the request, and what libvirt does not keep.

    <paddock:machine xmlns:paddock="..." owner="UID" namespace="NS" name="NAME" request="DIGEST" state="incomplete">
      <paddock:disk name="data" path="/var/lib/libvirt/images/web-data.qcow2" bytes="1073741824" own="yes"/>
      <paddock:limitation>...</paddock:limitation>
      <paddock:note name="clone-of" value="..."/>
    </paddock:machine>

A domain without it is somebody else's. Pure.
"""

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, register_namespace

import msgspec

from paddock_drivers.libvirt import xmltree

PREFIX, URI = "paddock", "https://paddock.dev/libvirt/v1"
# libvirt's virDomainMetadataType, whose names need the library.
METADATA_ELEMENT = 2
INCOMPLETE = "incomplete"
ROOT_DISK = "root"
SEED_DISK = "cloud-init"
# The note of which user data a machine was made with.
DOCUMENTS = "user-data"
_SPACE = uuid.UUID("5b0c4a51-6f6e-5d0c-9f34-0d6a2f3b7c11")

register_namespace(PREFIX, URI)


class MarkedDisk(msgspec.Struct, frozen=True):
    """A disk that the driver gave to a machine. `own`: its volume goes with the machine when that is deleted."""

    name: str
    path: str
    bytes: int = 0
    own: bool = True


class MachineMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's notes at a machine."""

    owner: str = ""
    namespace: str = ""
    name: str = ""
    request: str = ""
    state: str = ""
    disks: tuple[MarkedDisk, ...] = ()
    limitations: tuple[str, ...] = ()
    # short facts of the parts of the driver, by name
    notes: Mapping[str, str] = {}

    @property
    def complete(self) -> bool:
        """Return whether the creation of the machine has ended."""
        return self.state != INCOMPLETE

    def disk(self, name: str) -> MarkedDisk | None:
        """Return the disk of a name."""
        return next((each for each in self.disks if each.name == name), None)

    def with_disk(self, disk: MarkedDisk) -> "MachineMarks":
        """Return the marks with a disk, in the place of one of its name."""
        rest = tuple(each for each in self.disks if each.name != disk.name)
        return msgspec.structs.replace(self, disks=(*rest, disk))

    def with_note(self, name: str, value: str) -> "MachineMarks":
        """Return the marks with a note."""
        return msgspec.structs.replace(self, notes={**self.notes, name: value})


def machine_uuid(owner: str) -> str:
    """Return the UUID of the machine of an owner: the same for ever, so that no owner gets two."""
    return str(uuid.uuid5(_SPACE, owner))


def documents_digest(machine: str, user_data: bytes) -> str:
    """Return what tells user data from another one; it differs between machines."""
    return hashlib.sha256(machine.encode() + b"\0" + user_data).hexdigest()[:16]


def of_domain(root: Element) -> MachineMarks | None:
    """Return the marks in the XML of a domain, None for a foreign one."""
    found = root.find(f"metadata/{{{URI}}}machine")
    return _read(found) if found is not None else None


def parse(text: str) -> MachineMarks:
    """Return the marks of the element's text, as `virDomain.metadata` gives it."""
    return _read(xmltree.parse(text))


def element(marks: MachineMarks) -> Element:
    """Return the element to put into the metadata of a definition."""
    root = Element(f"{{{URI}}}machine")
    for name in ("owner", "namespace", "name", "request", "state"):
        if value := getattr(marks, name):
            root.set(name, value)
    for disk in marks.disks:
        own = "yes" if disk.own else "no"
        root.append(Element(f"{{{URI}}}disk", {"name": disk.name, "path": disk.path, "bytes": str(disk.bytes), "own": own}))
    for sentence in marks.limitations:
        xmltree.child(root, f"{{{URI}}}limitation", sentence)
    for name, value in sorted(marks.notes.items()):
        root.append(Element(f"{{{URI}}}note", {"name": name, "value": value}))
    return root


def keep(domain: Any, marks: MachineMarks, flags: int) -> None:
    """Store the marks at a virDomain, for its present and its next run as `flags` say. Runs in a thread."""
    root = element(marks)
    # libvirt adds the prefix and the namespace itself.
    plain = Element("machine", dict(root.attrib))
    for each in root:
        made = Element(each.tag.rpartition("}")[2], dict(each.attrib))
        made.text = each.text
        plain.append(made)
    domain.setMetadata(METADATA_ELEMENT, xmltree.text(plain), PREFIX, URI, flags)


def _read(element: Element) -> MachineMarks:
    return MachineMarks(
        owner=element.get("owner", ""),
        namespace=element.get("namespace", ""),
        name=element.get("name", ""),
        request=element.get("request", ""),
        state=element.get("state", ""),
        disks=tuple(_disk(each) for each in _below(element, "disk")),
        limitations=tuple(each.text or "" for each in _below(element, "limitation")),
        notes={each.get("name", ""): each.get("value", "") for each in _below(element, "note")},
    )


def _below(element: Element, name: str) -> list[Element]:
    # Without a namespace of their own, libvirt's children of the element stay without one.
    return [each for each in element if each.tag.rpartition("}")[2] == name]


def _disk(element: Element) -> MarkedDisk:
    size = element.get("bytes", "0")
    return MarkedDisk(element.get("name", ""), element.get("path", ""), int(size) if size.isdigit() else 0, element.get("own") == "yes")

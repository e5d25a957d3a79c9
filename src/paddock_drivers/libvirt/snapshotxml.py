"""The XML of snapshots, and the way in which a machine's snapshot is taken. All but `existing` is pure."""

import enum
import hashlib
import re
from typing import Any
from xml.etree.ElementTree import Element

import libvirt
import msgspec

from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import domainview, failures, volumexml, xmltree
from paddock_drivers.libvirt.domainview import DiskView, DomainView

_LONGEST = 80
_INTERNAL = "internal"


class SnapshotWay(enum.Enum):
    """The way in which a snapshot is taken."""

    # by libvirt: inside the disks' files, with the memory of a machine that runs
    WHOLE = "whole"
    # by QEMU while the guest goes on, and made known to libvirt: inside the disks' files
    LIVE_DISKS = "live disks"


class SnapshotDisk(msgspec.Struct, frozen=True, kw_only=True):
    """A disk in a snapshot: the file that holds it, and whether the snapshot is inside of that."""

    target: str
    path: str
    format: str
    internal: bool


class SnapshotView(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot, and the machine as it was."""

    name: str
    memory: bool
    disks: tuple[SnapshotDisk, ...]
    domain: DomainView | None

    def disk(self, target: str) -> SnapshotDisk | None:
        """Return the disk of a target."""
        return next((each for each in self.disks if each.target == target), None)


def parse(text: str) -> SnapshotView:
    """Return the snapshot of an XML text."""
    root = xmltree.parse(text)
    found = root.find("inactiveDomain")
    if found is None:
        found = root.find("domain")
    domain = domainview.of_element(found) if found is not None else None
    kinds = {each.get("name", ""): each.get("snapshot", "") for each in root.iterfind("disks/disk")}
    return SnapshotView(
        name=xmltree.content(root, "name"),
        memory=xmltree.attribute(root, "memory", "snapshot") in (_INTERNAL, "external"),
        disks=tuple(
            _disk(each, kinds) for each in (domain.disks if domain is not None else ()) if kinds.get(each.target) not in (None, "no")
        ),
        domain=domain,
    )


def _disk(disk: DiskView, kinds: dict[str, str]) -> SnapshotDisk:
    return SnapshotDisk(
        target=disk.target, path=disk.path, format=disk.format or volumexml.RAW, internal=kinds.get(disk.target) == _INTERNAL
    )


def name_of(hint: str) -> str:
    """Return the name of the snapshot of a hint: the same for the same hint, and another for another."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", hint).strip("-.")[:_LONGEST]
    if plain and plain == hint:
        return plain
    return f"{plain[: _LONGEST - 9] or 'snapshot'}-{hashlib.sha256(hint.encode()).hexdigest()[:8]}"


def writable(view: DomainView) -> tuple[DiskView, ...]:
    """Return the disks that a snapshot has to hold."""
    return tuple(each for each in view.disks if each.device in ("disk", "lun") and not each.readonly)


def way(view: DomainView, *, live: bool, memory: bool) -> SnapshotWay:
    """Return how a machine's snapshot is taken; raises NotSupported for what libvirt cannot bring back."""
    raw = next((each for each in writable(view) if each.format != volumexml.QCOW2), None)
    if raw is not None:
        why = f"disk {raw.target} is {raw.format or 'raw'}, and libvirt cannot go back to a snapshot in files of their own"
        fix = "convert the disk to qcow2 (clone the machine, or qemu-img convert at the host)"
        raise refusals.not_supported(f"machine {view.name} has no snapshots", why=why, fix=fix)
    if live and not memory:
        return SnapshotWay.LIVE_DISKS
    if live and _has_flash(view):
        why = "libvirt keeps no memory of machines whose firmware is in flash memory (UEFI)"
        raise refusals.not_supported(f"the memory of machine {view.name} cannot be kept", why=why, fix="set includeMemory to false")
    return SnapshotWay.WHOLE


def order(name: str, description: str, view: DomainView) -> str:
    """Return the XML by which libvirt takes a snapshot."""
    root = _head(name, description)
    root.append(_disks(view))
    return xmltree.text(root)


def definition(name: str, description: str, seconds: int, view: DomainView) -> str:
    """Return the XML that makes a snapshot of the disks known to libvirt, as one of a machine that was off."""
    root = _head(name, description)
    xmltree.child(root, "creationTime", str(seconds))
    xmltree.child(root, "state", "shutoff")
    xmltree.child(root, "memory", snapshot="no")
    root.append(_disks(view))
    root.append(view.root)
    return xmltree.text(root)


def existing(domain: Any, name: str) -> Any:
    """Return the virDomainSnapshot of a name; raises NotFound. In a thread."""
    found = lookup(domain, name)
    if found is None:
        raise refusals.not_found(f"the machine has no snapshot {name[:64]}")
    return found


def lookup(domain: Any, name: str) -> Any | None:
    """Return the virDomainSnapshot of a name, None if libvirt positively has none. In a thread."""
    try:
        return domain.snapshotLookupByName(name, 0) if name and "\0" not in name else None
    except libvirt.libvirtError as error:
        if failures.code_of(error) == failures.NO_SNAPSHOT:
            return None
        raise


def _head(name: str, description: str) -> Element:
    root = Element("domainsnapshot")
    xmltree.child(root, "name", name)
    if description:
        xmltree.child(root, "description", "".join(each for each in description if each.isprintable() or each == "\n"))
    return root


def _disks(view: DomainView) -> Element:
    found = Element("disks")
    held = writable(view)
    for each in view.disks:
        xmltree.child(found, "disk", name=each.target, snapshot=_INTERNAL if each in held else "no")
    return found


def _has_flash(view: DomainView) -> bool:
    root = view.root
    return xmltree.attribute(root, "os", "firmware") == "efi" or xmltree.attribute(root, "os/loader", "type") == "pflash"

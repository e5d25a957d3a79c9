"""The XML of pools and volumes. Pure."""

from collections.abc import Mapping
from xml.etree.ElementTree import Element

import msgspec

from paddock_drivers.libvirt import xmltree
from paddock_drivers.libvirt.domainview import size
from paddock_drivers.libvirt.storageport import StoredDisk

QCOW2, RAW = "qcow2", "raw"
# Pools that keep volumes as files, which can be qcow2; in the others a volume is a device, and raw.
_FILES = ("dir", "fs", "netfs", "gluster", "vstorage")


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str = ""
    path: str = ""
    capacity: int = 0
    available: int = 0

    @property
    def files(self) -> bool:
        """Return whether volumes are files."""
        return self.kind in _FILES

    @property
    def format(self) -> str:
        """The format of the driver's volumes."""
        return QCOW2 if self.files else RAW

    @property
    def disk_kind(self) -> str:
        """The type of a disk that is a volume of the pool: file or block."""
        return "file" if self.files else "block"


class VolumeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A volume to make. `thick` takes all of its space at once."""

    name: str
    capacity: int
    format: str = QCOW2
    thick: bool = False
    backing: str = ""
    backing_format: str = ""


def parse_pool(text: str) -> PoolView:
    """Return the pool of an XML text."""
    root = xmltree.parse(text)
    return PoolView(
        name=xmltree.content(root, "name"),
        kind=root.get("type", ""),
        path=xmltree.content(root, "target/path").rstrip("/"),
        capacity=size(root.find("capacity")),
        available=size(root.find("available")),
    )


def parse_volume(text: str, pool: str = "") -> StoredDisk:
    """Return the volume of an XML text. The format is what libvirt found in the content, or what the pool has."""
    root = xmltree.parse(text)
    kind = xmltree.attribute(root, "target/format", "type")
    return StoredDisk(
        path=xmltree.content(root, "target/path"),
        pool=pool,
        volume=xmltree.content(root, "name"),
        format=RAW if kind in ("", "unknown") or root.get("type") == "block" else kind,
        capacity=size(root.find("capacity")),
        allocation=size(root.find("allocation")),
        backing=xmltree.content(root, "backingStore/path"),
    )


def backing_format(text: str) -> str:
    """Return the format that a volume gives its backing file; empty without one."""
    return xmltree.attribute(xmltree.parse(text), "backingStore/format", "type")


def volume(order: VolumeOrder) -> str:
    """Return the XML of a volume to make."""
    root = Element("volume")
    xmltree.child(root, "name", order.name)
    xmltree.child(root, "capacity", str(order.capacity), unit="bytes")
    xmltree.child(root, "allocation", str(order.capacity if order.thick else 0), unit="bytes")
    target = xmltree.child(root, "target")
    xmltree.child(target, "format", type=order.format)
    if order.format == QCOW2:
        # Version 2 cannot be made larger once it has a snapshot.
        xmltree.child(target, "compat", "1.1")
    if order.backing:
        below = xmltree.child(root, "backingStore")
        xmltree.child(below, "path", order.backing)
        xmltree.child(below, "format", type=order.backing_format)
    return xmltree.text(root)


def pod_of(pool: str) -> str:
    """Return the storage pod of a pool: `ssd` of `ssd-1`, `ssd-2` and so on; empty for a pool whose name does not end in a number."""
    stem, dash, number = pool.rpartition("-")
    return stem if stem and dash and number.isascii() and number.isdigit() else ""


def thick(type: str) -> bool | None:
    """Return whether disks of a type take their space at once; None for an unknown type."""
    return _TYPES.get(type.lower())


_TYPES: Mapping[str, bool] = {"": False, "thin": False, "qcow2": False, "thick": True, "eagerzeroedthick": True, "eager-zeroed": True}

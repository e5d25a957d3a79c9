"""A domain as its XML describes it. Pure."""

from xml.etree.ElementTree import Element

import msgspec

from paddock_drivers.libvirt import marks, xmltree
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk

_UNITS = {
    "b": 1,
    "bytes": 1,
    "kb": 1000,
    "k": 1 << 10,
    "kib": 1 << 10,
    "mb": 10**6,
    "m": 1 << 20,
    "mib": 1 << 20,
    "gb": 10**9,
    "g": 1 << 30,
}
_UNITS |= {"gib": 1 << 30, "tb": 10**12, "t": 1 << 40, "tib": 1 << 40}


class DiskView(msgspec.Struct, frozen=True, kw_only=True):
    """A disk of a domain. `path` is empty for one that a pool or the network provides."""

    target: str
    bus: str = ""
    # disk, cdrom, floppy, lun
    device: str = "disk"
    path: str = ""
    pool: str = ""
    volume: str = ""
    format: str = ""
    serial: str = ""
    readonly: bool = False
    order: int = 0


class InterfaceView(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface of a domain."""

    mac: str
    # network, bridge, user, direct
    kind: str = ""
    source: str = ""
    model: str = ""
    device: str = ""
    alias: str = ""
    element: Element


class DomainView(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uuid: str
    # kvm or qemu
    type: str = ""
    title: str = ""
    cpus: int = 0
    most_cpus: int = 0
    memory_mib: int = 0
    most_memory_mib: int = 0
    machine: str = ""
    architecture: str = ""
    disks: tuple[DiskView, ...] = ()
    interfaces: tuple[InterfaceView, ...] = ()
    # of a domain that runs: KIND://ADDRESS:PORT
    graphics: tuple[str, ...] = ()
    agent: bool = False
    # None: somebody else's
    marks: MachineMarks | None = None
    root: Element

    def disk(self, name: str) -> DiskView | None:
        """Return a disk by the driver's name of it, by its target, path or serial; the first disk for the empty text."""
        hard = [each for each in self.disks if each.device in ("disk", "lun")]
        if not name:
            root = self.disk(marks.ROOT_DISK) if self.marks is not None and self.marks.disk(marks.ROOT_DISK) is not None else None
            return root or next((each for each in hard if not each.readonly), None)
        marked = self.marks.disk(name) if self.marks is not None else None
        if marked is not None:
            return next((each for each in hard if each.path == marked.path), None)
        return next((each for each in hard if name in (each.target, each.path, each.serial)), None)

    def mark_of(self, disk: DiskView) -> MarkedDisk | None:
        """Return what the driver noted of a disk."""
        known = self.marks.disks if self.marks is not None else ()
        return next((each for each in known if each.path and each.path == disk.path), None)


def parse(text: str) -> DomainView:
    """Return the domain of an XML text; raises `ProviderError` for what is none."""
    return of_element(xmltree.parse(text))


def of_element(root: Element) -> DomainView:
    """Return the domain of an element."""
    vcpu = root.find("vcpu")
    most = xmltree.number(vcpu, 1)
    current = vcpu.get("current", "") if vcpu is not None else ""
    memory = size(root.find("memory")) >> 20
    return DomainView(
        name=xmltree.content(root, "name"),
        uuid=xmltree.content(root, "uuid"),
        type=root.get("type", ""),
        title=xmltree.content(root, "title"),
        cpus=int(current) if current.isdigit() else most,
        most_cpus=most,
        memory_mib=(size(root.find("currentMemory")) >> 20) or memory,
        most_memory_mib=memory,
        machine=xmltree.attribute(root, "os/type", "machine"),
        architecture=xmltree.attribute(root, "os/type", "arch"),
        disks=tuple(_disk(each) for each in root.iterfind("devices/disk")),
        interfaces=tuple(_interface(each) for each in root.iterfind("devices/interface")),
        graphics=tuple(filter(None, (_graphics(each) for each in root.iterfind("devices/graphics")))),
        agent=any(each.get("name") == "org.qemu.guest_agent.0" for each in root.iterfind("devices/channel/target")),
        marks=marks.of_domain(root),
        root=root,
    )


def size(element: Element | None) -> int:
    """Return the bytes of an element with a unit, which is KiB by default."""
    if element is None:
        return 0
    return xmltree.number(element) * _UNITS.get(element.get("unit", "KiB").lower(), 1 << 10)


def _disk(element: Element) -> DiskView:
    source = element.find("source")
    given = source.attrib if source is not None else {}
    order = xmltree.attribute(element, "boot", "order")
    return DiskView(
        target=xmltree.attribute(element, "target", "dev"),
        bus=xmltree.attribute(element, "target", "bus"),
        device=element.get("device", "disk"),
        path=given.get("file") or given.get("dev") or "",
        pool=given.get("pool", ""),
        volume=given.get("volume", ""),
        format=xmltree.attribute(element, "driver", "type"),
        serial=xmltree.content(element, "serial"),
        readonly=element.find("readonly") is not None,
        order=int(order) if order.isdigit() else 0,
    )


def _interface(element: Element) -> InterfaceView:
    source = element.find("source")
    given = source.attrib if source is not None else {}
    return InterfaceView(
        mac=xmltree.attribute(element, "mac", "address").lower(),
        kind=element.get("type", ""),
        source=given.get("network") or given.get("bridge") or given.get("dev") or "",
        model=xmltree.attribute(element, "model", "type"),
        device=xmltree.attribute(element, "target", "dev"),
        alias=xmltree.attribute(element, "alias", "name"),
        element=element,
    )


def _graphics(element: Element) -> str:
    """The address of a display that has one by now; unix sockets have none that a user could reach."""
    kind, port = element.get("type", ""), element.get("port", "")
    address = element.get("listen") or xmltree.attribute(element, "listen", "address")
    if kind not in ("vnc", "spice") or not port.isdigit() or not address:
        return ""
    return f"{kind}://[{address}]:{port}" if ":" in address else f"{kind}://{address}:{port}"

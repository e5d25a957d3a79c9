"""Changes in the definition of a domain that is off. Pure: what is not changed stays as it is."""

import copy
from collections.abc import Iterable
from xml.etree.ElementTree import Element

from paddock.contract.payloads import ClassPayload
from paddock_drivers.libvirt import definition, marks, xmltree
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from paddock_drivers.libvirt.domainview import DomainView
from paddock_drivers.libvirt.marks import MachineMarks
from paddock_drivers.libvirt.storageport import DomainDisk

_METADATA = "metadata"


def resized(view: DomainView, hardware: ClassPayload, abilities: HypervisorAbilities) -> Element:
    """Return a definition with the processors and the memory of a class."""
    root = copy.deepcopy(view.root)
    fresh = Element("domain")
    definition.sizes(fresh, hardware, abilities)
    cpu = root.find("cpu")
    numa = cpu.find("numa") if cpu is not None else None
    if cpu is not None and numa is not None and len(numa) > 1:
        # Somebody's own layout of a foreign machine: its total is changed, and the layout goes with the old one.
        cpu.remove(numa)
        numa = None
    for tag in ("maxMemory", "memory", "currentMemory", "vcpu", "vcpus"):
        old = root.find(tag)
        if old is not None:
            root.remove(old)
    for place, each in enumerate(fresh):
        root.insert(_place(root) + place, each)
    devices = root.find("devices")
    for plugged in root.findall("devices/memory"):
        if devices is not None:
            devices.remove(plugged)
    _layout(root, cpu, numa, hardware, definition.most_cpus(hardware, abilities))
    return root


def with_disk(root: Element, disk: DomainDisk) -> Element:
    """Return a definition with one more disk."""
    devices = root.find("devices")
    if devices is not None:
        used = [xmltree.attribute(each, "target", "dev") for each in devices.iterfind("disk")]
        devices.append(definition.disk_element(disk, definition.free_target(used)))
    return root


def without_disks(root: Element, paths: Iterable[str]) -> Element:
    """Return a definition without the disks of these paths."""
    gone, devices = set(paths), root.find("devices")
    for each in list(root.iterfind("devices/disk")):
        source = each.find("source")
        if devices is not None and source is not None and (source.get("file") or source.get("dev")) in gone:
            devices.remove(each)
    return root


def marked(root: Element, known: MachineMarks) -> Element:
    """Return a definition with other marks; metadata of others stays."""
    metadata = root.find(_METADATA)
    if metadata is None:
        metadata = Element(_METADATA)
        root.insert(_place(root), metadata)
    for each in list(metadata):
        if each.tag == f"{{{marks.URI}}}machine":
            metadata.remove(each)
    metadata.append(marks.element(known))
    return root


def _place(root: Element) -> int:
    """The place after a domain's name and UUID."""
    return next((index + 1 for index, each in enumerate(root) if each.tag == "uuid"), 0)


def _layout(root: Element, cpu: Element | None, numa: Element | None, hardware: ClassPayload, most: int) -> None:
    """Fit the node that memory is plugged into, and the layout of processors, to new sizes."""
    if cpu is None:
        return
    if numa is not None:
        cpu.remove(numa)
    if root.find("maxMemory") is not None:
        cpu.append(definition.node(hardware, most))
    topology = cpu.find("topology")
    if topology is not None:
        threads = int(topology.get("threads", "1") or "1")
        threads = threads if most % threads == 0 else 1
        topology.attrib |= {"sockets": "1", "dies": "1", "cores": str(most // threads), "threads": str(threads)}
        topology.attrib.pop("clusters", None)

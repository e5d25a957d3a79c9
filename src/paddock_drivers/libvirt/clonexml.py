"""The definition of a clone: that of its source with a name, disks, addresses and documents of its own. Pure."""

import copy
from collections.abc import Mapping
from xml.etree.ElementTree import Element

import msgspec

from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import cloudinit, refusals
from paddock_drivers.kit.cloudinit import GuestDocuments
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.libvirt import definition, editing, marks, xmltree
from paddock_drivers.libvirt.domainview import DiskView, DomainView
from paddock_drivers.libvirt.marks import MachineMarks
from paddock_drivers.libvirt.storageport import DomainDisk

CLONED_FROM, CLONED_FOR = "cloned-from", "cloned-for"
# What libvirt makes anew for a domain of another UUID.
_OWN = ("uuid", "title", "genid")


def snapshot_of(uuid: str) -> str:
    """Return the name of the snapshot by which the driver copies a machine that runs."""
    return f"paddock-clone-{uuid}"


def disks_of(view: DomainView) -> tuple[DiskView, ...]:
    """Return the disks that a clone copies: neither media nor documents for the first boot."""
    seed = view.marks.disk(marks.SEED_DISK) if view.marks is not None else None
    hard = (each for each in view.disks if each.device == "disk" and not each.readonly)
    return tuple(each for each in hard if seed is None or each.path != seed.path)


def name_of(view: DomainView, disk: DiskView) -> str:
    """Return the name of a clone's disk: that of its source's, so that the manager knows it."""
    marked = view.mark_of(disk)
    if marked is not None:
        return marked.name
    return marks.ROOT_DISK if disk == view.disk("") else disk.target


def define(view: DomainView, name: str, uuid: str, known: MachineMarks) -> Element:
    """Return the definition of a clone that still has its source's disks."""
    root = copy.deepcopy(view.root)
    for tag in _OWN:
        for each in root.findall(tag):
            root.remove(each)
    found = root.find("name")
    assert found is not None
    found.text = name
    made = Element("uuid")
    made.text = uuid
    root.insert(1, made)
    system = root.find("os")
    for each in root.findall("os/nvram"):
        # The file is the source's own; without a name, libvirt gives the clone one.
        each.text = None
        each.attrib.pop("type", None)
        for source in each.findall("source"):
            each.remove(source)
        if not each.attrib and system is not None:
            system.remove(each)
    _without_files(root)
    for index, each in enumerate(root.iterfind("devices/interface")):
        _readdress(each, definition.mac_of(uuid, index, ""))
    return editing.marked(root, known)


def with_disks(root: Element, disks: Mapping[str, DomainDisk], seed: DomainDisk | None, old_seed: str) -> Element:
    """Return a definition with a clone's disks in the places of its source's, by their targets."""
    devices = root.find("devices")
    assert devices is not None
    for each in list(devices.iterfind("disk")):
        made = disks.get(xmltree.attribute(each, "target", "dev"))
        source = each.find("source")
        if made is not None:
            _replace(each, made)
        elif source is not None and old_seed and source.get("file", source.get("dev")) == old_seed:
            devices.remove(each)
    if seed is not None:
        used = {xmltree.attribute(each, "target", "dev") for each in devices.iterfind("disk")}
        target = definition.SEED_TARGET if definition.SEED_TARGET not in used else definition.free_target(sorted(used))
        devices.append(definition.disk_element(seed, target, readonly=True))
    return root


def documents(root: Element, name: str, uuid: str, customization: CloneCustomization, *, seeded: bool) -> bytes:
    """Return the documents for a clone's first boot, and give its interfaces their addresses; empty when it needs none."""
    cards = []
    interfaces = list(root.iterfind("devices/interface"))
    names = [xmltree.attribute(each, "alias", "name").removeprefix("ua-") for each in interfaces]
    strange = next((each.name for each in customization.networks if each.name not in names), None)
    if strange is not None:
        raise refusals.invalid(f'customization.networks: the machine has no interface "{strange[:64]}"')
    wanted = {each.name: each for each in customization.networks}
    for each, label in zip(interfaces, names, strict=True):
        nic = wanted.get(label, NetworkPayload(name=label))
        if nic.mac_address:
            _readdress(each, nic.mac_address.lower().replace("-", ":"))
        cards.append(msgspec.structs.replace(nic, mac_address=xmltree.attribute(each, "mac", "address")))
    if not (seeded or customization.hostname or customization.user_data or customization.networks):
        return b""
    return cloudinit.image(
        GuestDocuments(instance=uuid, hostname=customization.hostname or name, networks=tuple(cards), user_data=customization.user_data)
    )


def _replace(element: Element, disk: DomainDisk) -> None:
    element.set("type", disk.kind)
    driver = element.find("driver")
    if driver is not None:
        driver.set("type", disk.format)
    for tag in ("source", "backingStore", "wwn"):
        for each in element.findall(tag):
            element.remove(each)
    xmltree.child(element, "source", **{"dev" if disk.kind == "block" else "file": disk.path})


def _readdress(interface: Element, mac: str) -> None:
    found = interface.find("mac")
    if found is None:
        found = xmltree.child(interface, "mac")
    found.set("address", mac)
    for each in interface.findall("target"):
        # The name of a device at the host is one machine's.
        interface.remove(each)


def _without_files(root: Element) -> None:
    """Take away names of sockets and logs, which two machines cannot share; libvirt chooses others."""
    for path in ("devices/channel", "devices/serial", "devices/console"):
        for each in root.iterfind(path):
            for tag in ("source", "log"):
                for part in each.findall(tag):
                    each.remove(part)
    for each in root.iterfind("devices/graphics"):
        if each.get("autoport") == "yes":
            each.attrib.pop("port", None)

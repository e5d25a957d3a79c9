"""The disks and network interfaces of a machine, as its VirtualMachine and its instance list them."""

from collections.abc import Iterator

import msgspec

from paddock.base.jsondata import Data
from paddock.base.lines import one_line
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.machines import facts
from paddock.fleet.machines.finding import MachineView

# Volumes that are no disks of their own, by member.
_SEEDS = ("cloudInitNoCloud", "cloudInitConfigDrive", "sysprep", "secret", "configMap", "serviceAccount", "downwardMetrics")


class DiskPart(msgspec.Struct, frozen=True, kw_only=True):
    """A disk. `claim` is the PersistentVolumeClaim that has its data, empty where the data goes with the instance."""

    name: str
    source: str
    claim: str = ""
    size: str = ""
    bus: str = ""

    def __str__(self) -> str:
        more = ", ".join(filter(None, (self.size, self.source, self.bus)))
        return one_line(f"{self.name}: {more}")


class NicPart(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    network: str
    mac: str = ""
    ips: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = ", ".join(filter(None, (self.network, self.mac, " ".join(self.ips))))
        return one_line(f"{self.name}: {more}")


def spec_of(machine: MachineView) -> Data:
    """Return the spec of the guest: of the instance that runs, else of the next one."""
    found = at(machine.vmi, "spec") if machine.vmi is not None else at(machine.vm, "spec", "template", "spec")
    return found if isinstance(found, dict) else {}


def volumes(machine: MachineView) -> list[Data]:
    """Return the volumes in the order of the machine."""
    return list(entries(spec_of(machine), "volumes"))


def shared(machine: MachineView) -> set[str]:
    """Return the names of the volumes that the guest mounts as directories."""
    return facts.shared(spec_of(machine))


def directories(machine: MachineView) -> Iterator[tuple[str, str, bool]]:
    """Yield the name, the claim and whether it is only read of each claim that the guest mounts as a directory."""
    there = shared(machine)
    for volume in volumes(machine):
        if texts(volume, "name") in there and (claim := texts(volume, "persistentVolumeClaim", "claimName")):
            yield texts(volume, "name"), claim, bool(at(volume, "persistentVolumeClaim", "readOnly"))


def claims(machine: MachineView) -> list[str]:
    """Return the claims behind all volumes, those of directories among them."""
    named = (texts(each, "persistentVolumeClaim", "claimName") or texts(each, "dataVolume", "name") for each in volumes(machine))
    return [each for each in dict.fromkeys(named) if each]


def disks(machine: MachineView) -> Iterator[DiskPart]:
    """Yield the disks in the order of the machine."""
    spec = spec_of(machine)
    buses = {texts(each, "name"): each for each in entries(spec, "domain", "devices", "disks")}
    sizes = {texts(each, "metadata", "name"): _size(each) for each in entries(machine.vm, "spec", "dataVolumeTemplates")}
    seen = {
        texts(each, "name"): texts(each, "persistentVolumeClaimInfo", "capacity", "storage")
        for each in entries(machine.vmi, "status", "volumeStatus")
    }
    mounted = shared(machine)
    for volume in volumes(machine):
        name = texts(volume, "name")
        if name in mounted:
            continue
        data_volume = texts(volume, "dataVolume", "name")
        claim = texts(volume, "persistentVolumeClaim", "claimName") or data_volume
        source = _source(volume, claim)
        if source:
            size = seen.get(name) or sizes.get(data_volume, "") or texts(volume, "emptyDisk", "capacity")
            yield DiskPart(name=name, source=source, claim=claim, size=_shown(size), bus=_bus(buses.get(name)))


def _shown(size: str) -> str:
    """Return a size as people write it: a claim of the server is as large as its file system makes it."""
    count = facts.whole(size)
    return facts.size(count) if count else ""


def _size(template: Data) -> str:
    for member in ("storage", "pvc"):
        if found := at(template, "spec", member, "resources", "requests", "storage"):
            return str(found)
    return ""


def _source(volume: Data, claim: str) -> str:
    if claim:
        return f"PersistentVolumeClaim {claim}"
    if image := texts(volume, "containerDisk", "image"):
        return f"image {image}"
    if path := texts(volume, "hostDisk", "path"):
        return f"file {path}"
    kinds = [each for each in volume if each != "name" and each not in _SEEDS]
    return kinds[0] if kinds else ""


def _bus(disk: Data | None) -> str:
    for member in ("disk", "cdrom", "lun"):
        if disk is not None and member in disk:
            return " ".join(filter(None, ("" if member == "disk" else member, texts(disk, member, "bus"))))
    return ""


def nics(machine: MachineView) -> Iterator[NicPart]:
    """Yield the network interfaces in the order of the machine."""
    spec = spec_of(machine)
    networks = {texts(each, "name"): each for each in entries(spec, "networks")}
    seen = {texts(each, "name"): each for each in entries(machine.vmi, "status", "interfaces")}
    for each in entries(spec, "domain", "devices", "interfaces"):
        name = texts(each, "name")
        multus = texts(networks.get(name), "multus", "networkName")
        status = seen.get(name)
        ips = tuple(ip for ip in (at(status, "ipAddresses") or [texts(status, "ipAddress")]) if ip)
        network = f"network {multus}" if multus else "pod network"
        yield NicPart(name=name, network=network, mac=texts(status, "mac") or texts(each, "macAddress"), ips=ips)

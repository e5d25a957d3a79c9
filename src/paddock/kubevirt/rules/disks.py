"""Rules of disks: V42 to V54, V57 and V60 (docs/spec/kubevirt.md section 2.11). The rest of V42 to V60 is in the declarations."""

import re
from collections.abc import Iterator

from paddock.base.nearest import nearest
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import Cel
from paddock.kubevirt.kinds.devices import CDRomTarget, Disk, DiskTarget, LunTarget
from paddock.kubevirt.rules.place import HardwareContext, check, once, standing

_DISKS = ("domain", "devices", "disks")
TARGETS = ("disk", "lun", "cdrom")
PCI_ADDRESS = r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$"
_ATA = ("sata", "ide")
_SMALLEST, _LARGEST = 512, 2 * 1024 * 1024
# Names that all hints of a machine compare. That is slow, and nobody reads the hundredth hint.
_MOST_COMPARED = 5_000


@once
def disks(hardware: HardwareContext) -> Iterator[tuple[Disk, Path]]:
    """The disks with their places."""
    for index, disk in enumerate(hardware.spec.domain.devices.disks or ()):
        yield disk, hardware.at(*_DISKS, index)


def targets(disk: Disk) -> Iterator[tuple[str, DiskTarget | LunTarget | CDRomTarget]]:
    """Yield the device that a disk is to the guest; more than one is an error of its own."""
    for name in TARGETS:
        target = getattr(disk, name)
        if target is not None:
            yield name, target


def buses(hardware: HardwareContext, disk: Disk) -> Iterator[tuple[str, str]]:
    """Yield the bus of each target. A template without one has none yet: the running machine gets the default."""
    for name, target in list(targets(disk)) or [("disk", DiskTarget())]:
        if target.bus:
            yield name, target.bus
        elif hardware.running:
            yield name, "sata" if hardware.architecture == "amd64" else "virtio"


@check("kubevirt/V42", given=("spec.domain.devices.disks",))
def disks_have_volumes(hardware: HardwareContext) -> Iterator[Finding]:
    """Every disk has a volume of its name; a CD-ROM drive may be empty."""
    volumes = hardware.volumes()
    unused = volumes.keys() - {disk.name for disk, _ in disks(hardware)}
    # Where one volume is left over, it is the one that is meant, however it is called.
    left = next(iter(unused)) if len(unused) == 1 else None
    compared = 0
    for disk, path in disks(hardware):
        if disk.name and disk.name not in volumes and disk.cdrom is None:
            compared += len(volumes)
            meant = (nearest(disk.name, volumes) if compared <= _MOST_COMPARED else None) or left
            hint = f'; did you mean "{meant}"?' if meant else ""
            words = f"{finding.format_path((*path, 'Name'))} '{disk.name}' not found."
            yield finding.invalid((*path, "name"), disk.name, f"no volume of this name{hint}", "kubevirt/V42", words)


@check("kubevirt/V43", warns=True, given=("spec.volumes",))
def volumes_have_disks(hardware: HardwareContext) -> Iterator[Finding]:
    """A volume that no disk and no filesystem uses gets a disk when the machine runs (a note)."""
    devices = hardware.spec.domain.devices
    used = {disk.name for disk in devices.disks or ()} | {filesystem.name for filesystem in devices.filesystems or ()}
    for index, volume in enumerate(hardware.spec.volumes or ()):
        if not volume.name or volume.name in used or volume.memoryDump is not None:
            continue
        at = hardware.at("volumes", index, "name")
        yield finding.note(at, "no disk or filesystem of this name; the running machine gets a disk for it", "kubevirt/V43")


@check(
    "kubevirt/V45",
    Cel(
        "domain.devices.disks[]",
        "(has(self.disk) ? 1 : 0) + (has(self.lun) ? 1 : 0) + (has(self.cdrom) ? 1 : 0) <= 1",
        "can only have a single target type defined",
    ),
    given=("spec.domain.devices.disks[].lun", "spec.domain.devices.disks[].cdrom"),
)
def disks_are_one_thing(hardware: HardwareContext) -> Iterator[Finding]:
    """A disk is a hard disk, a LUN or a CD-ROM."""
    for disk, path in disks(hardware):
        given = [name for name, _ in targets(disk)]
        if len(given) > 1:
            yield finding.invalid(path, given, "can only have a single target type defined", "kubevirt/V45")


@check("kubevirt/V46", given=("spec.domain.devices.disks[].lun",))
def luns_have_claims(hardware: HardwareContext) -> Iterator[Finding]:
    """A LUN is backed by a claim."""
    volumes = hardware.volumes()
    for disk, path in disks(hardware):
        volume = volumes.get(disk.name)
        if disk.lun is not None and volume is not None and volume.persistentVolumeClaim is None and volume.dataVolume is None:
            why = "Invalid value: a lun needs a volume of the type persistentVolumeClaim or dataVolume"
            yield Finding(path=(*path, "lun"), message=why, rule="kubevirt/V46")


@check("kubevirt/V47", given=("spec.domain.devices.disks[].disk.pciAddress",))
def pci_addresses_fit(hardware: HardwareContext) -> Iterator[Finding]:
    """A PCI address is well formed, and only a virtio disk has one."""
    for index, (disk, path) in enumerate(disks(hardware)):
        address = disk.disk.pciAddress if disk.disk is not None else None
        if not address:
            continue
        at, field = (*path, "disk", "pciAddress"), hardware.at(*_DISKS, "disk", index, "pciAddress")
        if disk.disk is not None and disk.disk.bus != "virtio" and not (hardware.preferred and disk.disk.bus is None):
            yield standing(finding.invalid(field, address, "only a disk on the virtio bus has a PCI address", "kubevirt/V47"), at)
        if re.match(PCI_ADDRESS, address) is None:
            yield standing(finding.invalid(field, address, "malformed PCI address, write it as 0000:81:01.0", "kubevirt/V47"), at)


@check("kubevirt/V49", given=("spec.domain.devices.disks[].bootOrder", "spec.domain.devices.interfaces[].bootOrder"))
def boot_orders_are_unique(hardware: HardwareContext) -> Iterator[Finding]:
    """No two devices have the same place in the boot order."""
    seen: dict[int, str] = {}
    devices = hardware.spec.domain.devices
    for kind in ("disks", "interfaces"):
        for index, device in enumerate(getattr(devices, kind) or ()):
            order = device.bootOrder
            if order is None:
                continue
            if order in seen:
                path = hardware.at("domain", "devices", kind, index, "bootOrder")
                yield finding.duplicate(path, order, "kubevirt/V49", f"boot order already set for {seen[order]}")
            else:
                seen[order] = finding.format_path((kind, index))


@check(
    "kubevirt/V50",
    warns=True,
    given=("spec.domain.devices.disks[].disk.bus", "spec.domain.devices.disks[].lun.bus", "spec.domain.devices.disks[].cdrom.bus"),
)
def ide_is_for_us_only(hardware: HardwareContext) -> Iterator[Finding]:
    """KubeVirt has no IDE bus; Paddock's own engine has one on amd64."""
    for disk, path in disks(hardware):
        for name, target in targets(disk):
            if target.bus != "ide":
                continue
            bus = (*path, name, "bus")
            if hardware.settings.target == "cluster" or hardware.architecture != "amd64":
                yield finding.invalid(bus, "ide", "IDE bus is not supported; use sata", "kubevirt/V50")
            else:
                text = "KubeVirt refuses this (IDE bus is not supported); use sata to run the machine anywhere"
                yield finding.warning(bus, text, "kubevirt/V50")


@check("kubevirt/V51", warns=True, given=("spec.domain.devices.disks[].cdrom",))
def virtio_drives_are_for_us_only(hardware: HardwareContext) -> Iterator[Finding]:
    """Virtio has no CD-ROM drive; Paddock's own engine gives the guest a read-only disk."""
    for disk, path in disks(hardware):
        if disk.cdrom is None or disk.cdrom.bus != "virtio":
            continue
        path, why = (*path, "cdrom", "bus"), "Bus type virtio is invalid for CD-ROM device"
        if hardware.settings.target == "cluster":
            yield finding.invalid(path, "virtio", f"{why}; use sata or scsi", "kubevirt/V51")
        else:
            text = f"KubeVirt refuses this ({why}); the guest gets a read-only virtio disk"
            yield finding.warning(path, text, "kubevirt/V51")


@check("kubevirt/V52", given=("spec.domain.devices.disks[].disk.readonly",))
def sata_disks_are_writable(hardware: HardwareContext) -> Iterator[Finding]:
    """A hard disk on the SATA bus, or Paddock's IDE bus, cannot be read-only."""
    for disk, path in disks(hardware):
        if disk.disk is None or not disk.disk.readonly:
            continue
        for target, bus in buses(hardware, disk):
            if target == "disk" and bus in _ATA:
                why = f"a hard disk on the {bus} bus cannot be read-only; use virtio or scsi, or a cdrom"
                at = (*path, "disk", "bus") if disk.disk.bus else (*path, "disk", "readonly")
                yield standing(finding.invalid((*path, "disk", "bus"), bus, why, "kubevirt/V52"), at)


@check("kubevirt/V54", given=("spec.domain.devices.disks[].dedicatedIOThread",))
def io_threads_need_virtio(hardware: HardwareContext) -> Iterator[Finding]:
    """Only a disk on the virtio bus has an I/O thread of its own."""
    for disk, path in disks(hardware):
        for _, bus in buses(hardware, disk) if disk.dedicatedIOThread else ():
            if bus != "virtio":
                why = f"IOThreads are not supported for disks on a {bus} bus; use virtio"
                yield standing(finding.invalid(path, True, why, "kubevirt/V54"), (*path, "dedicatedIOThread"))


@check("kubevirt/V57", warns=True, given=("spec.domain.devices.disks[].io",))
def io_uring_is_for_us_only(hardware: HardwareContext) -> Iterator[Finding]:
    """KubeVirt knows no io_uring; Paddock's own engine uses it where the host has it."""
    for disk, path in disks(hardware):
        if disk.io != "io_uring":
            continue
        if hardware.settings.target == "cluster":
            yield finding.unsupported((*path, "io"), "io_uring", ("native", "threads"), "kubevirt/V57")
        else:
            text = "KubeVirt refuses this (native and threads only); where the host has no io_uring, threads are used"
            yield finding.warning((*path, "io"), text, "kubevirt/V57")


@check("kubevirt/V60", given=("spec.domain.devices.disks[].blockSize",))
def block_sizes_fit(hardware: HardwareContext) -> Iterator[Finding]:
    """Block sizes are powers of two that the device can have."""
    for disk, path in disks(hardware):
        if disk.blockSize is not None:
            yield from _block_size(hardware, disk, (*path, "blockSize"))


def _block_size(hardware: HardwareContext, disk: Disk, path: Path) -> Iterator[Finding]:
    block = disk.blockSize
    if block is None or block.custom is None:
        return
    if block.matchVolume is not None and block.matchVolume.enabled is not False:
        why = "Invalid value: matchVolume and custom are mutually exclusive"
        yield Finding(path=path, message=why, rule="kubevirt/V60")
        return
    custom, path = block.custom, (*path, "custom")
    for name, size in (("logical", custom.logical), ("physical", custom.physical)):
        if size < _SMALLEST or size > _LARGEST:
            yield finding.invalid((*path, name), size, f"must be between {_SMALLEST} and {_LARGEST}, inclusive", "kubevirt/V60")
        elif size & (size - 1):
            yield finding.invalid((*path, name), size, "must be a power of 2", "kubevirt/V60")
    if custom.logical > custom.physical > 0:
        why = f"must not be greater than physical ({custom.physical})"
        yield finding.invalid((*path, "logical"), custom.logical, why, "kubevirt/V60")
    granularity = custom.discardGranularity
    for bus in (bus for _, bus in buses(hardware, disk) if bus in _ATA):
        for name, size in (("logical", custom.logical), ("discardGranularity", granularity or _SMALLEST)):
            if size > _SMALLEST:
                yield finding.invalid((*path, name), size, f"must be {_SMALLEST} for a disk on the {bus} bus", "kubevirt/V60")
    if granularity is not None and custom.logical > 0 and granularity % custom.logical:
        why = f"must be a multiple of logical ({custom.logical})"
        yield finding.invalid((*path, "discardGranularity"), granularity, why, "kubevirt/V60")


CHECKS = (
    disks_have_volumes,
    volumes_have_disks,
    disks_are_one_thing,
    luns_have_claims,
    pci_addresses_fit,
    boot_orders_are_unique,
    ide_is_for_us_only,
    virtio_drives_are_for_us_only,
    sata_disks_are_writable,
    io_threads_need_virtio,
    io_uring_is_for_us_only,
    block_sizes_fit,
)

"""Features of Paddock's own engine that KubeVirt refuses, in KubeVirt's words and with the losses named (docs/spec/kubevirt.md 1.5)."""

from typing import Any

import msgspec

from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec


def hardware(spec: VirtualMachineInstanceSpec, path: Path, ledger: LossCollector) -> VirtualMachineInstanceSpec:
    """The hardware as KubeVirt takes it."""
    devices = spec.domain.devices
    if devices.disks is None:
        return spec
    disks = [_disk(disk, (*path, "domain", "devices", "disks", index), ledger) for index, disk in enumerate(devices.disks)]
    if disks == devices.disks:
        return spec
    domain = msgspec.structs.replace(spec.domain, devices=msgspec.structs.replace(devices, disks=disks))
    return msgspec.structs.replace(spec, domain=domain)


def _disk(disk: Disk, path: Path, ledger: LossCollector) -> Disk:
    changed: dict[str, Any] = {}
    for name in ("disk", "lun", "cdrom"):
        target = getattr(disk, name)
        if target is not None and target.bus == "ide":
            ledger.lose((*path, name, "bus"), "ide", "KubeVirt has no IDE bus", "the disk gets the bus sata")
            changed[name] = msgspec.structs.replace(target, bus="sata")
    if disk.cdrom is not None and disk.cdrom.bus == "virtio":
        ledger.lose((*path, "cdrom", "bus"), "virtio", "KubeVirt has no virtio CD-ROM", "the drive gets the bus sata")
        changed["cdrom"] = msgspec.structs.replace(disk.cdrom, bus="sata")
    if disk.io == "io_uring":
        ledger.lose((*path, "io"), "io_uring", "KubeVirt knows native and threads", "KubeVirt chooses")
        changed["io"] = None
    return msgspec.structs.replace(disk, **changed) if changed else disk

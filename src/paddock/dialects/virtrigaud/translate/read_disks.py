"""The data disks of a KubeVirt machine."""

import dataclasses

from paddock.base import quantity
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, SCSIControllerSpec
from paddock.dialects.virtrigaud.translate.reading import MachineReader, documents_of, is_name
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate

_GI = quantity.parse("1Gi")
_MOST_DISKS, _MOST_GIB, _LABEL = 20, 65536, 63


@dataclasses.dataclass(frozen=True)
class DataDisk:
    """A data disk, as it stands there and as VirtRigaud says it."""

    device: Disk
    template: DataVolumeTemplate
    spec: DiskSpec


def read(reading: MachineReader, root: Disk | None) -> list[DataDisk]:
    """Disks that DataVolumes of the machine fill. What else there is cannot be made by VirtRigaud."""
    found = [_read(reading, disk) for disk in reading.disks if root is None or disk.name != root.name]
    return [disk for disk in found if disk is not None][:_MOST_DISKS]


def _read(reading: MachineReader, disk: Disk) -> DataDisk | None:
    volume = reading.volumes.get(disk.name)
    template = reading.template_of(volume)
    if volume is None or template is None or disk.cdrom is not None or disk.lun is not None or documents_of(volume) is not None:
        return None
    claim = template.spec.storage or template.spec.pvc
    resources = claim.resources if claim is not None else None
    size = (resources.requests or {}).get("storage") if resources is not None else None
    if size is None or not is_name(disk.name) or len(disk.name) > _LABEL:
        return None
    gibibytes = min(_MOST_GIB, max(1, -(-quantity.parse(size) // _GI)))
    scsi = disk.shareable or (disk.disk is not None and disk.disk.bus == "scsi")
    spec = DiskSpec(
        name=disk.name,
        sizeGiB=gibibytes,
        type="thick" if template.spec.preallocation else "thin",
        storageClass=(claim.storageClassName if claim is not None else None) or None,
        scsi=SCSIControllerSpec(sharedBus="virtualSharing" if disk.shareable else "noSharing") if scsi else None,
    )
    return DataDisk(disk, template, spec)

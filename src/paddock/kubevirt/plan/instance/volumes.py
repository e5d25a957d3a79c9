"""Volumes as a machine uses them: the names of their devices, their claims, their places in the status."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from paddock.base import reasons
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, storage_request
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.status import ClaimInfo, HotplugVolumeStatus, MemoryDumpInfo, VolumeStatus
from paddock.kubevirt.kinds.volumes import Volume

DUMPING, DUMPED, NOT_DUMPED = "MemoryDumpInProgress", "MemoryDumpCompleted", "MemoryDumpFailed"
_LETTERS = {"virtio": "vd", "sata": "sd", "scsi": "sd", "usb": "sd", "ide": "hd"}


class Dump(msgspec.Struct, frozen=True):
    """The progress of writing the memory to a claim."""

    phase: str
    info: MemoryDumpInfo
    message: str = ""


def bus_of(disk: Disk) -> str:
    """The bus of a disk, as it is defaulted on amd64."""
    target = disk.cdrom or disk.lun or disk.disk
    return (target.bus if target is not None else None) or "sata"


def targets(disks: Iterable[Disk]) -> dict[str, str]:
    """The device of each disk: vda, vdb, sda ... by bus, in the order of the spec."""
    counts: dict[str, int] = {}
    found = {}
    for disk in disks:
        prefix = _LETTERS.get(bus_of(disk), "vd")
        number = counts.get(prefix, 0)
        counts[prefix] = number + 1
        found[disk.name] = prefix + _letters(number)
    return found


def _letters(number: int) -> str:
    """a ... z, aa ..."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def claim_of(volume: Volume) -> str:
    """The claim that holds a volume's data; empty for one that has none."""
    if volume.persistentVolumeClaim is not None:
        return volume.persistentVolumeClaim.claimName
    if volume.dataVolume is not None:
        return volume.dataVolume.name
    if volume.ephemeral is not None and volume.ephemeral.persistentVolumeClaim is not None:
        return volume.ephemeral.persistentVolumeClaim.claimName
    return volume.memoryDump.claimName if volume.memoryDump is not None else ""


def is_hotplugged(volume: Volume) -> bool:
    """Return whether it may come to a running machine, and go."""
    source = volume.persistentVolumeClaim or volume.dataVolume or volume.memoryDump
    return bool(source is not None and source.hotpluggable)


def plugged(spec: VirtualMachineInstanceSpec) -> list[Volume]:
    """Return the volumes that come to a machine when it runs. The medium of a drive is there from the start, if it is known by then."""
    drives = {each.name for each in spec.domain.devices.disks or () if each.cdrom is not None}
    return [each for each in spec.volumes or () if is_hotplugged(each) and each.name not in drives]


def statuses(
    spec: VirtualMachineInstanceSpec,
    claims: Mapping[str, PersistentVolumeClaim],
    sizes: Mapping[str, int],
    pending: Mapping[str, str],
    dumps: Mapping[str, Dump],
) -> Iterator[VolumeStatus]:
    """Yield the status of each volume. `claims` by claim name, `sizes` by disk; `pending` says why a hot-plugged one is not there yet."""
    names = targets(spec.domain.devices.disks or ())
    for volume in spec.volumes or ():
        claim = claims.get(claim_of(volume))
        found = VolumeStatus(
            name=volume.name,
            target=names.get(volume.name, ""),
            size=sizes.get(volume.name),
            persistentVolumeClaimInfo=info(claim) if claim is not None else None,
        )
        if volume.memoryDump is not None:
            found = _dumped(found, dumps.get(volume.name))
        elif is_hotplugged(volume):
            found = _plugged(found, pending.get(volume.name, ""))
        yield found


def plugging(name: str) -> str:
    """Return the message about a volume that the engine is plugging in."""
    return f"volume {name} is being plugged"


def _plugged(status: VolumeStatus, why: str) -> VolumeStatus:
    return msgspec.structs.replace(
        status,
        phase="Pending" if why else "Ready",
        reason=reasons.VOLUME_PLUGGING if why == plugging(status.name) else "VolumePending" if why else "VolumeReady",
        message=why or f"Successfully attach hotplugged volume {status.name} to VM",
        hotplugVolume=HotplugVolumeStatus(),
    )


def _dumped(status: VolumeStatus, dump: Dump | None) -> VolumeStatus:
    if dump is None:
        return msgspec.structs.replace(status, phase="Pending")
    return msgspec.structs.replace(status, phase=dump.phase, memoryDumpVolume=dump.info, message=dump.message or None)


def info(claim: PersistentVolumeClaim) -> ClaimInfo:
    """A claim as it stands in a machine's status."""
    spec, status = claim.spec, claim.status
    size = storage_request(spec)
    return ClaimInfo(
        claimName=claim.metadata.name,
        accessModes=spec.accessModes if spec is not None else None,
        volumeMode=(spec.volumeMode if spec is not None else None) or "Filesystem",
        capacity=status.capacity if status is not None else None,
        requests={"storage": size} if size is not None else None,
        filesystemOverhead="0.06" if (spec is None or spec.volumeMode != "Block") else None,
    )

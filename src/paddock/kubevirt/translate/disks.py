"""Disks of an instance, and the I/O threads they share."""

from collections.abc import Iterator
from typing import Literal, cast

from msgspec.structs import replace

from paddock.engine.machine.config import Bus, DiskConfig, Role
from paddock.kubevirt.kinds.devices import CDRomTarget, DiskTarget, LunTarget
from paddock.kubevirt.kinds.devices import Disk as DiskSpec
from paddock.kubevirt.kinds.domain import IOThreads
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.translate.context import TranslationContext
from paddock.kubevirt.translate.limits import Code
from paddock.kubevirt.translate.resolved import ResolvedVolume

_DISKS = ("spec", "domain", "devices", "disks")
_VIRTIO_SERIAL, _SCSI_SERIAL = 20, 36
_POLICIES = {"enospace": "enospc"}
_THREADS_FOR_EACH_CPU = 2


def disks(translation: TranslationContext) -> tuple[tuple[DiskConfig, ...], int]:
    """The disks, and how many I/O threads they share."""
    volumes = {volume.name: volume for volume in translation.spec.volumes or ()}
    found = [
        _disk(translation, index, given, volumes.get(given.name))
        for index, given in enumerate(translation.domain.devices.disks or ())
        if not _is_table(translation, given.name)
    ]
    return _with_threads(translation, [disk for disk in found if disk is not None])


def _is_table(translation: TranslationContext, name: str) -> bool:
    """Return whether a volume is an ACPI table, which is no disk even if one of its name was made for it."""
    acpi = translation.domain.firmware.acpi if translation.domain.firmware else None
    return acpi is not None and name in (acpi.slicNameRef, acpi.msdmNameRef)


def _disk(translation: TranslationContext, index: int, disk_spec: DiskSpec, volume: Volume | None) -> DiskConfig | None:
    role, target = _target(disk_spec)
    bus = cast(Bus, target.bus or ("sata" if translation.amd64 else "virtio"))
    found = _volume(translation, index, disk_spec, volume)
    if found is None:
        return None
    opened = isinstance(target, CDRomTarget) and target.tray == "open"
    readonly = target.readonly if not isinstance(target, CDRomTarget) else target.readonly is not False
    _note_role(translation, index, role, bus, found, target)
    disk = DiskConfig(
        name=disk_spec.name,
        layer=None if opened else found.layer,
        bus=bus,
        role=role,
        readonly=bool(readonly) or found.readonly,
        boot_order=disk_spec.bootOrder,
        serial=_serial(translation, index, disk_spec, bus),
        cache=cast(
            Literal["", "none", "writethrough", "writeback"], disk_spec.cache or ("none" if disk_spec.shareable and found.layer else "")
        ),
        io=_io(translation, index, disk_spec),
        shareable=bool(disk_spec.shareable),
        error_policy=cast(
            Literal["stop", "ignore", "report", "enospc"], _POLICIES.get(disk_spec.errorPolicy or "", disk_spec.errorPolicy or "stop")
        ),
        queues=translation.vcpus if translation.domain.devices.blockMultiQueue and bus == "virtio" else None,
        pci_address=(target.pciAddress or "") if isinstance(target, DiskTarget) else "",
        hotplugged=role != "cdrom" and _is_hotplugged(volume),
        tracked=_is_tracked(role, disk_spec, volume, found),
    )
    if disk_spec.changedBlockTracking and not disk.tracked:
        translation.limits.add(Code.TRACKING_MISSING, *_DISKS, index, "changedBlockTracking")
    return _with_blocks(disk, disk_spec, found)


def _target(disk: DiskSpec) -> tuple[Role, DiskTarget | LunTarget | CDRomTarget]:
    if disk.cdrom is not None:
        return "cdrom", disk.cdrom
    if disk.lun is not None:
        return "lun", disk.lun
    return "disk", disk.disk or DiskTarget()


def _volume(translation: TranslationContext, index: int, disk: DiskSpec, volume: Volume | None) -> ResolvedVolume | None:
    """Return the resolved volume of a disk; None: it is no disk, or there is nothing."""
    if volume is None and disk.cdrom is not None:
        return ResolvedVolume()
    if volume is not None and volume.downwardMetrics is not None:
        translation.limits.add(Code.METRICS_MISSING, *_DISKS, index)
        return None
    found = translation.resolved.volumes.get(disk.name)
    if found is None or found.error or found.layer is None:
        detail = found.error if found is not None and found.error else f"nothing was found for the volume {disk.name}"
        translation.limits.add(Code.VOLUME_FAILED, *_DISKS, index, detail=detail)
        return None
    return found


def _note_role(
    translation: TranslationContext,
    index: int,
    role: Role,
    bus: Bus,
    resolved_volume: ResolvedVolume,
    target: DiskTarget | LunTarget | CDRomTarget,
) -> None:
    if role == "cdrom" and bus == "virtio":
        translation.limits.add(Code.CDROM_IS_DISK, *_DISKS, index, "cdrom", "bus")
    if role == "lun" and not (resolved_volume.device and bus == "scsi"):
        translation.limits.add(Code.LUN_IS_DISK, *_DISKS, index, "lun")
    if isinstance(target, LunTarget) and target.reservation:
        translation.limits.add(Code.RESERVATION_MISSING, *_DISKS, index, "lun", "reservation")


def _serial(translation: TranslationContext, index: int, disk: DiskSpec, bus: Bus) -> str:
    serial = disk.serial or ""
    if bus == "scsi" and len(serial) > _SCSI_SERIAL:
        translation.limits.add(Code.SERIAL_TOO_LONG, *_DISKS, index, "serial", detail=f"{len(serial)} characters")
    elif bus in ("virtio", "sata", "ide") and len(serial) > _VIRTIO_SERIAL:
        translation.limits.add(Code.SERIAL_CUT, *_DISKS, index, "serial")
    return serial


def _io(translation: TranslationContext, index: int, disk: DiskSpec) -> Literal["", "native", "threads", "io_uring"]:
    if disk.io == "io_uring" and not translation.host.io_uring:
        translation.limits.add(Code.IO_URING_MISSING, *_DISKS, index, "io")
        return "threads"
    return cast(Literal["", "native", "threads", "io_uring"], disk.io or "")


def _is_hotplugged(volume: Volume | None) -> bool:
    sources = (volume.dataVolume, volume.persistentVolumeClaim) if volume is not None else ()
    return any(source is not None and bool(source.hotpluggable) for source in sources)


def _is_tracked(role: Role, disk_spec: DiskSpec, volume: Volume | None, resolved_volume: ResolvedVolume) -> bool:
    """Return whether the changes of a disk can be followed for backups. It costs nothing before the first one, so they always are."""
    on_claim = volume is not None and (volume.dataVolume is not None or volume.persistentVolumeClaim is not None)
    return on_claim and role == "disk" and not (disk_spec.shareable or resolved_volume.readonly or resolved_volume.device)


def _with_blocks(disk: DiskConfig, disk_spec: DiskSpec, resolved_volume: ResolvedVolume) -> DiskConfig:
    sizes = disk_spec.blockSize
    if sizes is None:
        return disk
    if sizes.custom is not None:
        custom = sizes.custom
        return replace(disk, logical_block=custom.logical, physical_block=custom.physical, discard_granularity=custom.discardGranularity)
    if sizes.matchVolume is not None and sizes.matchVolume.enabled is not False and resolved_volume.blocks is not None:
        return replace(disk, logical_block=resolved_volume.blocks[0], physical_block=resolved_volume.blocks[1])
    return disk


def _with_threads(translation: TranslationContext, disk_configs: list[DiskConfig]) -> tuple[tuple[DiskConfig, ...], int]:
    """Disks that want a thread of their own get one; the policy says how the others share some. Only virtio can use them."""
    own = {given.name for given in translation.domain.devices.disks or () if given.dedicatedIOThread}
    shared = _shared_threads(translation, len([disk for disk in disk_configs if disk.bus == "virtio" and disk.name in own]))
    numbers = _numbers(shared)
    last, placed = shared, []
    for disk in disk_configs:
        thread = None
        if disk.bus == "virtio" and disk.name in own:
            last += 1
            thread = last
        elif disk.bus == "virtio" and shared:
            thread = next(numbers)
        placed.append(replace(disk, iothread=thread))
    return tuple(placed), last


def _numbers(count: int) -> Iterator[int]:
    while True:
        yield from range(1, count + 1)


def _shared_threads(translation: TranslationContext, own: int) -> int:
    match translation.domain.ioThreadsPolicy:
        case "shared":
            return 1
        case "auto":
            # The pool is of the CPUs that are asked for, whatever the guest sees of them.
            return max(_THREADS_FOR_EACH_CPU * (translation.asked("cpu") or 1) - own, 1)
        case "supplementalPool":
            return max((translation.domain.ioThreads or IOThreads()).supplementalPoolThreadCount or 1, 1)
    return 0

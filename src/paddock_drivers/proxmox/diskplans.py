"""The disks of a machine: those that are missing, those that have to grow, and those that the manager does not name any more. Pure."""

import re
from collections.abc import Mapping

import msgspec

from paddock.base import reasons
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import DiskDefaultsPayload, DiskPayload
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import naming, properties
from paddock_drivers.proxmox.config import ProxmoxConfiguredDrive, ProxmoxMachineConfig

GIB = 1 << 30
_FORMATS = ("raw", "qcow2", "vmdk")
_FLASH = ("ssd", "nvme")
_VOLUME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[A-Za-z0-9_./+@=-]+\Z", re.ASCII)
_MOST_GIB = 128 << 10


class ProxmoxDiskChange(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that give a machine the disks it should have."""

    # slots with their property strings: new disks, and those that are attached again
    added: dict[str, str] = {}
    # slots with the size in GiB that they have to have
    grown: dict[str, int] = {}
    # slots by the name of the disk that is taken out of them
    detached: dict[str, str] = {}
    # volumes that were copied into new disks, and are not needed any more
    taken: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if nothing has to be done."""
        return not (self.added or self.grown or self.detached)


def volume(text: str) -> str:
    """Return a volume that a request names; raises `ProviderError` for a path, which only root may use."""
    if not _VOLUME.match(text) or ".." in text:
        raise refusals.invalid(f'"{text[:64]}" is no volume of Proxmox VE', fix="name it as STORAGE:import/FILE, as ImportDisk answers")
    return text


def by_name(config: ProxmoxMachineConfig) -> dict[str, ProxmoxConfiguredDrive]:
    """Return the disks that have a serial number."""
    return {each.serial: each for each in config.drives if each.serial}


def change(description: MachineDescription, config: ProxmoxMachineConfig, storage: str) -> ProxmoxDiskChange:
    """Return what has to be done to the disks. A disk that would shrink refuses everything."""
    have, grown = by_name(config), {}
    root = config.root
    wanted = (description.hardware.disk_defaults or DiskDefaultsPayload()).size_gib
    if root is not None and root.size and wanted * GIB > root.size:
        grown[root.slot] = _checked(wanted, "the root disk")
    added: dict[str, str] = {}
    taken, limitations = [], list(_limitations(description.disks))
    for each in description.disks:
        name, size = naming.serial(each.name), _checked(each.size_gib, f"disk {each.name}")
        drive = have.get(name)
        if drive is not None:
            if drive.size and size * GIB < drive.size:
                raise _shrinks(each.name, drive.size)
            if drive.size and size * GIB > drive.size:
                grown[drive.slot] = size
            continue
        slot = config.free_slot("scsi", "virtio", "sata", taken=tuple(added))
        if not slot:
            raise refusals.invalid("the machine has too many disks", why="Proxmox VE has 53 slots for them")
        source = each.path if isinstance(each.path, str) else ""
        back = config.note.detached.get(each.name, "")
        if back and back in config.unused.values():
            added[slot] = properties.render({"file": back, "serial": name}, "file")
            continue
        added[slot] = properties.render({**_options(each, storage, source), **limits(description)}, "file")
        if source:
            taken.append(source)
            grown[slot] = size
    names = {naming.serial(each.name) for each in description.disks}
    gone = {name: have[naming.serial(name)].slot for name in config.note.disks if naming.serial(name) in set(have) - names}
    return ProxmoxDiskChange(added=added, grown=grown, detached=gone, taken=tuple(taken), limitations=tuple(limitations))


def limits(description: MachineDescription) -> dict[str, int]:
    """Return the options that limit a disk as the class says."""
    defaults = description.hardware.disk_defaults
    return {"iops": defaults.iops} if defaults is not None and defaults.iops else {}


def limited_root(description: MachineDescription, root: ProxmoxConfiguredDrive) -> dict[str, str]:
    """Return what limits the disk that a template brought; nothing for one that is as the class says."""
    wanted = {name: str(value) for name, value in limits(description).items()}
    if wanted.items() <= root.options.items():
        return {}
    return {root.slot: properties.render({"file": root.volume, **root.options, **wanted}, "file")}


def growing(config: ProxmoxMachineConfig, grown: Mapping[str, int]) -> dict[str, int]:
    """Return the slots that are still too small."""
    found = {}
    for slot, size in grown.items():
        drive = config.drive(slot)
        if drive is not None and drive.size and size * GIB > drive.size:
            found[slot] = size
    return found


def _options(disk: DiskPayload, storage: str, source: str) -> dict[str, str | int | float | bool]:
    where = disk.storage_class if isinstance(disk.storage_class, str) and disk.storage_class else storage
    members: dict[str, str | int | float | bool] = {"file": f"{where}:{0 if source else disk.size_gib}"}
    if source:
        members["import-from"] = volume(source)
    if disk.type in _FORMATS:
        members["format"] = disk.type
    if disk.type in _FLASH:
        members["ssd"] = True
    return {**members, "discard": "on", "serial": naming.serial(disk.name)}


def _limitations(disks: tuple[DiskPayload, ...]) -> tuple[str, ...]:
    return tuple(
        f"disk {each.name}: Proxmox VE leaves it to the storage whether a disk is {each.type}"
        for each in disks
        if each.type in ("thick", "eagerzeroedthick")
    )


def _checked(size_gib: int, what: str) -> int:
    if not 0 <= size_gib <= _MOST_GIB:
        raise refusals.invalid(f"{what} has a size that no disk can have", why=f"the most is {_MOST_GIB} GiB")
    return size_gib


def _shrinks(name: str, size: int) -> Exception:
    return refusals.invalid(
        f"disk {name} cannot shrink",
        why=f"it has {size // GIB} GiB",
        fix="make a new disk and copy its content",
        reason=reasons.DISK_SHRINKS,
    )

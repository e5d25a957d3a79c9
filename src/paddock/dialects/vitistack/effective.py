"""What a machine has once its template and its own words are put together (docs/spec/vitistack.md section 2.1).

Pure, and tolerant: a machine with errors still has an effective form, with None where nothing gives a value.
"""

from collections.abc import Iterable

import msgspec

from paddock.dialects.vitistack.fields import MachineCpu, MachineDisk, MachineMemory, MachineResources
from paddock.dialects.vitistack.marks import DEFAULT_CLASS, ROOT_DISK
from paddock.dialects.vitistack.templates import MachineTemplateSpec

DEFAULT_ACCESS_MODE = "ReadWriteOnce"


class EffectiveDisk(msgspec.Struct, frozen=True):
    """A disk with every field decided; `size` is None when nobody gives one."""

    name: str
    size: int | str | None
    storageClass: str
    accessMode: str
    volumeMode: str | None


class Effective(msgspec.Struct, frozen=True):
    """Processors, memory and disks of a machine; `memory` is None when nobody gives it."""

    cores: int
    threads: int
    sockets: int
    memory: int | str | None
    disks: tuple[EffectiveDisk, ...]

    @property
    def root(self) -> EffectiveDisk | None:
        """The disk that the machine boots from."""
        index = root_index(disk.name for disk in self.disks)
        return None if index is None else self.disks[index]


def root_index(names: Iterable[str]) -> int | None:
    """Where the root disk stands: the disk called `root`, else the first; None without disks."""
    listed = list(names)
    if ROOT_DISK in listed:
        return listed.index(ROOT_DISK)
    return 0 if listed else None


def effective(resources: MachineResources | None, disks: Iterable[MachineDisk], base: MachineTemplateSpec | None) -> Effective:
    """A machine's own resources and disks over those of its template, which is None when it has none."""
    own = _cpu(resources)
    given = _cpu(base.resources if base else None)
    return Effective(
        cores=own.cores or given.cores or 1,
        threads=own.threads or given.threads or 1,
        sockets=own.sockets or given.sockets or 1,
        memory=_first(_memory(resources), _memory(base.resources if base else None)),
        disks=tuple(_decide(disk) for disk in merge(base.disks if base else (), disks)),
    )


def merge(base: Iterable[MachineDisk], own: Iterable[MachineDisk]) -> list[MachineDisk]:
    """Disks of the same name merge field by field in the place of the template's; new ones follow in the order written."""
    merged = {disk.name: disk for disk in base}
    for disk in own:
        before = merged.get(disk.name)
        merged[disk.name] = disk if before is None else _over(before, disk)
    return list(merged.values())


def _over(before: MachineDisk, disk: MachineDisk) -> MachineDisk:
    said = {name: value for name in MachineDisk.__struct_fields__ if (value := getattr(disk, name)) is not None}
    return msgspec.structs.replace(before, **said)


def _decide(disk: MachineDisk) -> EffectiveDisk:
    return EffectiveDisk(
        name=disk.name,
        size=disk.size,
        storageClass=disk.storageClass or DEFAULT_CLASS,
        accessMode=disk.accessMode or DEFAULT_ACCESS_MODE,
        volumeMode=disk.volumeMode,
    )


def _cpu(resources: MachineResources | None) -> MachineCpu:
    return resources.cpu if resources and resources.cpu else MachineCpu()


def _memory(resources: MachineResources | None) -> int | str | None:
    memory = resources.memory if resources and resources.memory else MachineMemory()
    return memory.size


def _first(*values: int | str | None) -> int | str | None:
    return next((value for value in values if value is not None), None)

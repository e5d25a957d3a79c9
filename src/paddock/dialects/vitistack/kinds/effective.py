"""The effective form of a machine: its template with its own fields on top (docs/spec/vitistack.md section 2.1).

Pure, and tolerant: a machine with errors still has an effective form, with None where nothing gives a value.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from paddock.dialects.vitistack.kinds.fields import MachineCpu, MachineDisk, MachineMemory, MachineResources, TemplateDisk
from paddock.dialects.vitistack.kinds.marks import DEFAULT_CLASS, ROOT_DISK
from paddock.dialects.vitistack.kinds.templates import MachineTemplateSpec

T = TypeVar("T")
# KubeVirt has no NVMe disks.
_BUS = {"nvme": "virtio"}
DEFAULT_ACCESS_MODE = "ReadWriteOnce"


class EffectiveDisk(msgspec.Struct, frozen=True):
    """A disk with every field decided; `size` is None when nobody gives one."""

    name: str
    size: int | str | None
    storageClass: str
    accessMode: str
    volumeMode: str | None
    bus: str = "virtio"
    # the machine says that it boots from this one
    boot: bool = False


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
        index = next((index for index, disk in enumerate(self.disks) if disk.boot), None)
        index = root_index(disk.name for disk in self.disks) if index is None else index
        return None if index is None else self.disks[index]


def root_index(names: Iterable[str]) -> int | None:
    """Return the index of the root disk: the disk called `root`, else the first; None without disks."""
    listed = list(names)
    if ROOT_DISK in listed:
        return listed.index(ROOT_DISK)
    return 0 if listed else None


def effective(resources: MachineResources | None, disks: Iterable[MachineDisk], base: MachineTemplateSpec | None) -> Effective:
    """A machine's own resources and disks over those of its template, which is None when it has none."""
    own = _cpu(resources)
    given = _cpu(base.resources if base else None)
    return Effective(
        cores=_count(own.cores, given.cores),
        threads=_count(own.threads, given.threads),
        sockets=_count(own.sockets, given.sockets),
        memory=_last([_memory(base.resources if base else None), _memory(resources)]),
        disks=_merged(base.disks if base else (), disks),
    )


def _merged(base: Iterable[TemplateDisk], own: Iterable[MachineDisk]) -> tuple[EffectiveDisk, ...]:
    """Disks of the same name merge field by field in the place of the template's; new ones follow in the order written."""
    layers: dict[str, list[TemplateDisk]] = {}
    for disk in (*base, *own):
        layers.setdefault(disk.name, []).append(disk)
    return tuple(_decide(name, found) for name, found in layers.items())


def _decide(name: str, layers: list[TemplateDisk]) -> EffectiveDisk:
    # Each field is read in every layer, and by its name: a field that is not read here is reported as lost.
    storage_class = _last([disk.storageClass for disk in layers])
    access_mode = _last([disk.accessMode for disk in layers])
    own = next((disk for disk in layers if isinstance(disk, MachineDisk)), MachineDisk())
    return EffectiveDisk(
        name=name,
        size=_last([disk.size for disk in layers]),
        storageClass=storage_class or DEFAULT_CLASS,
        accessMode=access_mode or DEFAULT_ACCESS_MODE,
        volumeMode=_last([disk.volumeMode for disk in layers]),
        bus=_BUS.get(own.type or "", own.type or "virtio"),
        boot=bool(own.boot),
    )


def _cpu(resources: MachineResources | None) -> MachineCpu:
    return resources.cpu if resources and resources.cpu else MachineCpu()


def _memory(resources: MachineResources | None) -> int | str | None:
    memory = resources.memory if resources and resources.memory else MachineMemory()
    return memory.size


def _count(own: int | None, count: int | None) -> int:
    return own or count or 1


def _last(values: Sequence[T]) -> T | None:
    return next((value for value in reversed(values) if value is not None), None)

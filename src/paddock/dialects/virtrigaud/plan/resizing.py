"""Differences between a machine's confirmed and desired sizes, and what may be done about them now (docs/spec/virtrigaud.md 2.1.5, 2.1.7).

A running machine gets what the provider can change online and its class allows; the rest waits until the machine is off. Nothing shrinks
while the machine runs, and a disk never shrinks.
"""

from collections.abc import Iterator

import msgspec

from paddock.base import quantity
from paddock.dialects.virtrigaud.kinds.machine import CurrentResources
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import PerformanceProfile, VMClass
from paddock.dialects.virtrigaud.plan import marks

_MIB = 2**20


class MachineSizes(msgspec.Struct, frozen=True):
    """Processors, memory and data disks of a machine."""

    cpu: int = 0
    memory_mib: int = 0
    # sizes in GiB by name; None: not known
    disks: dict[str, int] | None = None


class ResizePlan(msgspec.Struct, frozen=True):
    """The outcome of a comparison."""

    # the sizes to request now; None: nothing is to be requested
    request: MachineSizes | None = None
    # differences that wait until the machine is off, and those that are refused
    pending: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class _Difference(msgspec.Struct, frozen=True):
    text: str
    online: bool
    # the disk, or cpu or memory_mib
    disk: str = ""
    field: str = ""


def wanted(vm: VirtrigaudVirtualMachine, vmclass: VMClass) -> MachineSizes:
    """The desired sizes: the machine's own over those of its class."""
    own = vm.spec.resources
    cpu = (own.cpu if own is not None else None) or vmclass.spec.cpu
    memory = (own.memoryMiB if own is not None else None) or mebibytes(vmclass.spec.memory)
    return MachineSizes(cpu, memory, {each.name: each.sizeGiB for each in vm.spec.disks or ()})


def mebibytes(amount: str | int) -> int:
    """A quantity in whole MiB, rounded down."""
    return quantity.parse(amount) // quantity.UNIT // _MIB


def confirmed(status: VirtrigaudMachineStatus) -> MachineSizes:
    """The sizes that the provider has confirmed, as the status has them."""
    resources = status.currentResources
    disks = _disks((status.provider or {}).get(marks.DISKS))
    return MachineSizes((resources.cpu if resources else None) or 0, (resources.memoryMiB if resources else None) or 0, disks)


def _disks(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, int])
    except msgspec.MsgspecError:
        return None


def disks_text(disks: dict[str, int]) -> str:
    """The disks as the status keeps them."""
    return msgspec.json.encode(dict(sorted(disks.items()))).decode()


def resources(sizes: MachineSizes) -> CurrentResources | None:
    """Processors and memory as the status shows them; None when they are not known."""
    return CurrentResources(cpu=sizes.cpu, memoryMiB=sizes.memory_mib) if sizes.cpu else None


def decide(
    current: MachineSizes, vm: VirtrigaudVirtualMachine, vmclass: VMClass, can: ReportedCapabilities, *, running: bool
) -> ResizePlan:
    """Compare the sizes and split what differs into now, later and never."""
    target = wanted(vm, vmclass)
    found = [*_processors(current, target, vmclass, can), *_disk_changes(current, target, vm, can)]
    refused = tuple(_shrunk_disks(current, target))
    now = [each for each in found if each.online or not running]
    pending = tuple(each.text for each in found if each not in now)
    return ResizePlan(_applied(current, target, now) if now else None, pending, refused)


def _processors(current: MachineSizes, target: MachineSizes, vmclass: VMClass, can: ReportedCapabilities) -> Iterator[_Difference]:
    if not current.cpu and not current.memory_mib:
        # An adopted machine of which nobody knows the sizes keeps them.
        return
    profile = vmclass.spec.performanceProfile or PerformanceProfile()
    online = bool(can.supportsReconfigureOnline)
    if current.cpu != target.cpu:
        live = online and profile.cpuHotAddEnabled and target.cpu > current.cpu
        yield _Difference(f"cpu {current.cpu} to {target.cpu}", live, field="cpu")
    if current.memory_mib != target.memory_mib:
        live = online and profile.memoryHotAddEnabled and target.memory_mib > current.memory_mib
        yield _Difference(f"memory {current.memory_mib} MiB to {target.memory_mib} MiB", live, field="memory_mib")


def _disk_changes(
    current: MachineSizes, target: MachineSizes, vm: VirtrigaudVirtualMachine, can: ReportedCapabilities
) -> Iterator[_Difference]:
    if current.disks is None:
        return
    attach, expand = bool(can.supportsReconfigureOnline), bool(can.supportsDiskExpansionOnline)
    for disk in vm.spec.disks or ():
        before = current.disks.get(disk.name)
        if before is None:
            yield _Difference(f"attach disk {disk.name}", attach, disk.name)
        elif before < disk.sizeGiB:
            live = expand and disk.expandPolicy == "Online"
            yield _Difference(f"disk {disk.name} {before} GiB to {disk.sizeGiB} GiB", live, disk.name)
    for name in current.disks:
        if name not in (target.disks or {}):
            yield _Difference(f"detach disk {name}", attach, name)


def _shrunk_disks(current: MachineSizes, target: MachineSizes) -> Iterator[str]:
    for name, size in (target.disks or {}).items():
        before = (current.disks or {}).get(name, 0)
        if size < before:
            yield f"disk {name} has {before} GiB and cannot shrink to {size} GiB"


def _applied(current: MachineSizes, target: MachineSizes, changes: list[_Difference]) -> MachineSizes:
    """The current sizes with these changes; a size that is not known is requested as desired."""
    fields = {each.field for each in changes}
    unknown = not current.cpu and not current.memory_mib
    disks = dict(current.disks if current.disks is not None else target.disks or {})
    wanted_disks = target.disks or {}
    for name in filter(None, (each.disk for each in changes)):
        if name in wanted_disks:
            disks[name] = wanted_disks[name]
        else:
            disks.pop(name, None)
    return MachineSizes(
        target.cpu if unknown or "cpu" in fields else current.cpu,
        target.memory_mib if unknown or "memory_mib" in fields else current.memory_mib,
        disks,
    )

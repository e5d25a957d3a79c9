"""The hardware of a KubeVirt machine as a VMClass, with what the machine has in place of it."""

import dataclasses
import re
from typing import TypeVar

from paddock.base import quantity
from paddock.dialects.virtrigaud.kinds.machine import GPUConfig, VirtualMachineResources
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION
from paddock.dialects.virtrigaud.kinds.vmclass import (
    DiskDefaults,
    PerformanceProfile,
    SecurityProfile,
    VMClass,
    VMClassSpec,
    VMResourceLimits,
)
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.disks import ROOT_SIZE
from paddock.dialects.virtrigaud.translate.hardware import could_grow
from paddock.dialects.virtrigaud.translate.reading import MachineReader
from paddock.kubernetes.schema.field import Object, Quantity
from paddock.kubevirt.kinds.domain import CPU, Resources
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate

_MOST_CPUS, _LEAST_MIB, _MOST_MIB, _MOST_GPUS = 128, 128, 1048576, 8
_TYPE = re.compile(r"[a-zA-Z0-9_-]+\Z", re.ASCII)
_MI = quantity.parse("1Mi")
T = TypeVar("T", bound=Object)
# What a machine has that says nothing of its memory.
_MEMORY = "1Gi"


@dataclasses.dataclass(frozen=True)
class ClassSizes:
    """The class, and the sizes that are the machine's own."""

    vmclass: VMClass
    resources: VirtualMachineResources | None


def read(reading: MachineReader, root: DataVolumeTemplate | None) -> ClassSizes:
    """The class under the name that the machine remembers, and where it differs from that."""
    count, size = cpus(reading), memory(reading)
    own_cpu, own_memory = None, None
    class_cpu = reading.annotations.get(marks.CLASS_CPU, "")
    if class_cpu.isdecimal() and 1 <= int(class_cpu[:4]) <= _MOST_CPUS:
        own_cpu, count = count, int(class_cpu)
    remembered = reading.annotations.get(marks.CLASS_MEMORY, "")
    mebibytes, rest = divmod(quantity.parse(size), _MI)
    sayable = not rest and _LEAST_MIB <= mebibytes <= _MOST_MIB
    if remembered and quantity.is_quantity(remembered) and quantity.parse(remembered) > 0 and sayable:
        own_memory, size = mebibytes, remembered
    own = VirtualMachineResources(cpu=own_cpu, memoryMiB=own_memory, gpu=_gpu(reading))
    spec = VMClassSpec(
        cpu=count,
        memory=size,
        firmware="UEFI" if _efi(reading) else "BIOS",
        diskDefaults=_disk_defaults(root),
        resourceLimits=_said(_limits(reading)),
        performanceProfile=_said(_performance(reading)),
        securityProfile=_said(_security(reading)),
    )
    ref = reading.reference(marks.CLASS, reading.name)
    vmclass = VMClass(apiVersion=API_VERSION, kind="VMClass", metadata=reading.metadata_of(ref), spec=spec)
    return ClassSizes(vmclass, None if own == VirtualMachineResources() else own)


def _said(value: T) -> T | None:
    return None if value == type(value)() else value


def cpus(reading: MachineReader) -> int:
    """The number of processors: those that are arranged, else those that are asked for."""
    cpu, resources = reading.instance.domain.cpu or CPU(), reading.instance.domain.resources or Resources()
    if not (cpu.sockets or cpu.cores or cpu.threads):
        asked = (resources.requests or {}).get("cpu") or (resources.limits or {}).get("cpu")
        return min(_MOST_CPUS, max(1, quantity.whole(asked))) if asked is not None else 1
    return min(_MOST_CPUS, (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1))


def memory(reading: MachineReader) -> Quantity:
    """The memory the guest sees: what is written, else what is asked for."""
    given, resources = reading.instance.domain.memory, reading.instance.domain.resources or Resources()
    if given is not None and given.guest is not None:
        return given.guest
    for amounts in (resources.requests, resources.limits):
        if amounts and "memory" in amounts and quantity.parse(amounts["memory"]) > 0:
            return amounts["memory"]
    return _MEMORY


def asks_for_memory_only(reading: MachineReader) -> bool:
    """Return whether the guest's memory is the machine's request, and has no field of its own."""
    given = reading.instance.domain.memory
    requests = (reading.instance.domain.resources or Resources()).requests or {}
    return (given is None or given.guest is None) and "memory" in requests


def _efi(reading: MachineReader) -> bool:
    firmware = reading.instance.domain.firmware
    return firmware is not None and firmware.bootloader is not None and firmware.bootloader.efi is not None


def _disk_defaults(root: DataVolumeTemplate | None) -> DiskDefaults | None:
    if root is None:
        return None
    claim = root.spec.storage or root.spec.pvc
    resources = claim.resources if claim is not None else None
    size = (resources.requests or {}).get("storage") if resources is not None else None
    storage_class = claim.storageClassName if claim is not None else None
    if size is None and not storage_class and not root.spec.preallocation:
        return None
    return DiskDefaults(
        size=ROOT_SIZE if size is None else size,
        storageClass=storage_class or None,
        type="thick" if root.spec.preallocation else "thin",
    )


def _limits(reading: MachineReader) -> VMResourceLimits:
    resources = reading.instance.domain.resources or Resources()
    reserved = None if asks_for_memory_only(reading) else (resources.requests or {}).get("memory")
    return VMResourceLimits(memoryLimit=(resources.limits or {}).get("memory"), memoryReservation=reserved)


def _performance(reading: MachineReader) -> PerformanceProfile:
    cpu = reading.instance.domain.cpu or CPU()
    sockets = cpu.sockets or 1
    # Sockets can be plugged in; cores cannot.
    one_each = (cpu.cores or 1) == 1 and (cpu.threads or 1) == 1
    growing = one_each and (sockets > 1 or cpu.cores == 1) and (not cpu.maxSockets or cpu.maxSockets > sockets)
    return PerformanceProfile(
        cpuHotAddEnabled=growing,
        memoryHotAddEnabled=_may_grow(reading),
        nestedVirtualization=cpu.model == "host-passthrough",
        latencySensitivity="high" if cpu.dedicatedCpuPlacement else "normal",
    )


def _may_grow(reading: MachineReader) -> bool:
    """Return whether KubeVirt would plug in more memory."""
    given, size = reading.instance.domain.memory, memory(reading)
    if not could_grow(size, reading.instance.architecture or reading.rendering.architecture):
        return False
    return given is None or given.maxGuest is None or quantity.parse(given.maxGuest) > quantity.parse(size)


def _security(reading: MachineReader) -> SecurityProfile:
    firmware = reading.instance.domain.firmware
    efi = firmware.bootloader.efi if firmware is not None and firmware.bootloader is not None else None
    tpm = reading.instance.domain.devices.tpm
    has_tpm = tpm is not None and tpm.enabled is not False
    return SecurityProfile(
        # On unless it is switched off.
        secureBoot=efi is not None and efi.secureBoot is not False,
        tpmEnabled=has_tpm,
        tpmVersion="2.0" if has_tpm else None,
    )


def _gpu(reading: MachineReader) -> GPUConfig | None:
    """All graphics processors, when they are of one type that the class can name."""
    gpus = reading.instance.domain.devices.gpus or []
    kinds = {gpu.deviceName for gpu in gpus}
    kind = next(iter(kinds), None)
    if len(kinds) != 1 or not kind or len(gpus) > _MOST_GPUS or _TYPE.match(kind) is None:
        return None
    return GPUConfig(count=len(gpus), type=kind)

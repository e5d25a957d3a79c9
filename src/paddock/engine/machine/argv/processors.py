"""Processors, memory, clock and the board they sit on."""

import re
from typing import Any

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.errors import unusable
from paddock.engine.machine.argv.line import Line
from paddock.engine.machine.argv.options import keyed, pairs
from paddock.engine.machine.argv.pci import Slots
from paddock.engine.machine.config import ClockConfig, CpuConfig, MachineConfig, MemoryConfig

_MIB = 1 << 20
# QEMU takes memory in steps of 8 KiB only, and libvirt, which KubeVirt uses, gives it in these.
_STEP = _MIB
# What a processor with 40 address bits reaches, less the windows of devices; QEMU emulates no larger one.
_MOST_EMULATED = 960 << 30
# the unit in which virtio-mem gives and takes memory
MEMORY_BLOCK = 2 * _MIB
MEMORY_SLOTS = 16

# (guest memory up to, translation buffer), both in MiB. QEMU's default takes a gigabyte of the host for each guest. A small Linux guest
# translates 73 MiB of code until it is ready; a buffer that is too small for that is emptied, and the same code is translated again.
_TRANSLATION_BUFFERS = ((1024, 96),)
_LARGEST_TRANSLATION_BUFFER = 128

# With these, Linux copies and clears memory by instructions that move single bytes as fast as words. QEMU's emulation moves one byte
# at a time, and a Linux guest takes a fifth longer to boot.
_SLOW_EMULATED = ("erms", "fsrm")

# The parser of -cpu has no way to escape a comma.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_HYPERV_VALUE = re.compile(r"[A-Za-z0-9 ._-]{0,12}\Z")
_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_ZONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*\Z")
_DAY = 86_400


def translation_buffer(memory: int) -> int:
    """MiB of translated code that an emulated guest of this size keeps."""
    for limit, size in _TRANSLATION_BUFFERS:
        if memory <= limit * _MIB:
            return size
    return _LARGEST_TRANSLATION_BUFFER


def accelerator(config: MachineConfig, line: Line) -> None:
    """Add the accelerator of the guest's instructions."""
    if line.host.accelerator == "kvm":
        line.option("-accel", "kvm")
    else:
        line.option("-accel", keyed("tcg", tb_size=translation_buffer(config.memory.size)))


def board(config: MachineConfig, line: Line, flash: tuple[str, ...]) -> None:
    """The board; `flash` are the nodes with the firmware's code and variables."""
    if not _MACHINE.match(config.machine_type):
        raise unusable("the machine type", f"{config.machine_type!r} is no name of one")
    members: dict[str, Any] = {"usb": False, "dump_guest_core": False, "memory_backend": "ram0"}
    if config.architecture == "amd64":
        members |= {"vmport": False, "hpet": config.clock.hpet, "smm": config.smm or config.firmware.secure_boot}
        if config.firmware.serial_output:
            members["graphics"] = False
        if not config.acpi:
            members["acpi"] = False
        if not config.clock.pit:
            members["pit"] = False
    else:
        members["gic_version"] = "host" if line.host.accelerator == "kvm" else "3"
        members["acpi"] = config.acpi
    members |= {f"pflash{unit}": node for unit, node in enumerate(flash)}
    line.option("-machine", keyed(config.machine_type, **members))
    if config.architecture == "amd64" and not config.pci_hole64:
        line.option("-global", "q35-pcihost.pci-hole64-size=0")


def processors(config: MachineConfig, line: Line) -> None:
    """The model with its features, and the topology."""
    cpu = config.cpu
    line.option("-cpu", ",".join([_model(cpu, line), *_features(cpu, config, kvm=line.host.accelerator == "kvm")]))
    sockets = max(cpu.sockets, cpu.max_sockets)
    count, each = cpu.sockets * cpu.cores * cpu.threads, cpu.cores * cpu.threads
    topology: dict[str, Any] = {"maxcpus": sockets * each, "sockets": sockets}
    if config.architecture == "amd64":
        topology["dies"] = 1
    line.option("-smp", keyed(str(count), **topology, cores=cpu.cores, threads=cpu.threads))


def _model(cpu: CpuConfig, line: Line) -> str:
    if cpu.model in ("host", "max"):
        return "host,migratable=on" if line.host.accelerator == "kvm" and cpu.model == "host" else "max"
    return _word("the processor model", cpu.model)


def _features(cpu: CpuConfig, config: MachineConfig, *, kvm: bool) -> list[str]:
    found = [f"{_word('a processor feature', name)}={'on' if on else 'off'}" for name, on in cpu.features]
    if cpu.enforce and config.architecture == "amd64":
        found.append("enforce")
    if config.architecture != "amd64":
        return found
    # Emulated processors have neither Hyper-V's interfaces nor KVM's.
    if not kvm and cpu.model in ("host", "max"):
        named = {name for name, _ in cpu.features}
        found += [f"{name}=off" for name in _SLOW_EMULATED if name not in named]
    if kvm:
        for name, value in cpu.hyperv:
            if not _HYPERV_VALUE.match(value):
                raise unusable(f"the Hyper-V setting {name}", f"{value!r} is no value for it")
            found.append(f"{_word('a Hyper-V setting', name)}={value}")
        if config.clock.hyperv:
            found.append("hv-time=on")
        if not config.clock.kvm:
            found.append("kvmclock=off")
        if cpu.kvm_hidden:
            found.append("kvm=off")
    return found


def _word(of: str, text: str) -> str:
    if not _WORD.match(text):
        raise unusable(of, f"{text!r} is no name of one")
    return text


def memory(config: MachineConfig, line: Line, slots: Slots) -> None:
    """The guest's memory, and the room for what is plugged in later."""
    size, extra = boot_size(config), plugged_size(config)
    if line.host.accelerator == "tcg" and size + extra > _MOST_EMULATED:
        raise unusable("the memory", f"an emulated guest reaches {_MOST_EMULATED >> 30}Gi, and it could get {(size + extra) >> 30}Gi")
    members: dict[str, Any] = {"size": f"{size // 1024}k"}
    if extra:
        members |= {"slots": MEMORY_SLOTS, "maxmem": f"{(size + extra) // 1024}k"}
    line.option("-m", keyed(**members))
    line.object({"id": "ram0", "size": size, **_backing(config, line)})
    if extra:
        shared = {"share": True} if _shared(config) else {}
        line.object({"qom-type": "memory-backend-memfd", "id": "ram1", "size": extra, "reserve": False, **shared})
        device = {"driver": "virtio-mem-pci", "id": names.VIRTIO_MEM, "memdev": "ram1", "requested-size": 0, "block-size": MEMORY_BLOCK}
        line.device("pluggable memory", {**device, **slots.place("pluggable memory")})


def boot_size(config: MachineConfig) -> int:
    """Bytes of memory at the start: whole pages, or whole megabytes."""
    step = config.memory.hugepage or _STEP
    return -(-config.memory.size // step) * step


def plugged_size(config: MachineConfig) -> int:
    """Bytes of memory that can be plugged in while the guest runs; 0 where it cannot be."""
    memory = config.memory
    if not config.hotplug or config.architecture != "amd64" or memory.file or memory.hugepage or not config.acpi:
        return 0
    extra = (memory.max_size - boot_size(config)) // MEMORY_BLOCK * MEMORY_BLOCK
    return max(extra, 0)


def _shared(config: MachineConfig) -> bool:
    return config.memory.shared or bool(config.devices.shared)


def _backing(config: MachineConfig, line: Line) -> dict[str, Any]:
    memory: MemoryConfig = config.memory
    shared = _shared(config)
    if memory.file is not None:
        if shared and memory.private:
            raise unusable("the memory file", "memory that other programs share cannot be a private copy")
        return {"qom-type": "memory-backend-file", "mem-path": line.host.named(memory.file), "share": not memory.private}
    if memory.hugepage:
        huge = {"hugetlb": True, "hugetlbsize": memory.hugepage, "prealloc": True}
        return {"qom-type": "memory-backend-memfd", "share": shared, **huge}
    if shared:
        return {"qom-type": "memory-backend-memfd", "share": True}
    # Memory without a file behind it: the host may merge equal pages and use large ones.
    return {"qom-type": "memory-backend-ram"}


def clock(config: MachineConfig, line: Line) -> None:
    """Add the start value of the guest's clocks, and the policy for missed ticks."""
    what: ClockConfig = config.clock
    base, zone = "utc", _zone(what)
    if zone:
        base, line.environment["TZ"] = "localtime", zone
    slew = "slew" if what.rtc_policy == "catchup" and config.architecture == "amd64" else None
    line.option("-rtc", keyed(base=base, clock="vm" if what.rtc_clock == "vm" else None, driftfix=slew))
    kvm_pit = line.host.accelerator == "kvm" and config.architecture == "amd64" and what.pit
    if kvm_pit and what.pit_policy in ("delay", "discard"):
        line.option("-global", pairs(("kvm-pit.lost_tick_policy", what.pit_policy)))


def _zone(clock: ClockConfig) -> str:
    """The zone QEMU has to be in for the guest's clock to start with the right time; "" is UTC."""
    if clock.base != "utc":
        if not _ZONE.match(clock.base):
            raise unusable("the clock's time zone", f"{clock.base!r} is no name of one")
        return clock.base
    offset = clock.offset_seconds
    if not offset:
        return ""
    if abs(offset) >= _DAY:
        raise unusable("the clock's offset", "it has to be less than a day")
    # POSIX counts west of Greenwich as positive.
    sign, rest = ("-" if offset > 0 else "+"), abs(offset)
    return f"GST{sign}{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def iothreads(config: MachineConfig, line: Line) -> None:
    for number in range(1, config.iothreads + 1):
        line.object({"qom-type": "iothread", "id": f"iothread{number}"})

"""The XML of a new domain. Pure: the same machine gives the same text."""

import hashlib
from collections.abc import Sequence
from xml.etree.ElementTree import Element

import msgspec

from paddock.contract.description import MachineDescription
from paddock.contract.payloads import ClassPayload, LimitsPayload, PerformancePayload, SecurityPayload
from paddock_drivers.libvirt import interfaces, marks, xmltree
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from paddock_drivers.libvirt.marks import MachineMarks
from paddock_drivers.libvirt.settings import LibvirtDriverSettings
from paddock_drivers.libvirt.storageport import DomainDisk
from paddock_drivers.libvirt.xmltree import child

# A machine that may grow while it runs has room for so much more.
_HEADROOM = 4
_SLOTS = 16
_MOST_HOT_CPUS = 64
# Places for disks and network interfaces that are plugged in later.
_SPARE_PORTS = 8
PERIOD = 100_000
_DEVICES = "bcdefghijklmnopqrstuvwxy"
SEED_TARGET = "vdz"


class DomainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A machine with all that was chosen for it. The root disk comes first."""

    given: MachineDescription
    uuid: str
    disks: tuple[DomainDisk, ...]
    seed: DomainDisk | None
    marks: MachineMarks


def build(plan: DomainPlan, abilities: HypervisorAbilities, settings: LibvirtDriverSettings) -> str:
    """Return the text of a definition."""
    hardware = plan.given.hardware
    root = Element("domain", {"type": abilities.type})
    child(root, "name", plan.given.name)
    child(root, "uuid", plan.uuid)
    child(root, "metadata").append(marks.element(plan.marks))
    sizes(root, hardware, abilities)
    _tuning(root, hardware.resource_limits or LimitsPayload(), abilities)
    _firmware(root, hardware, abilities)
    _processor(root, hardware, abilities)
    _clock(root, abilities)
    devices = child(root, "devices")
    _controllers(devices, abilities)
    for index, disk in enumerate(plan.disks):
        devices.append(disk_element(disk, target(index), boot=index == 0))
    if plan.seed is not None:
        devices.append(disk_element(plan.seed, SEED_TARGET, readonly=True))
    for index, nic in enumerate(plan.given.networks):
        devices.append(interfaces.element(nic, mac_of(plan.uuid, index, nic.mac_address), settings.network))
    _furniture(devices, hardware, abilities, settings)
    return xmltree.text(root)


def target(index: int) -> str:
    """Return the name of a disk's device by its place."""
    if index > len(_DEVICES):
        raise ValueError("a machine has at most 24 data disks")
    return "vda" if index == 0 else f"vd{_DEVICES[index - 1]}"


def free_target(used: Sequence[str]) -> str:
    """Return a name of a device that no disk has."""
    return next(name for index in range(len(_DEVICES) + 1) if (name := target(index)) not in used)


def mac_of(uuid: str, index: int, given: str) -> str:
    """Return the address of an interface: the one given, or one that follows from the machine."""
    if given:
        return given.lower().replace("-", ":")
    digest = hashlib.sha256(f"{uuid}/{index}".encode()).hexdigest()
    return f"52:54:00:{digest[:2]}:{digest[2:4]}:{digest[4:6]}"


def disk_element(disk: DomainDisk, device: str, *, boot: bool = False, readonly: bool = False) -> Element:
    """Return the element of a disk."""
    made = Element("disk", {"type": disk.kind, "device": "disk"})
    child(made, "driver", name="qemu", type=disk.format, **{"discard": "unmap", **disk.options})
    child(made, "source", **{"dev" if disk.kind == "block" else "file": disk.path})
    child(made, "target", dev=device, bus="virtio")
    if readonly:
        child(made, "readonly")
    if disk.iops:
        child(child(made, "iotune"), "total_iops_sec", str(disk.iops))
    child(made, "serial", disk.name[:20])
    if boot:
        child(made, "boot", order="1")
    return made


def limited(disk: DomainDisk, hardware: ClassPayload) -> DomainDisk:
    """Return a disk with the limit that its class sets."""
    defaults = hardware.disk_defaults
    return msgspec.structs.replace(disk, iops=defaults.iops or 0) if defaults is not None else disk


def memory_device(mib: int) -> str:
    """Return the element of memory that is plugged into a running machine."""
    made = Element("memory", {"model": "dimm"})
    part = child(made, "target")
    child(part, "size", str(mib << 10), unit="KiB")
    child(part, "node", "0")
    return xmltree.text(made)


def most_cpus(hardware: ClassPayload, abilities: HypervisorAbilities) -> int:
    """Return the processors that a machine can grow to while it runs."""
    if not _performance(hardware).cpu_hot_add_enabled:
        return hardware.cpu
    return max(hardware.cpu, min(hardware.cpu * _HEADROOM, abilities.most_cpus, _MOST_HOT_CPUS))


def _performance(hardware: ClassPayload) -> PerformancePayload:
    return hardware.performance_profile or PerformancePayload()


def sizes(root: Element, hardware: ClassPayload, abilities: HypervisorAbilities) -> None:
    """Append the processors and the memory of a class."""
    kib = str(hardware.memory_mib << 10)
    if _performance(hardware).memory_hot_add_enabled:
        child(root, "maxMemory", str(hardware.memory_mib * _HEADROOM << 10), slots=str(_SLOTS), unit="KiB")
    child(root, "memory", kib, unit="KiB")
    child(root, "currentMemory", kib, unit="KiB")
    child(root, "vcpu", str(most_cpus(hardware, abilities)), placement="static", current=str(hardware.cpu))


def _tuning(root: Element, limits: LimitsPayload, abilities: HypervisorAbilities) -> None:
    quota = cpu_quota(limits, abilities)
    if not limits.cpu_shares and not quota:
        return
    tuning = child(root, "cputune")
    if limits.cpu_shares:
        child(tuning, "shares", str(limits.cpu_shares))
    if quota:
        child(tuning, "global_period", str(PERIOD))
        child(tuning, "global_quota", str(quota))


def cpu_quota(limits: LimitsPayload, abilities: HypervisorAbilities) -> int:
    """Return the microseconds of all processors in each period that a limit in MHz allows; 0 for none."""
    if not limits.cpu_limit or not abilities.mhz:
        return 0
    return max(1000, limits.cpu_limit * PERIOD // abilities.mhz)


def _firmware(root: Element, hardware: ClassPayload, abilities: HypervisorAbilities) -> None:
    security = hardware.security_profile or SecurityPayload()
    secure = security.secure_boot
    efi = secure or hardware.firmware.upper() in ("UEFI", "EFI")
    system = child(root, "os", **({"firmware": "efi"} if efi else {}))
    machine = {"machine": abilities.machine} if abilities.machine else {}
    child(system, "type", "hvm", arch=abilities.architecture, **machine)
    if efi:
        firmware = child(system, "firmware")
        word = "yes" if secure else "no"
        child(firmware, "feature", enabled=word, name="secure-boot")
        child(firmware, "feature", enabled=word, name="enrolled-keys")
        if secure:
            child(system, "loader", secure="yes")
    features = child(root, "features")
    child(features, "acpi")
    child(features, "apic")
    if secure:
        child(features, "smm", state="on")
    if security.vtd_enabled:
        child(features, "ioapic", driver="qemu")


def _processor(root: Element, hardware: ClassPayload, abilities: HypervisorAbilities) -> None:
    performance, most = _performance(hardware), most_cpus(hardware, abilities)
    mode = "host-passthrough" if "host-passthrough" in abilities.cpu_modes else "maximum" if "maximum" in abilities.cpu_modes else ""
    cpu = Element("cpu", {"mode": mode} if mode else {})
    if mode == "host-passthrough":
        cpu.set("migratable", "on")
    if performance.hyper_threading_policy in ("prefer", "require", "avoid"):
        threads = 2 if performance.hyper_threading_policy != "avoid" and most % 2 == 0 else 1
        child(cpu, "topology", sockets="1", dies="1", cores=str(most // threads), threads=str(threads))
    if abilities.accelerated and mode:
        flag = "vmx" if abilities.vendor == "Intel" else "svm"
        child(cpu, "feature", policy="require" if performance.nested_virtualization else "disable", name=flag)
    if performance.memory_hot_add_enabled:
        cpu.append(node(hardware, most))
    if len(cpu) or mode:
        root.append(cpu)


def node(hardware: ClassPayload, most: int) -> Element:
    """Return the one node of a machine, which memory is plugged into."""
    made = Element("numa")
    child(made, "cell", id="0", cpus=f"0-{most - 1}" if most > 1 else "0", memory=str(hardware.memory_mib << 10), unit="KiB")
    return made


def _clock(root: Element, abilities: HypervisorAbilities) -> None:
    clock = child(root, "clock", offset="utc")
    if abilities.type in ("kvm", "qemu") and abilities.architecture == "x86_64":
        child(clock, "timer", name="rtc", tickpolicy="catchup")
        child(clock, "timer", name="pit", tickpolicy="delay")
        child(clock, "timer", name="hpet", present="no")
    child(root, "on_poweroff", "destroy")
    child(root, "on_reboot", "restart")
    child(root, "on_crash", "destroy")


def _controllers(devices: Element, abilities: HypervisorAbilities) -> None:
    if abilities.machine != "q35":
        return
    child(devices, "controller", type="pci", model="pcie-root")
    for _ in range(_SPARE_PORTS + len(_DEVICES) // 3):
        child(devices, "controller", type="pci", model="pcie-root-port")


def _furniture(devices: Element, hardware: ClassPayload, abilities: HypervisorAbilities, settings: LibvirtDriverSettings) -> None:
    """The devices of every machine: a console, a screen, the agent's channel, chance."""
    security = hardware.security_profile or SecurityPayload()
    if abilities.type == "test":
        return
    child(child(devices, "serial", type="pty"), "target", port="0")
    child(child(devices, "console", type="pty"), "target", type="serial", port="0")
    child(child(devices, "channel", type="unix"), "target", type="virtio", name="org.qemu.guest_agent.0")
    child(devices, "input", type="tablet", bus="virtio")
    graphics = child(devices, "graphics", type="vnc", port="-1", autoport="yes")
    child(graphics, "listen", type="address", address=settings.console_address)
    child(child(devices, "video"), "model", type="vga")
    child(child(devices, "rng", model="virtio"), "backend", "/dev/urandom", model="random")
    child(devices, "memballoon", model="virtio")
    if security.tpm_enabled or security.tpm_version:
        tpm = child(devices, "tpm", model="tpm-crb")
        child(tpm, "backend", type="emulator", version="2.0")
    if security.vtd_enabled:
        child(child(devices, "iommu", model="intel"), "driver", intremap="on")

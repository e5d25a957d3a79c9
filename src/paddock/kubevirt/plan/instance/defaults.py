"""Defaults of a running machine (docs/spec/kubevirt.md 2.8). Pure.

An instancetype and a preference come before these. The result stands in the VirtualMachineInstance, not in the machine it was made
from, and it is complete: applied again, nothing changes.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from paddock.base import quantity
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.access import Probe
from paddock.kubevirt.kinds.devices import CDRomTarget, Devices, Disk, DiskTarget, Input, LunTarget, Watchdog, WatchdogTimer
from paddock.kubevirt.kinds.domain import CPU, CPUFeature, DomainSpec, MachineChipset, Memory, Resources
from paddock.kubevirt.kinds.features import Features, FeatureState, HyperV, Spinlocks, SyNICTimer, Timer
from paddock.kubevirt.kinds.firmware import EFI, Bootloader, Firmware
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirtConfiguration, LiveUpdateConfiguration
from paddock.kubevirt.kinds.networks import Interface, Network, PodNetwork
from paddock.kubevirt.kinds.volumes import Volume

_MIB, _GIB = 1 << 20, 1 << 30
MACHINE_TYPES = {"amd64": "q35", "arm64": "virt", "s390x": "s390-ccw-virtio"}
HOTPLUG_RATIO = 4
MOST_VCPUS = 512
_BINDINGS = ("masquerade", "bridge", "sriov", "passtBinding", "binding", "slirp", "passt", "macvtap")
# These are no disks of the guest.
_NO_DISK = ("memoryDump",)
_ON = FeatureState(enabled=True)
_Switch = TypeVar("_Switch", bound=msgspec.Struct)


class InstallationDefaults(msgspec.Struct, frozen=True):
    """The defaults for all machines: from the host, and the configuration of the KubeVirt object."""

    architecture: str = "amd64"
    default_binding: str = "bridge"
    # gives it also to interfaces that say none, which older machines have and admission refuses now
    binds_bare_interfaces: bool = True
    cpu_model: str = "host-model"
    machine_type: str = ""
    eviction_strategy: str = "None"
    image_pull_policy: str = ""
    live_update: bool = True
    hotplug_ratio: int = HOTPLUG_RATIO
    max_sockets: int | None = None
    max_guest: int | None = None


def installation(configuration: KubeVirtConfiguration | None, architecture: str) -> InstallationDefaults:
    """The same, read from the configuration."""
    found = configuration or KubeVirtConfiguration()
    growth = found.liveUpdateConfiguration or LiveUpdateConfiguration()
    network = found.network.defaultNetworkInterface if found.network else None
    return InstallationDefaults(
        architecture=architecture,
        default_binding=network or "bridge",
        cpu_model=found.cpuModel or "host-model",
        machine_type=found.machineType or "",
        eviction_strategy=found.evictionStrategy or "None",
        image_pull_policy=found.imagePullPolicy or "",
        live_update=found.vmRolloutStrategy != "Stage",
        hotplug_ratio=growth.maxHotplugRatio or HOTPLUG_RATIO,
        max_sockets=growth.maxCpuSockets,
        max_guest=quantity.whole(growth.maxGuest) if growth.maxGuest is not None else None,
    )


def defaulted(spec: VirtualMachineInstanceSpec, host: InstallationDefaults) -> VirtualMachineInstanceSpec:
    """The spec of a running machine with everything that was left open."""
    architecture = spec.architecture or host.architecture
    networks, interfaces = _networks(spec, host)
    volumes = [_volume(volume, host) for volume in spec.volumes or ()]
    devices = _devices(spec.domain.devices, volumes, interfaces, architecture)
    return replace(
        spec,
        architecture=architecture,
        domain=_domain(replace(spec.domain, devices=devices), architecture, host),
        volumes=volumes or spec.volumes,
        networks=networks,
        evictionStrategy=spec.evictionStrategy or host.eviction_strategy,
        readinessProbe=_probe(spec.readinessProbe),
        livenessProbe=_probe(spec.livenessProbe),
    )


def _domain(domain: DomainSpec, architecture: str, host: InstallationDefaults) -> DomainSpec:
    machine = domain.machine or MachineChipset()
    kind = machine.type or (host.machine_type if architecture == host.architecture else "") or MACHINE_TYPES.get(architecture, "")
    cpu = _cpu(domain, architecture, host)
    features = _features(domain.features or Features(), architecture)
    if features.hyperv is not None and features.hyperv.evmcs is not None and is_on(features.hyperv.evmcs):
        cpu = _with_feature(cpu, "vmx")
    clock = domain.clock
    if clock is not None and clock.timer is not None:
        clock = replace(clock, timer=_timers(clock.timer))
    memory = _memory(domain, architecture, host)
    return replace(
        domain,
        machine=replace(machine, type=kind),
        cpu=cpu,
        memory=memory,
        resources=_resources(domain.resources),
        firmware=_arm_firmware(domain.firmware or Firmware()) if architecture == "arm64" else domain.firmware,
        features=features,
        clock=clock,
    )


def _resources(resources: Resources | None) -> Resources | None:
    """A machine asks for the processors that it is limited to."""
    if resources is None or "cpu" not in (resources.limits or {}) or "cpu" in (resources.requests or {}):
        return resources
    return replace(resources, requests={**(resources.requests or {}), "cpu": (resources.limits or {})["cpu"]})


def _arm_firmware(firmware: Firmware) -> Firmware:
    """Machines of arm64 boot with UEFI, without Secure Boot unless they ask for it."""
    bootloader = firmware.bootloader or Bootloader(efi=EFI())
    if bootloader.efi is not None and bootloader.efi.secureBoot is None:
        bootloader = replace(bootloader, efi=replace(bootloader.efi, secureBoot=False))
    return replace(firmware, bootloader=bootloader)


def has_pcie(architecture: str, machine_type: str) -> bool:
    """Return whether a machine has a PCI Express bus, whose layout is kept over restarts."""
    return architecture in ("amd64", "arm64", "") and (not machine_type or "q35" in machine_type or machine_type.startswith("virt"))


def is_on(feature: object) -> bool:
    """Return whether a named feature is enabled: it is unless it says otherwise."""
    return getattr(feature, "enabled", None) is not False


def _cpu(domain: DomainSpec, architecture: str, host: InstallationDefaults) -> CPU:
    cpu = domain.cpu or CPU()
    if not (cpu.sockets or cpu.cores or cpu.threads):
        cpu = replace(cpu, sockets=_asked_cpus(domain.resources))
    sockets, cores, threads = cpu.sockets or 1, cpu.cores or 1, cpu.threads or 1
    most = cpu.maxSockets
    if not most and host.live_update and architecture != "arm64":
        most = _most_sockets(sockets, cores * threads, host)
    # Nothing else is allowed on arm64 (V114).
    model = cpu.model or ("host-passthrough" if architecture == "arm64" else host.cpu_model)
    return replace(cpu, sockets=sockets, cores=cores, threads=threads, maxSockets=most, model=model)


def _asked_cpus(resources: Resources | None) -> int:
    """A machine without a topology has a socket for each CPU it is limited to or asks for."""
    if resources is None:
        return 1
    text = (resources.limits or {}).get("cpu", (resources.requests or {}).get("cpu", 1))
    return max(quantity.whole(text), 1)


def _most_sockets(sockets: int, each: int, host: InstallationDefaults) -> int:
    wanted = host.max_sockets or sockets * host.hotplug_ratio
    return max(min(wanted, MOST_VCPUS // each), sockets)


def _with_feature(cpu: CPU, name: str) -> CPU:
    if any(feature.name == name for feature in cpu.features or ()):
        required = [replace(each, policy="require") if each.name == name else each for each in cpu.features or ()]
        return replace(cpu, features=required)
    return replace(cpu, features=[*(cpu.features or ()), CPUFeature(name=name, policy="require")])


def _memory(domain: DomainSpec, architecture: str, host: InstallationDefaults) -> Memory:
    memory = domain.memory or Memory()
    guest = memory.guest if memory.guest is not None else _asked_memory(domain, memory)
    memory = replace(memory, guest=guest)
    if guest is None or memory.maxGuest is not None or not host.live_update:
        return memory
    size = quantity.whole(guest)
    if not _can_grow(domain, size, architecture):
        return memory
    most = host.max_guest or size * host.hotplug_ratio
    return replace(memory, maxGuest=quantity.binary(most)) if most >= size and most % _block(memory) == 0 else memory


def _asked_memory(domain: DomainSpec, memory: Memory) -> int | str | None:
    resources = domain.resources or Resources()
    for amounts in (resources.requests, resources.limits):
        if amounts and "memory" in amounts:
            return amounts["memory"]
    return memory.hugepages.pageSize if memory.hugepages is not None else None


def _block(memory: Memory) -> int:
    """Return the size of the pieces in which memory is plugged."""
    return _GIB if memory.hugepages is not None and memory.hugepages.pageSize == "1Gi" else 2 * _MIB


def _can_grow(domain: DomainSpec, size: int, architecture: str) -> bool:
    cpu = domain.cpu or CPU()
    fixed = cpu.realtime is not None or (cpu.numa is not None and cpu.numa.guestMappingPassthrough is not None)
    fits = size >= _GIB and size % _block(domain.memory or Memory()) == 0
    return architecture == "amd64" and fits and not fixed and domain.launchSecurity is None


def _features(features: Features, architecture: str) -> Features:
    acpi = features.acpi or FeatureState()
    if acpi.enabled is None and architecture == "s390x":
        # There is none on it.
        acpi = FeatureState(enabled=False)
    changes: dict[str, object] = {"acpi": _enabled(acpi)}
    for name in ("apic", "smm", "pvspinlock"):
        if (given := getattr(features, name)) is not None:
            changes[name] = _enabled(given)
    if features.hyperv is not None:
        changes["hyperv"] = _hyperv(features.hyperv)
    return replace(features, **changes)


def _enabled(feature: _Switch) -> _Switch:
    return replace(feature, enabled=True) if getattr(feature, "enabled", None) is None else feature


def _hyperv(hyperv: HyperV) -> HyperV:
    """Everything that is named is on, and what depends on something that nobody named switches that on, too."""
    given = {name: getattr(hyperv, name) for name in HyperV.__struct_fields__}
    found = {name: _enabled(feature) for name, feature in given.items() if feature is not None}

    def needs(name: str, other: str, value: object = _ON) -> None:
        if name in found and is_on(found[name]) and other not in found:
            found[other] = value

    needs("synictimer", "synic")
    for name in ("synic", "tlbflush", "ipi"):
        needs(name, "vpindex")
    needs("evmcs", "vapic")
    locks = found.get("spinlocks")
    if isinstance(locks, Spinlocks) and is_on(locks) and locks.spinlocks is None:
        found["spinlocks"] = replace(locks, spinlocks=4096)
    timer = found.get("synictimer")
    if isinstance(timer, SyNICTimer) and timer.direct is not None:
        found["synictimer"] = replace(timer, direct=_enabled(timer.direct))
    return replace(hyperv, **found)


def _timers(timers: Timer) -> Timer:
    given = {name: getattr(timers, name) for name in Timer.__struct_fields__}
    return replace(timers, **{name: replace(timer, present=True) for name, timer in given.items() if timer and timer.present is None})


def _devices(devices: Devices, volumes: Iterable[Volume], interfaces: list[Interface] | None, architecture: str) -> Devices:
    disks = [*(devices.disks or ()), *_missing_disks(devices, volumes)]
    inputs = list(devices.inputs or ())
    if devices.autoattachInputDevice and not inputs:
        inputs = [Input(name="default-0", type="tablet", bus="usb")]
    watchdog = devices.watchdog
    if watchdog is not None:
        watchdog = _watchdog(watchdog, architecture)
    return replace(
        devices,
        disks=[_disk(disk, architecture) for disk in disks] or devices.disks,
        interfaces=interfaces,
        inputs=[replace(each, bus=each.bus or "usb", type=each.type or "tablet") for each in inputs] or devices.inputs,
        watchdog=watchdog,
    )


def _missing_disks(devices: Devices, volumes: Iterable[Volume]) -> list[Disk]:
    used = {disk.name for disk in devices.disks or ()} | {filesystem.name for filesystem in devices.filesystems or ()}
    wanted = [volume for volume in volumes if volume.name not in used]
    return [Disk(name=volume.name) for volume in wanted if not any(getattr(volume, kind) is not None for kind in _NO_DISK)]


def _watchdog(watchdog: Watchdog, architecture: str) -> Watchdog:
    if watchdog.i6300esb is None and watchdog.diag288 is None:
        name = "diag288" if architecture == "s390x" else "i6300esb"
        watchdog = replace(watchdog, **{name: WatchdogTimer()})
    changes = {}
    for name in ("i6300esb", "diag288"):
        timer: WatchdogTimer | None = getattr(watchdog, name)
        if timer is not None and timer.action is None:
            changes[name] = replace(timer, action="reset")
    return replace(watchdog, **changes)


def _disk(disk: Disk, architecture: str) -> Disk:
    bus = "sata" if architecture == "amd64" else "virtio"
    if disk.cdrom is not None:
        drive: CDRomTarget = disk.cdrom
        readonly = True if drive.readonly is None else drive.readonly
        return replace(disk, cdrom=replace(drive, bus=drive.bus or bus, readonly=readonly, tray=drive.tray or "closed"))
    if disk.lun is not None:
        lun: LunTarget = disk.lun
        return replace(disk, lun=replace(lun, bus=lun.bus or bus))
    target = disk.disk or DiskTarget()
    return replace(disk, disk=replace(target, bus=target.bus or bus))


def _networks(spec: VirtualMachineInstanceSpec, host: InstallationDefaults) -> tuple[list[Network] | None, list[Interface] | None]:
    interfaces = list(spec.domain.devices.interfaces or ())
    networks = spec.networks
    if not interfaces and not networks and spec.domain.devices.autoattachPodInterface is not False:
        binding: dict[str, object] = {host.default_binding: Empty()}
        interfaces, networks = [replace(Interface(name="default"), **binding)], [Network(name="default", pod=PodNetwork())]
    if not interfaces:
        return networks, spec.domain.devices.interfaces
    return networks, [_interface(interface, host) for interface in interfaces]


def _interface(interface: Interface, host: InstallationDefaults) -> Interface:
    if any(getattr(interface, name) is not None for name in _BINDINGS) or not host.binds_bare_interfaces:
        return interface
    binding: dict[str, object] = {host.default_binding: Empty()}
    return replace(interface, **binding)


def _volume(volume: Volume, host: InstallationDefaults) -> Volume:
    image = volume.containerDisk
    if image is None or image.imagePullPolicy:
        return volume
    policy = host.image_pull_policy or ("Always" if _may_change(image.image) else "IfNotPresent")
    return replace(volume, containerDisk=replace(image, imagePullPolicy=policy))


def _may_change(image: str) -> bool:
    """Return whether the same name may stand for another image tomorrow."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return not digest and tag in ("", "latest")


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return replace(probe, **{name: value for name, value in defaults.items() if not getattr(probe, name)})

"""The hardware of a machine: from the words of a class to the keys of Proxmox VE. Pure.

A change has only what differs from the machine, so an unchanged machine is left alone, and what a template says stays unless the class
says something else.
"""

from collections.abc import Mapping

import msgspec

from paddock.contract.payloads import ClassPayload, DiskDefaultsPayload, LimitsPayload, PerformancePayload, SecurityPayload
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import properties
from paddock_drivers.proxmox.api import FormValue
from paddock_drivers.proxmox.config import ProxmoxMachineConfig

MOST_CPUS, MOST_MIB = 512, 8 << 20
# A machine whose memory grows while it runs begins with this much, outside of the modules that are plugged.
_LEAST_HOT_MIB = 1024
# Processors that a machine with hot-add can grow to, as a multiple of what it begins with.
_HEADROOM = 4
_DEFAULT_HOTPLUG = frozenset({"network", "disk", "usb"})
_UNITS = (1, 10_000)
_EXTRA = "proxmox."
# Options that a class may set itself. Those that reach the host (args, hostpci, hookscript) are root's alone.
_OPTIONS = (
    *("acpi", "bios", "cicustom", "citype", "cpu", "cpuunits", "hotplug", "keyboard", "localtime", "machine", "numa", "onboot", "ostype"),
    *("protection", "rng0", "scsihw", "serial0", "startup", "tablet", "vga", "vmstatestorage", "watchdog"),
)
_UEFI = ("UEFI", "EFI")
_FRESH: Mapping[str, FormValue] = {"scsihw": "virtio-scsi-single", "ostype": "l26", "serial0": "socket", "agent": "enabled=1"}


class ProxmoxNodeFacts(msgspec.Struct, frozen=True):
    """The facts of a cluster that hardware depends on: its release, and the clock of a node's processors (0: unknown)."""

    release: tuple[int, int] = (8, 0)
    mhz: float = 0.0


class ProxmoxHardwareChange(msgspec.Struct, frozen=True):
    """The keys to set, those to delete, and what cannot be done."""

    form: dict[str, FormValue] = {}
    deleted: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()


def check(hardware: ClassPayload) -> None:
    """Raise `ProviderError` for a class that no machine here can have."""
    if hardware.cpu > MOST_CPUS or hardware.memory_mib > MOST_MIB:
        raise refusals.invalid("the class is too large", why=f"a machine has at most {MOST_CPUS} CPUs and {MOST_MIB} MiB")
    security = hardware.security_profile or SecurityPayload()
    if security.require_encryption:
        raise refusals.not_supported(
            "machines cannot be encrypted",
            why="Proxmox VE encrypts no disks of machines",
            fix="encrypt the storage, and drop requireEncryption",
        )
    if isinstance(hardware.gpu, msgspec.Struct) and hardware.gpu.count:
        raise refusals.not_supported(
            "a machine cannot get a GPU", why="only root may pass devices through", fix="put a mapped device into a template"
        )
    wrong = next((key for key in hardware.extra_config or {} if key.startswith(_EXTRA) and key.removeprefix(_EXTRA) not in _OPTIONS), None)
    if wrong is not None:
        raise refusals.invalid(f'extraConfig has "{wrong[:64]}", which a class cannot set', fix=f"use one of {', '.join(_OPTIONS)}")


def fresh(hardware: ClassPayload, storage: str, cpu_type: str, facts: ProxmoxNodeFacts) -> dict[str, FormValue]:
    """Return the keys of a machine that has no template: what its firmware and its devices are."""
    security, performance = hardware.security_profile or SecurityPayload(), hardware.performance_profile or PerformancePayload()
    form = dict(_FRESH)
    if facts.release[0] >= 8 or cpu_type == "host":
        form["cpu"] = "host" if _is_nested(performance) else cpu_type
    elif _is_nested(performance):
        form["cpu"] = "host"
    if hardware.guest_tools_policy in ("skip", "uninstall"):
        form["agent"] = "enabled=0"
    secure = security.secure_boot or performance.virtualization_based_security
    machine = {"type": "q35", "viommu": "intel"} if security.vtd_enabled else {"type": "q35"}
    if hardware.firmware.upper() in _UEFI or secure:
        form["bios"] = "ovmf"
        form["efidisk0"] = properties.render({"file": f"{storage}:1", "efitype": "4m", "pre-enrolled-keys": secure}, "file")
        form["machine"] = properties.render(machine, "type")
    elif security.vtd_enabled or security.tpm_enabled:
        form["machine"] = properties.render(machine, "type")
    return form


def extra(hardware: ClassPayload) -> dict[str, FormValue]:
    """Return the keys that a class sets itself."""
    return {key.removeprefix(_EXTRA): value for key, value in (hardware.extra_config or {}).items() if key.startswith(_EXTRA)}


def change(hardware: ClassPayload, config: ProxmoxMachineConfig, facts: ProxmoxNodeFacts, *, storage: str = "") -> ProxmoxHardwareChange:
    """Return what brings a machine to a class. `storage` is where the state of a new TPM goes; empty: none is made."""
    form: dict[str, FormValue] = {}
    performance = hardware.performance_profile or PerformancePayload()
    limitations = list(_limitations(hardware, config))
    deleted = _processors(hardware.cpu, performance, config, form)
    limitations += _memory(hardware, performance, config, form)
    plugged = _hotplug(performance, config, form)
    if plugged and not properties.is_true(config.data.get("numa")):
        form["numa"] = True
    if _is_nested(performance) and properties.parse(config.text("cpu"), "cputype").get("cputype") != "host":
        form["cpu"] = "host"
    limitations += _limits(hardware.resource_limits, config, facts, form)
    security = hardware.security_profile or SecurityPayload()
    if security.tpm_enabled and not config.text("tpmstate0") and storage:
        version = "v1.2" if security.tpm_version == "1.2" else "v2.0"
        form["tpmstate0"] = properties.render({"file": f"{storage}:1", "version": version}, "file")
    form |= {key: value for key, value in extra(hardware).items() if config.text(key) != str(value)}
    return ProxmoxHardwareChange(form, deleted, tuple(limitations))


def _is_nested(performance: PerformancePayload) -> bool:
    return performance.nested_virtualization or performance.virtualization_based_security


def _processors(cpu: int, performance: PerformancePayload, config: ProxmoxMachineConfig, form: dict[str, FormValue]) -> tuple[str, ...]:
    """Set the processors. A machine with hot-add has room to grow, and plugs in what it uses of it."""
    sockets = config.number("sockets", 1)
    if not performance.cpu_hot_add_enabled and not config.text("vcpus"):
        if config.most_cpus != cpu:
            kept = sockets if sockets > 0 and cpu % sockets == 0 else 1
            form.update({"cores": cpu // kept, "sockets": kept})
        return ()
    if not performance.cpu_hot_add_enabled:
        if config.most_cpus != cpu:
            form.update({"cores": cpu, "sockets": 1})
        return ("vcpus",)
    if cpu > config.most_cpus or not config.text("vcpus"):
        form.update({"cores": max(config.most_cpus, min(cpu * _HEADROOM, MOST_CPUS)), "sockets": 1})
    if config.number("vcpus") != cpu:
        form["vcpus"] = cpu
    return ()


def _memory(
    hardware: ClassPayload, performance: PerformancePayload, config: ProxmoxMachineConfig, form: dict[str, FormValue]
) -> tuple[str, ...]:
    if config.memory_mib != hardware.memory_mib:
        form["memory"] = hardware.memory_mib
    if performance.memory_hot_add_enabled and hardware.memory_mib < _LEAST_HOT_MIB:
        return (f"memoryHotAddEnabled: memory grows while a machine runs from {_LEAST_HOT_MIB} MiB on",)
    return ()


def _hotplug(performance: PerformancePayload, config: ProxmoxMachineConfig, form: dict[str, FormValue]) -> bool:
    """Set what can be plugged while the machine runs; returns whether memory or processors can."""
    setting = config.text("hotplug")
    have = set(_DEFAULT_HOTPLUG) if setting in ("", "1") else {each for each in setting.split(",") if each != "0"}
    memory = performance.memory_hot_add_enabled and ("memory" in form or config.memory_mib >= _LEAST_HOT_MIB)
    wanted = have | ({"cpu"} if performance.cpu_hot_add_enabled else set())
    if memory and int(str(form.get("memory", config.memory_mib))) >= _LEAST_HOT_MIB:
        wanted |= {"memory"}
    if wanted != have:
        form["hotplug"] = ",".join(sorted(wanted))
    return bool(wanted & {"cpu", "memory"}) and (performance.cpu_hot_add_enabled or performance.memory_hot_add_enabled)


def _limits(
    limits: LimitsPayload | None, config: ProxmoxMachineConfig, facts: ProxmoxNodeFacts, form: dict[str, FormValue]
) -> tuple[str, ...]:
    if limits is None:
        return ()
    left = []
    if limits.cpu_limit and facts.mhz:
        share = min(round(limits.cpu_limit / facts.mhz, 2), 128.0)
        if abs(float(config.text("cpulimit") or 0) - share) > 0.005:
            form["cpulimit"] = share
    elif limits.cpu_limit:
        left.append("cpuLimit: the node does not say how fast its processors are")
    if limits.cpu_shares is not None:
        units = max(_UNITS[0], min(limits.cpu_shares, _UNITS[1]))
        if config.number("cpuunits") != units:
            form["cpuunits"] = units
    if limits.memory_reservation_mib is not None:
        least = min(limits.memory_reservation_mib, int(str(form.get("memory", config.memory_mib))))
        if config.text("balloon") != str(least):
            form["balloon"] = least
    if limits.cpu_reservation:
        left.append("cpuReservation: Proxmox VE reserves no processors; use cpuShares")
    if limits.memory_limit_mib is not None and limits.memory_limit_mib < int(str(form.get("memory", config.memory_mib))):
        left.append("memoryLimit: a machine of Proxmox VE may use all its memory")
    return tuple(left)


def _limitations(hardware: ClassPayload, config: ProxmoxMachineConfig) -> tuple[str, ...]:
    """Name what the class asks for and the machine does not have."""
    security, performance = hardware.security_profile or SecurityPayload(), hardware.performance_profile or PerformancePayload()
    uefi, left = config.text("bios") == "ovmf", []
    if hardware.firmware and (hardware.firmware.upper() in _UEFI) != uefi and not (security.secure_boot and uefi):
        left.append(f"firmware: the machine keeps {'UEFI' if uefi else 'BIOS'}, which it was made with")
    if security.secure_boot and not properties.is_true(properties.parse(config.text("efidisk0"), "file").get("pre-enrolled-keys")):
        left.append("secureBoot: the EFI disk of the machine has no enrolled keys")
    if security.vtd_enabled and "viommu" not in config.text("machine"):
        left.append("vtdEnabled: the machine was made without an IOMMU")
    if security.encryption_enabled or security.key_provider:
        left.append("encryptionPolicy: Proxmox VE encrypts no disks of machines")
    if performance.latency_sensitivity == "high":
        left.append("latencySensitivity: Proxmox VE has no such setting; pin processors in a template")
    if performance.hyper_threading_policy not in ("", "auto"):
        left.append("hyperThreadingPolicy: Proxmox VE leaves it to the host")
    if (kind := (hardware.disk_defaults or DiskDefaultsPayload()).type) not in ("", "thin"):
        left.append(f"diskDefaults.type: the disk of the template or image stays as its storage keeps it, not {kind}")
    if foreign := sorted(key for key in hardware.extra_config or {} if not key.startswith(_EXTRA)):
        left.append(f"extraConfig: {foreign[0][:64]} means nothing to Proxmox VE; its options begin with {_EXTRA}")
    return tuple(left)

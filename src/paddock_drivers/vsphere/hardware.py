"""The hardware of a machine as its class asks for it, against the hardware that it has. Pure: a configuration in, a specification out."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET
from pyVmomi import vim

from paddock.contract.payloads import ClassPayload, LimitsPayload, PerformancePayload, SecurityPayload
from paddock_drivers.kit import refusals

_FIRMWARE = {"": "", "bios": "bios", "uefi": "efi", "efi": "efi"}
_SHARING = {"": "any", "auto": "any", "prefer": "any", "avoid": "none", "require": "internal"}
_SENSITIVITY = ("low", "normal", "high")
_TOOLS = {"upgrade": "upgradeAtPowerCycle", "install": "manual", "skip": "manual", "uninstall": "manual"}
# Keys of a class's extraConfig that are no settings of the machine.
HARDWARE_VERSION, GUEST_ID = "vsphere.hardwareVersion", "vsphere.guestId"
_SPOKEN = (HARDWARE_VERSION, GUEST_ID)
# What the driver writes itself.
_OWN = ("paddock.", "guestinfo.userdata", "guestinfo.metadata", "guestinfo.ignition.")
_MOST_CPUS, _MOST_MIB = 960, 24 << 20
_VERSION = re.compile(r"(?:vmx-)?([0-9]{1,2})\Z", re.ASCII)
_LATER = "takes effect when the machine is changed while it is off"


class HardwareChanges(msgspec.Struct, frozen=True):
    """The change that gives a machine its hardware; `needs_off` names the sizes that a running machine cannot take."""

    spec: Any
    changed: bool = False
    needs_off: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()


def check(machine_class: ClassPayload) -> None:
    """Refuse a class that no machine of vSphere can have."""
    if machine_class.cpu > _MOST_CPUS or machine_class.memory_mib > _MOST_MIB:
        raise refusals.invalid("the class is too large", why=f"a machine has at most {_MOST_CPUS} CPUs and {_MOST_MIB >> 10} GiB of memory")
    if machine_class.memory_mib % 4:
        raise refusals.invalid("the class has a wrong MemoryMiB", why="vSphere counts memory in steps of 4 MiB")
    if machine_class.firmware.lower() not in _FIRMWARE:
        raise refusals.invalid(f"the firmware {machine_class.firmware[:32]!r} is unknown", fix="use BIOS or UEFI")
    security = machine_class.security_profile or SecurityPayload()
    if security.require_encryption:
        raise refusals.not_supported(
            "the machine cannot be encrypted", why="the driver uses no key provider", fix="encrypt its storage by a storage policy"
        )
    if security.tpm_enabled and security.tpm_version == "1.2":
        raise refusals.not_supported("a TPM of version 1.2 cannot be had", why="vSphere has version 2.0", fix='set tpmVersion to "2.0"')
    firmware = _FIRMWARE[machine_class.firmware.lower()]
    for name, asked in (("secureBoot", security.secure_boot), ("tpmEnabled", security.tpm_enabled)):
        if asked and firmware == "bios":
            raise refusals.invalid(f"{name} needs UEFI", fix="set the firmware of the class to UEFI")
    if machine_class.gpu is not UNSET and machine_class.gpu.count:
        raise refusals.not_supported("machines with a GPU are not made", fix="add the device in vCenter")
    for key in machine_class.extra_config or ():
        if key.lower().startswith(_OWN):
            raise refusals.invalid(f"the class cannot set {key[:64]!r} in extraConfig", why="the driver writes it itself")
    version_of(machine_class)


def version_of(machine_class: ClassPayload) -> int:
    """Return the version of virtual hardware that a class asks for; 0 for none."""
    text = (machine_class.extra_config or {}).get(HARDWARE_VERSION, "")
    found = _VERSION.match(text)
    if text and found is None:
        raise refusals.invalid(f"extraConfig has a wrong {HARDWARE_VERSION}", fix="write it as vmx-19")
    return int(found[1]) if found is not None else 0


def check_endpoint(machine_class: ClassPayload, speaks: Callable[..., bool]) -> None:
    """Refuse a class whose members the endpoint's version of the API does not have."""
    security = machine_class.security_profile or SecurityPayload()
    performance = machine_class.performance_profile or PerformancePayload()
    needs: tuple[tuple[str, bool, Any, str], ...] = (
        ("securityProfile.tpmEnabled", security.tpm_enabled, vim.vm.device.VirtualTPM, ""),
        ("securityProfile.vtdEnabled", security.vtd_enabled, vim.vm.FlagInfo, "vvtdEnabled"),
        ("securityProfile.secureBoot", security.secure_boot, vim.vm.BootOptions, "efiSecureBootEnabled"),
        ("performanceProfile.virtualizationBasedSecurity", performance.virtualization_based_security, vim.vm.FlagInfo, "vbsEnabled"),
    )
    lacking = [name for name, asked, kind, member in needs if asked and not speaks(kind, member)]
    if lacking:
        what = f"the class asks for {', '.join(lacking)}"
        raise refusals.not_supported(what, why="this version of vSphere has no such thing", fix="upgrade it, or change the class")


def version_name(version: int) -> str:
    """Return the name of a version of virtual hardware."""
    return f"vmx-{version:02d}"


def current_version(config: Any) -> int:
    """Return the version of virtual hardware that a machine has."""
    found = _VERSION.match(str(config.version or ""))
    return int(found[1]) if found is not None else 0


def changes(config: Any, machine_class: ClassPayload, *, running: bool) -> HardwareChanges:
    """Return what has to change. A running machine takes more CPUs and memory if that is switched on, settings, and shares."""
    made = _HardwarePlan(config, running)
    made.size("numCPUs", "CPUs", config.hardware.numCPU, machine_class.cpu, hot=bool(config.cpuHotAddEnabled))
    made.size("memoryMB", "MemoryMiB", config.hardware.memoryMB, machine_class.memory_mib, hot=bool(config.memoryHotAddEnabled))
    made.tools(machine_class.guest_tools_policy.lower())
    made.settings(machine_class.extra_config or {})
    if machine_class.resource_limits is not None:
        made.limits(machine_class.resource_limits)
    firmware = _FIRMWARE[machine_class.firmware.lower()]
    if firmware:
        made.idle("firmware", "firmware", config.firmware, firmware)
    if machine_class.performance_profile is not None:
        made.performance(machine_class.performance_profile)
    if machine_class.security_profile is not None:
        made.security(machine_class.security_profile)
    return made.result()


class _HardwarePlan:
    def __init__(self, config: Any, running: bool) -> None:
        self._config = config
        self._running = running
        self._spec = vim.vm.ConfigSpec()
        self._flags: dict[str, Any] = {}
        self._changed = False
        self._off: list[str] = []
        self._limitations: list[str] = []

    def result(self) -> HardwareChanges:
        if self._flags:
            kept = {name: getattr(self._config.flags, name, None) for name in ("htSharing", "vvtdEnabled", "vbsEnabled", "diskUuidEnabled")}
            self._spec.flags = vim.vm.FlagInfo(**{name: value for name, value in {**kept, **self._flags}.items() if value is not None})
        return HardwareChanges(self._spec, self._changed, tuple(self._off), tuple(self._limitations))

    def _set(self, member: str, value: Any) -> None:
        setattr(self._spec, member, value)
        self._changed = True

    def size(self, member: str, word: str, has: int, wants: int, *, hot: bool) -> None:
        if wants == has:
            return
        if self._running and not (wants > has and hot):
            self._off.append(f"{word} from {has} to {wants}")
        self._set(member, wants)

    def idle(self, member: str, word: str, has: Any, wants: Any) -> None:
        """Change a member that only a machine that is off can change."""
        if (has or type(wants)()) == wants:
            return
        if self._running:
            self._limitations.append(f"class.{word}: {_LATER}")
            return
        self._set(member, wants)

    def flag(self, name: str, word: str, wants: Any, default: Any = False) -> None:
        has = getattr(self._config.flags, name, None)
        if (default if has is None else has) == wants:
            return
        if self._running:
            self._limitations.append(f"class.{word}: {_LATER}")
            return
        self._flags[name] = wants
        self._changed = True

    def tools(self, policy: str) -> None:
        if policy == "uninstall":
            self._limitations.append("class.guestToolsPolicy: vSphere does not uninstall VMware Tools; say it in userData")
        wants = _TOOLS.get(policy)
        has = getattr(self._config.tools, "toolsUpgradePolicy", None) if self._config.tools is not None else None
        # Tools are left as they are unless somebody asked to upgrade them.
        if wants is not None and wants != (has or "manual"):
            self._set("tools", vim.vm.ToolsConfigInfo(toolsUpgradePolicy=wants))

    def settings(self, settings: dict[str, str]) -> None:
        has = {each.key: str(each.value) for each in self._config.extraConfig or ()}
        fresh = {key: value for key, value in settings.items() if key not in _SPOKEN and has.get(key) != value}
        if fresh:
            self._set("extraConfig", [vim.option.OptionValue(key=key, value=value) for key, value in fresh.items()])
        if guest := settings.get(GUEST_ID, ""):
            self.idle("guestId", f"extraConfig.{GUEST_ID}", self._config.guestId, guest)

    def limits(self, limits_payload: LimitsPayload) -> None:
        cpu = _allocation(limits_payload.cpu_limit, limits_payload.cpu_reservation, limits_payload.cpu_shares)
        memory = _allocation(limits_payload.memory_limit_mib, limits_payload.memory_reservation_mib, None)
        for member, wants in (("cpuAllocation", cpu), ("memoryAllocation", memory)):
            if _facts(getattr(self._config, member, None)) != _facts(wants):
                self._set(member, wants)

    def performance(self, performance_payload: PerformancePayload) -> None:
        config, level = self._config, performance_payload.latency_sensitivity.lower() or "normal"
        if level not in _SENSITIVITY:
            raise refusals.invalid(f"the latency sensitivity {level[:32]!r} is unknown", fix=f"use {', '.join(_SENSITIVITY)}")
        has = str(config.latencySensitivity.level) if config.latencySensitivity is not None else "normal"
        if has != level:
            if self._running:
                self._limitations.append(f"class.performanceProfile.latencySensitivity: {_LATER}")
            else:
                self._set("latencySensitivity", vim.LatencySensitivity(level=level))
                # Such a machine starts only with all of its memory reserved.
                self._set("memoryReservationLockedToMax", level == "high")
        profile = "performanceProfile"
        self.idle("cpuHotAddEnabled", f"{profile}.cpuHotAddEnabled", config.cpuHotAddEnabled, performance_payload.cpu_hot_add_enabled)
        self.idle(
            "memoryHotAddEnabled", f"{profile}.memoryHotAddEnabled", config.memoryHotAddEnabled, performance_payload.memory_hot_add_enabled
        )
        based = performance_payload.virtualization_based_security
        nested = performance_payload.nested_virtualization or based
        self.idle("nestedHVEnabled", f"{profile}.nestedVirtualization", config.nestedHVEnabled, nested)
        self.flag("vbsEnabled", f"{profile}.virtualizationBasedSecurity", based)
        policy = performance_payload.hyper_threading_policy.lower()
        if policy not in _SHARING:
            raise refusals.invalid(f"the hyper-threading policy {policy[:32]!r} is unknown", fix="use auto, prefer, avoid or require")
        self.flag("htSharing", f"{profile}.hyperThreadingPolicy", _SHARING[policy], "any")

    def security(self, security_payload: SecurityPayload) -> None:
        boot = self._config.bootOptions
        if bool(getattr(boot, "efiSecureBootEnabled", None)) != security_payload.secure_boot:
            if self._running:
                self._limitations.append(f"class.securityProfile.secureBoot: {_LATER}")
            else:
                self._set("bootOptions", vim.vm.BootOptions(efiSecureBootEnabled=security_payload.secure_boot))
        self.flag("vvtdEnabled", "securityProfile.vtdEnabled", security_payload.vtd_enabled)
        if security_payload.encryption_enabled or security_payload.key_provider:
            self._limitations.append("class.securityProfile.encryption: the driver uses no key provider; encrypt by a storage policy")
        has = any(isinstance(each, vim.vm.device.VirtualTPM) for each in self._config.hardware.device)
        if has == security_payload.tpm_enabled:
            return
        if self._running or has:
            self._limitations.append(f"class.securityProfile.tpmEnabled: {'a TPM stays, with the keys in it' if has else _LATER}")
            return
        change = vim.vm.device.VirtualDeviceSpec(operation="add", device=vim.vm.device.VirtualTPM(key=-90))
        self._set("deviceChange", [change])


def _allocation(limit: int | None, reservation: int | None, shares: int | None) -> Any:
    """An allocation of a resource; vSphere decides by itself what is not given."""
    level = vim.SharesInfo(level="custom", shares=shares) if shares is not None else vim.SharesInfo(level="normal", shares=0)
    return vim.ResourceAllocationInfo(limit=-1 if limit is None else limit, reservation=reservation or 0, shares=level)


def _facts(found: Any) -> tuple[int, int, int]:
    """An allocation, to compare by: the limit, the reservation, and shares that are not the usual ones."""
    if found is None:
        return (-1, 0, 0)
    shares = found.shares
    own = int(shares.shares) if shares is not None and str(shares.level) == "custom" else 0
    return (-1 if found.limit is None else int(found.limit), int(found.reservation or 0), own)

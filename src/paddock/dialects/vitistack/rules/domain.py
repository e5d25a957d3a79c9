from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.vitistack.kinds import machinetypes
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.fields import MachineBootloader
    from paddock.dialects.vitistack.kinds.machine import Machine

_NEEDS_EFI = "Secure Boot needs efi: true"
_NEEDS_Q35 = "Secure Boot needs SMM, which needs q35"
_SECURE = "has(self.firmware) && has(self.firmware.bootloader) && self.firmware.bootloader.secureBoot"


def _machine_type(machine: "Machine") -> str | None:
    domain = machine.spec.domain
    return domain.machine.type if domain and domain.machine else None


def _bootloader(machine: "Machine") -> "MachineBootloader | None":
    domain = machine.spec.domain
    return domain.firmware.bootloader if domain and domain.firmware else None


@rule(
    "vitistack/machine-type",
    Cel("spec.domain.machine", f"!has(self.type) || self.type.matches('{machinetypes.PATTERN}')", "unsupported machine type", ".type"),
)
def machine_type_is_known(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Machine types are those of the two x86 chipsets."""
    name = _machine_type(machine)
    if name is not None and not machinetypes.is_known(name):
        path = ("spec", "domain", "machine", "type")
        yield finding.unsupported(path, name, machinetypes.SUPPORTED, "vitistack/machine-type")


@rule(
    "vitistack/hyperv-apic",
    Cel("spec.domain.features", "!self.hyperv || !has(self.apic) || self.apic", "hyperv needs apic", ".apic"),
)
def hyperv_has_apic(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Hyper-V enlightenments work on the APIC."""
    features = machine.spec.domain.features if machine.spec.domain else None
    if features is not None and features.hyperv and features.apic is False:
        yield finding.invalid(("spec", "domain", "features", "apic"), False, "hyperv needs apic", "vitistack/hyperv-apic")


@rule(
    "vitistack/secure-boot",
    Cel("spec.domain", f"!({_SECURE}) || self.firmware.bootloader.efi", _NEEDS_EFI, ".firmware.bootloader.secureBoot"),
    Cel(
        "spec.domain",
        f"!({_SECURE}) || !has(self.machine) || !has(self.machine.type) || !self.machine.type.matches('{machinetypes.I440FX}')",
        _NEEDS_Q35,
        ".firmware.bootloader.secureBoot",
    ),
)
def secure_boot_is_possible(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Secure Boot needs EFI, and a mainboard with system management mode."""
    bootloader = _bootloader(machine)
    if bootloader is None or not bootloader.secureBoot:
        return
    path = ("spec", "domain", "firmware", "bootloader", "secureBoot")
    if not bootloader.efi:
        yield finding.invalid(path, True, _NEEDS_EFI, "vitistack/secure-boot")
    if machinetypes.is_i440fx(_machine_type(machine) or ""):
        yield finding.invalid(path, True, _NEEDS_Q35, "vitistack/secure-boot")


RULES = (machine_type_is_known, hyperv_has_apic, secure_boot_is_possible)

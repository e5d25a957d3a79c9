"""The rules of VirtRigaud's VMClass. All of them warn: nothing in a class contradicts a ruling."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.base import quantity
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmclass import VMClass


@rule("virtrigaud/class-memory")
def memory_is_a_mebibyte(vmclass: "VMClass", settings: AdmissionSettings) -> Iterator[Finding]:
    """Memory is cut to whole MiB; less than one is no memory at all (a warning)."""
    memory = vmclass.spec.memory
    if 0 < quantity.parse(memory) < quantity.parse("1Mi"):
        text = f"{memory} is less than 1Mi; numbers without a unit are bytes"
        yield finding.warning(("spec", "memory"), text, "virtrigaud/class-memory")


@rule("virtrigaud/secure-boot")
def secure_boot_needs_uefi(vmclass: "VMClass", settings: AdmissionSettings) -> Iterator[Finding]:
    """Secure Boot needs UEFI firmware (a warning)."""
    profile = vmclass.spec.securityProfile
    if profile is not None and profile.secureBoot and vmclass.spec.firmware == "BIOS":
        text = "Secure Boot needs UEFI; machines of this class boot with UEFI although firmware is BIOS"
        yield finding.warning(("spec", "firmware"), text, "virtrigaud/secure-boot")


@rule("virtrigaud/tpm")
def tpm_version_needs_tpm(vmclass: "VMClass", settings: AdmissionSettings) -> Iterator[Finding]:
    """A TPM version has no effect without a TPM (a warning)."""
    profile = vmclass.spec.securityProfile
    if profile is not None and profile.tpmVersion and not profile.tpmEnabled:
        text = "tpmVersion has no effect without tpmEnabled"
        yield finding.warning(("spec", "securityProfile", "tpmVersion"), text, "virtrigaud/tpm")


@rule("virtrigaud/reservation")
def reservations_fit_limits(vmclass: "VMClass", settings: AdmissionSettings) -> Iterator[Finding]:
    """A reservation is not more than the limit (a warning)."""
    limits = vmclass.spec.resourceLimits
    if limits is None:
        return
    if limits.cpuLimit and (limits.cpuReservation or 0) > limits.cpuLimit:
        yield finding.warning(("spec", "resourceLimits", "cpuReservation"), "is more than cpuLimit", "virtrigaud/reservation")
    if limits.memoryLimit is None or limits.memoryReservation is None:
        return
    if quantity.parse(limits.memoryReservation) > quantity.parse(limits.memoryLimit):
        yield finding.warning(("spec", "resourceLimits", "memoryReservation"), "is more than memoryLimit", "virtrigaud/reservation")


RULES = (memory_is_a_mebibyte, secure_boot_needs_uefi, tpm_version_needs_tpm, reservations_fit_limits)

"""Rules of memory that the host cannot read: V108."""

from collections.abc import Iterator

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubevirt.kinds.domain import LaunchSecurity
from paddock.kubevirt.rules.gates import is_open
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_TYPES = ("sev", "snp", "tdx")
_GATES = {"sev": "WorkloadEncryptionSEV", "snp": "WorkloadEncryptionSEV", "tdx": "WorkloadEncryptionTDX"}


@check("kubevirt/V108", given=("spec.domain.launchSecurity",))
def launch_security_is_possible(hardware: HardwareContext) -> Iterator[Finding]:
    """Hidden memory is of one type, and the firmware, the start and the network cards are those that the type allows."""
    security = hardware.spec.domain.launchSecurity
    if security is None or hardware.architecture == "s390x":
        return
    at = hardware.at("domain", "launchSecurity")
    if hardware.architecture != "amd64":
        why = f"there is no launchSecurity for {hardware.architecture}; leave it out"
        yield standing(finding.invalid(hardware.at("architecture"), hardware.architecture, why, "kubevirt/V108"), at)
        return
    # KubeVirt leaves out that it is in the domain.
    path = hardware.at("launchSecurity")
    given = [name for name in _TYPES if getattr(security, name) is not None]
    if len(given) != 1:
        yield standing(finding.forbidden(path, f"give exactly one of {', '.join(_TYPES)}", "kubevirt/V108"), at)
    elif is_open(_GATES[given[0]], hardware.settings):
        for why in (*_firmware(hardware, given[0]), *_start(hardware, security), *_cards(hardware, given[0])):
            yield standing(Finding(path=path, message=f"Invalid value: {why}", rule="kubevirt/V108"), at)


def _firmware(hardware: HardwareContext, type: str) -> Iterator[str]:
    domain, title = hardware.spec.domain, type.upper()
    smm = domain.features.smm if domain.features is not None else None
    if type == "tdx" and smm is not None and smm.enabled is not False:
        yield "TDX does not work with SMM; set features.smm.enabled to false"
    bootloader = domain.firmware.bootloader if domain.firmware is not None else None
    efi = bootloader.efi if bootloader is not None else None
    if efi is None:
        if not hardware.preferred:
            yield f"{title} needs UEFI; give firmware.bootloader.efi"
        return
    if type != "tdx" and efi.secureBoot is not False:
        yield f"{title} does not work with Secure Boot; set firmware.bootloader.efi.secureBoot to false"
    if type != "sev" and efi.persistent:
        yield f"{title} does not work with persistent EFI variables; leave firmware.bootloader.efi.persistent out"


def _start(hardware: HardwareContext, security: LaunchSecurity) -> Iterator[str]:
    if security.sev is not None and security.sev.attestation is not None and hardware.spec.startStrategy != "Paused":
        yield "an attestation of SEV needs a machine that starts paused; set startStrategy to Paused"


def _cards(hardware: HardwareContext, type: str) -> Iterator[str]:
    for interface in hardware.spec.domain.devices.interfaces or ():
        if interface.bootOrder is not None:
            yield f"{type.upper()} does not work with network cards to boot from; leave out the bootOrder of {interface.name}"


CHECKS = (launch_security_is_possible,)

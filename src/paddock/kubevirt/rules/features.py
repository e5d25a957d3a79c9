"""Rules of features and of architectures that KubeVirt asks of a running machine: V113 and V114."""

from collections.abc import Iterator

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubevirt.kinds.features import HyperV
from paddock.kubevirt.rules.disks import disks, targets
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_HYPERV = ("domain", "features", "hyperv")
# What each enlightenment needs; what is not said of the second is switched on for the first.
_NEEDS = (("evmcs", "vapic"), ("ipi", "vpindex"), ("tlbflush", "vpindex"), ("synictimer", "synic"), ("synic", "vpindex"))
_ARM_BUSES = ("virtio", "scsi")


@check("kubevirt/V113", given=("spec.domain.features.hyperv",))
def enlightenments_fit_together(hardware: HardwareContext) -> Iterator[Finding]:
    """A running machine has every enlightenment that another one needs, and names none beside those of the host."""
    features = hardware.spec.domain.features
    if not hardware.running or features is None or features.hyperv is None:
        return
    if features.hypervPassthrough is not None:
        message = "hyperv and hypervPassthrough exclude each other; leave one out"
        yield Finding(path=hardware.at(*_HYPERV), message=f"Invalid value: {message}", rule="kubevirt/V113")
    for name, needed in _NEEDS:
        if _is_on(features.hyperv, name) and _is_off(features.hyperv, needed):
            why = f"{name} needs {needed}; switch {needed} on, or {name} off"
            # KubeVirt writes the way to the enlightenments twice.
            found = finding.invalid(hardware.at(*_HYPERV, *_HYPERV, name), True, why, "kubevirt/V113")
            yield standing(found, hardware.at(*_HYPERV, needed, "enabled"))


def _is_on(hyperv: HyperV, name: str) -> bool:
    feature = getattr(hyperv, name)
    if feature is None:
        return name == "synic" and _is_on(hyperv, "synictimer")
    return feature.enabled is not False


def _is_off(hyperv: HyperV, name: str) -> bool:
    feature = getattr(hyperv, name)
    return feature is not None and feature.enabled is False


@check(
    "kubevirt/V114",
    given=(
        "foreign_architecture",
        *(f"spec.domain.devices.{each}" for each in ("panicDevices", "sound", "disks")),
        "spec.domain.firmware.bootloader.bios",
        "spec.domain.cpu.model",
        "spec.domain.cpu.threads",
    ),
)
def hardware_fits_the_architecture(hardware: HardwareContext) -> Iterator[Finding]:
    """Hardware that an architecture does not have is left out: threads, BIOS, sound and SATA on arm64, panic devices on s390x."""
    if hardware.architecture == "s390x" and hardware.spec.domain.devices.panicDevices:
        path = hardware.at("domain", "devices", "panicDevices")
        yield Finding(path=path, message="Invalid value: there are no panic devices for s390x; leave them out", rule="kubevirt/V114")
    if hardware.architecture != "arm64":
        return
    cpu = hardware.spec.domain.cpu
    if cpu is not None and cpu.dedicatedCpuPlacement and (cpu.threads or 1) > 1:
        why = f"a core of arm64 has one thread, and cpu.threads is {cpu.threads}"
        found = finding.invalid(hardware.at("architecture"), "arm64", why, "kubevirt/V114")
        yield standing(found, hardware.at("domain", "cpu", "threads"))
    if hardware.running:
        yield from _arm64(hardware)


def _arm64(hardware: HardwareContext) -> Iterator[Finding]:
    """Yield what a running machine on arm64 cannot have."""
    domain = hardware.spec.domain
    bootloader = domain.firmware.bootloader if domain.firmware is not None else None
    if bootloader is not None and bootloader.bios is not None:
        yield _missing(hardware.at("domain", "firmware", "bootloader", "bios"), "BIOS", ("efi",))
    if domain.cpu is not None and domain.cpu.model and domain.cpu.model != "host-passthrough":
        yield _missing(hardware.at("domain", "cpu", "model"), domain.cpu.model, ("host-passthrough",))
    for disk, path in disks(hardware):
        for name, target in targets(disk):
            if target.bus and target.bus not in _ARM_BUSES:
                yield _missing((*path, name, "bus"), target.bus, _ARM_BUSES)
    if domain.devices.sound is not None:
        yield _missing(hardware.at("domain", "devices", "sound"), "a sound card", ())


def _missing(path: Path, what: str, possible: tuple[str, ...]) -> Finding:
    hint = f"use {' or '.join(possible)}" if possible else "leave it out"
    return finding.unsupported(path, what, possible, "kubevirt/V114", f"arm64 does not have it; {hint}")


CHECKS = (enlightenments_fit_together, hardware_fits_the_architecture)

"""Rules of the chipset and the firmware: V35 to V39 (docs/spec/kubevirt.md section 2.11)."""

from collections.abc import Iterator

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import Cel
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_MACHINES = {"amd64": ("q35", "pc-q35"), "arm64": ("virt",), "s390x": ("s390-ccw-virtio",)}


@check("kubevirt/V35", given=("spec.domain.machine",))
def machine_type_fits(hardware: HardwareContext) -> Iterator[Finding]:
    """The machine type is one of the architecture's."""
    machine = hardware.spec.domain.machine
    known = _MACHINES.get(hardware.architecture)
    if machine is None or not machine.type or known is None or machine.type.startswith(known):
        return
    hint = "i440fx machines are not supported" if machine.type.startswith(("pc", "i440fx")) else ""
    supported = [f"{name}*" for name in known]
    yield finding.unsupported(hardware.at("domain", "machine", "type"), machine.type, supported, "kubevirt/V35", hint)


@check(
    "kubevirt/V36",
    Cel("domain.firmware.bootloader", "!has(self.bios) || !has(self.efi)", "efi and bios are mutually exclusive"),
    given=("spec.domain.firmware.bootloader.bios",),
)
def one_firmware_boots(hardware: HardwareContext) -> Iterator[Finding]:
    """A machine boots with EFI or with BIOS, not with both."""
    firmware = hardware.spec.domain.firmware
    bootloader = firmware.bootloader if firmware is not None else None
    if bootloader is not None and bootloader.efi is not None and bootloader.bios is not None:
        path = hardware.at("domain", "firmware", "bootloader")
        yield Finding(path=path, message="Invalid value: efi and bios are mutually exclusive", rule="kubevirt/V36")


@check("kubevirt/V37", given=("spec.domain.firmware.bootloader.efi",))
def secure_boot_needs_smm(hardware: HardwareContext) -> Iterator[Finding]:
    """Secure Boot, which is on unless switched off, needs SMM."""
    domain = hardware.spec.domain
    bootloader = domain.firmware.bootloader if domain.firmware is not None else None
    efi = bootloader.efi if bootloader is not None else None
    # TDX keeps its firmware where nobody can write it.
    hidden = domain.launchSecurity is not None and domain.launchSecurity.tdx is not None
    if efi is None or efi.secureBoot is False or hardware.preferred or hidden:
        return
    smm = domain.features.smm if domain.features is not None else None
    if smm is None or smm.enabled is False:
        why = "SecureBoot requires SMM: set features.smm.enabled to true, or firmware.bootloader.efi.secureBoot to false"
        found = Finding(path=hardware.at("domain"), message=f"Invalid value: {why}", rule="kubevirt/V37")
        yield standing(found, hardware.at("domain", "firmware", "bootloader", "efi"))


@check("kubevirt/V38", given=("spec.domain.firmware.kernelBoot",))
def kernel_is_complete(hardware: HardwareContext) -> Iterator[Finding]:
    """A kernel to boot comes from an image and has a path in it; arguments need a kernel."""
    firmware = hardware.spec.domain.firmware
    boot = firmware.kernelBoot if firmware is not None else None
    path = hardware.at("domain", "firmware", "kernelBoot")
    if boot is None:
        return
    if boot.container is None:
        if boot.kernelArgs:
            why = "kernel arguments need a kernel: give container"
            yield finding.invalid((*path, "kernelArgs"), boot.kernelArgs, why, "kubevirt/V38")
        return
    container, path = boot.container, (*path, "container")
    must = f"{finding.format_path(path)} must be defined with"
    if not container.image:
        yield finding.required((*path, "image"), "kubevirt/V38", words=f"{must} an image")
    if not container.kernelPath and not container.initrdPath:
        why = "give at least one of kernelPath and initrdPath"
        words = f"{must} at least one of the following: kernelPath, initrdPath"
        yield finding.required(path, "kubevirt/V38", why, words)
    for name in ("kernelPath", "initrdPath"):
        yield from file_in_image(getattr(container, name), (*path, name), "kubevirt/V38")


def file_in_image(written: str | None, path: Path, rule: str) -> Iterator[Finding]:
    """A path in a container image is absolute, without detours, and not the root."""
    if not written:
        return
    parts = written.removesuffix("/").split("/")
    if written == "/":
        yield finding.invalid(path, written, "must not point to root", rule)
    elif parts[0] or any(part in ("", ".", "..") for part in parts[1:]):
        yield finding.invalid(path, written, "must be an absolute path to a file without relative components", rule)


@check("kubevirt/V39", given=("spec.domain.firmware.acpi",))
def acpi_tables_are_there(hardware: HardwareContext) -> Iterator[Finding]:
    """ACPI tables come from volumes of the type secret."""
    firmware = hardware.spec.domain.firmware
    tables = firmware.acpi if firmware is not None else None
    if tables is None:
        return
    path, volumes = hardware.at("domain", "firmware", "acpi"), hardware.volumes()
    if not tables.slicNameRef and not tables.msdmNameRef:
        yield Finding(path=path, message="Invalid value: give slicNameRef or msdmNameRef", rule="kubevirt/V39")
    for name in ("slicNameRef", "msdmNameRef"):
        volume = getattr(tables, name)
        if volume and volume not in volumes:
            yield finding.invalid((*path, name), volume, f"'{volume}' not found: no volume of this name", "kubevirt/V39")
        elif volume and volumes[volume].secret is None:
            yield finding.invalid((*path, name), volume, "the volume must be of the type secret", "kubevirt/V39")


CHECKS = (
    machine_type_fits,
    one_firmware_boots,
    secure_boot_needs_smm,
    kernel_is_complete,
    acpi_tables_are_there,
)

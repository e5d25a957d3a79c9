"""The boot firmware of an instance, and its identity."""

import uuid
from collections.abc import Iterator
from pathlib import Path

from paddock.engine.machine.config import FirmwareConfig, KernelConfig
from paddock.kubevirt.kinds.firmware import Chassis
from paddock.kubevirt.kinds.firmware import Firmware as FirmwareSpec
from paddock.kubevirt.translate.context import TranslationContext
from paddock.kubevirt.translate.limits import Code
from paddock.kubevirt.translate.processors import is_on

_FIRMWARE = ("spec", "domain", "firmware")
# Machines that were stored without a UUID have this one, or Windows would want to be activated anew.
_NAMESPACE = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")
IGNITION_DATA = "kubevirt.io/ignitiondata"
_IGNITION = "opt/com.coreos/config"


def uuid_of(name: str) -> str:
    """The UUID of a machine that has none of its own."""
    return str(uuid.uuid5(_NAMESPACE, name))


def smm(translation: TranslationContext) -> bool:
    """Return whether the machine has System Management Mode."""
    features = translation.domain.features
    return (translation.amd64 and (features is not None and is_on(features.smm))) or _secure(translation)


def _secure(translation: TranslationContext) -> bool:
    loader = translation.domain.firmware.bootloader if translation.domain.firmware is not None else None
    return translation.amd64 and loader is not None and loader.efi is not None and loader.efi.secureBoot is not False


def firmware(translation: TranslationContext) -> FirmwareConfig:
    """The firmware with what the guest reads of its identity."""
    given = translation.domain.firmware or FirmwareSpec()
    loader = given.bootloader
    efi = loader.efi if loader is not None else None
    bios = loader.bios if loader is not None else None
    persistent = efi is not None and bool(efi.persistent)
    if persistent and translation.resolved.efi_variables is None:
        translation.limits.add(Code.STATE_MISSING, *_FIRMWARE, "bootloader", "efi", "persistent")
    if efi is not None and efi.secureBoot and not translation.amd64:
        translation.limits.add(Code.FIELD_UNREAD, *_FIRMWARE, "bootloader", "efi", "secureBoot")
    if IGNITION_DATA in translation.annotations and translation.resolved.ignition is None:
        translation.limits.add(Code.STATE_MISSING, "metadata", "annotations", IGNITION_DATA)
    return FirmwareConfig(
        kind="efi" if efi is not None or not translation.amd64 else "bios",
        secure_boot=_secure(translation),
        variables=translation.resolved.efi_variables if persistent else None,
        serial_output=bios is not None and bool(bios.useSerial),
        uuid=_uuid(translation, given.uuid),
        serial=given.serial or "",
        chassis=tuple(_chassis(translation.domain.chassis)),
        acpi_tables=tuple(_tables(translation, given)),
        files=((_IGNITION, translation.resolved.ignition),) if translation.resolved.ignition is not None else (),
    )


def _uuid(translation: TranslationContext, written: str | None) -> str:
    """Return the machine's UUID, in the usual form."""
    if not written:
        return uuid_of(translation.instance.metadata.name or "")
    try:
        return str(uuid.UUID(written))
    except ValueError:
        translation.limits.add(Code.UUID_UNREADABLE, *_FIRMWARE, "uuid", detail=written)
        return uuid_of(translation.instance.metadata.name or "")


def _chassis(chassis: Chassis | None) -> Iterator[tuple[str, str]]:
    if chassis is not None:
        for name in ("manufacturer", "version", "serial", "asset", "sku"):
            if value := getattr(chassis, name):
                yield name, value


def _tables(translation: TranslationContext, firmware: FirmwareSpec) -> Iterator[Path]:
    if firmware.acpi is None:
        return
    for member in ("slicNameRef", "msdmNameRef"):
        name = getattr(firmware.acpi, member)
        if not name:
            continue
        found = translation.resolved.volumes.get(name)
        if found is not None and found.file is not None:
            yield found.file
        else:
            translation.limits.add(Code.TABLE_MISSING, *_FIRMWARE, "acpi", member, detail=name)


def kernel(translation: TranslationContext) -> KernelConfig | None:
    """The kernel that is started without a boot loader."""
    boot = translation.domain.firmware.kernelBoot if translation.domain.firmware is not None else None
    if boot is None or boot.container is None:
        return None
    found = translation.resolved.kernel
    if found is None:
        translation.limits.add(Code.KERNEL_MISSING, *_FIRMWARE, "kernelBoot", "container", detail=boot.container.image)
        return None
    return KernelConfig(found.kernel, found.initrd, boot.kernelArgs or "")

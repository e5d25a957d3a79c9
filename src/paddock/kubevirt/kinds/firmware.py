"""Boot and identity of a machine: firmware, kernel, ACPI tables, chassis."""

from typing import Annotated

from paddock.kubernetes.schema.field import Field, Object

# All texts of a machine have to fit into SMBIOS's 64 KiB.
_LONGEST_TEXT = 2048
PULL_POLICIES = ("Always", "Never", "IfNotPresent")


class BIOS(Object):
    """Legacy BIOS."""

    useSerial: Annotated[bool | None, Field("Send the output of the BIOS to the serial console.")] = None


class EFI(Object):
    """UEFI."""

    secureBoot: Annotated[bool | None, Field("Secure Boot, which needs features.smm; default: true.")] = None
    persistent: Annotated[bool | None, Field("Keep the EFI variables over restarts; default: false.")] = None


class Bootloader(Object):
    """The firmware that boots the machine; at most one. Default: BIOS."""

    bios: Annotated[BIOS | None, Field("Legacy BIOS.")] = None
    efi: Annotated[EFI | None, Field("UEFI.")] = None


class KernelBootContainer(Object):
    """A container image with a kernel."""

    image: Annotated[str, Field("The image.", zero=True)] = ""
    imagePullSecret: Annotated[str | None, Field("Secret with the credentials of the registry.")] = None
    imagePullPolicy: Annotated[str | None, Field("When the image is pulled.", enum=PULL_POLICIES, empty_is_unset=True)] = None
    kernelPath: Annotated[str | None, Field("Path of the kernel in the image.")] = None
    initrdPath: Annotated[str | None, Field("Path of the initial RAM disk in the image.")] = None


class KernelBoot(Object):
    """Boot a kernel without a boot loader."""

    kernelArgs: Annotated[str | None, Field("Command line of the kernel.")] = None
    container: Annotated[KernelBootContainer | None, Field("Where the kernel comes from.")] = None


class ACPITables(Object):
    """Licence tables for Windows, from volumes of the kind secret."""

    slicNameRef: Annotated[str | None, Field("Name of the secret volume with the SLIC table.")] = None
    msdmNameRef: Annotated[str | None, Field("Name of the secret volume with the MSDM table.")] = None


class Firmware(Object):
    """The firmware of the machine, and its identity."""

    uuid: Annotated[
        str | None,
        Field(
            "UUID the guest reads from SMBIOS, such as 5d307ca9-b3ef-428c-8861-06e72d69f223; default: one that is made once and kept.",
            empty_is_unset=True,
        ),
    ] = None
    serial: Annotated[
        str | None,
        Field(
            "Serial number the guest reads from SMBIOS.",
            max_length=256,
            pattern=r"^[A-Za-z0-9_.+ -]*$",
            message="must consist of letters, digits, blanks and the characters _.+-",
        ),
    ] = None
    bootloader: Annotated[Bootloader | None, Field("The firmware.")] = None
    kernelBoot: Annotated[KernelBoot | None, Field("A kernel to boot directly.")] = None
    acpi: Annotated[ACPITables | None, Field("Additional ACPI tables.")] = None


class Chassis(Object):
    """The description of the case in SMBIOS."""

    manufacturer: Annotated[str | None, Field("Maker of the case.", max_length=_LONGEST_TEXT)] = None
    version: Annotated[str | None, Field("Version of the case.", max_length=_LONGEST_TEXT)] = None
    serial: Annotated[str | None, Field("Serial number of the case.", max_length=_LONGEST_TEXT)] = None
    asset: Annotated[str | None, Field("Asset tag.", max_length=_LONGEST_TEXT)] = None
    sku: Annotated[str | None, Field("Stock keeping unit.", max_length=_LONGEST_TEXT)] = None

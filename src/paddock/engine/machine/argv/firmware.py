"""The parts below the guest's boot loader: firmware, its variables, a kernel, SMBIOS and ACPI tables."""

from pathlib import Path
from typing import Any

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.errors import missing
from paddock.engine.machine.argv.line import FileCopy, Line
from paddock.engine.machine.argv.options import checked, keyed, pairs
from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.config import MachineConfig

CODE_NODE = "efi-code"
VARIABLES_NODE = "efi-vars"
# milliseconds for which the boot menu waits
_MENU = 10_000


def flash(config: MachineConfig, line: Line) -> tuple[str, ...]:
    """The nodes of EFI's code and variables; none with BIOS."""
    files = _efi(config, line)
    if files is None:
        return ()
    kept = config.firmware.variables
    variables = kept or Path(names.EFI_VARIABLES)
    line.copies.append(FileCopy(source=files.variables, to=variables, fresh=kept is None))
    line.blockdev(_raw(CODE_NODE, files.code, readonly=True))
    line.blockdev(_raw(VARIABLES_NODE, variables, readonly=False))
    if config.firmware.secure_boot and config.architecture == "amd64":
        # Only code in System Management Mode may write the variables, and sleeping must not be a way around that.
        line.option("-global", "driver=cfi.pflash01,property=secure,value=on")
        line.option("-global", "ICH9-LPC.disable_s3=1")
    return CODE_NODE, VARIABLES_NODE


def _efi(config: MachineConfig, line: Line) -> EfiFiles | None:
    host, wanted = line.host, config.firmware
    if wanted.kind == "bios" and config.architecture == "amd64":
        return None
    if wanted.secure_boot:
        if host.secure_efi is None:
            raise missing("Secure Boot", "EFI firmware with Secure Boot", "install the ovmf package")
        return host.secure_efi
    if host.efi is None:
        package = "ovmf" if config.architecture == "amd64" else "qemu-efi-aarch64"
        raise missing("EFI", "EFI firmware", f"install the {package} package")
    return host.efi


def _raw(node: str, path: Path, *, readonly: bool) -> dict[str, Any]:
    file: dict[str, Any] = {"driver": "file", "node-name": f"{node}-file", "filename": str(path), "read-only": readonly}
    if readonly:
        file["locking"] = "off"
    return {"driver": "raw", "node-name": node, "read-only": readonly, "file": file}


def identity(config: MachineConfig, line: Line) -> None:
    """Add the identity that the guest reads."""
    firmware = config.firmware
    if firmware.uuid:
        line.option("-uuid", firmware.uuid)
    members = [(key, getattr(firmware, key)) for key in ("manufacturer", "product", "version", "serial", "uuid", "sku", "family")]
    line.option("-smbios", pairs(("type", 1), *((key, value) for key, value in members if value)))
    if firmware.chassis:
        line.option("-smbios", pairs(("type", 3), *((key, value) for key, value in firmware.chassis if value)))


def boot(config: MachineConfig, line: Line) -> None:
    """The order of boot devices is theirs; here is what happens before it."""
    menu = {"menu": True, "splash_time": _MENU} if config.boot_menu else {}
    line.option("-boot", keyed(strict=True, **menu))
    if config.kernel is not None:
        line.option("-kernel", checked("the kernel's path", line.host.named(config.kernel.kernel)))
        if config.kernel.initrd is not None:
            line.option("-initrd", line.host.named(config.kernel.initrd))
        if config.kernel.arguments:
            line.option("-append", checked("the kernel's arguments", config.kernel.arguments))


def tables(config: MachineConfig, line: Line) -> None:
    """ACPI tables and files that the guest reads through its firmware."""
    for path in config.firmware.acpi_tables:
        line.option("-acpitable", keyed(file=line.host.named(path)))
    for name, path in config.firmware.files:
        line.option("-fw_cfg", keyed(name=name, file=line.host.named(path)))

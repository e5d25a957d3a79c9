"""The privileges that the options of a machine need."""

import re
from collections.abc import Iterable, Mapping

from tests.kit.proxmox import cloudinit, drives, formats
from tests.kit.proxmox.context import Context
from tests.kit.proxmox.errors import failed, parameters
from tests.kit.proxmox.formats import FormatError

_OPTIONS: Mapping[str, str] = {
    "VM.Config.CPU": "cores cpu runningcpu cpulimit cpuunits numa smp sockets vcpus",
    "VM.Config.Memory": "memory balloon shares allow-ksm",
    "VM.Config.HWType": "acpi hotplug kvm machine runningmachine scsihw smbios1 tablet vga watchdog audio0 rng0",
    "VM.Config.Options": (
        "agent autostart bios description keyboard localtime migrate_downtime migrate_speed name onboot ostype protection reboot "
        "startdate startup tdf template tags"
    ),
    "VM.PowerMgmt": "freeze",
    "VM.Config.Disk": "boot bootdisk vmstatestorage",
}
PRIVILEGE = {name: privilege for privilege, names in _OPTIONS.items() for name in names.split()}


def check_options(context: Context, vmid: int, pool: str, names: Iterable[str]) -> None:
    """Refuse the caller who may not change the options."""
    if context.is_root:
        return
    for name in names:
        if formats.is_drive(name) or re.fullmatch(r"(unused|usb|hostpci|virtiofs)\d+|cdrom|tags", name):
            continue
        if privilege := PRIVILEGE.get(name) or ("VM.Config.CPU" if re.fullmatch(r"numa\d+", name) else ""):
            context.demand_vm(vmid, pool, privilege)
            if name == "startup":
                context.demand("/", "Sys.Modify")
        elif re.fullmatch(r"net\d+", name):
            context.demand_vm(vmid, pool, "VM.Config.Network")
        elif cloudinit.is_option(name):
            context.demand_vm(vmid, pool, "VM.Config.Cloudinit", "VM.Config.Network", any_of=True)
        elif re.fullmatch(r"serial\d+", name):
            context.demand_vm(vmid, pool, "VM.Config.HWType")
        else:
            # What the real API lists nowhere else: args, hookscript, lock and the like.
            raise failed(f"only root can set '{name}' config")


def check_devices(context: Context, values: Mapping[str, str]) -> None:
    """Refuse devices of the host to others than root."""
    for name, value in values.items():
        if context.is_root:
            return
        if re.fullmatch(r"serial\d+", name) and value != "socket":
            raise failed(f"only root can set '{name}' config for real devices")
        if re.fullmatch(r"hostpci\d+", name) and "mapping=" not in value:
            raise failed(f"only root can set '{name}' config for non-mapped devices")
        if re.fullmatch(r"usb\d+", name) and "mapping=" not in value and "spice" not in value:
            raise failed(f"only root can set '{name}' config for real devices")


def check_tags(context: Context, vmid: int, pool: str) -> None:
    """Refuse the caller who may not set tags."""
    if not context.is_root:
        context.demand_vm(vmid, pool, "VM.Config.Options")


def check_bridges(context: Context, values: Mapping[str, str]) -> None:
    """Refuse the caller who may not use a bridge or VLAN."""
    for name, value in values.items():
        if context.is_root or not re.fullmatch(r"net\d+", name):
            continue
        net = drives.parse_net(value)
        if not (bridge := net.get("bridge")):
            continue
        path = f"/sdn/zones/localnetwork/{bridge}"
        tag = net.get("tag")
        context.demand(f"{path}/{tag}" if tag else path, "SDN.Use")


def with_addresses(values: Mapping[str, str]) -> dict[str, str]:
    """Return parameters whose interfaces have addresses."""
    found = dict(values)
    for name, value in values.items():
        if re.fullmatch(r"net\d+", name):
            try:
                found[name] = drives.print_net(drives.parse_net(value))
            except FormatError as error:
                raise parameters({name: f"invalid format - {error}\n"}) from None
    return found


def check_drive(context: Context, vmid: int, drive: drives.Drive) -> None:
    """Refuse the caller who may not change a drive."""
    if drive.is_cloudinit or drive.file.endswith("cloudinit"):
        context.demand_vm(vmid, "", "VM.Config.Cloudinit", "VM.Config.CDROM")
    elif drive.is_cdrom:
        context.demand_vm(vmid, "", "VM.Config.CDROM")
    else:
        context.demand_vm(vmid, "", "VM.Config.Disk")

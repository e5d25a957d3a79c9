"""Pending changes: which options a running machine takes, and what happens to the rest when it is off."""

import re
from collections.abc import Iterator, Mapping

from tests.kit.proxmox import cloudinit, disks, drives, formats
from tests.kit.proxmox.context import Context
from tests.kit.proxmox.errors import ApiError, parameters
from tests.kit.proxmox.inventory import Machine

# Options that QEMU does not know of.
_FREE = (
    *("description", "hookscript", "lock", "migrate_downtime", "migrate_speed", "name", "onboot", "protection", "shares"),
    *("startup", "tags", "vmstatestorage"),
)
_LIVE = ("cpuunits", "cpulimit")
_NIC_FIXED = ("model", "macaddr", "queues", "mtu")
# What a machine with pluggable memory has before the first module, in MiB.
STATIC_MEMORY = 1024
_AGENT_LIVE = "fstrim_cloned_disks"


class _Skip(Exception):
    """The change waits for the next start."""


def tidy(machine: Machine) -> None:
    """Drop pending changes that change nothing."""
    for name, value in list(machine.pending.items()):
        if machine.conf.get(name) == value:
            del machine.pending[name]
    for name in list(machine.deletions):
        if name not in machine.conf:
            del machine.deletions[name]


def features(conf: Mapping[str, str]) -> frozenset[str]:
    """Return what the machine's option `hotplug` allows."""
    text = conf.get("hotplug", "1")
    return frozenset() if text == "0" else frozenset(formats.split_list("network,disk,usb" if text == "1" else text))


def apply(context: Context, machine: Machine) -> None:
    """Make all pending changes of a machine that is off."""
    for name, force in list(machine.deletions.items()):
        _remove(context, machine, name, force=force)
    remade = False
    for name, value in list(machine.pending.items()):
        old = machine.conf.get(name)
        if formats.is_drive(name):
            remade |= drives.parse(name, value).is_cloudinit
        machine.conf[name] = value
        del machine.pending[name]
        _replaced(context, machine, name, old)
    if remade:
        cloudinit.generate(context.park, machine, machine.conf)


def _remove(context: Context, machine: Machine, name: str, *, force: bool) -> None:
    value = machine.conf.pop(name, None)
    machine.deletions.pop(name, None)
    if value is None or not formats.is_drive(name):
        return
    drive = drives.parse(name, value)
    if drive.is_cdrom and not drive.is_cloudinit:
        return
    if force and (volume := disks.owned(context, machine, drive.file)) is not None and not volume.snapshots:
        context.demand(f"/storage/{drive.storage}", "Datastore.AllocateSpace")
        context.park.volumes.free(drive.file, machine.node)
    else:
        disks.add_unused(context, machine, drive.file)


def _replaced(context: Context, machine: Machine, name: str, old: str | None) -> None:
    """Keep the volume of a drive that another one has replaced."""
    if old is None or not formats.is_drive(name):
        return
    drive = drives.parse(name, old)
    if drive.file != drives.parse(name, machine.conf[name]).file and (drive.is_disk or drive.is_cloudinit):
        disks.add_unused(context, machine, drive.file)


def plug(context: Context, machine: Machine, named: set[str]) -> None:
    """Make those changes of a running machine that it takes; report what should have worked and did not."""
    process = machine.process
    assert process is not None
    for name in [each for each in machine.pending if each in _FREE]:
        machine.conf[name] = process.conf[name] = machine.pending.pop(name)
    errors: dict[str, str] = {}
    can = features(machine.conf)
    for name in [each for each in machine.deletions if each in named]:
        try:
            _unplug_one(machine, name, can)
        except _Skip:
            continue
        except ValueError as error:
            errors[name] = f"hotplug problem - {error}\n"
            continue
        _remove(context, machine, name, force=machine.deletions[name])
        process.conf.pop(name, None)
    for name in [each for each in machine.pending if each in named]:
        old = machine.conf.get(name)
        try:
            value = _plug_one(machine, name, machine.pending[name], can)
        except _Skip:
            continue
        except (ApiError, ValueError) as error:
            errors[name] = f"hotplug problem - {error}\n"
            continue
        machine.conf[name] = process.conf[name] = value
        del machine.pending[name]
        _replaced(context, machine, name, old)
    if "cloudinit" in can:
        cloudinit.generate(context.park, machine, machine.conf)
    if errors:
        raise parameters(errors)


def _unplug_one(machine: Machine, name: str, can: frozenset[str]) -> None:
    if name in _FREE or name in _LIVE:
        return
    if name.startswith("net") and name[3:].isdigit():
        needed = "network"
    elif formats.is_drive(name):
        if re.match("efidisk|ide|sata|tpmstate", name) or "disk" not in can:
            raise _Skip
        _check_boot_disk(machine, name)
        return
    elif name == "vcpus":
        needed = "cpu"
    elif name == "memory":
        needed = "memory"
    elif name == "balloon" and machine.conf.get("balloon") != "0":
        return
    elif re.fullmatch(r"usb\d+|tablet", name):
        needed = "usb"
    else:
        raise _Skip
    if needed not in can:
        raise _Skip


def _plug_one(machine: Machine, name: str, value: str, can: frozenset[str]) -> str:
    """Return the value that the machine has afterwards."""
    old = machine.conf.get(name)
    if re.fullmatch(r"net\d+", name):
        _plug_net(old, value, can)
    elif formats.is_drive(name):
        _plug_drive(machine, name, value, can)
    elif name == "memory" and "memory" in can:
        return _plug_memory(machine, int(value))
    elif name == "vcpus" and "cpu" in can:
        if int(value) > int(machine.conf.get("sockets", 1)) * int(machine.conf.get("cores", 1)):
            raise ValueError("you can't add more vcpus than maxcpus")
    elif name == "agent":
        _plug_agent(old, value)
    elif not _is_plugged_freely(name, old, value, can):
        raise _Skip
    return value


def _is_plugged_freely(name: str, old: str | None, value: str, can: frozenset[str]) -> bool:
    if name == "balloon":
        return (old == "0") == (value == "0")
    if name == "hotplug":
        return re.search("memory|cpu", f"{value} {old or ''}") is None
    return name in _LIVE or (name == "tablet" and "usb" in can)


def _plug_net(old: str | None, value: str, can: frozenset[str]) -> None:
    if old is not None:
        before, after = drives.parse_net(old), drives.parse_net(value)
        if all(before.get(each) == after.get(each) for each in _NIC_FIXED) and before.get("bridge") and after.get("bridge"):
            return
    if "network" not in can:
        raise _Skip


def _check_boot_disk(machine: Machine, name: str) -> None:
    """Refuse to unplug what the machine boots from."""
    order = machine.conf.get("boot", "").removeprefix("order=")
    if name in formats.split_list(order):
        raise ValueError(f"can't unplug bootdisk '{name}'")


def _plug_drive(machine: Machine, name: str, value: str, can: frozenset[str]) -> None:
    old = machine.conf.get(name)
    if name in ("efidisk0", "tpmstate0"):
        raise _Skip
    new = drives.parse(name, value)
    if old is not None:
        before = drives.parse(name, old)
        if before.is_cdrom != new.is_cdrom:
            raise ValueError("unable to change media type")
        if before.is_cdrom:
            return
        if before.file == new.file:
            if any(before.options.get(each) != new.options.get(each) for each in drives.FIXED):
                raise _Skip
            return
        if "disk" in can:
            _check_boot_disk(machine, name)
    if "disk" not in can or re.match("ide|sata", name):
        raise _Skip


def _plug_memory(machine: Machine, wanted: int) -> str:
    """Plug modules until the memory is there, which can make it more; the guest decides whether it gives some back."""
    now = int(machine.conf.get("memory", "512"))
    if wanted < STATIC_MEMORY:
        raise ValueError(f"memory can't be lower than {STATIC_MEMORY} MB")
    if wanted < now and not machine.guest.gives_memory_back:
        raise ValueError("400 Parameter verification failed.\ndimm0: error unplug memory module")
    return str(next(size for size in modules() if size >= wanted))


def modules() -> Iterator[int]:
    """Yield the sizes that a machine with pluggable memory can have, in MiB."""
    size, module = STATIC_MEMORY, 512
    yield size
    while True:
        for _ in range(32):
            size += module
            yield size
        module *= 2


def _plug_agent(old: str | None, value: str) -> None:
    def fixed(text: str) -> set[str]:
        return {part for part in text.replace("enabled=", "").split(",") if not part.startswith(_AGENT_LIVE)}

    if not old or fixed(old) != fixed(value):
        raise _Skip

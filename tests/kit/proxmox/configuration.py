"""Changes of a machine's configuration: what is kept for the next start, and what a running QEMU takes at once."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.kit.proxmox import cloudinit, disks, drives, formats, hotplug, rights, schema, statuses
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.drives import Drive
from tests.kit.proxmox.errors import failed, invalid, parameters
from tests.kit.proxmox.inventory import Machine
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/qemu/{vmid}"
_CONTROL = (
    "node",
    "vmid",
    "digest",
    "background_delay",
    "skip_cloud_init",
    "import-working-storage",
    "skiplock",
    "delete",
    "revert",
    "force",
)
_HIDDEN = "**********"
_CPU_TYPES = r"custom-.+|host|max|x86-64-v\d(-.*)?|kvm\d\d|qemu\d\d|[A-Z].*|athlon|core2duo|coreduo|pentium\d?|phenom|486"


@routes.on(f"GET {PATH}/config")
def config(context: Context) -> Any:
    machine = context.machine()
    name = context.text("snapshot")
    if name and context.flag("current"):
        clash = "cannot use 'snapshot' parameter with 'current'"
        raise invalid(snapshot=clash, current=clash)
    conf = dict(machine.conf)
    if name:
        if name not in machine.snapshots:
            raise failed(f"snapshot '{name}' does not exist")
        conf = dict(machine.snapshots[name])
    elif not context.flag("current"):
        conf = {key: value for key, value in (conf | machine.pending).items() if key not in machine.deletions}
    if "cipassword" in conf:
        conf["cipassword"] = _HIDDEN
    return {**statuses.typed(conf), "digest": machine.digest}


@routes.on(f"GET {PATH}/pending")
def pending(context: Context) -> Any:
    machine = context.machine()
    found = []
    for key in sorted({*machine.conf, *machine.pending}):
        entry: dict[str, Any] = {"key": key}
        if key in machine.conf:
            entry["value"] = statuses.typed(machine.conf).get(key) if key != "cipassword" else _HIDDEN
        if key in machine.pending:
            entry["pending"] = statuses.typed(machine.pending).get(key)
        if key in machine.deletions:
            entry["delete"] = 2 if machine.deletions[key] else 1
        found.append(entry)
    return [*found, {"key": "digest", "value": machine.digest}]


@routes.on(f"GET {PATH}/cloudinit")
def cloudinit_options(context: Context) -> Any:
    conf = context.machine().conf
    return [{"key": key, "value": _HIDDEN if key == "cipassword" else conf[key]} for key in sorted(conf) if cloudinit.is_option(key)]


@routes.on(f"PUT {PATH}/cloudinit")
def regenerate(context: Context) -> Any:
    machine = context.machine()
    machine.check_lock()
    cloudinit.generate(context.park, machine, machine.conf)


@routes.on(f"GET {PATH}/cloudinit/dump")
def dump(context: Context) -> Any:
    parts = {"user": cloudinit.user_data, "network": cloudinit.network_data, "meta": cloudinit.meta_data}
    machine = context.machine()
    return parts[context.text("type")](context.park, machine, machine.conf)


@routes.on(f"PUT {PATH}/config")
def update(context: Context) -> Any:
    change = _change(context)
    context.park.tasks.wait_for_lock(context.vmid)
    change()


@routes.on(f"POST {PATH}/config")
def update_in_background(context: Context) -> Any:
    change = _change(context)

    def work(task: Task) -> None:
        task.write(f"update VM {context.vmid}")
        change()

    return context.awaited(context.worker("qmconfig", context.vmid, work), "background_delay", f"failed to update VM {context.vmid}: ")


@routes.on(f"PUT {PATH}/unlink")
def unlink(context: Context) -> Any:
    values = {**context.values, "delete": context.values["idlist"]}
    del values["idlist"]
    _change(Context(context.park, context.call, context.caller, values))()


def options(context: Context, control: tuple[str, ...] = _CONTROL) -> dict[str, str]:
    """Return the parameters that are options of the machine."""
    found = {name: context.text(name) for name in context.values if name not in control}
    if "cdrom" in found:
        found["ide2"] = found.pop("cdrom") + ("" if "media=" in context.text("cdrom") else ",media=cdrom")
    return found


def prepared(values: Mapping[str, str]) -> dict[str, str]:
    """Return options as they are written: with addresses, hashed passwords and sorted tags."""
    found = rights.with_addresses(values)
    if "cipassword" in found and not re.match(r"\$(?:[156]|2[ay])(\$.+){2}", found["cipassword"]):
        found["cipassword"] = f"$5$simulated${hashlib.sha256(found['cipassword'].encode()).hexdigest()}"
    if "tags" in found:
        found["tags"] = ";".join(sorted({each.lower() for each in re.split("[;, ]+", found["tags"]) if each}))
    return found


def check_values(values: Mapping[str, str], *, running: Mapping[str, str] | None = None) -> None:
    """Refuse options that fit the schema and make no sense together."""
    both = {**(running or {}), **values}
    if ("memory" in values or "balloon" in values) and both.get("balloon"):
        memory = statuses.memory_of(Machine(0, "", both))
        if int(both["balloon"]) > memory:
            raise failed("balloon value too large (must be smaller than assigned memory)")
    if "sshkeys" in values and not re.match(r"(ssh-|ecdsa-|sk-)", re.sub("%(..)", lambda m: chr(int(m[1], 16)), values["sshkeys"])):
        raise failed("SSH public key validation error")
    if "cpu" in values:
        kind = schema.check_properties(formats.NAMED["pve-vm-cpu-conf"], values["cpu"]).get("cputype", "")
        if kind and not re.fullmatch(_CPU_TYPES, kind):
            raise invalid(cpu=f"invalid format - Built-in cputype '{kind}' is not defined (missing 'custom-' prefix?)\n")


def _lists(context: Context, values: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the options to delete and to revert."""
    known = context.call.property if context.call.path.endswith("/config") else schema.catalog().calls[f"PUT {PATH}/config"].property
    revert = formats.split_list(context.text("revert"))
    delete = ["ide2" if each == "cdrom" else each for each in formats.split_list(context.text("delete"))]
    for name in revert:
        if known(name) is None:
            raise invalid(revert=f"unknown option '{name}'")
        if name in values:
            raise invalid(delete=f"you can't use '-{name}' and -revert {name}' at the same time")
    for name in delete:
        if name in values:
            raise invalid(delete=f"you can't use '-{name}' and -delete {name}' at the same time")
        if name in revert:
            raise invalid(revert=f"you can't use '-delete {name}' and -revert {name}' at the same time")
        if known(name) is None and name not in ("vmstate", "parent"):
            raise invalid(delete=f"unknown option '{name}'")
    return delete, revert


def _change(context: Context) -> Callable[[], None]:
    """Check a change; return what carries it out."""
    context.check_quorum()
    if context.flag("skiplock") and not context.is_root:
        raise invalid(skiplock="Only root may use this option.")
    values = options(context)
    if not values and "delete" not in context.values and "revert" not in context.values:
        raise failed("no options specified")
    delete, revert = _lists(context, values)
    wanted = disks.parsed(values)
    values = prepared(values)
    rights.check_options(context, context.vmid, "", [*delete, *values])
    rights.check_devices(context, values)
    disks.check_access(context, context.vmid, wanted)
    rights.check_bridges(context, values)
    if "tags" in values or "tags" in delete:
        rights.check_tags(context, context.vmid, "")

    def checked() -> Machine:
        machine = context.machine()
        if context.text("digest", machine.digest) != machine.digest:
            raise failed("checksum mismatch (file change by other user?)")
        if not context.flag("skiplock"):
            machine.check_lock()
        check_values(values, running={**machine.conf, **machine.pending})
        return machine

    def carry_out() -> None:
        machine = checked()
        for name in revert:
            _revert(context, machine, name)
        for name in delete:
            _delete(context, machine, name)
        for name, value in values.items():
            _set(context, machine, (name, value), wanted.get(name), [*delete, *values])
        hotplug.tidy(machine)
        if machine.process:
            hotplug.plug(context, machine, {*delete, *values})
        else:
            hotplug.apply(context, machine)

    checked()
    return carry_out


def _revert(context: Context, machine: Machine, name: str) -> None:
    """Forget a pending change; a disk that was made for it becomes unused."""
    machine.deletions.pop(name, None)
    if (waiting := machine.pending.pop(name, None)) is not None and formats.is_drive(name):
        drive = drives.parse(name, waiting)
        if drive.file not in machine.conf.get(name, ""):
            disks.add_unused(context, machine, drive.file)


def _delete(context: Context, machine: Machine, name: str) -> None:
    value = machine.conf.get(name, machine.pending.get(name))
    if value is None:
        return
    if re.fullmatch(r"unused\d+", name):
        volid = drives.parse(name, value).file
        machine.check_protection(f"can't remove unused disk '{volid}'")
        context.demand_vm(machine.vmid, "", "VM.Config.Disk")
        remove_volume(context, machine, name, volid)
        del machine.conf[name]
        return
    if formats.is_drive(name):
        machine.check_protection(f"can't remove drive '{name}'")
        rights.check_drive(context, machine.vmid, drives.parse(name, value))
    if name == "tags":
        machine.conf.pop(name, None)
        return
    if (waiting := machine.pending.pop(name, None)) is not None and formats.is_drive(name):
        disks.add_unused(context, machine, drives.parse(name, waiting).file)
    machine.deletions[name] = context.flag("force")


def remove_volume(context: Context, machine: Machine, key: str, volid: str) -> None:
    """Remove a volume of the machine that nothing else of it uses."""
    if disks.owned(context, machine, volid) is None:
        return
    context.demand(f"/storage/{volid.partition(':')[0]}", "Datastore.AllocateSpace")
    others = [{each: value for each, value in machine.conf.items() if each != key}, *machine.snapshots.values()]
    if any(volid == drive.file for conf in others for drive in (*drives.drives(conf), *drives.unused(conf))):
        raise failed(f"unable to delete '{volid}' - volume is still in use (snapshot?)")
    context.park.volumes.free(volid, machine.node)


def _set(context: Context, machine: Machine, option: tuple[str, str], drive: Drive | None, named: list[str]) -> None:
    name, value = option
    if machine.pending.get(name) == value:
        return
    if drive is not None:
        if name in machine.conf:
            rights.check_drive(context, machine.vmid, drives.parse(name, machine.conf[name]))
        rights.check_drive(context, machine.vmid, drive)
        if (waiting := machine.pending.pop(name, None)) is not None and drives.parse(name, waiting).file != drive.file:
            disks.add_unused(context, machine, drives.parse(name, waiting).file)
        value = disks.create(context, machine, {name: drive})[name]
    elif name == "boot":
        _check_boot(machine, value, named)
    elif name == "cipassword":
        machine.conf[name] = value
        return
    machine.pending[name] = value
    machine.deletions.pop(name, None)


def _check_boot(machine: Machine, value: str, named: list[str]) -> None:
    order = schema.check_properties(formats.NAMED["pve-qm-boot"], value).get("order", "")
    for device in formats.split_list(order):
        if device not in machine.conf and device not in machine.pending and device not in named:
            raise failed(f"invalid bootorder: device '{device}' does not exist'")


def check_disk(machine: Machine, key: str) -> Drive:
    """Return a disk of the machine; refuse what is none."""
    if key not in machine.conf:
        raise failed(f"disk '{key}' does not exist")
    drive = drives.parse(key, machine.conf[key])
    if drive.is_cdrom:
        raise parameters({"disk": "you can't use a cdrom"})
    return drive

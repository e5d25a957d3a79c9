"""Snapshots: a tree of configurations with the data of their disks, and the memory of a machine that ran."""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from tests.kit.proxmox import disks, drives, machines, power, statuses
from tests.kit.proxmox.content import Content
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import TaskFailure, failed
from tests.kit.proxmox.inventory import Machine, Volume
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/qemu/{vmid}/snapshot"
_OWN = ("snapstate", "snaptime", "vmstate", "lock", "description", "runningmachine", "runningcpu")


def copied(conf: Mapping[str, str]) -> dict[str, str]:
    """Return what a snapshot and a machine take from one another."""
    return {key: value for key, value in conf.items() if key not in _OWN and not re.fullmatch(r"unused\d+", key)}


@routes.on(f"GET {PATH}")
def snapshots(context: Context) -> Any:
    machine = context.machine()
    found = []
    for name, conf in machine.snapshots.items():
        entry: dict[str, Any] = {"name": name, "snaptime": int(conf.get("snaptime", 0)), "vmstate": int("vmstate" in conf)}
        entry["description"] = conf.get("description", "")
        found.append(entry | {key: conf[key] for key in ("parent", "snapstate") if key in conf})
    current: dict[str, Any] = {"name": "current", "digest": machine.digest, "running": int(machine.process is not None)}
    current["description"] = "You are here!"
    return [*found, current | ({"parent": machine.conf["parent"]} if "parent" in machine.conf else {})]


@routes.on(f"GET {PATH}/{{snapname}}")
def index(context: Context) -> Any:
    return [{"cmd": "rollback"}, {"cmd": "config"}]


def _snapshot(context: Context) -> tuple[Machine, dict[str, str]]:
    machine, name = context.machine(), context.text("snapname")
    if name not in machine.snapshots:
        raise failed(f"snapshot '{name}' does not exist")
    return machine, machine.snapshots[name]


@routes.on(f"GET {PATH}/{{snapname}}/config")
def config(context: Context) -> Any:
    return statuses.typed(_snapshot(context)[1])


@routes.on(f"PUT {PATH}/{{snapname}}/config")
def describe(context: Context) -> Any:
    machine, conf = _snapshot(context)
    machine.check_lock()
    if "description" in context.values:
        conf["description"] = context.text("description")


@routes.on(f"POST {PATH}")
def create(context: Context) -> Any:
    context.check_quorum()
    name = context.text("snapname")
    if name == "current" or name.lower() == "pending":
        raise failed(f"unable to use snapshot name '{name.lower()}' (reserved name)")
    machine = context.machine()

    def begin() -> None:
        if machine.is_template:
            raise failed("you can't take a snapshot if it's a template")
        machine.check_lock()
        if name in machine.snapshots:
            raise failed(f"snapshot name '{name}' already used")
        if not machines.has_feature(context, machine, machine.conf, "snapshot"):
            raise failed("snapshot feature is not available")
        machine.conf["lock"] = "snapshot"
        _prepare(context, machine, name)

    def work(task: Task) -> None:
        for drive in drives.drives(machine.conf):
            if drive.is_disk and not drive.file.startswith("/"):
                task.write(f"snapshotting 'drive-{drive.key}' ({drive.file})")
                context.park.volumes.snapshot(context.park.volumes.get(drive.file, machine.node), name)
        del machine.snapshots[name]["snapstate"], machine.conf["lock"]
        machine.conf["parent"] = name

    def undo() -> None:
        _forget(context, machine, name)
        machine.conf.pop("lock", None)

    return context.two_part_worker("qmsnapshot", begin, work, undo=undo)


def _prepare(context: Context, machine: Machine, name: str) -> None:
    conf = machine.snapshots[name] = {**copied(machine.conf), "snapstate": "prepare", "snaptime": str(int(context.cluster.clock()))}
    if description := context.text("description"):
        conf["description"] = description
    if context.flag("vmstate") and machine.process:
        place = _state_storage(context, machine)
        storage = context.cluster.activate(place, machine.node)
        size = (statuses.memory_of(machine) * 2 + 500) * statuses.MIB
        suffix = ".raw" if storage.is_file_based else ""
        called = f"vm-{machine.vmid}-state-{name}{suffix}"
        memory = Content(size).written(0, f"memory of {machine.vmid} at {name}".encode())
        volume = context.park.volumes.allocate(storage, machine.node, machine.vmid, memory, "raw", called)
        conf |= {"vmstate": volume.volid, "runningmachine": "pc-i440fx-10.1+pve0", "runningcpu": "kvm64"}


def _state_storage(context: Context, machine: Machine) -> str:
    """A shared storage of the machine's disks, else another one of them, else local."""
    if chosen := machine.conf.get("vmstatestorage"):
        return chosen
    used = [context.cluster.storages[each.storage] for each in drives.drives(machine.conf) if each.storage]
    best = sorted(used, key=lambda each: (not each.shared, not each.is_file_based))
    return best[0].name if best else "local"


def _forget(context: Context, machine: Machine, name: str) -> None:
    """Remove a snapshot's data and configuration."""
    conf = machine.snapshots.pop(name, None)
    if conf is None:
        return
    if state := conf.get("vmstate"):
        context.park.volumes.free(state, machine.node)
    for volume in _volumes(context, machine, conf):
        volume.snapshots.pop(name, None)


def _volumes(context: Context, machine: Machine, conf: Mapping[str, str]) -> list[Volume]:
    found = [context.cluster.volume(each.file, machine.node) for each in drives.drives(conf) if each.is_disk]
    return [each for each in found if each is not None]


@routes.on(f"DELETE {PATH}/{{snapname}}")
def delete(context: Context) -> Any:
    context.check_quorum()
    machine, name = context.machine(), context.text("snapname")

    def begin() -> None:
        _snapshot(context)
        machine.check_lock()
        if machine.is_template:
            raise failed("you can't delete a snapshot if vm is a template")
        machine.conf["lock"] = "snapshot-delete"
        machine.snapshots[name]["snapstate"] = "delete"

    def work(task: Task) -> None:
        conf = machine.snapshots[name]
        files = [each.file for each in drives.drives(conf) if each.is_disk]
        _forget(context, machine, name)
        for other in (machine.conf, *machine.snapshots.values()):
            if other.get("parent") == name:
                other.pop("parent")
                if "parent" in conf:
                    other["parent"] = conf["parent"]
        machine.conf.pop("lock", None)
        for file in files:
            disks.add_unused(context, machine, file)

    return context.two_part_worker("qmdelsnapshot", begin, work, undo=lambda: None)


@routes.on(f"POST {PATH}/{{snapname}}/rollback")
def rollback(context: Context) -> Any:
    context.check_quorum()
    machine, name = context.machine(), context.text("snapname")
    if context.flag("start"):
        context.demand(f"/vms/{machine.vmid}", "VM.PowerMgmt")

    def begin() -> None:
        if machine.is_template:
            raise failed("you can't rollback if vm is a template")
        _, conf = _snapshot(context)
        for volume in _volumes(context, machine, conf):
            _check_newest(context, volume, name)
        if state := conf.get("snapstate"):
            raise failed(f"unable to rollback to incomplete snapshot (snapstate = {state})")
        machine.check_lock()
        power.stop_now(context, machine)
        machine.conf["lock"] = "rollback"

    def work(task: Task) -> None:
        conf = machine.snapshots[name]
        for volume in _volumes(context, machine, conf):
            context.park.volumes.rollback(volume, name)
        before = [each.file for each in drives.drives(machine.conf) if each.is_disk]
        kept = {key: value for key, value in machine.conf.items() if key == "description" or re.fullmatch(r"unused\d+", key)}
        machine.conf = {**kept, **copied(conf), "parent": name}
        machine.pending, machine.deletions = {}, {}
        if "vmgenid" in machine.conf:
            machine.conf["vmgenid"] = str(uuid.uuid4())
        for file in before:
            _keep_unused(machine, file)
        if "vmstate" in conf or context.flag("start"):
            power.start_now(context, machine)

    return context.two_part_worker("qmrollback", begin, work)


def _check_newest(context: Context, volume: Volume, name: str) -> None:
    kind = context.cluster.storages[volume.volid.partition(":")[0]].kind
    if kind == "zfspool" and name != next(reversed(volume.snapshots), ""):
        raise TaskFailure(f"can't rollback, '{name}' is not most recent snapshot on '{volume.volid}'")


def _keep_unused(machine: Machine, file: str) -> None:
    """Keep a disk as unused that the machine had and the snapshot lacks."""
    if file not in {each.file for each in (*drives.drives(machine.conf), *drives.unused(machine.conf))}:
        key = next(f"unused{number}" for number in range(256) if f"unused{number}" not in machine.conf)
        machine.conf[key] = file

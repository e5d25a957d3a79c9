"""Clones, templates, and disks that move to another storage."""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from tests.kit.proxmox import cloudinit, disks, drives, machines, rights
from tests.kit.proxmox.content import Content
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.drives import Drive
from tests.kit.proxmox.errors import ApiError, TaskFailure, failed, forbidden, invalid
from tests.kit.proxmox.inventory import Machine, Volume, random_mac
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/qemu/{vmid}"
_OF_SNAPSHOTS = ("parent", "snaptime", "vmstate", "snapstate", "runningcpu", "runningmachine", "running-nets-host-mtu", "template", "lock")


@routes.on(f"POST {PATH}/clone")
def clone(context: Context) -> Any:
    context.check_quorum()
    machine, newid, source = _check_clone(context)
    full = context.flag("full", default=not machine.is_template)
    new = machines.reserve(context, newid, "clone")

    def work(task: Task) -> None:
        task.write(f"creating a clone of VM {machine.vmid} with ID {newid}")
        conf = _copied(context, source, machine.vmid)
        made: list[str] = []
        try:
            for drive in drives.drives(source):
                if drive.is_disk or drive.is_cloudinit:
                    conf[drive.key] = str(_cloned(context, machine, (new, drive), made, full=full))
        except (ApiError, TaskFailure) as error:
            for volid in made:
                context.park.volumes.free(volid, machine.node)
            raise TaskFailure(f"clone failed: {error}") from None
        new.conf = conf
        new.node = context.text("target") or context.node
        new.pool = context.text("pool")
        new.guest = context.cluster.new_guest(newid, conf["name"])

    upid = context.worker("qmclone", machine.vmid, work, undo=lambda: machines.drop(context, new))
    # Others may clone the same machine meanwhile, unless it runs.
    alone = {newid, machine.vmid} if machine.process else {newid}
    context.park.tasks.hold(upid, frozenset(alone), frozenset({machine.vmid} - alone), patience=1.0)
    return upid


def _check_clone(context: Context) -> tuple[Machine, int, Mapping[str, str]]:
    """Refuse a clone that cannot be; return the source, the new ID and the configuration to copy."""
    name, storage, target = context.text("snapname"), context.text("storage"), context.text("target")
    if (pool := context.text("pool")) and pool not in context.cluster.pools:
        raise forbidden(f"pool '{pool}' does not exist")
    if target and target not in context.cluster.nodes:
        raise failed(f"no such cluster node '{target}'")
    if storage:
        _check_storage(context, storage, target)
    machine = context.machine()
    machine.check_lock()
    if name and name not in machine.snapshots:
        raise failed(f"snapshot '{name}' does not exist")
    full = context.flag("full", default=not machine.is_template)
    for word in ("storage", "format"):
        if word in context.values and not full:
            raise failed(f"parameter '{word}' not allowed for linked clones")
    source = machine.snapshots[name] if name else machine.conf
    shared = _check_volumes(context, source, storage)
    rights.check_bridges(context, source)
    if target and target != context.node and not shared:
        raise failed(f"can't clone VM to node '{target}' (VM uses local storage)")
    newid = context.number("newid", 0)
    if existing := context.cluster.machines.get(newid):
        where = "config file already exists" if existing.node == context.node else f"VM {newid} already exists on node '{existing.node}'"
        raise failed(f"unable to create VM {newid}: {where}")
    _check_features(context, machine, source, name, full=full)
    return machine, newid, source


def _check_storage(context: Context, name: str, target: str) -> None:
    storage = context.cluster.storage(name, context.node)
    if "images" not in storage.content:
        raise invalid(storage=f"storage '{name}' does not support vm images")
    if target and target != context.node:
        context.cluster.storage(name, target)
        if not storage.shared:
            raise failed(f"can't clone to non-shared storage '{name}'")


def _check_volumes(context: Context, source: Mapping[str, str], storage: str) -> bool:
    """Refuse who may not make the volumes; return True if all of them are shared."""
    shared = True
    for drive in drives.drives(source):
        if not drive.storage:
            continue
        shared = shared and context.cluster.storage(drive.storage).shared
        if not drive.is_cdrom:
            context.demand(f"/storage/{storage or drive.storage}", "Datastore.AllocateSpace")
    return shared


def _check_features(context: Context, machine: Machine, source: Mapping[str, str], name: str, *, full: bool) -> None:
    volumes = context.park.volumes
    for drive in drives.drives(source):
        if not (drive.is_disk or drive.is_cloudinit) or drive.file.startswith("/"):
            continue
        whole = full or drive.is_cloudinit or drive.key == "tpmstate0"
        volume = volumes.get(drive.file, machine.node)
        if not volumes.has_feature(volume, "copy" if whole else "clone", "" if drive.is_cloudinit else name):
            kind = "Full" if whole else "Linked"
            raise failed(f"{kind} clone feature is not supported for{' a snapshot of' if name else ''} '{drive.file}' ({drive.key})")


def _copied(context: Context, source: Mapping[str, str], vmid: int) -> dict[str, str]:
    conf = {key: value for key, value in source.items() if key not in _OF_SNAPSHOTS and not re.fullmatch(r"unused\d+", key)}
    for key, value in conf.items():
        if re.fullmatch(r"net\d+", key):
            conf[key] = drives.print_net({**drives.parse_net(value), "macaddr": random_mac()})
    conf["smbios1"] = f"uuid={uuid.uuid4()}"
    if "vmgenid" in conf:
        conf["vmgenid"] = str(uuid.uuid4())
    conf["name"] = context.text("name") or f"Copy-of-VM-{source.get('name', vmid)}"
    if context.text("description"):
        conf["description"] = context.text("description")
    return conf


def _cloned(context: Context, machine: Machine, target: tuple[Machine, Drive], made: list[str], *, full: bool) -> Drive:
    new, drive = target
    volumes, name = context.park.volumes, context.text("snapname")
    source = volumes.get(drive.file, machine.node)
    place = context.text("storage") or drive.storage
    if drive.is_cloudinit:
        storage = context.cluster.activate(place, machine.node)
        kind = "qcow2" if storage.is_file_based else "raw"
        called = f"vm-{new.vmid}-cloudinit{'.qcow2' if storage.is_file_based else ''}"
        volume = volumes.allocate(storage, machine.node, new.vmid, Content(cloudinit.SIZE), kind, called)
    elif full or drive.key == "tpmstate0":
        content = source.snapshots[name] if name else source.content
        volume = volumes.copy(content, (place, machine.node), new.vmid, context.text("format") or source.format)
    else:
        volume = volumes.clone(_at(source, name), machine.node, new.vmid)
    made.append(volume.volid)
    return drive.of(volume.volid, volume.size)


def _at(volume: Volume, snapshot: str) -> Volume:
    """Return a volume as it was at a snapshot."""
    if not snapshot:
        return volume
    return Volume(volume.volid, volume.kind, volume.format, volume.snapshots[snapshot], volume.vmid)


@routes.on(f"POST {PATH}/template")
def template(context: Context) -> Any:
    machine, only = context.machine(), context.text("disk")

    def check() -> None:
        machine.check_lock()
        if machine.snapshots:
            raise failed("unable to create template, because VM contains snapshots")
        if machine.is_template and not only:
            raise failed("you can't convert a template to a template")
        if machine.process:
            raise failed("you can't convert a VM to template if VM is running")

    def work(task: Task) -> None:
        check()
        machine.conf["template"] = "1"
        for drive in list(drives.drives(machine.conf)):
            if not drive.is_disk or only not in ("", drive.key):
                continue
            volume = context.park.volumes.get(drive.file, machine.node)
            if context.park.volumes.has_feature(volume, "template"):
                base = context.park.volumes.to_base(volume, machine.node)
                machine.conf[drive.key] = str(drive.of(base.volid, base.size))

    check()
    return context.worker("qmtemplate", machine.vmid, work)


@routes.on(f"POST {PATH}/move_disk")
def move_disk(context: Context) -> Any:
    context.check_quorum()
    if "target-vmid" in context.values:
        raise ApiError(501, "the simulator does not move disks between machines")
    name = context.text("storage")
    if not name:
        raise invalid(storage="both 'storage' and 'target-vmid' missing, either needs to be set")
    context.demand(f"/storage/{name}", "Datastore.AllocateSpace")
    storage = context.cluster.storage(name, context.node)

    def checked() -> tuple[Machine, Drive, Volume]:
        machine, key = context.machine(), context.text("disk")
        if context.text("digest", machine.digest) != machine.digest:
            raise failed("checksum mismatch (file change by other user?)")
        machine.check_lock()
        if key not in machine.conf:
            raise failed(f"disk '{key}' does not exist")
        drive = drives.parse(key, machine.conf[key])
        if drive.is_cdrom and not drive.is_cloudinit:
            raise failed("you can't move a cdrom")
        volume = context.park.volumes.get(drive.file, machine.node)
        if drive.storage == name and context.text("format", volume.format) == volume.format:
            raise failed("you can't move to the same storage with same format")
        if "images" not in storage.content:
            raise invalid(storage=f"storage '{name}' does not support vm images")
        if volume.snapshots and context.flag("delete"):
            raise failed("you can't move a disk with snapshots and delete the source")
        return machine, drive, volume

    def work(task: Task) -> None:
        machine, drive, volume = checked()
        try:
            moved = context.park.volumes.copy(volume.content, (name, machine.node), machine.vmid, context.text("format") or volume.format)
        except TaskFailure as error:
            raise TaskFailure(f"storage migration failed: {error}") from None
        if machine.is_template:
            moved = context.park.volumes.to_base(moved, machine.node)
        machine.conf[drive.key] = str(drive.of(moved.volid, moved.size))
        if machine.process:
            machine.process.conf[drive.key] = machine.conf[drive.key]
        _leave(context, machine, volume, task)

    checked()
    return context.worker("qmmove", context.vmid, work)


def _leave(context: Context, machine: Machine, volume: Volume, task: Task) -> None:
    """Remove the source of a disk that has moved, or keep it as unused."""
    if not context.flag("delete"):
        disks.add_unused(context, machine, volume.volid)
        return
    try:
        context.park.volumes.free(volume.volid, machine.node)
    except TaskFailure as error:
        # The real one leaves such a volume behind as well.
        task.write(f"WARN: {error}")

"""Machines of a node: list, create, look at and destroy them."""

import uuid
from typing import Any

from tests.kit.proxmox import configuration, disks, drives, formats, power, rights, statuses
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import ApiError, TaskFailure, failed, forbidden, invalid
from tests.kit.proxmox.inventory import Machine
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/qemu/{vmid}"
# Parameters of create that are no options of the machine.
_CONTROL = (
    *("node", "vmid", "archive", "storage", "force", "unique", "live-restore", "pool", "bwlimit", "start", "ha-managed"),
    "import-working-storage",
)


@routes.on("GET /nodes/{node}/qemu")
def machines(context: Context) -> Any:
    mine = [each for each in context.cluster.machines.values() if each.node == context.node]
    visible = sorted((each for each in mine if context.may(f"/vms/{each.vmid}", "VM.Audit")), key=lambda each: each.vmid)
    look = statuses.in_full if context.flag("full") else statuses.of_machine
    return [look(context.cluster, each) for each in visible]


@routes.on(f"GET {PATH}")
def index(context: Context) -> Any:
    return [{"subdir": name} for name in ("config", "pending", "status", "snapshot", "agent", "cloudinit", "feature")]


@routes.on(f"GET {PATH}/status")
def status_index(context: Context) -> Any:
    return [{"subdir": name} for name in ("current", "start", "stop", "reset", "shutdown", "suspend", "reboot")]


@routes.on(f"GET {PATH}/status/current")
def status(context: Context) -> Any:
    return statuses.in_full(context.cluster, context.machine())


@routes.on("POST /nodes/{node}/qemu")
def create(context: Context) -> Any:
    context.check_quorum()
    vmid, pool, default = context.vmid, context.text("pool"), context.text("storage")
    if context.text("archive"):
        raise ApiError(501, "the simulator does not model backups")
    if pool and pool not in context.cluster.pools:
        raise forbidden(f"pool '{pool}' does not exist")
    if default:
        context.demand(f"/storage/{default}", "Datastore.AllocateSpace")
    if context.flag("ha-managed"):
        context.demand("/", "Sys.Console")
    if context.flag("start"):
        context.demand_vm(vmid, pool, "VM.PowerMgmt")
    if not context.may(f"/vms/{vmid}", "VM.Allocate") and not (pool and context.may(f"/pool/{pool}", "VM.Allocate")):
        raise forbidden()
    values = configuration.options(context, _CONTROL)
    wanted = disks.parsed(values)
    disks.check_access(context, vmid, wanted, default)
    rights.check_options(context, vmid, pool, values)
    rights.check_devices(context, values)
    rights.check_bridges(context, values)
    configuration.check_values(values)
    if "tags" in values:
        rights.check_tags(context, vmid, pool)
    values = configuration.prepared(values)
    machine = reserve(context, vmid, "create", f"unable to create VM {vmid} - ")

    def work(task: Task) -> None:
        try:
            made = disks.create(context, machine, wanted, default)
        except (ApiError, TaskFailure) as error:
            raise TaskFailure(f"unable to create VM {vmid} - {error}") from None
        for key, text in made.items():
            task.write(f"{key}: successfully created disk '{text}'")
        machine.conf = completed({**values, **made}, context)
        machine.guest = context.cluster.new_guest(vmid, machine.conf.get("name", ""))
        machine.pool = pool
        if context.flag("start"):
            power.start_now(context, machine)

    return context.worker("qmcreate", vmid, work, undo=lambda: drop(context, machine))


def reserve(context: Context, vmid: int, lock: str, said: str = "") -> Machine:
    """Take an ID: its configuration has nothing but a lock."""
    if existing := context.cluster.machines.get(vmid):
        raise failed(f"{said}VM {vmid} already exists on node '{existing.node}'")
    machine = context.cluster.machines[vmid] = Machine(vmid, context.node, {"lock": lock})
    return machine


def drop(context: Context, machine: Machine) -> None:
    """Remove a machine that was not finished."""
    if context.cluster.machines.get(machine.vmid) is machine:
        del context.cluster.machines[machine.vmid]


def completed(conf: dict[str, str], context: Context) -> dict[str, str]:
    """Return a new machine's options with those that are made for it."""
    if "boot" not in conf:
        conf["boot"] = f"order={';'.join(_default_boot(conf))}" if _default_boot(conf) else ""
        conf = {name: value for name, value in conf.items() if name != "boot" or value}
    conf.setdefault("smbios1", f"uuid={uuid.uuid4()}")
    if conf.get("vmgenid", "1") == "1":
        conf["vmgenid"] = str(uuid.uuid4())
    return {**conf, "meta": f"creation-qemu={context.park.release}.0,ctime={int(context.cluster.clock())}"}


def _default_boot(conf: dict[str, str]) -> list[str]:
    """The first disk, then the first CD-ROM drive, then the first interface."""
    found = [each for each in drives.drives(conf) if drives.interface(each.key) in ("ide", "scsi", "sata", "virtio")]
    disks_first = [each.key for each in found if each.is_disk][:1] + [
        each.key for each in found if each.is_cdrom and not each.is_cloudinit
    ][:1]
    return disks_first + sorted(name for name in conf if name.startswith("net"))[:1]


@routes.on(f"DELETE {PATH}")
def destroy(context: Context) -> Any:
    context.check_quorum()
    if context.flag("skiplock") and not context.is_root:
        raise invalid(skiplock="Only root may use this option.")
    machine = context.machine()

    def check() -> None:
        context.machine().check_protection(f"can't remove VM {machine.vmid}")
        if machine.vmid in context.cluster.services and not context.flag("purge"):
            raise failed(f"unable to remove VM {machine.vmid} - used in HA resources and purge parameter not set.")
        if machine.process:
            raise failed(f"VM {machine.vmid} is running - destroy failed")

    def work(task: Task) -> None:
        check()
        if machine.conf.get("lock") != "suspended" and not context.flag("skiplock"):
            machine.check_lock()
        _destroy(context, machine, task)
        context.cluster.services.pop(machine.vmid, None)

    check()
    return context.worker("qmdestroy", machine.vmid, work)


def _destroy(context: Context, machine: Machine, task: Task) -> None:
    volumes = context.park.volumes
    confs = [machine.conf, machine.pending, *machine.snapshots.values()]
    named = {drive.file for conf in confs for drive in (*drives.drives(conf), *drives.unused(conf)) if drive.is_disk or drive.is_cloudinit}
    named |= {conf["vmstate"] for conf in confs if "vmstate" in conf}
    mine = [volume for volid in sorted(named) if (volume := disks.owned(context, machine, volid)) is not None]
    if machine.is_template and (used := next((each for each in mine if volumes.is_used(each, machine.node)), None)):
        raise TaskFailure(f"base volume '{used.volid}' is still in use by linked cloned")
    if context.flag("destroy-unreferenced-disks"):
        every = [each for name in context.cluster.storages for each in context.cluster.volumes_of(name, machine.node)]
        mine += [each for each in every if each.vmid == machine.vmid and each.kind == "images" and each not in mine]
    for volume in mine:
        try:
            volumes.free(volume.volid, machine.node)
        except (ApiError, TaskFailure) as error:
            task.write(f"WARN: Could not remove disk '{volume.volid}', check manually: {error}")
    context.park.access.grants = [each for each in context.park.access.grants if each.path != f"/vms/{machine.vmid}"]
    drop(context, machine)


@routes.on(f"GET {PATH}/feature")
def feature(context: Context) -> Any:
    machine, name = context.machine(), context.text("snapname")
    if name and name not in machine.snapshots:
        raise failed(f"snapshot '{name}' does not exist")
    conf = machine.snapshots[name] if name else machine.conf
    return {"hasFeature": int(has_feature(context, machine, conf, context.text("feature"), name)), "nodes": shared_nodes(context, conf)}


def has_feature(context: Context, machine: Machine, conf: dict[str, str], wanted: str, snapshot: str = "") -> bool:
    """Return True if all disks of a configuration can do it."""
    volumes = context.park.volumes
    files = [each.file for each in drives.drives(conf) if each.is_disk and not each.file.startswith("/")]
    return all(volumes.has_feature(volumes.get(file, machine.node), wanted, snapshot) for file in files)


def shared_nodes(context: Context, conf: dict[str, str]) -> list[str]:
    """Return the nodes that have all storages of a configuration."""
    names = {each.storage for each in drives.drives(conf) if each.storage}
    storages = [context.cluster.storages[name] for name in names if name in context.cluster.storages]
    if any(not each.shared for each in storages):
        return [context.node]
    return [node for node in context.cluster.nodes if all(not each.nodes or node in each.nodes for each in storages)]


@routes.on(f"PUT {PATH}/resize")
def resize(context: Context) -> Any:
    if context.flag("skiplock") and not context.is_root:
        raise invalid(skiplock="Only root may use this option.")
    context.check_quorum()
    text = context.text("size")

    def work(task: Task) -> None:
        machine, key = context.machine(), context.text("disk")
        if context.text("digest", machine.digest) != machine.digest:
            raise TaskFailure("checksum mismatch (file change by other user?)")
        if not context.flag("skiplock"):
            machine.check_lock()
        if key not in machine.conf:
            raise TaskFailure(f"disk '{key}' does not exist")
        drive = drives.parse(key, machine.conf[key])
        if drive.is_cdrom:
            raise TaskFailure("you can't resize a cdrom")
        context.demand(f"/storage/{drive.storage}", "Datastore.AllocateSpace")
        volume = context.park.volumes.get(drive.file, machine.node)
        wanted = (formats.parse_size(text.removeprefix("+")) or 0) + (volume.size if text.startswith("+") else 0)
        if wanted < volume.size:
            raise TaskFailure("shrinking disks is not supported")
        if wanted > volume.size:
            context.park.volumes.change(volume, volume.content.resized(wanted))
            machine.conf[key] = str(drive.of(drive.file, wanted))
            if machine.process:
                machine.process.conf[key] = machine.conf[key]

    return context.worker("resize", context.vmid, work)

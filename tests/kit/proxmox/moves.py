"""Machines that move to another node, and pools that they are members of."""

from typing import Any

from tests.kit.proxmox import availability, drives
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import TaskFailure, failed, forbidden, invalid
from tests.kit.proxmox.formats import split_list
from tests.kit.proxmox.inventory import Machine, Pool, Volume
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/qemu/{vmid}/migrate"


def _local(context: Context, machine: Machine) -> list[tuple[drives.Drive, Volume]]:
    """Return the drives on storages that only this node has."""
    named = [each for each in (*drives.drives(machine.conf), *drives.unused(machine.conf)) if each.storage]
    alone = [each for each in named if not context.cluster.storage(each.storage).shared]
    found = [(each, context.cluster.volume(each.file, machine.node)) for each in alone]
    return [(drive, volume) for drive, volume in found if volume is not None]


@routes.on(f"GET {PATH}")
def preconditions(context: Context) -> Any:
    context.check_quorum()
    machine = context.machine()
    machine.check_lock()
    refused: dict[str, Any] = {}
    names = {each.storage for each in drives.drives(machine.conf) if each.storage}
    for node in context.cluster.nodes:
        lacking = [each for each in sorted(names) if (nodes := context.cluster.storage(each).nodes) and node not in nodes]
        if lacking and node != machine.node:
            refused[node] = {"unavailable_storages": lacking}
    listed = [
        {"volid": volume.volid, "size": volume.size, "cdrom": int(drive.is_cdrom), "is_unused": int(drive.key.startswith("unused"))}
        for drive, volume in _local(context, machine)
    ]
    allowed = [each for each in context.cluster.nodes if each not in (machine.node, *refused)]
    return {
        "running": int(machine.process is not None),
        "allowed_nodes": allowed,
        "not_allowed_nodes": refused,
        "local_disks": listed,
        "local_resources": [],
        "mapped-resources": [],
        "mapped-resource-info": {},
    }


@routes.on(f"POST {PATH}")
def migrate(context: Context) -> Any:
    target = context.text("target")
    if target == context.node:
        raise invalid(target="target is local node.")
    context.check_quorum()
    if target not in context.cluster.nodes:
        raise failed(f"no such cluster node '{target}'")
    for name in ("force", "migration_type", "migration_network"):
        if name in context.values and not context.is_root:
            raise invalid(**{name: "Only root may use this option."})
    machine = context.machine()
    machine.check_lock()
    if machine.process and not context.flag("online"):
        raise failed("can't migrate running VM without --online")
    storage = context.text("targetstorage")
    if storage not in ("", "1"):
        context.demand_vm(machine.vmid, "", "VM.Config.Disk")
        context.demand(f"/storage/{storage}", "Datastore.AllocateSpace")
        context.cluster.storage(storage, target)
    for drive in drives.drives(machine.conf):
        if drive.storage and not storage:
            context.cluster.storage(drive.storage, target)

    def begin() -> None:
        if machine.process:
            machine.conf["lock"] = "migrate"

    def work(task: Task) -> None:
        _move(context, machine, target, storage if storage != "1" else "")

    def undo() -> None:
        machine.conf.pop("lock", None)

    if availability.service_of(context) is not None:
        return availability.ask_move(context, work)
    return context.two_part_worker("qmigrate", begin, work, undo=undo)


def _move(context: Context, machine: Machine, target: str, storage: str) -> None:
    if not context.cluster.nodes[target].online:
        raise TaskFailure("migration aborted: can't connect to the target node")
    local = [(drive, volume) for drive, volume in _local(context, machine) if volume.kind == "images"]
    disks = [drive.key for drive, _ in local if drive.is_disk]
    if machine.process and disks and not context.flag("with-local-disks"):
        raise TaskFailure("migration aborted: can't live migrate attached local disks without with-local-disks option")
    for drive, volume in local:
        place = storage or drive.storage
        del context.cluster.volumes[machine.node, volume.volid]
        moved = context.park.volumes.copy(volume.content, (place, target), machine.vmid, volume.format)
        machine.conf[drive.key] = str(drive.of(moved.volid, moved.size)) if not drive.key.startswith("unused") else moved.volid
    machine.conf.pop("lock", None)
    machine.node = target


def _pool(context: Context) -> Pool:
    name = context.text("poolid")
    if name not in context.cluster.pools:
        raise failed(f"pool '{name}' does not exist")
    return context.cluster.pools[name]


@routes.on("GET /pools")
def pools(context: Context) -> Any:
    named = context.text("poolid")
    visible = [each for each in context.cluster.pools.values() if context.may(f"/pool/{each.name}", "Pool.Audit")]
    if named:
        if named not in context.cluster.pools:
            raise failed(f"pool '{named}' does not exist")
        return [{"poolid": named, **_described(context, context.cluster.pools[named])} for each in visible if each.name == named]
    return [{"poolid": each.name} | ({"comment": each.comment} if each.comment else {}) for each in visible]


@routes.on("GET /pools/{poolid}")
def one_pool(context: Context) -> Any:
    return _described(context, _pool(context))


def _described(context: Context, pool: Pool) -> dict[str, Any]:
    machines = [each for each in context.cluster.machines.values() if each.pool == pool.name]
    members: list[dict[str, Any]] = [{"id": f"qemu/{each.vmid}", "vmid": each.vmid, "node": each.node, "type": "qemu"} for each in machines]
    members += [{"id": f"storage/{context.park.entry}/{name}", "storage": name, "type": "storage"} for name in sorted(pool.storages)]
    return {"members": members} | ({"comment": pool.comment} if pool.comment else {})


@routes.on("POST /pools")
def add_pool(context: Context) -> Any:
    name = context.text("poolid")
    if name in context.cluster.pools:
        raise failed(f"create pool failed: pool '{name}' already exists")
    context.cluster.pools[name] = Pool(name, context.text("comment"))


@routes.on("DELETE /pools", "DELETE /pools/{poolid}")
def remove_pool(context: Context) -> Any:
    pool = _pool(context)
    if pool.storages or any(each.pool == pool.name for each in context.cluster.machines.values()):
        raise failed(f"delete pool failed: pool '{pool.name}' is not empty")
    del context.cluster.pools[pool.name]


@routes.on("PUT /pools", "PUT /pools/{poolid}")
def change_pool(context: Context) -> Any:
    pool, leave = _pool(context), context.flag("delete")
    pool.comment = context.text("comment", pool.comment)
    for vmid in split_list(context.text("vms")):
        context.demand(f"/vms/{vmid}", "Permissions.Modify", "VM.Allocate", any_of=True)
        machine = context.cluster.machines.get(int(vmid))
        if machine is None:
            raise failed(f"VM {vmid} does not exist")
        _change_member(context, pool, machine, leave=leave)
    for name in split_list(context.text("storage")):
        context.demand(f"/storage/{name}", "Permissions.Modify", "Datastore.Allocate", any_of=True)
        if leave != (name in pool.storages):
            raise failed(f"Storage '{name}' is {'not a' if leave else 'already a'} pool member")
        pool.storages ^= {name}


def _change_member(context: Context, pool: Pool, machine: Machine, *, leave: bool) -> None:
    if leave:
        if machine.pool != pool.name:
            raise failed(f"VM {machine.vmid} is not a pool member")
        machine.pool = ""
        return
    if machine.pool == pool.name:
        raise failed(f"VM {machine.vmid} is already a pool member")
    if machine.pool:
        if not context.flag("allow-move"):
            raise failed(f"VM {machine.vmid} belongs already to pool '{machine.pool}' and 'allow-move' is not set")
        if not context.may(f"/pool/{machine.pool}", "Pool.Allocate"):
            raise forbidden(f"/pool/{machine.pool}, Pool.Allocate")
    machine.pool = pool.name

"""Calls about the cluster: version, nodes, resources, tasks, tickets and permissions."""

from typing import Any

from tests.kit.proxmox import statuses
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import failed, forbidden, invalid
from tests.kit.proxmox.tasks import UNEXPECTED, UPID, Task

routes = Routes()


@routes.on("GET /version", "GET /nodes/{node}/version")
def version(context: Context) -> Any:
    release = context.park.release
    return {"version": f"{release}.2", "release": release, "repoid": "4aeb8b1b1e4c5d0a"}


@routes.on("POST /access/ticket")
def ticket(context: Context) -> Any:
    name = context.text("username")
    if realm := context.text("realm"):
        name = f"{name}@{realm}"
    found = context.park.access.log_in(name, context.text("password"))
    return {**found, "clustername": context.cluster.name}


@routes.on("GET /access/ticket")
def no_ticket(context: Context) -> Any:
    return None


@routes.on("GET /access/permissions")
def permissions(context: Context) -> Any:
    name = context.text("userid") or context.caller.name
    if name != context.caller.name and name.partition("!")[0] != context.caller.user:
        context.demand("/access", "Sys.Audit")
    access = context.park.access
    paths = {"/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms", *(grant.path for grant in access.grants)}
    if path := context.text("path"):
        paths = {path}
    found = {each: dict.fromkeys(sorted(access.privileges(name, each)), 1) for each in sorted(paths)}
    return {each: privileges for each, privileges in found.items() if privileges or path}


@routes.on("GET /nodes")
def nodes(context: Context) -> Any:
    return [statuses.of_node(context, node) for node in context.cluster.nodes.values()]


@routes.on("GET /nodes/{node}")
def node_index(context: Context) -> Any:
    return [{"name": name} for name in ("qemu", "storage", "tasks", "network", "status", "version", "sdn")]


@routes.on("GET /nodes/{node}/status")
def node_status(context: Context) -> Any:
    node = context.cluster.nodes[context.node]
    used = statuses.memory_in_use(context.cluster, node.name)
    return {
        "uptime": 3600,
        "cpu": 0.02,
        "cpuinfo": {"cpus": node.cpus, "sockets": 1, "cores": node.cpus, "model": "Simulated CPU", "hvm": "1"},
        "memory": {"total": node.memory, "used": used, "free": node.memory - used},
        "pveversion": f"pve-manager/{context.park.release}.2/4aeb8b1b1e4c5d0a",
        "loadavg": ["0.10", "0.10", "0.10"],
        "rootfs": {"total": 100 << 30, "used": 10 << 30, "free": 90 << 30, "avail": 90 << 30},
    }


@routes.on("GET /nodes/{node}/network")
def networks(context: Context) -> Any:
    bridges = [
        {"iface": name, "type": "bridge", "active": 1, "autostart": 1, "method": "manual", "priority": number + 3}
        for number, name in enumerate(context.cluster.nodes[context.node].bridges)
    ]
    visible = [each for each in bridges if context.may(f"/sdn/zones/localnetwork/{each['iface']}", "SDN.Audit", "SDN.Use", any_of=True)]
    kind = context.text("type")
    if kind in ("bridge", "any_bridge", "any_local_bridge", "include_sdn"):
        return visible
    return [] if kind else [{"iface": "eno1", "type": "eth", "active": 1, "exists": 1, "priority": 2, "method": "manual"}, *visible]


@routes.on("GET /nodes/{node}/network/{iface}")
def network(context: Context) -> Any:
    if context.text("iface") not in context.cluster.nodes[context.node].bridges:
        raise invalid(iface="interface does not exist")
    return {"type": "bridge", "active": 1, "autostart": 1, "method": "manual"}


@routes.on("GET /cluster/sdn/vnets", "GET /cluster/sdn/zones", "GET /nodes/{node}/sdn/zones")
def no_sdn(context: Context) -> Any:
    if context.call.path.startswith("/nodes"):
        return [{"zone": "localnetwork", "status": "available"}] if context.may("/sdn/zones/localnetwork", "SDN.Audit") else []
    return []


@routes.on("GET /cluster/nextid")
def next_id(context: Context) -> Any:
    if "vmid" in context.values:
        if context.vmid in context.cluster.machines:
            raise invalid(vmid=f"VM {context.vmid} already exists")
        return context.text("vmid")
    return str(context.cluster.next_id())


@routes.on("GET /cluster/status")
def cluster_status(context: Context) -> Any:
    names = list(context.cluster.nodes)
    online = [node for node in context.cluster.nodes.values() if node.online]
    cluster = {"type": "cluster", "id": "cluster", "name": context.cluster.name, "nodes": len(names), "version": 3}
    quorate = {**cluster, "quorate": int(len(online) * 2 > len(names))}
    return [
        quorate,
        *(
            {
                "type": "node",
                "id": f"node/{node.name}",
                "name": node.name,
                "nodeid": number + 1,
                "online": int(node.online),
                "local": int(node.name == context.park.entry),
                "ip": f"192.0.2.{number + 1}",
                "level": "",
            }
            for number, node in enumerate(context.cluster.nodes.values())
        ),
    ]


@routes.on("GET /cluster/options")
def options(context: Context) -> Any:
    return {"keyboard": "en-us", "mac_prefix": "BC:24:11"}


@routes.on("GET /cluster/resources")
def resources(context: Context) -> Any:
    """What the nodes last reported, and of machines what the cluster's file system says now."""
    kind = context.text("type")
    statuses.report(context.park)
    found: list[dict[str, Any]] = []
    if kind in ("", "pool"):
        names = [name for name in sorted(context.cluster.pools) if context.may(f"/pool/{name}", "Pool.Audit")]
        found += [{"id": f"/pool/{name}", "pool": name, "type": "pool"} for name in names]
    if kind in ("", "vm"):
        machines = sorted(context.cluster.machines.values(), key=lambda each: each.vmid)
        found += [statuses.of_resource(context.park, each) for each in machines if context.may(f"/vms/{each.vmid}", "VM.Audit")]
    if kind in ("", "node"):
        found += [statuses.of_node(context, node) for node in context.cluster.nodes.values()]
    if kind in ("", "storage"):
        found += [
            statuses.of_storage_resource(context, storage, node)
            for storage in context.cluster.storages.values()
            if not storage.disabled and context.may(f"/storage/{storage.name}", "Datastore.Audit")
            for node in context.cluster.nodes
            if not storage.nodes or node in storage.nodes
        ]
    return found


def _described(task: Task) -> dict[str, Any]:
    match = UPID.fullmatch(task.upid)
    assert match is not None
    found = {"upid": task.upid, "node": task.node, "type": task.kind, "id": task.id, "user": task.owner}
    if "!" in task.user:
        found["tokenid"] = task.user.partition("!")[2]
    return {**found, "pid": int(match["pid"], 16), "pstart": int(match["pstart"], 16), "starttime": int(match["starttime"], 16)}


def _visible(context: Context, task: Task) -> bool:
    own = task.user == context.caller.name or task.owner == context.caller.name
    return own or context.may(f"/nodes/{task.node}", "Sys.Audit")


def _ended(task: Task) -> dict[str, Any]:
    return {"endtime": int(task.ended or 0), "status": task.status} if not task.is_running else {}


@routes.on("GET /cluster/tasks")
def cluster_tasks(context: Context) -> Any:
    newest = sorted(context.park.tasks.all.values(), key=lambda each: -each.started)
    return [{**_described(each), **_ended(each), "saved": str(int(not each.is_running))} for each in newest if _visible(context, each)][:25]


@routes.on("GET /nodes/{node}/tasks")
def tasks(context: Context) -> Any:
    source, kind = context.text("source", "archive"), context.text("typefilter")
    wanted = []
    for task in sorted(context.park.tasks.all.values(), key=lambda each: -each.started):
        here = task.node == context.node and not task.forgotten and source in ("all", "active" if task.is_running else "archive")
        fits = kind in ("", task.kind) and context.text("vmid") in ("", task.id) and context.text("userfilter") in task.user
        since = int(task.started) >= context.number("since", 0)
        bad = task.status not in ("", "OK") or not context.flag("errors")
        if here and fits and since and bad and _visible(context, task):
            wanted.append({**_described(task), **(_ended(task) or {"status": "RUNNING"} if source != "archive" else _ended(task))})
    start = context.number("start", 0)
    context.totals["total"] = len(wanted)
    return wanted[start : start + context.number("limit", 50)]


def _task(context: Context) -> Task:
    upid = context.text("upid")
    if not UPID.fullmatch(upid):
        raise invalid(upid="unable to parse worker upid")
    task = context.park.tasks.all.get(upid)
    if task is None or task.forgotten or task.node != context.node:
        raise invalid(upid="no such task")
    if not _visible(context, task):
        raise forbidden(f"/nodes/{context.node}, Sys.Audit")
    return task


@routes.on("GET /nodes/{node}/tasks/{upid}")
def task_index(context: Context) -> Any:
    return [{"name": "log"}, {"name": "status"}]


@routes.on("DELETE /nodes/{node}/tasks/{upid}")
def stop_task(context: Context) -> Any:
    task = _task(context)
    if context.caller.user != task.owner:
        context.demand(f"/nodes/{context.node}", "Sys.Modify")
    context.park.tasks.stop(task)


@routes.on("GET /nodes/{node}/tasks/{upid}/status")
def task_status(context: Context) -> Any:
    task = _task(context)
    found = {**_described(task), "status": "running" if task.is_running else "stopped"}
    return found if task.is_running else {**found, "exitstatus": task.status or UNEXPECTED}


@routes.on("GET /nodes/{node}/tasks/{upid}/log")
def task_log(context: Context) -> Any:
    task = _task(context)
    if context.flag("download"):
        raise failed("the simulator gives logs as lines only")
    start = context.number("start", 0)
    lines = [{"n": number + 1, "t": line} for number, line in enumerate(task.log)]
    context.totals["total"] = len(lines)
    return lines[start : start + context.number("limit", 50)] or [{"n": 1, "t": "no content"}]

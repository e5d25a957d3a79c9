"""What is known of machines, nodes and storages: now from the node itself, later from its last report to the cluster."""

from typing import Any

from tests.kit.proxmox import drives, formats, schema
from tests.kit.proxmox.context import Context, Park
from tests.kit.proxmox.inventory import Cluster, Machine, Node, Storage

MIB = 1 << 20
_REPORTED = (
    *("name", "status", "uptime", "maxmem", "mem", "memhost", "maxdisk", "disk", "cpu", "netin", "netout"),
    *("diskread", "diskwrite"),
)


def memory_of(machine: Machine) -> int:
    """Return the MiB of memory that the configuration asks for."""
    text = machine.conf.get("memory", "512")
    return int(text.removeprefix("current=").partition(",")[0])


def cores_of(machine: Machine) -> int:
    """Return the number of virtual CPUs."""
    conf = machine.conf
    return int(conf.get("vcpus", 0)) or int(conf.get("sockets", 1)) * int(conf.get("cores", 1))


def boot_disk(machine: Machine) -> int:
    """Return the size of the disk that the machine boots from."""
    order = formats.split_list(machine.conf.get("boot", "").removeprefix("order="))
    disks = {each.key: each.size for each in drives.drives(machine.conf) if each.is_disk}
    return next((disks[key] for key in [*order, *sorted(disks)] if key in disks), 0)


def memory_in_use(cluster: Cluster, node: str) -> int:
    """Return the bytes that the machines of a node have."""
    return sum(memory_of(each) * MIB for each in cluster.machines.values() if each.node == node and each.process)


def of_machine(cluster: Cluster, machine: Machine) -> dict[str, Any]:
    """Return what a node says of a machine now."""
    conf, process = machine.conf, machine.process
    found: dict[str, Any] = {
        "vmid": machine.vmid,
        "name": conf.get("name", f"VM {machine.vmid}"),
        "status": "running" if process else "stopped",
        "cpus": cores_of(machine),
        "maxmem": memory_of(machine) * MIB,
        "maxdisk": boot_disk(machine),
        "disk": 0,
        "cpu": 0,
        "mem": 0,
        "uptime": 0,
        "netin": 0,
        "netout": 0,
        "memhost": 0,
        "diskread": 0,
        "diskwrite": 0,
    }
    if process:
        running = memory_of(Machine(machine.vmid, machine.node, process.conf)) * MIB
        found |= {
            "pid": process.pid,
            "uptime": int(cluster.clock() - process.started),
            "cpu": 0.01,
            "mem": running // 2,
            "memhost": running // 2,
        }
    if machine.is_template:
        found["template"] = 1
    for name in ("lock", "tags"):
        if name in conf:
            found[name] = conf[name]
    if any(key.startswith("serial") for key in conf):
        found["serial"] = 1
    return found


def in_full(cluster: Cluster, machine: Machine) -> dict[str, Any]:
    """Return what a node says of a machine after it asked QEMU."""
    found, process = of_machine(cluster, machine), machine.process
    found |= {"qmpstatus": process.status if process else "stopped", "ha": _availability(cluster, machine)}
    if process:
        running = Machine(machine.vmid, machine.node, process.conf)
        found["maxmem"] = memory_of(running) * MIB
        if process.conf.get("balloon") != "0":
            found["balloon"] = memory_of(running) * MIB
        found |= {"running-machine": "pc-i440fx-10.1+pve0", "running-qemu": "10.1.2"}
    agent = machine.conf.get("agent")
    if agent and formats.parse_boolean(agent.partition(",")[0].removeprefix("enabled=")) == "1":
        found["agent"] = 1
    return found


def _availability(cluster: Cluster, machine: Machine) -> dict[str, Any]:
    service = cluster.services.get(machine.vmid)
    return {"managed": 0} if service is None or service.requested == "ignored" else {"managed": 1, "state": service.state}


def report(park: Park) -> None:
    """Let every node that is there report what it has, if its last report is old."""
    now = park.cluster.clock()
    for node in park.cluster.nodes.values():
        last = park.reports.get(node.name)
        if node.online and (last is None or now - last[0] >= park.report_seconds):
            mine = [each for each in park.cluster.machines.values() if each.node == node.name and set(each.conf) != {"lock"}]
            park.reports[node.name] = (now, {each.vmid: of_machine(park.cluster, each) for each in mine})


def of_resource(park: Park, machine: Machine) -> dict[str, Any]:
    """Return a machine's entry in /cluster/resources."""
    entry: dict[str, Any] = {"id": f"qemu/{machine.vmid}", "vmid": machine.vmid, "node": machine.node, "type": "qemu", "status": "unknown"}
    date, known = park.reports.get(machine.node, (0.0, {}))
    stale = not park.cluster.nodes[machine.node].online and park.cluster.clock() - date > 300
    if (reported := known.get(machine.vmid)) is not None and not stale:
        kept = (
            "name",
            "status",
            "uptime",
            "maxmem",
            "mem",
            "memhost",
            "maxdisk",
            "disk",
            "cpu",
            "netin",
            "netout",
            "diskread",
            "diskwrite",
        )
        entry |= {name: reported[name] for name in kept} | {"maxcpu": reported["cpus"], "template": reported.get("template", 0)}
    entry |= {name: machine.conf[name] for name in ("lock", "tags") if name in machine.conf}
    return {**entry, "pool": machine.pool} if machine.pool else entry


def of_node(context: Context, node: Node) -> dict[str, Any]:
    """Return a node's entry in /nodes and /cluster/resources."""
    entry: dict[str, Any] = {
        "id": f"node/{node.name}",
        "node": node.name,
        "type": "node",
        "status": "online" if node.online else "offline",
        "level": "",
    }
    if not context.may(f"/nodes/{node.name}", "Sys.Audit"):
        return entry
    entry |= {"maxcpu": node.cpus, "maxmem": node.memory, "maxdisk": 100 << 30}
    if node.online:
        entry |= {"uptime": 3600, "cpu": 0.02, "mem": memory_in_use(context.cluster, node.name), "disk": 10 << 30}
    return entry


def of_storage_resource(context: Context, storage: Storage, node: str) -> dict[str, Any]:
    """Return a storage's entry in /cluster/resources, one for each node."""
    entry: dict[str, Any] = {
        "id": f"storage/{node}/{storage.name}",
        "storage": storage.name,
        "node": node,
        "type": "storage",
        "plugintype": storage.kind,
        "shared": int(storage.shared),
        "content": ",".join(sorted(storage.content)),
        "status": "unknown",
    }
    if context.cluster.nodes[node].online and storage.active:
        entry |= {"maxdisk": storage.total, "disk": context.cluster.used(storage, node), "status": "available"}
    return entry


def typed(conf: dict[str, str]) -> dict[str, Any]:
    """Return a configuration with numbers where the schema has numbers."""
    call = schema.catalog().calls["POST /nodes/{node}/qemu"]
    found: dict[str, Any] = {}
    for name, value in conf.items():
        kind = (call.property(name) or {}).get("type")
        found[name] = int(value) if kind in ("integer", "boolean") else float(value) if kind == "number" else value
    return found

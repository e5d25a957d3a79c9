"""Power: start, stop, shut down, reset, reboot, suspend and resume."""

import re
from typing import Any

from tests.kit.proxmox import availability, cloudinit, drives, hotplug, statuses
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import TaskFailure, failed, invalid
from tests.kit.proxmox.inventory import Machine, Process
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/qemu/{vmid}/status"
_ROOT_ONLY = (
    *("stateuri", "skiplock", "migratedfrom", "migration_type", "migration_network", "targetstorage", "force-cpu", "keepActive"),
    *("with-conntrack-state", "nets-host-mtu", "nocheck"),
)
_TIMEOUT = 60


def _check_root_only(context: Context) -> None:
    for name in _ROOT_ONLY:
        if name in context.values and context.text(name) != "0" and not context.is_root:
            raise invalid(**{name: "Only root may use this option."})


@routes.on(f"POST {PATH}/start")
def start(context: Context) -> Any:
    _check_root_only(context)
    context.check_quorum()
    context.machine()
    if (service := availability.service_of(context)) is not None:
        return availability.ask(context, service, "qmstart", "started", _started)

    def work(task: Task) -> None:
        machine = context.machine()
        if machine.is_template:
            raise TaskFailure("you can't start a vm if it's a template")
        if machine.conf.get("lock") != "suspended" and not context.flag("skiplock"):
            machine.check_lock()
        if machine.process:
            raise TaskFailure(f"VM {machine.vmid} already running")
        start_now(context, machine)

    return context.worker("qmstart", context.vmid, work)


def _started(context: Context, machine: Machine) -> None:
    if not machine.process:
        start_now(context, machine)


def start_now(context: Context, machine: Machine, status: str = "running") -> None:
    """Start QEMU, after pending changes are made and the cloud-init drive is written."""
    cluster = context.cluster
    hotplug.apply(context, machine)
    if machine.conf.get("lock") == "suspended":
        del machine.conf["lock"]
        if state := machine.conf.pop("vmstate", ""):
            context.park.volumes.free(state, machine.node)
    for drive in drives.drives(machine.conf):
        if drive.storage:
            cluster.activate(drive.storage, machine.node)
            if not drive.is_cloudinit:
                context.park.volumes.get(drive.file, machine.node)
    for name, value in machine.conf.items():
        bridge = drives.parse_net(value).get("bridge") if re.fullmatch(r"net\d+", name) else None
        if bridge and bridge not in cluster.nodes[machine.node].bridges:
            raise TaskFailure(f"bridge '{bridge}' does not exist")
    needed = statuses.memory_of(machine) * statuses.MIB
    if statuses.memory_in_use(cluster, machine.node) + needed > cluster.nodes[machine.node].memory:
        raise TaskFailure("start failed: QEMU exited with code 1")
    cpus = cluster.nodes[machine.node].cpus
    if int(machine.conf.get("sockets", 1)) * int(machine.conf.get("cores", 1)) > cpus:
        raise TaskFailure(f"MAX {cpus} vcpus allowed per VM on this node")
    if "memory" in hotplug.features(machine.conf):
        _check_modules(machine)
    cloudinit.generate(context.park, machine, machine.conf)
    machine.process = Process(20000 + machine.vmid, cluster.clock(), status, dict(machine.conf))


def _check_modules(machine: Machine) -> None:
    """Refuse memory that is not made of modules."""
    memory = statuses.memory_of(machine)
    if machine.conf.get("numa") != "1":
        raise TaskFailure("NUMA needs to be enabled for memory hotplug")
    if memory < hotplug.STATIC_MEMORY:
        raise TaskFailure(f"minimum memory must be {hotplug.STATIC_MEMORY}MB")
    if next(size for size in hotplug.modules() if size >= memory) != memory:
        raise TaskFailure(f"memory size ({memory}) must be aligned to 512 for hotplugging")


def stop_now(context: Context, machine: Machine) -> None:
    """End QEMU; what waited for that is done."""
    if machine.process:
        machine.process = None
        hotplug.apply(context, machine)


@routes.on(f"POST {PATH}/stop")
def stop(context: Context) -> Any:
    _check_root_only(context)
    context.machine()
    if (service := availability.service_of(context)) is not None:
        if context.flag("overrule-shutdown"):
            raise invalid(**{"overrule-shutdown": "Not applicable for HA resources."})
        return availability.ask(context, service, "qmstop", "stopped", stop_now)
    if context.flag("overrule-shutdown"):
        for task in [each for each in context.park.tasks.of_machine(context.vmid) if each.kind == "qmshutdown"]:
            context.park.tasks.stop(task)

    def work(task: Task) -> None:
        machine = context.machine()
        if machine.process and not context.flag("skiplock"):
            machine.check_lock()
        stop_now(context, machine)

    return context.worker("qmstop", context.vmid, work)


@routes.on(f"POST {PATH}/shutdown")
def shutdown(context: Context) -> Any:
    _check_root_only(context)
    machine = context.machine()
    force = context.flag("forceStop")
    paused = machine.process is not None and machine.process.status != "running"
    if paused and not force:
        raise failed("VM is paused - cannot shutdown")
    seconds, obeys = _leaving(context, machine)
    if (service := availability.service_of(context)) is not None:
        # The manager stops by force whoever ignores it.
        return availability.ask(context, service, "qmshutdown", "stopped", stop_now, seconds)

    def work(task: Task) -> None:
        here = context.machine()
        if here.process is None:
            return
        if not context.flag("skiplock"):
            here.check_lock()
        if not obeys and not force and not paused:
            raise TaskFailure("VM quit/powerdown failed - got timeout")
        if not obeys and not paused:
            task.write("VM still running - terminating now with SIGTERM")
        stop_now(context, here)

    return context.worker("qmshutdown", context.vmid, work, seconds=None if paused else seconds)


def _leaving(context: Context, machine: Machine) -> tuple[float, bool]:
    """Return how long a shutdown takes, and whether the guest obeys."""
    timeout = context.number("timeout", _TIMEOUT)
    seconds = machine.guest.shutdown_seconds
    if machine.process is None:
        return context.park.tasks.seconds, True
    obeys = machine.guest.obeys_shutdown and seconds < timeout
    return (seconds if obeys else float(timeout)), obeys


@routes.on(f"POST {PATH}/reboot")
def reboot(context: Context) -> Any:
    machine = context.machine()
    if machine.process is None:
        raise failed(f"VM {machine.vmid} not running")
    if machine.process.status != "running":
        raise failed("VM is paused - cannot shutdown")
    seconds, obeys = _leaving(context, machine)

    def work(task: Task) -> None:
        here = context.machine()
        here.check_lock()
        if not obeys:
            raise TaskFailure("VM quit/powerdown failed - got timeout")
        stop_now(context, here)
        start_now(context, here)

    return context.worker("qmreboot", context.vmid, work, seconds=seconds)


@routes.on(f"POST {PATH}/reset")
def reset(context: Context) -> Any:
    _check_root_only(context)
    machine = context.machine()
    if machine.process is None:
        raise failed(f"VM {machine.vmid} not running")

    def work(task: Task) -> None:
        here = context.machine()
        here.check_lock()
        if here.process is None:
            raise TaskFailure(f"VM {here.vmid} not running")
        here.process.started = context.cluster.clock()

    return context.worker("qmreset", context.vmid, work)


@routes.on(f"POST {PATH}/suspend")
def suspend(context: Context) -> Any:
    _check_root_only(context)
    machine, to_disk = context.machine(), context.flag("todisk")
    if machine.process is None:
        raise failed(f"VM {machine.vmid} not running")
    if to_disk and availability.service_of(context) is not None:
        raise failed("Cannot suspend HA managed VM to disk")
    if to_disk:
        context.demand_vm(machine.vmid, "", "VM.Config.Disk")
        if storage := context.text("statestorage"):
            context.demand(f"/storage/{storage}", "Datastore.AllocateSpace")

    def work(task: Task) -> None:
        here = context.machine()
        here.check_lock()
        if here.process is None:
            raise TaskFailure(f"VM {here.vmid} not running")
        if not to_disk:
            here.process.status = "paused"
            return
        here.process = None
        here.conf["lock"] = "suspended"

    return context.worker("qmsuspend", context.vmid, work)


@routes.on(f"POST {PATH}/resume")
def resume(context: Context) -> Any:
    _check_root_only(context)
    machine = context.machine()
    suspended = machine.conf.get("lock") == "suspended"
    if machine.process is None and not suspended:
        raise failed(f"VM {machine.vmid} not running")

    def work(task: Task) -> None:
        here = context.machine()
        if here.process is None:
            start_now(context, here)
        else:
            here.check_lock()
            here.process.status = "running"

    return context.worker("qmresume", context.vmid, work)

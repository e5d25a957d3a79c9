"""High availability: the HA manager carries out starts, stops and moves of its resources, some seconds after it was asked."""

from collections.abc import Callable
from typing import Any

from tests.kit.proxmox.context import Context
from tests.kit.proxmox.errors import ApiError, TaskFailure
from tests.kit.proxmox.inventory import HaService, Machine
from tests.kit.proxmox.tasks import Task

# The manager looks at its resources and commands this often.
ROUND_SECONDS = 10.0
_MANAGER = "root@pam"
Work = Callable[[Context, Machine], None]


def service_of(context: Context) -> HaService | None:
    """Return the HA resource of a machine; None for one that HA does not know, or ignores."""
    found = context.cluster.services.get(context.vmid)
    return found if found is not None and found.requested != "ignored" else None


def ask(context: Context, service: HaService, kind: str, requested: str, work: Work, seconds: float = 0.0) -> Any:
    """Start the worker that asks the manager, who carries it out as a worker of root's own."""

    def asked(task: Task) -> None:
        service.requested = requested
        service.state = "started" if requested == "started" else "request_stop"
        where = (context.cluster.machines[context.vmid].node, kind, str(context.vmid))
        context.park.tasks.start(where, _MANAGER, carried_out, seconds=_left(context, task) + seconds)

    def carried_out(task: Task) -> None:
        machine = context.cluster.machines.get(context.vmid)
        if machine is None or service.requested != requested:
            return
        try:
            work(context, machine)
        except (ApiError, TaskFailure):
            service.state = "error"
            raise
        service.state = requested

    return context.worker("hastart" if requested == "started" else "hastop", context.vmid, asked)


def ask_move(context: Context, work: Callable[[Task], None]) -> Any:
    """Start the worker that asks the manager to move a machine."""

    def asked(task: Task) -> None:
        context.park.tasks.start((context.node, "qmigrate", str(context.vmid)), _MANAGER, work, seconds=_left(context, task))

    return context.worker("hamigrate", context.vmid, asked)


def _left(context: Context, task: Task) -> float:
    """Return how long the manager takes from now on. Whoever moves the clock far sees the task end late."""
    return ROUND_SECONDS - (context.cluster.clock() - task.due)

"""`POST machines/PLACE/actions/VERB`: what people do to machines, carried out by the functions of the commands."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from paddock.base.names import check_name
from paddock.cli import protection
from paddock.fleet.machines import clones, restores, running, snapshots
from paddock.fleet.machines.clones import MachineCloneOptions
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.removing import MachineRemover
from paddock.fleet.machines.running import MachineRunner, RunOptions
from paddock.fleet.servers.session import ServerSession
from paddock.web.answers.rows import WebDone
from paddock.web.routes import WebRefusal, WebRequest, WebRoute

# What a guest gets to shut down, and a Provider or a restore to finish.
_LONG_SECONDS = 600.0


class ActionOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The options of all verbs. Each reads its own."""

    # stop, restart, delete: the guest gets no time
    force: bool = False
    # restart: the guest reboots itself
    soft: bool = False
    # start
    paused: bool = False
    # snapshot, clone
    name: str = ""
    # restore
    snapshot: str = ""
    # clone, restore: the machine runs afterwards; a restore starts one that ran, unless this is false
    start: bool | None = None
    # clone: into a VirtualMachine of KubeVirt, from a dialect that has no clones
    as_kubevirt: bool = False
    # delete: with the disks
    purge: bool = False


class _Body(msgspec.Struct, frozen=True):
    options: ActionOptions = ActionOptions()


class Action(msgspec.Struct, frozen=True):
    """A machine, the verb and its options, on a server."""

    server: ServerSession
    machine: MachineView
    verb: str
    options: ActionOptions


async def act(request: WebRequest) -> WebDone:
    verb = request.parts["VERB"]
    carry_out = VERBS.get(verb)
    if carry_out is None and verb not in running.VERBS:
        raise WebRefusal(404, f'there is no verb "{verb}" for machines', fix=f"the verbs are {', '.join((*running.VERBS, *VERBS))}")
    options = request.read(_Body).options
    machine = await request.machine()
    work = (carry_out or _run)(Action(request.session.server, machine, verb, options))
    return WebDone(text=f"{machine} {await request.session.work.finish(work)}")


async def _run(action: Action) -> str:
    """Start, stop, pause: the state that follows comes with the stream."""
    options = RunOptions(force=action.options.force, soft=action.options.soft, paused=action.options.paused)
    if action.verb == "restart" and action.machine.kind.adapter.restarts_by_power:
        # Off and on again: the second step needs the end of the first.
        options = msgspec.structs.replace(options, seconds=_LONG_SECONDS)
    return await running.VERBS[action.verb](MachineRunner(action.server.client, action.server.clock, options, _ignore), action.machine)


async def _protect(action: Action) -> str:
    return await protection.protect(action.server, action.machine, protected=action.verb == "protect", dry_run=False)


async def _delete(action: Action) -> str:
    options = RunOptions(force=action.options.force)
    remover = MachineRemover(action.server.client, action.server.clock, options, _ignore)
    return await remover.remove(await remover.plan(action.machine, purge=action.options.purge))


async def _snapshot(action: Action) -> str:
    name = action.options.name or snapshots.default_name(action.machine.name, action.server.clock.seconds())
    check_name(name)
    await snapshots.take(action.server, action.machine, name, 0.0)
    return f"is being kept as the snapshot {name}"


async def _restore(action: Action) -> str:
    snapshot = action.options.snapshot
    if not snapshot:
        raise WebRefusal(400, "cannot restore without a snapshot", fix="choose a snapshot of the machine")
    await restores.usable(action.server, action.machine, snapshot)
    await restores.carry_out(action.server, action.machine, snapshot, _LONG_SECONDS, start=action.options.start is not False)
    return f"restored to {snapshot}"


async def _clone(action: Action) -> str:
    check_name(action.options.name)
    start = action.options.start is True
    options = MachineCloneOptions(as_kubevirt=action.options.as_kubevirt, start=start, seconds=_LONG_SECONDS if start else 0.0)
    made = await clones.carry_out(action.server, action.machine, action.options.name, options)
    return f"cloned as {made}" if start else f"is being cloned as {made}"


def _ignore(line: str) -> None:
    """Say nothing: the page sees the states in the stream."""


VERBS: Mapping[str, Callable[[Action], Coroutine[Any, Any, str]]] = {
    "protect": _protect,
    "unprotect": _protect,
    "delete": _delete,
    "snapshot": _snapshot,
    "restore": _restore,
    "clone": _clone,
}
ROUTES = (WebRoute("POST", "machines/PLACE/actions/VERB", act),)

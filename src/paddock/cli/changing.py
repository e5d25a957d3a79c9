"""Carries out an edit of a machine: the server checks it, the plan is shown, a person agrees, the object is written."""

import argparse
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from paddock.base.jsondata import Data
from paddock.cli import confirming, servers, terminal
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.fleet.diagnosis.scene import at
from paddock.fleet.documents import planlines
from paddock.fleet.machines import finding, planning, waiting, writing
from paddock.fleet.machines.edits import ChangeRefused, ObjectEdit, edit
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.planning import ChangePlan
from paddock.fleet.servers import surroundings
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import serverforecasts
from paddock.kubernetes.client.errors import Conflict, StatusDetails
from paddock.kubernetes.client.options import WriteOptions, merge_patch

# A front's controller needs a moment to pass a change on to the VirtualMachine.
_PASS_ON_SECONDS = 30.0
# Attempts at an edit while others write to the object.
_TRIES = 5


class ChangeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an edit is carried out. `ask` asks on a terminal even where nothing restarts and nothing is lost."""

    yes: bool = False
    dry_run: bool = False
    restart: bool = False
    ask: bool = False
    # what was done, for the last line: "set"
    done: str = "changed"


def options_of(parsed: argparse.Namespace, done: str, *, ask: bool = False) -> ChangeOptions:
    """Return the options of a command line."""
    return ChangeOptions(yes=parsed.yes, dry_run=parsed.dry_run, restart=getattr(parsed, "restart", False), ask=ask, done=done)


async def change(
    parsed: argparse.Namespace,
    console: Console,
    changed: Callable[[MachineView], Data],
    done: str,
    *,
    ask: bool = False,
    check: Callable[[ServerSession, MachineView], Awaitable[None]] | None = None,
) -> int:
    """Carry out one edit of the machine that a command line names: `changed` returns the object as it should be. Return the exit code.

    `check` looks up on the server what the edit refers to.
    """
    async with servers.connected(parsed, console) as server:

        async def attempt(machine: MachineView) -> int:
            wanted = edit(machine, changed(machine))
            if check is not None:
                await check(server, machine)
            return await carry_out(server, machine, [wanted], options_of(parsed, done, ask=ask), console)

        return await repeated(server, parsed.name, attempt)


async def repeated(server: ServerSession, name: str, attempt: Callable[[MachineView], Awaitable[int]]) -> int:
    """Attempt an edit of a machine until no other write gets in between; return the exit code.

    Each attempt reads the machine again, and makes its edit and its plan from that.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(_Overtaken):
            return await attempt(await finding.find(server.client, name, server.namespace))
    return await attempt(await finding.find(server.client, name, server.namespace))


class _Overtaken(Conflict):
    """Somebody else changed an object after it was read and before it was written. No other conflict, such as a restart's, is one."""


async def carry_out(
    server: ServerSession, machine: MachineView, edits: Sequence[ObjectEdit], options: ChangeOptions, console: Console
) -> int:
    """Carry out the edits of a machine, the object that its user wrote first; return the exit code. Called in an attempt of `repeated`."""
    edits = [each for each in edits if each.changes]
    if not edits:
        console.say(f"paddock: {machine} is like that already; nothing to change")
        return GOOD
    plan = await _planned(server, machine, edits[0])
    if options.restart:
        _check_restart(machine, plan)
    # The server's own checks come before the question.
    for each in edits:
        await _write(server, each, dry_run=True)
    _show(plan, options, console)
    if options.dry_run:
        for line in planlines.outlook(await serverforecasts.of_data(server, edits[0].after)):
            console.say(line)
        console.say("paddock: nothing was changed (--dry-run)")
        return GOOD
    restart = options.restart and plan.restarts
    if not _agreed(plan, options, console, restart=restart):
        confirming.refused(console, "nothing was changed", "--yes changes it without a question")
        return FINDINGS
    generation = at(machine.vm, "metadata", "generation")
    for each in edits:
        await _write(server, each, dry_run=False)
    console.out(f"{machine} {options.done}\n")
    if restart:
        await _restart(server, machine, generation)
        console.out(f"{machine} restarting\n")
    elif plan.restarts:
        console.say(f"paddock: `paddock restart {machine.name}` makes the guest see all of it")
    return GOOD


async def _planned(server: ServerSession, machine: MachineView, edit: ObjectEdit) -> ChangePlan:
    before, after = await surroundings.read(server.client, edit.before), await surroundings.read(server.client, edit.after)
    unique = {(each.kind, each.metadata.namespace, each.metadata.name): each for each in (*before, *after)}
    return planning.plan(edit, str(machine), unique.values(), running=waiting.runs(machine))


async def _write(server: ServerSession, edit: ObjectEdit, *, dry_run: bool) -> None:
    patch, options = edit.patch, WriteOptions(dry_run=dry_run)
    for _ in range(_TRIES):
        try:
            await server.client.patch(edit.target, edit.key, merge_patch(patch), options)
            return
        except Conflict as conflict:
            # Controllers write the status of an object all the time; only another change of its spec is a conflict.
            now: Data = await server.client.get(edit.target, edit.key)
            if at(now, "metadata", "generation") != at(edit.before, "metadata", "generation"):
                raise _Overtaken(conflict.code, StatusDetails(str(conflict), conflict.reason, details=conflict.details)) from None
            patch = {**patch, "metadata": {**patch["metadata"], "resourceVersion": now["metadata"]["resourceVersion"]}}
    await server.client.patch(edit.target, edit.key, merge_patch(patch), options)


def _show(plan: ChangePlan, options: ChangeOptions, console: Console) -> None:
    screen = terminal.current()
    # A plan that nobody asked for and that needs no thought stays short.
    if options.ask or options.dry_run or plan.restarts or plan.loses:
        for line in plan.lines(screen.width):
            console.say(line)
        console.say(plan.summary())


def _agreed(plan: ChangePlan, options: ChangeOptions, console: Console, *, restart: bool) -> bool:
    """Return True if the change may happen. Without a terminal only what restarts a guest now or loses data needs `--yes`."""
    grave = plan.loses or restart
    if not grave and not (options.ask and confirming.answerable()):
        return True
    return confirming.agreed(console, "Change it, and restart the machine now?" if restart else "Change it?", yes=options.yes)


def _check_restart(machine: MachineView, plan: ChangePlan) -> None:
    why = machine.kind.adapter.no_restart
    if why and plan.restarts:
        raise ChangeRefused(
            f"cannot restart {machine} for a change",
            why=why,
            fix=f"leave --restart out; then paddock stop {machine.name}, and paddock start {machine.name} when it is off",
        )


async def _restart(server: ServerSession, machine: MachineView, generation: object) -> None:
    key = finding.needs_vm(machine, "restart the guest")

    async def passed_on() -> bool:
        found = await finding.find(server.client, str(machine), machine.namespace)
        return bool(at(found.vm, "metadata", "generation") != generation)

    if machine.kind.front:
        await waiting.until(passed_on, _PASS_ON_SECONDS)
    await writing.send(server.client, writing.call("virtualmachines", key, "restart", "a request to restart"))

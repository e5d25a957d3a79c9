"""Starts, stops, restarts, pauses and resets machines: one machine at a time, from the wish to its end."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from paddock.base import ownnames
from paddock.base.clock import Clock
from paddock.base.errors import Terminal
from paddock.fleet.diagnosis.scene import at, conditions, texts
from paddock.fleet.machines import waiting, writing
from paddock.fleet.machines.finding import MachineNotFound, MachineView, needs_vm
from paddock.fleet.machines.waiting import Done, MachineWaiter
from paddock.fleet.machines.writing import ObjectWrite
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import ApiError, MethodNotAllowed, NotFound
from paddock.kubevirt.plan.machine import fencing

_INSTANCES = "virtualmachineinstances"


class WrongState(Terminal):
    """A machine is in a state in which a wish makes no sense."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a wish. `seconds` is 0 where nothing is waited for."""

    force: bool = False
    paused: bool = False
    soft: bool = False
    discard: bool = False
    seconds: float = 0.0
    dry_run: bool = False


class MachineRunner:
    """Carries out wishes about running."""

    def __init__(self, client: Client, clock: Clock, options: RunOptions, tell: Callable[[str], None]) -> None:
        self._client = client
        self._options = options
        self._waiter = MachineWaiter(client, clock, tell)

    async def start(self, machine: MachineView) -> str:
        if waiting.is_running(machine):
            return "already runs"
        _demand_unfenced(machine)
        if waiting.is_suspended(machine):
            return await self._resume(machine, "start")
        if not (waiting.is_live(machine) and writing.wants_to_run(machine)):
            write = writing.power(machine, "start", paused=self._options.paused)
            if self._options.dry_run:
                return await self._rehearse(write)
            await writing.send(self._client, write)
        done = waiting.is_paused if self._options.paused else waiting.is_running
        return await self._wait(machine, done, waiting.RUNNING, "started")

    async def stop(self, machine: MachineView) -> str:
        self._demand_awake(machine, "stop")
        if waiting.is_stopped(machine) and not writing.wants_to_run(machine):
            return "is already stopped"
        write = writing.power(machine, "stop", force=self._options.force)
        if self._options.dry_run:
            return await self._rehearse(write)
        await writing.send(self._client, write)
        if self._options.force:
            await self._cut_power(machine)
        return await self._wait(machine, waiting.is_stopped, "stopped", "stopped")

    async def restart(self, machine: MachineView) -> str:
        """Stop a machine and start it again, or with `soft` have the guest reboot itself."""
        if not waiting.is_live(machine):
            raise WrongState(f"cannot restart {machine}", why="it does not run", fix=f"`paddock start {machine}` starts it")
        self._demand_awake(machine, "restart")
        if self._options.soft:
            return await self._call(machine, "softreboot", "rebooting", None)
        if machine.kind.adapter.restarts_by_power:
            return await self._restart_by_power(machine)
        options: dict[str, Any] = {"gracePeriodSeconds": 0} if self._options.force else {}
        key = needs_vm(machine, "restart a guest")
        write = writing.call("virtualmachines", key, "restart", "status.stateChangeRequests: a request to restart", options)
        if self._options.dry_run:
            return await self._rehearse(write)
        await writing.send(self._client, write)
        return await self._wait(machine, waiting.is_another_run(machine), "running again", "restarted")

    async def pause(self, machine: MachineView) -> str:
        """Stop the processors of a machine."""
        if waiting.is_paused(machine):
            return "is already paused"
        return await self._call(machine, "pause", "paused", waiting.is_paused)

    async def unpause(self, machine: MachineView) -> str:
        """Let the processors of a machine go on."""
        if machine.vmi is not None and not waiting.is_paused(machine):
            return "is not paused"
        return await self._call(machine, "unpause", "unpaused", lambda now: not waiting.is_paused(now))

    async def suspend(self, machine: MachineView) -> str:
        """Write the memory of a guest to disk and free it, or with `discard` give up what was written."""
        if self._options.discard:
            return await self._discard(machine)
        if waiting.is_suspended(machine):
            return "is already suspended"
        key = needs_vm(machine, "suspend a guest")
        if not waiting.is_live(machine):
            raise WrongState(f"cannot suspend {machine}", why="it does not run", fix=f"`paddock start {machine}` starts it")
        write = writing.call("virtualmachines", key, "suspend", "a request to suspend")
        if self._options.dry_run:
            return await self._rehearse(write)
        before = _refusal(machine)
        await self._send_own(machine, write)
        if not self._options.seconds:
            return "suspended: requested"
        now = await self._waiter.until(machine, lambda now: _has_decided(now, before), self._options.seconds, "suspended")
        if now is not None and not waiting.is_suspended(now):
            raise WrongState(f"cannot suspend {machine}", why=texts(_refusal(now), "message") or "its guest ended meanwhile")
        return "suspended" if now is not None else "suspended, and gone"

    async def resume(self, machine: MachineView) -> str:
        """Let a suspended guest go on where it was."""
        if not waiting.is_suspended(machine):
            fix = f"`paddock unpause {machine}` lets a paused guest go on" if waiting.is_paused(machine) else f"`paddock info {machine}`"
            raise WrongState(f"cannot resume {machine}", why="it is not suspended", fix=fix)
        return await self._resume(machine, "resume")

    async def reset(self, machine: MachineView) -> str:
        """Reset a machine, as its button does."""
        return await self._call(machine, "reset", "reset", None)

    # --- parts --------------------------------------------------------------------------------------------------------------

    async def _call(self, machine: MachineView, verb: str, word: str, done: Done | None) -> str:
        key = machine.vmi_key
        if key is None:
            needs_vm(machine, f"{verb} a guest")
            raise WrongState(f"cannot {verb} {machine}", why="it does not run", fix=f"`paddock start {machine}` starts it")
        write = writing.call(_INSTANCES, key, verb, f"a request to {verb}")
        if self._options.dry_run and verb in ("reset", "softreboot"):
            return f"{write.text} (not sent: the server has no dry run of it)"
        if self._options.dry_run:
            return await self._rehearse(write)
        await writing.send(self._client, write)
        return word if done is None else await self._wait(machine, done, word, word)

    async def _restart_by_power(self, machine: MachineView) -> str:
        """Switch a machine off and on: its dialect has no word for a restart."""
        if self._options.dry_run:
            return await self._rehearse(writing.power(machine, "stop", force=self._options.force))
        seconds = self._options.seconds or 300.0
        await writing.send(self._client, writing.power(machine, "stop", force=self._options.force))
        stopped = await self._waiter.until(machine, waiting.is_stopped, seconds, "stopped")
        if stopped is None:
            raise MachineNotFound(f"{machine} was deleted while it was restarted")
        await writing.send(self._client, writing.power(stopped, "start"))
        return await self._wait(machine, waiting.is_another_run(machine), "running again", "restarted")

    async def _cut_power(self, machine: MachineView) -> None:
        """Shorten the time of a guest whose dialect has no word for it, once its VirtualMachine has heard of the stop."""
        if not machine.kind.front or machine.kind.adapter.has_forced_stop or machine.vm is None or machine.vmi is None:
            return
        heard = await self._waiter.until(machine, _is_told_to_stop, self._options.seconds or 30.0, "stopping")
        if heard is None or heard.vm_key is None or heard.vmi is None:
            return
        try:
            await writing.send(self._client, writing.call("virtualmachines", heard.vm_key, "stop", "", {"gracePeriod": 0}))
        except ApiError:
            if waiting.is_live(await self._waiter.read(machine)):
                raise

    async def _resume(self, machine: MachineView, verb: str) -> str:
        """`start` also has a halted machine run."""
        write = writing.call("virtualmachines", needs_vm(machine, "resume a guest"), verb, "a request to resume")
        if self._options.dry_run:
            return await self._rehearse(write)
        if verb == "start" and machine.kind.front and not writing.wants_to_run(machine):
            await writing.send(self._client, writing.power(machine, "start"))
        await writing.send(self._client, write)
        return await self._wait(machine, waiting.is_awake, "resumed", "resumed")

    async def _discard(self, machine: MachineView) -> str:
        if not waiting.is_suspended(machine):
            raise WrongState(f"cannot discard the saved state of {machine}", why="it is not suspended", fix=f"`paddock info {machine}`")
        write = writing.call(
            "virtualmachines",
            needs_vm(machine, "discard a saved guest"),
            "suspend",
            "a request to discard the saved state",
            {"discard": True},
        )
        if self._options.dry_run:
            return await self._rehearse(write)
        await self._send_own(machine, write)
        return await self._wait(machine, lambda now: not waiting.is_suspended(now), "without a saved state", "saved state discarded")

    async def _send_own(self, machine: MachineView, write: ObjectWrite) -> None:
        """A request that KubeVirt does not have: on a cluster nobody answers it."""
        try:
            await writing.send(self._client, write)
        except (NotFound, MethodNotAllowed) as error:
            why = "its server does not suspend machines, or it was deleted; KubeVirt cannot suspend"
            raise WrongState(f"cannot suspend {machine}", why=why, fix=f"`paddock pause {machine}` holds its guest") from error

    def _demand_awake(self, machine: MachineView, verb: str) -> None:
        if waiting.is_suspended(machine):
            fix = f"`paddock resume {machine}` lets it go on; `paddock suspend {machine} --discard` gives its memory up"
            raise WrongState(f"cannot {verb} {machine}", why="it is suspended to disk, and its memory would be lost", fix=fix)

    async def _rehearse(self, write: ObjectWrite) -> str:
        await writing.send(self._client, write, dry_run=True)
        return f"{write.text} (dry run)"

    async def _wait(self, machine: MachineView, done: Done, goal: str, word: str) -> str:
        if not self._options.seconds:
            return f"{word.removesuffix(' again')}: requested"
        now = await self._waiter.until(machine, done, self._options.seconds, goal)
        return word if now is not None else f"{word}, and gone"


def _demand_unfenced(machine: MachineView) -> None:
    """Raise `WrongState` for a machine that `paddock move` carries elsewhere, or has carried."""
    for each in (machine.data, machine.vm):
        if fence := fencing.reason(at(each, "metadata", "annotations")):
            fix = f"start it there; `paddock move {machine} --undo` brings it back"
            raise WrongState(f"cannot start {machine}", why=f"it is fenced: {fence}", fix=fix)


def _is_told_to_stop(now: MachineView | None) -> bool:
    return now is None or now.vmi is None or not _vm_wants_to_run(now)


def _refusal(machine: MachineView | None) -> Mapping[str, Any]:
    """Return the condition that says why a machine was not suspended; empty when there is none."""
    found = conditions(machine.vmi).get("Suspended", {}) if machine is not None and machine.vmi is not None else {}
    return found if texts(found, "status") == "False" and texts(found, "reason") != "Suspending" else {}


def _has_decided(now: MachineView | None, before: Mapping[str, Any]) -> bool:
    """Return whether a request to suspend was carried out or refused."""
    if now is None or waiting.is_suspended(now) or not waiting.is_live(now):
        return True
    asked = at(now.vmi, "metadata", "annotations", ownnames.SUSPENDED.name)
    return asked is None and _refusal(now) != {}


def _vm_wants_to_run(machine: MachineView) -> bool:
    spec = (machine.vm or {}).get("spec") or {}
    return bool(spec["running"]) if spec.get("running") is not None else spec.get("runStrategy") != "Halted"


Verb = Callable[[MachineRunner, MachineView], Awaitable[str]]
VERBS: Mapping[str, Verb] = {
    "start": MachineRunner.start,
    "stop": MachineRunner.stop,
    "restart": MachineRunner.restart,
    "pause": MachineRunner.pause,
    "unpause": MachineRunner.unpause,
    "suspend": MachineRunner.suspend,
    "resume": MachineRunner.resume,
    "reset": MachineRunner.reset,
}

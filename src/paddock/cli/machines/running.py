"""Starts, stops, restarts, pauses and resets machines: one machine at a time, from the wish to its end."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import Terminal
from paddock.cli.machines import waiting, writing
from paddock.cli.machines.finding import MachineNotFound, MachineView, needs_vm
from paddock.cli.machines.kinds import STAKATER, VIRTRIGAUD, VITISTACK
from paddock.cli.machines.waiting import Done, MachineWaiter
from paddock.cli.machines.writing import ObjectWrite
from paddock.client.client import Client
from paddock.client.errors import ApiError

_INSTANCES = "virtualmachineinstances"


class WrongState(Terminal):
    """A machine is in a state in which a wish makes no sense."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a wish. `seconds` is 0 where nothing is waited for."""

    force: bool = False
    paused: bool = False
    soft: bool = False
    seconds: float = 0.0
    dry_run: bool = False


class MachineRunner:
    """Carries out wishes about running."""

    def __init__(self, client: Client, clock: Clock, options: RunOptions, tell: Callable[[str], None]) -> None:
        self._client = client
        self._options = options
        self._waiter = MachineWaiter(client, clock, tell)

    async def start(self, machine: MachineView) -> str:
        """Start a machine."""
        if waiting.is_running(machine):
            return "already runs"
        if not (waiting.is_live(machine) and writing.wants_to_run(machine)):
            write = writing.power(machine, "start", paused=self._options.paused)
            if self._options.dry_run:
                return await self._rehearse(write)
            await writing.send(self._client, write)
        done = waiting.is_paused if self._options.paused else waiting.is_running
        return await self._wait(machine, done, "running", "started")

    async def stop(self, machine: MachineView) -> str:
        """Stop a machine."""
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
        if self._options.soft:
            return await self._call(machine, "softreboot", "rebooting", None)
        if machine.kind is VIRTRIGAUD:
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
        """Switch a machine of VirtRigaud off and on: its dialect has no word for a restart."""
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
        if machine.kind not in (STAKATER, VITISTACK) or machine.vm is None or machine.vmi is None:
            return
        heard = await self._waiter.until(machine, _is_told_to_stop, self._options.seconds or 30.0, "stopping")
        if heard is None or heard.vm_key is None or heard.vmi is None:
            return
        try:
            await writing.send(self._client, writing.call("virtualmachines", heard.vm_key, "stop", "", {"gracePeriod": 0}))
        except ApiError:
            if waiting.is_live(await self._waiter.look(machine)):
                raise

    async def _rehearse(self, write: ObjectWrite) -> str:
        await writing.send(self._client, write, dry_run=True)
        return f"{write.text} (dry run)"

    async def _wait(self, machine: MachineView, done: Done, goal: str, word: str) -> str:
        if not self._options.seconds:
            return f"{word.removesuffix(' again')}: requested"
        now = await self._waiter.until(machine, done, self._options.seconds, goal)
        return word if now is not None else f"{word}, and gone"


def _is_told_to_stop(now: MachineView | None) -> bool:
    return now is None or now.vmi is None or not _vm_wants_to_run(now)


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
    "reset": MachineRunner.reset,
}

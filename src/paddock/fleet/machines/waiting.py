"""Waits until a machine is as somebody wants it, and says why it does not become so."""

import asyncio
from collections.abc import Awaitable, Callable

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError, Transient
from paddock.fleet.diagnosis.explain import Explanation, explain
from paddock.fleet.diagnosis.scene import at, holds, texts
from paddock.fleet.machines import facts, finding
from paddock.fleet.machines.finding import MachineNotFound, MachineView
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes.client.client import Client

_FIRST, _LONGEST = 0.2, 1.0
_POLL_SECONDS = 0.3
# Phases of an instance that is over.
_ENDED = ("Succeeded", "Failed")
# States that a machine seldom leaves by itself. In one of them, or with a cause that somebody has to fix, the wait ends after `_PATIENCE`.
HOPELESS = frozenset(
    ("ErrorUnschedulable", "ErrorPvcNotFound", "DataVolumeError", "CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "Failed")
)
_PATIENCE = 15.0
# A server that restarts answers again within this time.
_RESTART_SECONDS = 60.0
# The goal of a start, in the words of an error.
RUNNING = "running"


class NotReached(PaddockError):
    """A machine did not become what was wanted in time."""


Done = Callable[[MachineView | None], bool]


class MachineWaiter:
    """Follows one machine until it is as wanted. `tell` gets a line for each state on the way."""

    def __init__(self, client: Client, clock: Clock, tell: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._tell = tell

    async def until(self, machine: MachineView, done: Done, seconds: float, goal: str) -> MachineView | None:
        """Return the machine when it is done; None when it is gone. Raises `NotReached`, or the error of a server that stays away."""
        loop = asyncio.get_running_loop()
        begun, pause, status = loop.time(), _FIRST, facts.of(machine).status
        deadline, patient_until, answered = begun + seconds, begun + _PATIENCE, begun
        now: MachineView | None = machine
        while True:
            try:
                now, answered = await self.read(machine), loop.time()
            except Transient:
                if loop.time() >= min(answered + _RESTART_SECONDS, deadline):
                    raise
            if done(now):
                return now
            before, status = status, facts.of(now).status if now is not None else "gone"
            if status != before:
                self._tell(f"{machine}: {status}")
                patient_until = loop.time() + _PATIENCE
            if loop.time() >= deadline:
                raise await self._not_reached(now or machine, status, goal)
            if loop.time() >= patient_until:
                patient_until += _PATIENCE
                if status in HOPELESS or (goal == RUNNING and await self._fails(now or machine)):
                    raise await self._not_reached(now or machine, status, goal)
            await asyncio.sleep(min(pause, max(deadline - loop.time(), 0.01)))
            pause = min(pause * 1.3, _LONGEST)

    async def read(self, machine: MachineView) -> MachineView | None:
        """Return the machine as it is now; None when it is gone."""
        try:
            found = await finding.find(self._client, str(machine), machine.namespace)
        except MachineNotFound:
            return None
        same = texts(found.data, "metadata", "uid") == texts(machine.data, "metadata", "uid")
        return found if same else None

    async def _not_reached(self, machine: MachineView, status: str, goal: str) -> NotReached:
        explanation = await self._explained(machine)
        why = explanation.cause.cause.rstrip(".") if explanation is not None and explanation.cause is not None else ""
        return NotReached(f"{machine} is not {goal}: it is {status}", why=why, fix=f"`paddock why {machine} -n {machine.namespace}`")

    async def _fails(self, machine: MachineView) -> bool:
        """Return whether a machine that does not run yet needs somebody who mends something."""
        explanation = await self._explained(machine)
        return explanation is not None and explanation.state == "fails"

    async def _explained(self, machine: MachineView) -> Explanation | None:
        try:
            return explain(await ServerReader(self._client, self._clock).gather(machine.ref), machine.ref)
        except PaddockError:
            return None


# --- what machines become ---------------------------------------------------------------------------------------------------


def is_live(machine: MachineView | None) -> bool:
    """Return whether a guest runs, or is about to."""
    if machine is None:
        return False
    if machine.vmi is not None:
        return texts(machine.vmi, "status", "phase") not in ("Succeeded", "Failed")
    return machine.vm is None and texts(machine.data, "status", "powerState") == "On"


def is_running(machine: MachineView | None) -> bool:
    """Return whether a guest runs and is ready."""
    if machine is None or machine.vmi is None:
        return is_live(machine)
    deleting = at(machine.vmi, "metadata", "deletionTimestamp") is not None
    return texts(machine.vmi, "status", "phase") == "Running" and not deleting and (holds(machine.vmi, "Ready") or is_paused(machine))


def is_stopped(machine: MachineView | None) -> bool:
    """Return whether no guest runs and no instance is being deleted. A restore, for example, must wait until that is gone."""
    return not is_live(machine) and (machine is None or at(machine.vmi, "metadata", "deletionTimestamp") is None)


def is_paused(machine: MachineView | None) -> bool:
    """Return whether the guest is paused."""
    return machine is not None and holds(machine.vmi, "Paused")


def is_suspended(machine: MachineView | None) -> bool:
    """Return whether the memory of the guest is on disk."""
    return machine is not None and holds(machine.vmi, "Suspended")


def is_awake(machine: MachineView | None) -> bool:
    """Return whether a guest that was suspended goes on: it runs, and is ready as far as it was before."""
    return machine is not None and is_live(machine) and not is_suspended(machine)


def is_another_run(before: MachineView) -> Done:
    """Return a check that a later run of the machine is ready: with its guest agent, if the run before had one."""
    uid, agent = texts(before.vmi, "metadata", "uid"), holds(before.vmi, "AgentConnected")

    def done(now: MachineView | None) -> bool:
        if now is None or not is_running(now) or texts(now.vmi, "metadata", "uid") == uid:
            return False
        return holds(now.vmi, "AgentConnected") or not agent

    return done


def runs(machine: MachineView) -> bool:
    """Return True if the guest runs, here or on another hypervisor."""
    if machine.vmi is not None:
        return texts(machine.vmi, "status", "phase") not in _ENDED
    return machine.vm is None and machine.kind.adapter.is_on(machine.data)


async def until(holds: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Wait until something holds; return False when the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await holds():
        if loop.time() >= end:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True

"""The power of machines.

       start            shutdown, stop
Off ------------> On ------------------> Off
 |                | ^
 |        suspend | | resume
 |                v |
 |  start       Suspended (paused, or its memory is on disk)
 +------------------+

A start or stop of a machine under high availability asks the HA manager: the task ends once that has noted it, and the machine follows
some seconds later.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.proxmox import failures
from paddock_drivers.proxmox.api import FormValue, ProxmoxRefusal
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId, ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.upid import Upid

GRACE_SECONDS = 60
_REBOOT_SECONDS = 60
ON, OFF, SUSPENDED, UNKNOWN = "On", "Off", "Suspended", "Unknown"
_HA_TASKS = ("hastart", "hastop")
_PAUSED = ("paused", "suspended", "io-error", "guest-panicked", "internal-error", "watchdog")


class ProxmoxPowerStep(enum.Enum):
    """The way of a machine to the power state that is asked for."""

    NOTHING = "it is there"
    START = "start it"
    RESUME = "resume it"
    STOP = "stop it"
    WAKE_AND_STOP = "start it from its memory on disk, and stop it"
    SHUTDOWN = "let the guest shut down"
    REBOOT = "let the guest shut down, and start it"


def state_of(status: Mapping[str, Any]) -> str:
    """Return the power state in an answer about a machine's current status, or in an entry of a list."""
    run, detail = str(status.get("status") or ""), str(status.get("qmpstatus") or "")
    if run == "running":
        return SUSPENDED if detail in _PAUSED else ON
    if run == "paused" or detail in _PAUSED:
        return SUSPENDED
    if run == "stopped":
        return SUSPENDED if status.get("lock") == "suspended" else OFF
    return UNKNOWN


def step(op: m.PowerOp, status: Mapping[str, Any]) -> ProxmoxPowerStep:
    """Decide what a change of power does to a machine; raises `ProviderError` for none."""
    state, runs = state_of(status), status.get("status") == "running"
    if op is m.PowerOp.UNSPECIFIED:
        raise refusals.invalid("the request names no change of power", fix="send ON, OFF, REBOOT or SHUTDOWN_GRACEFUL")
    if state == UNKNOWN:
        raise refusals.retry_later("the power of the machine is not known now; its node may be offline", 15.0)
    if op is m.PowerOp.ON:
        return ProxmoxPowerStep.NOTHING if state == ON else ProxmoxPowerStep.RESUME if runs else ProxmoxPowerStep.START
    if state == OFF:
        if op is m.PowerOp.REBOOT:
            raise refusals.conflict("the machine cannot be restarted", why="it is off", fix="power it on")
        return ProxmoxPowerStep.NOTHING
    if not runs:
        return ProxmoxPowerStep.START if op is m.PowerOp.REBOOT else ProxmoxPowerStep.WAKE_AND_STOP
    if op is m.PowerOp.OFF:
        return ProxmoxPowerStep.STOP
    if op is m.PowerOp.REBOOT:
        return ProxmoxPowerStep.REBOOT
    return ProxmoxPowerStep.SHUTDOWN


def is_under_ha(status: Mapping[str, Any]) -> bool:
    """Return whether the HA manager starts and stops the machine of a current status."""
    return bool((status.get("ha") or {}).get("managed"))


def asks_ha(upid: Upid) -> bool:
    """Return whether a task only hands a request to the HA manager."""
    return upid.type in _HA_TASKS


class ProxmoxPowerControl:
    """Changes the power of machines."""

    def __init__(self, cluster: ProxmoxCluster) -> None:
        self._cluster = cluster

    async def status(self, machine: ProxmoxLocatedMachine) -> dict[str, Any]:
        """The cluster's answer about a machine's current status."""
        found = await self._cluster.api.get(self._cluster.of(machine, "status", "current"))
        return dict(found or {})

    async def change(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change the power. A state that the machine has already is success."""
        machine = await self._cluster.machine(request.id)
        status = await self.status(machine)
        match step(request.op, status):
            case ProxmoxPowerStep.NOTHING:
                return m.TaskResponse()
            case ProxmoxPowerStep.START:
                return await self._begin(machine, "start", {}, ProxmoxTaskGoal.RUNNING)
            case ProxmoxPowerStep.RESUME:
                return await self._begin(machine, "resume", {}, ProxmoxTaskGoal.RUNNING)
            case ProxmoxPowerStep.STOP:
                return await self._begin(machine, "stop", await self._stop_form(status), ProxmoxTaskGoal.STOPPED)
            case ProxmoxPowerStep.SHUTDOWN:
                asked = request.graceful_timeout_seconds
                form: dict[str, FormValue] = {"timeout": asked if asked > 0 else GRACE_SECONDS, "forceStop": True}
                return await self._begin(machine, "shutdown", form, ProxmoxTaskGoal.STOPPED)
            case ProxmoxPowerStep.WAKE_AND_STOP:
                return self._work(ProxmoxTaskId(ProxmoxTaskGoal.STOPPED, None, machine.id), lambda: self._wake_and_stop(machine))
            case ProxmoxPowerStep.REBOOT:
                return self._work(ProxmoxTaskId(ProxmoxTaskGoal.RESTARTED, None, machine.id), lambda: self._reboot(machine))

    async def _begin(self, machine: ProxmoxLocatedMachine, verb: str, form: dict[str, FormValue], goal: ProxmoxTaskGoal) -> m.TaskResponse:
        try:
            answer = await self._cluster.api.post(self._cluster.of(machine, "status", verb), form)
        except ProxmoxRefusal as error:
            if error.says("already running") and goal is ProxmoxTaskGoal.RUNNING:
                return m.TaskResponse()
            if error.says("not running") and goal is ProxmoxTaskGoal.STOPPED:
                return m.TaskResponse()
            raise
        upid = Upid.parse(answer)
        return m.TaskResponse(task=m.TaskRef(id=str(ProxmoxTaskId(goal, upid, machine.id)))) if upid is not None else m.TaskResponse()

    def _work(self, task: ProxmoxTaskId, work: Callable[[], Awaitable[None]]) -> m.TaskResponse:
        """Carry out several steps, unless the same work goes on already."""
        if not self._cluster.works.is_under_way(str(task)):
            self._cluster.works.begin(str(task), work, self._cluster.settings.work_seconds)
        return m.TaskResponse(task=m.TaskRef(id=str(task)))

    async def _wake_and_stop(self, machine: ProxmoxLocatedMachine) -> None:
        """Memory on disk is given up by a start: nothing else takes the lock away."""
        await self._start(machine)
        await self.stop(machine)

    async def _reboot(self, machine: ProxmoxLocatedMachine) -> None:
        """A guest that ignores the shutdown is stopped and started."""
        cluster = self._cluster
        try:
            with failures.mapped():
                answer = await cluster.api.post(cluster.of(machine, "status", "reboot"), {"timeout": _REBOOT_SECONDS})
                await cluster.finish(answer)
            return
        except ProviderError as error:
            if "timeout" not in str(error).lower() and "failed" not in str(error).lower():
                raise
        await self.stop(machine)
        await self._start(machine)

    # --- with the wait for the end --------------------------------------------------------------------------------------------

    async def stop(self, machine: ProxmoxLocatedMachine) -> None:
        """Stop a machine at once, and wait until it is off."""
        form = await self._stop_form(await self.status(machine))
        await self._settled(machine, await self._cluster.api.post(self._cluster.of(machine, "status", "stop"), form), OFF)

    async def _start(self, machine: ProxmoxLocatedMachine) -> None:
        await self._settled(machine, await self._cluster.api.post(self._cluster.of(machine, "status", "start")), ON)

    async def _settled(self, machine: ProxmoxLocatedMachine, answer: Any, wanted: str) -> None:
        """Wait for a task, and for the HA manager if that was asked."""
        await self._cluster.finish(answer)
        upid = Upid.parse(answer)
        while upid is not None and asks_ha(upid):
            found = await self.reached(machine.id, wanted, by_ha=True)
            if found.error:
                raise ProviderError(ErrorKind.CONFLICT, found.error)
            if found.done:
                return
            await asyncio.sleep(self._cluster.settings.most_poll_seconds)

    async def reached(self, id: ProxmoxMachineId, wanted: str, *, by_ha: bool) -> TaskProgress:
        """Judge a change of power by the machine. One that the HA manager was asked for goes on until that gives up."""
        machine = await self._cluster.locate(id)
        if machine is None:
            return DONE if wanted == OFF else failed("the machine is gone")
        status = await self.status(machine)
        state, name = state_of(status), machine.config.name
        if state == wanted:
            return DONE
        if not by_ha or not is_under_ha(status):
            return failed(f"machine {name} is {state}, not {wanted}; the task's end was not seen")
        if (status.get("ha") or {}).get("state") == "error":
            fix = "disable the HA resource and start it again, which clears the error"
            return failed(f"machine {name} is {state}, not {wanted}, and the HA manager has it in the state error; {fix}")
        return RUNNING

    async def _stop_form(self, status: Mapping[str, Any]) -> dict[str, FormValue]:
        """An orderly shutdown that is under way would hold the stop up. The HA manager has no such order, and replaces one by the other."""
        overrules = not is_under_ha(status) and await self._cluster.release() >= (8, 2)
        return {"overrule-shutdown": True} if overrules else {}

"""Power: on, off, shut down with a time-out, restart.

vSphere has no time-out of a guest's shutdown, so the task of one says when its time is over, and whoever looks at it then cuts the machine
off.
"""

from typing import Any

from pyVmomi import vim

from paddock.base.clock import Clock
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.vsphere import failures
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.target import SeenMachine, VSphereTarget, reference

GRACE_SECONDS = 60
_PATHS = ("name", "runtime", "guest.toolsRunningStatus")
_ON, _OFF = "poweredOn", "poweredOff"
_TOOLS = "guestToolsRunning"
# What a change of power meets when somebody else was faster.
_THERE = (vim.fault.InvalidPowerState, vim.fault.InvalidState)


class VSpherePower:
    """Changes the power of machines."""

    def __init__(self, target: VSphereTarget, clock: Clock) -> None:
        self._target = target
        self._clock = clock

    def change(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change it. A state that the machine has already is success."""
        machine = self._target.machine(request.id, request.owner, _PATHS)
        match request.op:
            case m.PowerOp.ON:
                return self._reach(machine, VSphereGoal.RUNNING)
            case m.PowerOp.OFF:
                return self._reach(machine, VSphereGoal.STOPPED)
            case m.PowerOp.SHUTDOWN_GRACEFUL:
                asked = request.graceful_timeout_seconds
                return self._shut_down(machine, asked if asked > 0 else GRACE_SECONDS)
            case m.PowerOp.REBOOT:
                return self._restart(machine)
        raise refusals.invalid("the request names no change of power", fix="send ON, OFF, REBOOT or SHUTDOWN_GRACEFUL")

    def _reach(self, machine: SeenMachine, goal: VSphereGoal) -> m.TaskResponse:
        """Power a machine on or off."""
        on = goal is VSphereGoal.RUNNING
        if _state(machine) == (_ON if on else _OFF):
            return m.TaskResponse()
        what = f"machine {machine.name} cannot be powered {'on' if on else 'off'}"
        try:
            with failures.mapped(what):
                task = machine.ref.PowerOnVM_Task(None) if on else machine.ref.PowerOffVM_Task()
            if self._target.quick(task, what) is None:
                return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(goal, machine.id, reference(task)))))
        except ProviderError as error:
            if not isinstance(error.__cause__, _THERE) or _state(self._target.machine(machine.id, paths=_PATHS)) != (_ON if on else _OFF):
                raise
        return m.TaskResponse()

    def _shut_down(self, machine: SeenMachine, seconds: int) -> m.TaskResponse:
        """Ask the guest to shut down; a guest without tools cannot be asked."""
        if _state(machine) != _ON or machine.get("guest.toolsRunningStatus") != _TOOLS:
            return self._reach(machine, VSphereGoal.STOPPED)
        try:
            with failures.mapped(f"machine {machine.name} cannot be shut down"):
                machine.ref.ShutdownGuest()
        except ProviderError as error:
            if not isinstance(error.__cause__, (vim.fault.ToolsUnavailable, *_THERE)):
                raise
            return self._reach(self._target.machine(machine.id, paths=_PATHS), VSphereGoal.STOPPED)
        until = int(self._clock.seconds() + seconds)
        task = VSphereTaskId(VSphereGoal.SHUT_DOWN, machine.id, "", str(until))
        return m.TaskResponse() if self.shut_down(task).done else m.TaskResponse(task=m.TaskRef(id=str(task)))

    def shut_down(self, task: VSphereTaskId) -> TaskProgress:
        """Judge a shutdown, and end a machine whose time is over."""
        machine = self._target.find(task.machine, _PATHS)
        if machine is None or _state(machine) == _OFF:
            return DONE
        until = int(task.detail) if task.detail.isdecimal() else 0
        if self._clock.seconds() < until:
            return RUNNING
        left = self._reach(machine, VSphereGoal.STOPPED)
        return DONE if left.task is None else RUNNING

    def _restart(self, machine: SeenMachine) -> m.TaskResponse:
        if _state(machine) != _ON:
            raise refusals.conflict(f"machine {machine.name} cannot be restarted", why="it is off", fix="power it on")
        what = f"machine {machine.name} cannot be restarted"
        if machine.get("guest.toolsRunningStatus") == _TOOLS:
            try:
                machine.ref.RebootGuest()
            except (vim.fault.ToolsUnavailable, *_THERE):
                pass
            else:
                return m.TaskResponse()
        with failures.mapped(what):
            task = machine.ref.ResetVM_Task()
        if self._target.quick(task, what) is None:
            return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.RESTARTED, machine.id, reference(task)))))
        return m.TaskResponse()

    def reached(self, task: VSphereTaskId) -> TaskProgress:
        """Judge a change of power whose task has ended, by the machine."""
        machine = self._target.find(task.machine, _PATHS)
        on = task.goal is not VSphereGoal.STOPPED
        if machine is None:
            return failed("the machine is gone") if on else DONE
        if _state(machine) == (_ON if on else _OFF):
            return DONE
        return failed(f"the machine is not {'on' if on else 'off'}")


def _state(machine: SeenMachine) -> str:
    runtime: Any = machine.get("runtime")
    return str(runtime.powerState) if runtime is not None else ""

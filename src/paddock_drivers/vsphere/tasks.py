"""The state of tasks. A task names its goal, its machine and the task of vSphere, so nothing about it is kept in the driver.

vCenter forgets ended tasks after some minutes. The machine then says whether the goal is reached.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyVmomi import vim

from paddock.contract import messages as m
from paddock.contract.errors import ProviderError, TransientProviderError
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.vsphere import hardware, target
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.identities import CloneIdentities
from paddock_drivers.vsphere.machines import VSphereDeletion
from paddock_drivers.vsphere.power import VSpherePower
from paddock_drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock_drivers.vsphere.target import WHOLE, VSphereTarget

Judge = Callable[[VSphereTaskId], TaskProgress]
_MAKING = (VSphereGoal.CREATED, VSphereGoal.CLONED)


class VSphereTaskJudge:
    """Judges tasks by those of vSphere, and by machines."""

    def __init__(
        self,
        target: VSphereTarget,
        reconfiguration: VSphereReconfiguration,
        power: VSpherePower,
        deletion: VSphereDeletion,
        identities: CloneIdentities,
        others: Mapping[VSphereGoal, Judge],
    ) -> None:
        self._target = target
        self._reconfiguration = reconfiguration
        self._deletion = deletion
        self._identities = identities
        self._judges: dict[VSphereGoal, Judge] = {
            VSphereGoal.CREATED: self._created,
            VSphereGoal.CLONED: self._created,
            VSphereGoal.DELETED: self._deleted,
            VSphereGoal.RUNNING: power.reached,
            VSphereGoal.STOPPED: power.reached,
            VSphereGoal.RESTARTED: power.reached,
            VSphereGoal.SHUT_DOWN: power.shut_down,
            VSphereGoal.RECONFIGURED: self._reconfigured,
            VSphereGoal.UPGRADED: self._upgraded,
            **others,
        }

    def status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state. What is no task of this driver has failed: nobody may wait for it."""
        text = request.task.id if request.task is not None else ""
        if not text:
            return m.TaskStatusResponse(done=True)
        task = VSphereTaskId.parse(text)
        judge = self._judges.get(task.goal) if task is not None else None
        if task is None or judge is None:
            return m.TaskStatusResponse(done=True, error=f'task "{text[:80]}" is unknown')
        judged = self._judged(task, judge)
        return m.TaskStatusResponse(done=judged.done, error=judged.error, reason=judged.reason)

    def _judged(self, task: VSphereTaskId, judge: Judge) -> TaskProgress:
        if task.task:
            worker = self._target.task(task.task)
            state, info = self._target.state(worker)
            by_itself = target.progress(state, info)
            if by_itself == RUNNING:
                return RUNNING
            if task.goal in _MAKING and info is not None and not self._identities.ended(task.machine, worker, info):
                return RUNNING
            if by_itself.error and not self._is_there(task, info):
                return by_itself
        try:
            return judge(task)
        except ProviderError as error:
            # What a retry can cure is an error of the call; the rest is the end of the task.
            if isinstance(error, TransientProviderError):
                raise
            return failed(error)

    def _is_there(self, task: VSphereTaskId, info: Any) -> bool:
        """Return whether a machine may be there although its task has failed: another call was faster, or an earlier attempt left it."""
        if not isinstance(info.error, vim.fault.DuplicateName):
            return False
        return task.goal is VSphereGoal.CREATED or (task.goal is VSphereGoal.CLONED and self._target.find(task.machine, ()) is not None)

    def _created(self, task: VSphereTaskId) -> TaskProgress:
        machine = self._target.find(task.machine, WHOLE)
        if machine is None:
            return failed("the machine is not there; create it again")
        if machine.get("config") is None:
            return RUNNING
        return DONE if self._reconfiguration.finish(machine) else RUNNING

    def _deleted(self, task: VSphereTaskId) -> TaskProgress:
        machine = self._target.find(task.machine, WHOLE)
        if machine is None:
            return DONE
        if self._target.is_worked_on(machine):
            return RUNNING
        return RUNNING if self._deletion.step(machine) is not None else DONE

    def _reconfigured(self, task: VSphereTaskId) -> TaskProgress:
        """A task that vCenter has forgotten may have failed: the machine's size says it."""
        machine = self._target.find(task.machine, ("config.hardware.numCPU", "config.hardware.memoryMB"))
        if machine is None:
            return failed("the machine is gone")
        has = f"{machine.get('config.hardware.numCPU', 0)}x{machine.get('config.hardware.memoryMB', 0)}"
        return DONE if not task.detail or task.detail == has else failed("the change did not reach the machine; make it again")

    def _upgraded(self, task: VSphereTaskId) -> TaskProgress:
        machine = self._target.find(task.machine, ("config",))
        if machine is None or machine.get("config") is None:
            return failed("the machine is gone")
        wanted = int(task.detail) if task.detail.isdecimal() else 0
        there = hardware.current_version(machine.get("config")) >= wanted
        return DONE if there else failed("the machine still has its older hardware; upgrade it again")

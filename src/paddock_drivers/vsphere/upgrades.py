"""Newer versions of virtual hardware."""

from paddock.contract import messages as m
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import failures, hardware
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.target import VSphereTarget, reference


class HardwareUpgrades:
    def __init__(self, target: VSphereTarget) -> None:
        self._target = target

    def upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Give a machine a version of virtual hardware. One that it has, or that is older, is success."""
        machine = self._target.machine(request.id)
        version, name = request.target_version, machine.name
        if not 0 < version < 100:
            raise refusals.invalid("the version of virtual hardware is wrong", fix="give a number, as 19 for vmx-19")
        if machine.get("config") is None:
            raise refusals.conflict(f"machine {name} cannot be upgraded", why="its host is not connected")
        if hardware.current_version(machine.get("config")) >= version:
            return m.TaskResponse()
        if str(machine.get("runtime").powerState) != "poweredOff":
            raise refusals.conflict(f"machine {name} cannot be upgraded", why="it is not off", fix="power it off first")
        what = f"machine {name} cannot be upgraded"
        with failures.mapped(what):
            task = machine.ref.UpgradeVM_Task(hardware.version_name(version))
        if self._target.quick(task, what) is not None:
            return m.TaskResponse()
        return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.UPGRADED, machine.id, reference(task), str(version)))))

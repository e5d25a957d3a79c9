"""Power: on, off, shut down with a time-out, restart.

A wish is written into the machine, so KubeVirt carries it out whatever becomes of the driver; also the force after a guest's time is
KubeVirt's, which counts a grace period.
"""

import enum

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.client.options import Patch, merge_patch
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import observed, targets
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of
from paddock_drivers.kubevirt.identifiers import TaskGoal, TaskId

GRACE_SECONDS = 60
ALWAYS, HALTED = "Always", "Halted"
# A machine with one of these starts and stops by its run strategy alone; others take a request.
_PLAIN = (ALWAYS, HALTED, "")


class PowerStep(enum.Enum):
    """What has to be done for a change of power."""

    NOTHING = "nothing"
    WAIT = "it is under way"
    RUN = "set the run strategy"
    START = "ask for a start"
    UNPAUSE = "unpause"
    HALT = "set the run strategy to halt"
    STOP = "ask for a stop"
    RESTART = "ask for a restart"


def strategy_of(machine: VirtualMachine) -> str:
    """The run strategy of a machine, in the newer form."""
    if machine.spec.running is not None:
        return ALWAYS if machine.spec.running else HALTED
    return machine.spec.runStrategy or ""


def step_on(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> PowerStep:
    """Decide how a machine comes to run."""
    state, strategy = observed.power_state(instance), strategy_of(machine)
    if state == observed.SUSPENDED:
        return PowerStep.UNPAUSE
    if strategy in _PLAIN:
        wanted = strategy == ALWAYS
        return PowerStep.RUN if not wanted else PowerStep.NOTHING if _stays_on(instance) else PowerStep.WAIT
    if _stays_on(instance):
        return PowerStep.NOTHING
    return PowerStep.WAIT if observed.is_live(instance) or observed.status_of(machine).stateChangeRequests else PowerStep.START


def step_off(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> PowerStep:
    """Decide how a machine comes to be off."""
    if observed.is_live(instance):
        return PowerStep.STOP
    return PowerStep.HALT if strategy_of(machine) in (ALWAYS, "") else PowerStep.NOTHING


def step_restart(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> PowerStep:
    """Decide how a machine is restarted; raises Conflict when it is off."""
    if not observed.is_live(instance) or strategy_of(machine) == HALTED:
        name = machine.metadata.name
        raise refusals.conflict(f"machine {name} cannot be restarted", why="it is off", fix="power it on")
    under_way = observed.status_of(machine).stateChangeRequests or observed.is_going(instance)
    return PowerStep.WAIT if under_way else PowerStep.RESTART


def _stays_on(instance: VirtualMachineInstance | None) -> bool:
    return observed.power_state(instance) == observed.ON and not observed.is_going(instance)


class PowerControl:
    """Changes the power of machines."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def change(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change it. A state that the machine has already is success."""
        machine = await self._cluster.machine(request.id, request.owner)
        instance = await self._cluster.instance(machine)
        match request.op:
            case m.PowerOp.ON:
                return await self._on(machine, instance)
            case m.PowerOp.OFF:
                return await self.stop(machine, instance, 0)
            case m.PowerOp.SHUTDOWN_GRACEFUL:
                asked = request.graceful_timeout_seconds
                return await self.stop(machine, instance, asked if asked > 0 else GRACE_SECONDS)
            case m.PowerOp.REBOOT:
                return await self._restart(machine, instance)
        raise refusals.invalid("the request names no change of power", fix="send ON, OFF, REBOOT or SHUTDOWN_GRACEFUL")

    async def _on(self, machine: VirtualMachine, instance: VirtualMachineInstance | None) -> m.TaskResponse:
        name = machine.metadata.name
        match step_on(machine, instance):
            case PowerStep.NOTHING:
                return m.TaskResponse()
            case PowerStep.UNPAUSE:
                await self._cluster.act(targets.INSTANCES, name, "unpause")
                return m.TaskResponse()
            case PowerStep.RUN:
                await self._set(machine, runs=True)
            case PowerStep.START:
                await self._cluster.act(targets.MACHINES, name, "start")
        return _task(TaskGoal.RUNNING, machine)

    async def stop(self, machine: VirtualMachine, instance: VirtualMachineInstance | None, grace: int) -> m.TaskResponse:
        """Stop a machine; the guest has so many seconds."""
        step = step_off(machine, instance)
        if step is PowerStep.NOTHING:
            return m.TaskResponse()
        if step is PowerStep.HALT:
            await self._set(machine, runs=False)
            return m.TaskResponse()
        try:
            await self._cluster.act(targets.MACHINES, machine.metadata.name, "stop", {"gracePeriod": grace})
        except Conflict:
            # It stops already, within as much time or less.
            if strategy_of(await self._cluster.machine(str(id_of(machine)))) != HALTED:
                raise
        return _task(TaskGoal.STOPPED, machine)

    async def _restart(self, machine: VirtualMachine, instance: VirtualMachineInstance | None) -> m.TaskResponse:
        step = step_restart(machine, instance)
        if step is PowerStep.RESTART:
            await self._cluster.act(targets.MACHINES, machine.metadata.name, "restart")
        return _task(TaskGoal.RESTARTED, machine, (instance.metadata.uid if instance is not None else None) or "")

    async def _set(self, machine: VirtualMachine, *, runs: bool) -> None:
        await self._cluster.client.patch_raw(targets.MACHINES, self._cluster.key(machine), _strategy(machine, runs=runs))


def _strategy(machine: VirtualMachine, *, runs: bool) -> Patch:
    spec: Data = {"running": runs} if machine.spec.running is not None else {"runStrategy": ALWAYS if runs else HALTED}
    return merge_patch({"metadata": {"uid": machine.metadata.uid}, "spec": spec})


def _task(goal: TaskGoal, machine: VirtualMachine, detail: str = "") -> m.TaskResponse:
    return m.TaskResponse(task=m.TaskRef(id=str(TaskId(goal, id_of(machine), detail))))

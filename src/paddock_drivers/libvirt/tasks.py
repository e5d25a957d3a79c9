"""The state of tasks, whoever began them."""

from collections.abc import Awaitable, Callable, Sequence

from paddock.contract import messages as m
from paddock_drivers.kit.progress import DONE, TaskProgress, failed
from paddock_drivers.libvirt.identifiers import MachineGoal, MachineTask
from paddock_drivers.libvirt.lifecycle import DomainCreation
from paddock_drivers.libvirt.power import DomainPower

# Of a part of the driver: the progress of a task of its own, None for one of somebody else's.
TaskSource = Callable[[str], Awaitable[TaskProgress | None]]


class DomainTasks:
    def __init__(self, creation: DomainCreation, power: DomainPower, sources: Sequence[TaskSource] = ()) -> None:
        self._creation = creation
        self._power = power
        self._sources = tuple(sources)

    async def status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state. An unknown one has failed: nobody may wait for it."""
        found = await self._progress(request.task.id if request.task is not None else "")
        return m.TaskStatusResponse(done=found.done, error=found.error, reason=found.reason)

    async def _progress(self, id: str) -> TaskProgress:
        if not id:
            return DONE
        task = MachineTask.parse(id)
        if task is not None:
            return await (self._creation.status(task.uuid) if task.goal is MachineGoal.CREATED else self._power.status(task))
        for source in self._sources:
            found = await source(id)
            if found is not None:
                return found
        return failed("the task is unknown; it may have been one of a process that has ended")

"""The state of tasks. A task names its goal and the object that reaches it, so nothing about it is kept in the driver."""

import asyncio
from collections.abc import Awaitable, Callable

from paddock.contract import messages as m
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.kubevirt import documents, progress, targets
from paddock_drivers.kubevirt.cluster import TargetCluster
from paddock_drivers.kubevirt.identifiers import ObjectId, TaskGoal, TaskId
from paddock_drivers.kubevirt.inventory import MachineInventory

Judge = Callable[[TaskId], Awaitable[TaskProgress]]


class TaskJudge:
    """Judges tasks by the objects of the target."""

    def __init__(self, cluster: TargetCluster, inventory: MachineInventory, transfers: Callable[[TaskId], TaskProgress]) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._transfers = transfers
        self._judges: dict[TaskGoal, Judge] = {
            TaskGoal.CREATED: self._created,
            TaskGoal.DELETED: self._deleted,
            TaskGoal.RUNNING: self._running,
            TaskGoal.STOPPED: self._stopped,
            TaskGoal.RESTARTED: self._restarted,
            TaskGoal.RECONFIGURED: self._reconfigured,
            TaskGoal.SNAPSHOTTED: self._snapshotted,
            TaskGoal.SNAPSHOT_DELETED: self._snapshot_deleted,
            TaskGoal.REVERTED: self._reverted,
            TaskGoal.CLONED: self._cloned,
            TaskGoal.PREPARED: self._filled,
            TaskGoal.UNPREPARED: self._unprepared,
            TaskGoal.IMPORTED: self._filled,
            TaskGoal.EXPORTED: self._transferred,
            TaskGoal.RECEIVED: self._transferred,
        }

    async def status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state. What is no task of this driver has failed: nobody may wait for it."""
        text = request.task.id if request.task is not None else ""
        if not text:
            return m.TaskStatusResponse(done=True)
        task = TaskId.parse(text)
        if task is None:
            return m.TaskStatusResponse(done=True, error=f'task "{text}" is unknown')
        judged = await self._judges[task.goal](task)
        return m.TaskStatusResponse(done=judged.done, error=judged.error, reason=judged.reason)

    async def _machine(self, task: TaskId) -> VirtualMachine | None:
        return await self._cluster.find_id(targets.MACHINES, task.object)

    async def _created(self, task: TaskId) -> TaskProgress:
        machine = await self._machine(task)
        return _gone(task.object) if machine is None else await self._disks(machine)

    async def _disks(self, machine: VirtualMachine) -> TaskProgress:
        """Judge the disks that a machine is made with."""
        if documents.INCOMPLETE in (machine.metadata.annotations or {}):
            return failed(f"creating machine {machine.metadata.name} was interrupted; create it again, and it goes on")
        names = [documents.template_name(each) for each in machine.spec.dataVolumeTemplates or ()]
        volumes = await asyncio.gather(*(self._cluster.find(targets.DATA_VOLUMES, name) for name in names))
        return progress.filled(dict(zip(names, volumes, strict=True)), await self._inventory.claims_of(machine))

    async def _deleted(self, task: TaskId) -> TaskProgress:
        return DONE if await self._machine(task) is None else RUNNING

    async def _running(self, task: TaskId) -> TaskProgress:
        machine = await self._machine(task)
        return _gone(task.object) if machine is None else progress.started(machine, await self._cluster.instance(machine))

    async def _stopped(self, task: TaskId) -> TaskProgress:
        machine = await self._machine(task)
        return DONE if machine is None else progress.stopped(machine, await self._cluster.instance(machine))

    async def _restarted(self, task: TaskId) -> TaskProgress:
        machine = await self._machine(task)
        if machine is None:
            return _gone(task.object)
        return progress.restarted(machine, await self._cluster.instance(machine), task.detail)

    async def _reconfigured(self, task: TaskId) -> TaskProgress:
        machine = await self._machine(task)
        if machine is None:
            return _gone(task.object)
        instance, claims = await asyncio.gather(self._cluster.instance(machine), self._inventory.claims_of(machine))
        generation = int(task.detail) if task.detail.isdecimal() else 0
        return progress.reconfigured(machine, instance, claims.values(), generation)

    async def _snapshotted(self, task: TaskId) -> TaskProgress:
        found = await self._cluster.find_id(targets.SNAPSHOTS, task.object)
        return _gone(task.object) if found is None else progress.snapshotted(found)

    async def _snapshot_deleted(self, task: TaskId) -> TaskProgress:
        return DONE if await self._cluster.find_id(targets.SNAPSHOTS, task.object) is None else RUNNING

    async def _reverted(self, task: TaskId) -> TaskProgress:
        found = await self._cluster.find_id(targets.RESTORES, task.object)
        return _gone(task.object) if found is None else progress.restored(found)

    async def _cloned(self, task: TaskId) -> TaskProgress:
        machine = await self._machine(task)
        if machine is None:
            return _gone(task.object)
        wish = await self._cluster.find(targets.CLONES, f"{task.object.name}-clone")
        # A wish that is gone was carried out: the machine is there.
        return progress.cloned(wish) if wish is not None and wish.metadata.uid == task.detail else DONE

    async def _unprepared(self, task: TaskId) -> TaskProgress:
        return DONE if await self._cluster.find_id(targets.DATA_VOLUMES, task.object) is None else RUNNING

    async def _filled(self, task: TaskId) -> TaskProgress:
        found = await self._cluster.find_id(targets.DATA_VOLUMES, task.object)
        return _gone(task.object) if found is None else progress.filled({task.object.name: found}, {})

    async def _transferred(self, task: TaskId) -> TaskProgress:
        return self._transfers(task)


def _gone(id: ObjectId) -> TaskProgress:
    return failed(f"{id.name} is gone")

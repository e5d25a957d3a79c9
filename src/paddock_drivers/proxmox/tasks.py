"""The states of tasks: by the work of this process, else by the cluster's task, else by what it should have done.

A task of several steps that this process does not know has ended with another one. It has reached its goal if the machine shows it;
otherwise it has failed, and the same call goes on where it stopped.
"""

from collections.abc import Awaitable, Callable, Mapping

from paddock.contract import messages as m
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.proxmox.cluster import ProxmoxCluster
from paddock_drivers.proxmox.disks import ProxmoxDiskTransfers
from paddock_drivers.proxmox.identifiers import ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.images import ProxmoxImagePreparation
from paddock_drivers.proxmox.power import OFF, ON, ProxmoxPowerControl, asks_ha
from paddock_drivers.proxmox.snapshots import ProxmoxSnapshotControl

_AGAIN = "the program that worked on it was started again; call again, and it goes on"


class ProxmoxTaskJudge:
    """Answers how far tasks are."""

    def __init__(
        self,
        cluster: ProxmoxCluster,
        power: ProxmoxPowerControl,
        snapshots: ProxmoxSnapshotControl,
        images: ProxmoxImagePreparation,
        disks: ProxmoxDiskTransfers,
    ) -> None:
        self._cluster = cluster
        self._power = power
        self._snapshots = snapshots
        self._images = images
        self._disks = disks
        # of tasks whose end the cluster does not tell, or whose work has more steps than its task
        self._goals: Mapping[ProxmoxTaskGoal, Callable[[ProxmoxTaskId], Awaitable[TaskProgress]]] = {
            ProxmoxTaskGoal.CREATED: self._complete,
            ProxmoxTaskGoal.CLONED: self._complete,
            ProxmoxTaskGoal.DELETED: self._deleted,
            ProxmoxTaskGoal.RUNNING: self._running,
            ProxmoxTaskGoal.RESTARTED: self._running,
            ProxmoxTaskGoal.STOPPED: self._stopped,
            ProxmoxTaskGoal.RECONFIGURED: self._forgotten,
            ProxmoxTaskGoal.SNAPSHOTTED: self._snapshotted,
            ProxmoxTaskGoal.SNAPSHOT_DELETED: self._snapshot_deleted,
            ProxmoxTaskGoal.REVERTED: self._forgotten,
            ProxmoxTaskGoal.PREPARED: self._prepared,
        }

    async def status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state. An empty id stands for work that is done."""
        text = request.task.id if request.task is not None else ""
        if not text:
            return m.TaskStatusResponse(done=True)
        found = await self._judged(text)
        return m.TaskStatusResponse(done=found.done, error=found.error, reason=found.reason)

    async def _judged(self, text: str) -> TaskProgress:
        task = ProxmoxTaskId.parse(text)
        if task is None:
            return failed("the task is unknown")
        known = self._cluster.works.progress(text)
        if known is not None:
            return known
        if task.goal is ProxmoxTaskGoal.RECEIVED:
            return self._disks.transfer_status(task.detail)
        if task.upid is not None:
            progress = await self._cluster.progress(task.upid)
            if progress is not None and (not progress.done or progress.error):
                return progress
            goes_on = task.goal in (ProxmoxTaskGoal.CREATED, ProxmoxTaskGoal.CLONED) or asks_ha(task.upid)
            if progress is not None and not goes_on:
                return progress
        return await self._goals[task.goal](task)

    async def _complete(self, task: ProxmoxTaskId) -> TaskProgress:
        machine = await self._cluster.locate(task.machine) if task.machine is not None else None
        if machine is None:
            return failed("the machine is gone")
        return DONE if machine.config.note.complete else failed(f"machine {machine.config.name} is not complete: {_AGAIN}")

    async def _deleted(self, task: ProxmoxTaskId) -> TaskProgress:
        gone = task.machine is None or await self._cluster.locate(task.machine) is None
        return DONE if gone else failed(f"the machine is still there: {_AGAIN}")

    async def _running(self, task: ProxmoxTaskId) -> TaskProgress:
        return await self._powered(task, ON)

    async def _stopped(self, task: ProxmoxTaskId) -> TaskProgress:
        return await self._powered(task, OFF)

    async def _powered(self, task: ProxmoxTaskId, wanted: str) -> TaskProgress:
        if task.machine is None:
            return failed("the task is unknown")
        return await self._power.reached(task.machine, wanted, by_ha=task.upid is not None and asks_ha(task.upid))

    async def _forgotten(self, task: ProxmoxTaskId) -> TaskProgress:
        return failed(f"nobody knows how it ended: {_AGAIN}")

    async def _snapshotted(self, task: ProxmoxTaskId) -> TaskProgress:
        machine = await self._cluster.locate(task.machine) if task.machine is not None else None
        found = await self._snapshots.find(machine, task.detail) if machine is not None else None
        if found is None:
            return failed(f"there is no snapshot {task.detail}")
        return RUNNING if found.state else DONE

    async def _snapshot_deleted(self, task: ProxmoxTaskId) -> TaskProgress:
        machine = await self._cluster.locate(task.machine) if task.machine is not None else None
        gone = machine is None or await self._snapshots.find(machine, task.detail) is None
        return DONE if gone else failed(f"snapshot {task.detail} is still there: {_AGAIN}")

    async def _prepared(self, task: ProxmoxTaskId) -> TaskProgress:
        return DONE if await self._images.is_there(task.detail) else failed("the image was not downloaded; call again")

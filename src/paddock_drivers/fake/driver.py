"""The fake driver: a provider whose machines are in memory, and which keeps every promise of the contract.

Each call waits for as long as the settings say, lets everything take effect that is due, meets the faults of the script, and does its
work at once. Work that takes time is a task; a driver that answers synchronously waits for the task itself.
"""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.extensions import FakeExtensions
from paddock_drivers.fake.faults import FaultScript
from paddock_drivers.fake.inventory import TASK_FAULT, FakeInventory, TaskFault, shown
from paddock_drivers.fake.lifecycle import FakeLifecycle
from paddock_drivers.fake.reconfigure import FakeReconfiguration
from paddock_drivers.fake.settings import FakeHost, FakeSettings, RpcFault
from paddock_drivers.fake.snapshots import FakeSnapshots
from paddock_drivers.fake.storage import FakeStorage

R = TypeVar("R", bound=m.WireMessage)


class FakeDriver:
    """Machines in memory. Time and chance come from outside."""

    def __init__(self, settings: FakeSettings, clock: Clock, chance: random.Random | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._chance = chance or random.Random(settings.seed)
        self._inventory = FakeInventory(settings, clock, self._chance)
        self._faults = FaultScript(settings.faults, self._chance)
        self._lifecycle = FakeLifecycle(self._inventory)
        self._reconfiguration = FakeReconfiguration(self._inventory)
        self._snapshots = FakeSnapshots(self._inventory)
        self._storage = FakeStorage(self._inventory)
        self._extensions = FakeExtensions(self._inventory, self._storage)

    def restart(self) -> None:
        """Forget all tasks, as a restarted provider does; the hypervisor's work goes on."""
        self._inventory.tasks.forget()

    # --- the calls --------------------------------------------------------------------------------------------------------

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether the hypervisor can be reached."""
        message = self._settings.unreachable
        return await self._call("Validate", lambda: m.ValidateResponse(ok=not message, message=message))

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what is not switched off."""
        return await self._call("GetCapabilities", lambda: self._inventory.capabilities)

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has. It is off."""
        return await self._call("Create", lambda: self._lifecycle.create(request))

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Delete a machine with its disks and snapshots."""
        return await self._call("Delete", lambda: self._lifecycle.delete(request))

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        return await self._call("Power", lambda: self._lifecycle.power(request))

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state, or refuse all of it."""
        return await self._call("Reconfigure", lambda: self._reconfiguration.reconfigure(request))

    async def hardware_upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Give a stopped machine a newer version of virtual hardware."""
        return await self._call("HardwareUpgrade", lambda: self._reconfiguration.hardware_upgrade(request))

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        return await self._call("Describe", lambda: self._lifecycle.describe(request))

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        return await self._call("ListVMs", self._lifecycle.list_vms)

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        task = request.task.id if request.task else ""
        return await self._call("TaskStatus", lambda: self._inventory.tasks.status(task))

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        return await self._call("SnapshotCreate", lambda: self._snapshots.create(request))

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        return await self._call("SnapshotDelete", lambda: self._snapshots.delete(request))

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""
        return await self._call("SnapshotRevert", lambda: self._snapshots.revert(request))

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine. The clone is off."""
        return await self._call("Clone", lambda: self._snapshots.clone(request))

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        return await self._call("ImagePrepare", lambda: self._storage.prepare(request))

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Write a disk to a staging claim."""
        return await self._call("ExportDisk", lambda: self._storage.export(request))

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Read a disk from a staging claim."""
        return await self._call("ImportDisk", lambda: self._storage.import_(request))

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and format."""
        return await self._call("GetDiskInfo", lambda: self._storage.info(request))

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the hosts, if the settings have any."""
        return await self._call("ListHosts", lambda: m.ListHostsResponse(hosts=tuple(self._host(each) for each in self._hosts())))

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        return await self._call("GetHostInfo", lambda: self._host_info(request.host_id))

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return what is not switched off."""
        return await self._call("GetFeatures", self._extensions.features)

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command in a guest."""
        return await self._call("Exec", lambda: self._extensions.exec(request))

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        return await self._call("ImageDelete", lambda: self._extensions.image_delete(request))

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an export from a staging claim."""
        return await self._call("TransferDelete", lambda: self._extensions.transfer_delete(request))

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the datastores of the settings."""
        return await self._call("ListDatastores", lambda: self._extensions.list_datastores(request))

    # --- hosts ------------------------------------------------------------------------------------------------------------

    def _hosts(self) -> tuple[FakeHost, ...]:
        self._inventory.require("supports_clustering")
        return self._settings.hosts

    def _host_info(self, id: str) -> m.HostInfo:
        found = next((each for each in self._hosts() if each.id == id), None)
        if found is None:
            raise ProviderError(ErrorKind.NOT_FOUND, f"host {shown(id)} does not exist")
        return self._host(found)

    def _host(self, host: FakeHost) -> m.HostInfo:
        """A host with what its machines leave of it."""
        machines = [each for each in self._inventory.machines.values() if each.host == host.id]
        return m.HostInfo(
            id=host.id,
            address=host.address,
            allocatable_cpu=max(0, host.cpu - sum(each.hardware.cpu for each in machines)),
            allocatable_mem_mib=max(0, host.memory_mib - sum(each.hardware.memory_mib for each in machines)),
            allocatable_storage=max(0, host.storage - sum(disk.size for each in machines for disk in each.disks)),
            health=m.HostHealth.READY if host.ready else m.HostHealth.NOT_READY,
            labels=dict(host.labels),
            cpu_features=host.cpu_features,
        )

    # --- one call ---------------------------------------------------------------------------------------------------------

    async def _call(self, rpc: str, act: Callable[[], R | Awaitable[R]]) -> R:
        faults = self._faults.of_call(rpc)
        answer = self._settings.answer_seconds
        delay = sum(each.delay for each in faults) + self._chance.uniform(answer.least, max(answer.least, answer.most))
        if delay:
            await asyncio.sleep(delay)
        if any(each.effect == "restart" for each in faults):
            self.restart()
        _raise(faults, "error")
        self._inventory.tasks.settle()
        failure = next((_error(each) for each in faults if each.effect == "task-error"), None)
        token = TASK_FAULT.set(TaskFault(failure, any(each.effect == "task-hang" for each in faults)))
        try:
            found = act()
            made: R = await found if inspect.isawaitable(found) else found
        finally:
            TASK_FAULT.reset(token)
        response = await self._finished(made) if self._answers_when_done() else made
        _raise(faults, "lost-answer")
        return response

    def _answers_when_done(self) -> bool:
        mode = self._settings.tasks
        return mode == "sync" or (mode == "mixed" and self._chance.random() < 0.5)

    async def _finished(self, response: R) -> R:
        """Wait for the task of a response, and take it out. A task that failed is the call's error."""
        task: m.TaskRef | None = getattr(response, "task", None)
        if task is None or not task.id:
            return response
        waited = 0.0
        while not (status := self._inventory.tasks.status(task.id)).done:
            pause = 0.01 if waited < 1 else 0.1
            await asyncio.sleep(pause)
            waited += pause
            self._inventory.tasks.settle()
        if status.error:
            raise ProviderError(ErrorKind.INTERNAL, status.error, reason=status.reason)
        return msgspec.structs.replace(response, task=None)


def _error(fault: RpcFault) -> ProviderError:
    return ProviderError(fault.kind, fault.message, reason=fault.reason)


def _raise(faults: list[RpcFault], effect: str) -> None:
    for each in faults:
        if each.effect == effect:
            raise _error(each)

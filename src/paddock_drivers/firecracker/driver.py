"""The driver: each call is carried out by the part that it concerns.

    async with factory.make(DriverContext(...)) as driver:
        made = await driver.create(CreateRequest(...))

Machines, their owners and what was begun with them are in files, and VMMs are processes of their own, so a driver may end at any time and
another goes on. Only transfers of disks are work of this process, and have failed when it ends.
"""

import asyncio

from paddock.base.clock import Clock, SystemClock
from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import Calls, ComposedDriver
from paddock.contract.examination import ProviderFinding
from paddock_drivers.firecracker import clones, diskstorage, examination, files, images, lifecycle, power, snapshots
from paddock_drivers.firecracker.clones import MicroVmCloning
from paddock_drivers.firecracker.diskstorage import DiskFiles
from paddock_drivers.firecracker.host import HypervisorFacts
from paddock_drivers.firecracker.hostnetworks import HostNetwork, TapNetwork
from paddock_drivers.firecracker.images import ImageIntake
from paddock_drivers.firecracker.inventory import MicroVmInventory
from paddock_drivers.firecracker.lifecycle import MicroVmLifecycle
from paddock_drivers.firecracker.power import MicroVmPower
from paddock_drivers.firecracker.reconfiguration import MicroVmReconfiguration
from paddock_drivers.firecracker.records import READY
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.firecracker.snapshots import MicroVmSnapshots
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.firecracker.work import WorkBoard
from paddock_drivers.kit import conversion
from paddock_drivers.kit.progress import DONE, TaskProgress, failed

_FEATURES = (
    features.IMAGE_DELETE,
    features.TRANSFER_DELETE,
    features.IMPORTED_DISKS,
    features.CLONE_SNAPSHOT,
    features.NETWORK_QOS,
    features.DISK_IOPS,
    features.NETWORK_ROUTES,
    features.NETWORK_SEARCH,
    features.IMAGE_CREDENTIALS,
)
_LEAST_FREE = 64 << 20


class FirecrackerDriver(ComposedDriver):
    """Keeps machines as processes of Firecracker, in one directory."""

    def __init__(
        self,
        settings: FirecrackerSettings,
        host: HypervisorFacts | None = None,
        network: HostNetwork | None = None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self._settings = settings
        self._host = host or HypervisorFacts(settings.program)
        self._store = store = MicroVmStore(settings.directory)
        self._board = board = WorkBoard(settings.patience)
        runs = MicroVmRuns(settings, self._host, network or TapNetwork(), clock)
        self._images = ImageIntake(store, settings, board)
        self._machines = MicroVmLifecycle(store, settings, runs, self._images, board)
        self._control = MicroVmPower(store, runs, board)
        self._snapshots = MicroVmSnapshots(store, runs, self._machines.builder, board)
        self._cloning = MicroVmCloning(store, runs, self._machines, self._snapshots, board)
        self._disks = DiskFiles(store, settings, runs, self._snapshots, clock)
        super().__init__(self._calls(MicroVmReconfiguration(store, settings, runs, self._machines.builder), runs))

    def _calls(self, reconfiguration: MicroVmReconfiguration, runs: MicroVmRuns) -> Calls:
        inventory = MicroVmInventory(self._store, runs, self._host.version)

        async def get_features(request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
            return x.GetFeaturesResponse(features=_FEATURES)

        return Calls(
            validate=self._validate,
            get_capabilities=self._get_capabilities,
            get_features=get_features,
            create=self._machines.create,
            delete=self._machines.delete,
            power=self._control.change,
            reconfigure=reconfiguration.apply,
            describe=inventory.describe,
            list_vms=lambda _: inventory.every(),
            task_status=self._task_status,
            snapshot_create=self._snapshots.create,
            snapshot_delete=self._snapshots.delete,
            snapshot_revert=self._snapshots.revert,
            clone=self._cloning.clone,
            image_prepare=self._images.prepare,
            image_delete=self._images.delete,
            export_disk=self._disks.export_disk,
            import_disk=self._disks.import_disk,
            transfer_delete=self._disks.delete_transfer,
            get_disk_info=lambda request: asyncio.to_thread(self._disks.describe, request),
        )

    async def open(self) -> None:
        """Take the directory, and go on where a driver before this one has ended. Raises `Terminal` if another one serves it."""
        self._store.open()
        await asyncio.to_thread(self._store.sweep)
        for folder, record in await asyncio.to_thread(lambda: list(self._store.every())):
            if record.state != READY:
                await self._machines.recover(folder, record)
            else:
                self._board.start(f"settle:{record.id}", lambda folder=folder, record=record: self._control.recover(folder, record))  # type: ignore[misc]
                await self._snapshots.recover(record)

    async def close(self) -> None:
        """Let the directory go. Machines run on."""
        await self._board.close()
        self._store.close()

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what the host has for machines."""
        return await examination.examine(self._settings, self._host)

    async def _validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        if problem := await self._host.problem():
            return m.ValidateResponse(ok=False, message=problem)
        with files.failures("look at the provider's directory"):
            free, _ = await asyncio.to_thread(files.free, self._settings.directory)
        if free < _LEAST_FREE:
            return m.ValidateResponse(ok=False, message=f"the provider's directory has {free} bytes left; make room")
        return m.ValidateResponse(ok=True)

    async def _get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        backends = self._settings.staging.backends
        return m.GetCapabilitiesResponse(
            # A disk and the limits change while a machine runs; its size does not.
            supports_reconfigure_online=False,
            supports_disk_expansion_online=True,
            supports_snapshots=True,
            supports_memory_snapshots=True,
            supports_linked_clones=False,
            supports_image_import=True,
            supported_disk_types=("thin", "thick"),
            supported_network_types=("bridge",),
            supports_disk_export=True,
            supports_disk_import=True,
            supported_export_formats=conversion.formats(),
            supported_import_formats=diskstorage.IMPORT_FORMATS,
            supports_export_compression=conversion.can_compress(),
            supported_export_backends=backends,
            supported_import_backends=backends,
            supported_transfer_modes=("relay",),
        )

    async def _task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """A task is work of this process, or what the files show of it."""
        if request.task is None or not request.task.id:
            return m.TaskStatusResponse(done=True)
        found = self._board.progress(request.task.id) or self._judged(request.task.id)
        return m.TaskStatusResponse(done=found.done, error=found.error, reason=found.reason)

    def _judged(self, task: str) -> TaskProgress:
        goal, _, rest = task.partition(":")
        machine, _, detail = rest.partition(":")
        if goal in (diskstorage.EXPORT, diskstorage.IMPORT):
            return self._disks.transfer_status(machine)
        if goal == images.IMAGE:
            return self._images.status(machine)
        if goal == power.SHUTDOWN:
            return self._control.status(machine, detail)
        if goal in (snapshots.SNAPSHOT, snapshots.REVERT):
            return self._snapshots.status(goal, machine, detail)
        if goal == clones.CLONE:
            return self._cloning.status(machine)
        if goal in (lifecycle.CREATE, lifecycle.DELETE):
            return self._made(goal, machine)
        return failed("the task is unknown")

    def _made(self, goal: str, id: str) -> TaskProgress:
        found = self._store.find(id)
        if goal == lifecycle.DELETE:
            return DONE if found is None else failed("the machine was not deleted to its end; delete it again")
        there = found is not None and found[1].state == READY
        return DONE if there else failed("the machine was not made to its end; create it again")

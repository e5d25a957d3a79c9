"""Changing power. A shutdown that a guest was asked for is in the machine's record with its deadline, so any driver ends it."""

import logging

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.firecracker import configuration, lifecycle, processes
from paddock_drivers.firecracker.processes import VmmProcess
from paddock_drivers.firecracker.records import MicroVmFolder, MicroVmRecord, ShutdownRecord
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.firecracker.work import WorkBoard
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed

_LOG = logging.getLogger(__name__)
SHUTDOWN = "off"
_DEFAULT_SECONDS = 60
_MOST_SECONDS = 7 * 86400
# A guest without a keyboard driver, or another architecture, is cut off when its time is over.
_RETRY_SECONDS = 2.0


class MicroVmPower:
    """Changes the power of machines."""

    def __init__(self, store: MicroVmStore, runs: MicroVmRuns, board: WorkBoard) -> None:
        self._store = store
        self._runs = runs
        self._board = board

    async def change(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power. A state that it has already is success."""
        _, record = self._store.get(request.id)
        lifecycle.ready(record)
        if request.op is m.PowerOp.UNSPECIFIED:
            raise refusals.invalid("the operation is missing")
        async with self._store.lock(record.name):
            folder, record = self._store.get(request.id)
            record, process = await self._runs.settle(folder, lifecycle.ready(record))
            if request.op is m.PowerOp.ON:
                await self.on(folder, record, process)
            elif request.op is m.PowerOp.OFF:
                await self._off(folder, record)
            elif process is not None:
                return await self._ask(folder, record, process, request)
            elif request.op is m.PowerOp.REBOOT:
                await self.on(folder, record, None)
            else:
                await self._off(folder, record)
        return m.TaskResponse()

    async def on(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess | None) -> MicroVmRecord:
        """Start a machine that is off; one that is going down may not stay down."""
        if process is None:
            return await self._runs.start(folder, record)
        if record.shutdown is not None and not record.shutdown.restart:
            # Whether the guest still obeys is unknown; it ends, and starts again.
            record = msgspec.structs.replace(record, shutdown=msgspec.structs.replace(record.shutdown, restart=True))
            folder.write(record)
        return record

    async def _off(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        record = await self._runs.stop(folder, record)
        if record.resume:
            # Whoever wants it off does not want its memory back.
            folder.write(msgspec.structs.replace(record, resume=""))

    async def _ask(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess, request: m.PowerRequest) -> m.TaskResponse:
        """Ask a guest to shut down, and see to it that it is off in time."""
        restart = request.op is m.PowerOp.REBOOT
        seconds = min(request.graceful_timeout_seconds if request.graceful_timeout_seconds > 0 else _DEFAULT_SECONDS, _MOST_SECONDS)
        if record.shutdown is None or record.shutdown.process != process.id or record.shutdown.restart != restart:
            shutdown = ShutdownRecord(self._runs.clock.seconds() + seconds, process.id, restart)
            record = msgspec.structs.replace(record, shutdown=shutdown)
            folder.write(record)
        try:
            await self._runs.api(folder, record, process).send(configuration.SHUTDOWN)
        except ProviderError as error:
            # It has ended meanwhile, or cannot be asked; the deadline holds.
            _LOG.info("guest not asked to shut down", extra={"machine": record.name, "problem": str(error)})
        key = f"{SHUTDOWN}:{record.id}:{process.id}"
        self.follow(record.id, key)
        return m.TaskResponse(task=m.TaskRef(id=key))

    def follow(self, id: str, key: str) -> None:
        """See a shutdown to its end, with nobody waiting for it."""
        self._board.start(key, lambda: self._finish(id))

    async def _finish(self, id: str) -> None:
        """Wait for the end of a machine that was asked to shut down, and end it when its time is over."""
        while (found := self._store.find(id)) is not None:
            folder, record = found
            shutdown, process = record.shutdown, processes.find(folder.path)
            if shutdown is None or (process is not None and process.id != shutdown.process):
                return
            left = shutdown.deadline - self._runs.clock.seconds()
            if process is not None and left > 0:
                await processes.wait(process, min(left, _RETRY_SECONDS))
                continue
            async with self._store.lock(record.name):
                await self._conclude(id, shutdown)
            return

    async def _conclude(self, id: str, shutdown: ShutdownRecord) -> None:
        found = self._store.find(id)
        if found is None or found[1].shutdown is None or found[1].shutdown.process != shutdown.process:
            return
        folder, record = found
        process = processes.find(folder.path)
        if process is not None and process.id != shutdown.process:
            return
        again = record.shutdown is not None and record.shutdown.restart
        if not again:
            await self._runs.stop(folder, record)
            return
        if process is not None:
            await processes.kill(process)
        # The wish to run stays in the record until the machine runs.
        record, _ = await self._runs.settle(folder, record)
        await self._runs.start(folder, record)

    def status(self, id: str, process: str) -> TaskProgress:
        """Judge a shutdown that this process does not know; it goes on with it."""
        found = self._store.find(id)
        if found is None:
            return DONE
        folder, record = found
        shutdown = record.shutdown
        if shutdown is not None and shutdown.process == process:
            self.follow(id, f"{SHUTDOWN}:{id}:{process}")
            return RUNNING
        live = processes.find(folder.path)
        if live is not None and live.id == process:
            return failed("the shutdown was given up")
        return DONE

    async def recover(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Bring a machine up to what is there, and go on with its shutdown."""
        async with self._store.lock(record.name):
            found = self._store.find(record.id)
            if found is None:
                return
            record, _ = await self._runs.settle(*found)
        if record.shutdown is not None:
            self.follow(record.id, f"{SHUTDOWN}:{record.id}:{record.shutdown.process}")


def not_running(record: MicroVmRecord, process: VmmProcess | None, what: str) -> None:
    """Raise Conflict if a machine runs."""
    if process is not None:
        raise ProviderError(ErrorKind.CONFLICT, f"machine {record.name} cannot be {what} while it runs", fix="power it off first")


async def settled(store: MicroVmStore, runs: MicroVmRuns, id: str) -> tuple[MicroVmFolder, MicroVmRecord, VmmProcess | None]:
    """Return a machine as it is; whoever calls has its lock."""
    folder, record = store.get(id)
    record, process = await runs.settle(folder, lifecycle.ready(record))
    return folder, record, process

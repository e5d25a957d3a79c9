"""The generator: several workers take machines through their lives.

A machine is created, started, described, snapshotted, stopped, reconfigured, cloned and deleted; its clone is deleted, too. An operation
counts when its effect shows. Whatever happens, the run deletes the machines that it made, and no other one.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import msgspec

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract.conformance.context import CaseMachine, ConformanceContext
from paddock.contract.conformance.results import ConformanceFailure
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.driver import Driver
from tools.providerload.figures import LoadRecorder, LoadReport

OPERATIONS = ("create", "power", "describe", "snapshot", "reconfigure", "clone", "delete")


class LoadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a load."""

    machines: int = 10
    # machines that are worked on at a time
    workers: int = 4
    # those of OPERATIONS to do; every run creates and deletes
    operations: frozenset[str] = frozenset(OPERATIONS)


class LoadGenerator:
    """One run."""

    def __init__(
        self,
        driver: Driver,
        load: LoadSettings,
        settings: ConformanceSettings,
        capabilities: m.GetCapabilitiesResponse,
        chance: random.Random,
    ) -> None:
        self._context = ConformanceContext(driver, settings, capabilities, chance)
        self._load = load
        self._recorder = LoadRecorder()
        self._numbers = iter(range(load.machines))

    async def run(self) -> LoadReport:
        """Work until every machine is gone again. A cancelled run cleans up before it ends."""
        start = asyncio.get_running_loop().time()
        workers = [asyncio.create_task(self._work()) for _ in range(self._load.workers)]
        try:
            await asyncio.gather(*workers)
            seconds = asyncio.get_running_loop().time() - start
        finally:
            for each in workers:
                each.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            leftovers = await self._context.clean_up()
        return self._recorder.report(seconds, leftovers)

    async def _work(self) -> None:
        for _ in self._numbers:
            await self._machine()

    async def _machine(self) -> None:
        """The life of one machine. What depends on a failed operation is left out."""
        machine = await self._measured("create", self._created)
        if machine is None:
            return
        await self._operate(machine)
        await self._measured("delete", lambda: self._deleted(machine))

    async def _operate(self, machine: CaseMachine) -> None:
        chosen = self._load.operations
        if "power" in chosen:
            await self._measured("power on", lambda: self._powered(machine, m.PowerOp.ON, "On"))
        if "describe" in chosen:
            await self._measured("describe", lambda: self._described(machine))
        if "snapshot" in chosen and self._context.capabilities.supports_snapshots:
            await self._measured("snapshot", lambda: self._snapshotted(machine))
        if "power" in chosen:
            await self._measured("power off", lambda: self._powered(machine, m.PowerOp.OFF, "Off"))
        if "reconfigure" in chosen:
            await self._measured("reconfigure", lambda: self._reconfigured(machine))
        if "clone" in chosen:
            clone = await self._measured("clone", lambda: self._cloned(machine))
            if clone is not None:
                await self._measured("delete", lambda: self._deleted(clone))

    async def _measured(self, operation: str, act: "Callable[[], Awaitable[CaseMachine | None]]") -> CaseMachine | None:
        start = asyncio.get_running_loop().time()
        try:
            made = await act()
        except PaddockError as error:
            self._recorder.failed(operation, str(error))
            return None
        self._recorder.succeeded(operation, asyncio.get_running_loop().time() - start)
        return made

    # --- operations -------------------------------------------------------------------------------------------------------

    async def _created(self) -> CaseMachine:
        machine = await self._context.create()
        if not (await self._context.describe(machine)).exists:
            raise ConformanceFailure("the created machine does not exist")
        return machine

    async def _deleted(self, machine: CaseMachine) -> None:
        await self._context.delete(machine)
        if (await self._context.describe(machine)).exists:
            raise ConformanceFailure("the deleted machine still exists")

    async def _powered(self, machine: CaseMachine, op: m.PowerOp, state: str) -> None:
        await self._context.power(machine, op)
        await self._context.expect_power(machine, state)

    async def _described(self, machine: CaseMachine) -> None:
        if not (await self._context.describe(machine)).exists:
            raise ConformanceFailure("the machine does not exist")

    async def _snapshotted(self, machine: CaseMachine) -> None:
        provider = self._context.provider
        made = await provider.snapshot_create(m.SnapshotCreateRequest(vm_id=machine.id, name_hint="load"))
        await self._context.finish("SnapshotCreate", made.task)
        if not made.snapshot_id:
            raise ConformanceFailure("the snapshot has no id")
        # Only a snapshot that is there can be deleted.
        gone = await provider.snapshot_delete(m.SnapshotDeleteRequest(vm_id=machine.id, snapshot_id=made.snapshot_id))
        await self._context.finish("SnapshotDelete", gone.task)

    async def _reconfigured(self, machine: CaseMachine) -> None:
        cpu = self._context.settings.cpu + 1
        await self._context.reconfigure(machine, self._context.hardware(cpu=cpu))

        async def observed() -> int:
            return (await self._context.listed(machine)).cpu

        await self._context.expect("the number of CPUs", observed, cpu)

    async def _cloned(self, machine: CaseMachine) -> CaseMachine:
        name = self._context.name()
        target = m.ObjectIdentity(namespace="conformance", name=name)
        made = await self._context.provider.clone(m.CloneRequest(source_vm_id=machine.id, target_name=name, target_vm=target))
        self._context.note(made.target_vm_id)
        await self._context.finish("Clone", made.task)
        clone = CaseMachine(made.target_vm_id, self._context.request(name=name))
        if not (await self._context.describe(clone)).exists:
            raise ConformanceFailure("the clone does not exist")
        return clone

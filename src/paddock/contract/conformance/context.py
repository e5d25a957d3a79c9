"""The tools of the cases: machines that are deleted again, tasks that are awaited, effects that are looked for."""

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.conformance.provider import JudgedProvider
from paddock.contract.conformance.results import CaseNotApplicable, ConformanceFailure
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError

POWER_STATES = ("On", "Off", "Suspended", "Unknown")


class CaseMachine(msgspec.Struct, frozen=True):
    """A machine that a case has created, and the request that did."""

    id: str
    request: m.CreateRequest

    @property
    def name(self) -> str:
        return self.request.name


class ConformanceContext:
    """The surroundings of the cases of one run."""

    def __init__(
        self, driver: Driver, settings: ConformanceSettings, capabilities: m.GetCapabilitiesResponse, chance: random.Random
    ) -> None:
        self.provider = JudgedProvider(driver, settings.call_seconds)
        self.settings = settings
        self.capabilities = capabilities
        self.features: frozenset[str] = frozenset()
        # one run never meets the names of another
        self.run = f"{settings.prefix}-{chance.randrange(16**8):08x}"
        self.secret = f"secret-{chance.randrange(16**16):016x}"
        self.provider.secrets.add(self.secret)
        self._count = 0
        # names of machines that may exist, and ids of those that do
        self._names: set[str] = set()
        self._ids: set[str] = set()

    # --- requests ---------------------------------------------------------------------------------------------------------

    def name(self, suffix: str = "") -> str:
        """A name that nothing else has; a machine of this name is deleted after the case."""
        self._count += 1
        name = f"{self.run}-{self._count}{suffix}"
        self._names.add(name)
        return name

    def hardware(self, **changes: Any) -> payloads.ClassPayload:
        """The class of the smallest machine, with changes."""
        defaults = payloads.DiskDefaultsPayload(size_gib=self.settings.disk_gib) if self.settings.disk_gib else None
        plain = payloads.ClassPayload(cpu=self.settings.cpu, memory_mib=self.settings.memory_mib, disk_defaults=defaults)
        return msgspec.structs.replace(plain, **changes)

    def request(self, *, name: str = "", hardware: payloads.ClassPayload | None = None, **changes: Any) -> m.CreateRequest:
        """A create with an owner of its own and user data with a secret."""
        name = name or self.name()
        plain = m.CreateRequest(
            name=name,
            class_json=payloads.encode(hardware or self.hardware()),
            image_json=payloads.encode(self.settings.image),
            networks_json=payloads.encode_list(self.settings.networks),
            disks_json="null",
            user_data=f"#cloud-config\n# {self.secret}\n".encode(),
            owner=m.ObjectIdentity(uid=f"uid-{name}", namespace="conformance", name=name),
        )
        return msgspec.structs.replace(plain, **changes)

    def desired(self, request: m.CreateRequest, *, hardware: payloads.ClassPayload, disks: tuple[payloads.DiskPayload, ...] = ()) -> str:
        """The desired state of a machine: as it was created, with this hardware and these disks."""
        return payloads.encode(
            payloads.DesiredPayload(
                name=request.name,
                machine_class=hardware,
                image=self.settings.image,
                networks=self.settings.networks or None,
                disks=disks or None,
                user_data=payloads.UserDataPayload(cloud_init_data=request.user_data.decode(), type="cloud-init"),
            )
        )

    # --- doing ------------------------------------------------------------------------------------------------------------

    async def create(self, request: m.CreateRequest | None = None) -> CaseMachine:
        """Create a machine and wait until it is there."""
        request = request or self.request()
        response = await self.provider.create(request)
        self.check(response.id, "Create answers without an id")
        self.note(response.id)
        await self.finish("Create", response.task)
        return CaseMachine(response.id, request)

    def note(self, id: str) -> None:
        """Remember a machine to delete after the case."""
        self._ids.add(id)

    async def finish(self, what: str, task: m.TaskRef | None) -> None:
        """Wait for a task. Raises `ConformanceFailure` if it fails, or does not end."""
        error = await self.outcome(what, task)
        if error:
            raise ConformanceFailure(f"the task of {what} failed", why=error)

    async def outcome(self, what: str, task: m.TaskRef | None) -> str:
        """Wait for a task and return its error, empty for success."""
        if task is None or not task.id:
            return ""
        end = self._now() + self.settings.task_seconds
        while True:
            status = await self.provider.task_status(m.TaskStatusRequest(task=task))
            self.provider.check_text(f"the error of the task of {what}", status.error)
            if status.done or status.error:
                return status.error
            if self._now() >= end:
                raise ConformanceFailure(f"the task of {what} does not end", why=f"it runs after {self.settings.task_seconds:g} s")
            await asyncio.sleep(self.settings.poll_seconds)

    async def power(self, machine: CaseMachine, op: m.PowerOp, seconds: int = 0) -> None:
        """Change the power, and wait for the end of the task."""
        response = await self.provider.power(m.PowerRequest(id=machine.id, op=op, graceful_timeout_seconds=seconds))
        await self.finish(f"Power {op.name}", response.task)

    async def reconfigure(
        self, machine: CaseMachine, hardware: payloads.ClassPayload, disks: tuple[payloads.DiskPayload, ...] = ()
    ) -> None:
        """Reconfigure a machine, and wait for the end of the task."""
        desired = self.desired(machine.request, hardware=hardware, disks=disks)
        response = await self.provider.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=desired))
        await self.finish("Reconfigure", response.task)

    async def delete(self, machine: CaseMachine) -> None:
        """Delete a machine, and wait for the end of the task."""
        response = await self.provider.delete(m.DeleteRequest(id=machine.id))
        await self.finish("Delete", response.task)
        # Its name is still looked for when the case is over.
        self._ids.discard(machine.id)

    async def refused(self, what: str, call: Awaitable[Any], *kinds: ErrorKind) -> None:
        """Raise `ConformanceFailure` unless the call, or the task that it starts, fails; its error has one of the kinds."""
        try:
            response = await call
        except ProviderError as error:
            if error.kind is ErrorKind.NOT_SUPPORTED and kinds and error.kind not in kinds:
                # The whole operation may be missing, which is no answer to the case.
                raise
            if kinds and error.kind not in kinds:
                names = " or ".join(kinds)
                raise ConformanceFailure(f"{what} must be refused with {names}", why=f"it is {error.kind}: {error}") from error
            return
        if not kinds and await self.outcome(what, getattr(response, "task", None)):
            return
        raise ConformanceFailure(f"{what} must be refused", why="it succeeded")

    # --- looking ----------------------------------------------------------------------------------------------------------

    async def describe(self, machine: CaseMachine) -> m.DescribeResponse:
        return await self.provider.describe(m.DescribeRequest(id=machine.id))

    async def listed(self, machine: CaseMachine) -> m.VMInfo:
        """The machine's entry in ListVMs."""
        found = await self.find(lambda each: each.id == machine.id)
        if len(found) != 1:
            raise ConformanceFailure(f"ListVMs has {len(found)} entries for machine {machine.id}", why="there must be one")
        return found[0]

    async def find(self, predicate: Callable[[m.VMInfo], bool]) -> list[m.VMInfo]:
        """The entries of ListVMs that are wanted."""
        return [each for each in (await self.provider.list_vms(m.ListVMsRequest())).vms if predicate(each)]

    async def disk(self, machine: CaseMachine, disk: str = "", snapshot: str = "") -> m.GetDiskInfoResponse:
        """A disk of a machine: the first one, or that of an id."""
        return await self.provider.get_disk_info(m.GetDiskInfoRequest(vm_id=machine.id, disk_id=disk, snapshot_id=snapshot))

    async def expect_power(self, machine: CaseMachine, state: str) -> None:
        """Wait a moment for a power state. Raises `ConformanceFailure` if it does not come."""

        async def observed() -> str:
            return (await self.describe(machine)).power_state

        await self.expect(f"the power state of {machine.id}", observed, state)

    async def expect(self, what: str, observe: Callable[[], Awaitable[Any]], wanted: Any) -> None:
        """Wait a moment for a value. Raises `ConformanceFailure` if it does not come."""
        end = self._now() + self.settings.settle_seconds
        while (found := await observe()) != wanted:
            if self._now() >= end:
                raise ConformanceFailure(f"{what} is {found!r}", why=f"it must be {wanted!r}")
            await asyncio.sleep(self.settings.poll_seconds)

    def check(self, condition: object, what: str, why: str = "") -> None:
        """Raise `ConformanceFailure` unless the condition holds."""
        if not condition:
            raise ConformanceFailure(what, why=why)

    def skip(self, reason: str) -> CaseNotApplicable:
        """The error that ends a case without a verdict."""
        return CaseNotApplicable(reason)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # --- cleaning up ------------------------------------------------------------------------------------------------------

    async def clean_up(self) -> list[str]:
        """Delete the machines that the case made, and return those that are still there."""
        ids, names, left = self._ids, self._names, []
        self._ids, self._names = set(), set()
        try:
            # A create that failed or was lost may have made a machine of one of our names.
            ids |= {each.id for each in await self.find(lambda each: each.name in names)}
        except PaddockError as error:
            left.append(f"machines named {self.run}-*, if there are any: {error}")
        for each in sorted(ids):
            try:
                await self._remove(each)
            except PaddockError as error:
                left.append(f"machine {each}: {error}")
        return left

    def remove_transfers(self) -> list[str]:
        """Remove the exported files, if the suite can see them, and return what it could not remove."""
        folder = self.settings.transfer_directory
        if not folder or not Path(folder, self.run).exists():
            return []
        try:
            shutil.rmtree(Path(folder, self.run))
        except OSError as error:
            return [f"exports in {error.filename}: {error.strerror}"]
        return []

    async def _remove(self, id: str) -> None:
        try:
            response = await self.provider.delete(m.DeleteRequest(id=id))
        except ProviderError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return
            raise
        await self.finish("Delete", response.task)

        async def observed() -> bool:
            return (await self.provider.describe(m.DescribeRequest(id=id))).exists

        await self.expect(f"`exists` of machine {id} after Delete", observed, False)

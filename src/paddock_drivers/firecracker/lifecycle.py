"""Making and deleting machines: one for each owner, and none half made for long.

A create claims the name, then makes the files. A driver that ends between goes on when it starts again; a create that fails takes the
machine away, and gives imported disks back.
"""

import asyncio
import contextlib
import secrets

import msgspec

from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock_drivers.firecracker import configuration, machinespecs
from paddock_drivers.firecracker.building import MicroVmBuilder
from paddock_drivers.firecracker.images import ImageIntake
from paddock_drivers.firecracker.machinespecs import AskedMicroVm
from paddock_drivers.firecracker.records import BUILDING, DELETING, READY, GuestRecord, MicroVmFolder, MicroVmRecord
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.firecracker.work import WorkBoard
from paddock_drivers.kit import description, refusals

CREATE, DELETE = "create", "delete"


class MicroVmLifecycle:
    def __init__(
        self, store: MicroVmStore, settings: FirecrackerSettings, runs: MicroVmRuns, images: ImageIntake, board: WorkBoard
    ) -> None:
        self._store = store
        self._settings = settings
        self._runs = runs
        self._images = images
        self._board = board
        self.builder = MicroVmBuilder(store, settings)

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        found = description.of_create(request)
        token = secrets.token_hex(6)
        asked = machinespecs.asked(found, self._settings, token)
        if asked.url:
            image = await self._images.fetched(found.image)
            asked = msgspec.structs.replace(asked, origin=msgspec.structs.replace(asked.origin, image=image))
        async with self._store.naming:
            there = await asyncio.to_thread(self._existing, request)
            record = there if there is not None else await asyncio.to_thread(self._claimed, request, found, asked, token)
        task = None
        if record.state == BUILDING:
            task = await self._board.run(f"{CREATE}:{record.id}", lambda: self.build(record.id, guest_of(found)))
        return m.CreateResponse(id=record.id, task=task)

    def _existing(self, request: m.CreateRequest) -> MicroVmRecord | None:
        """The owner's machine, or that of an equal request without an owner; raises Conflict for a name of others."""
        owner = request.owner.uid if request.owner is not None else ""
        if owner and (mine := self._store.owned(owner)) is not None:
            return _usable(mine[1])
        record = self._store.folder(request.name).read()
        if record is None:
            return None
        if not owner and not record.owner and record.request and record.request == description.digest(request):
            return _usable(record)
        raise refusals.conflict(f"machine {request.name} exists and belongs to another owner", fix="choose another name")

    def _claimed(self, request: m.CreateRequest, machine_description: MachineDescription, asked: AskedMicroVm, token: str) -> MicroVmRecord:
        origin = self.builder.resolved(asked.origin)
        self.builder.kernel(origin)
        for nic in asked.spec.nics:
            self._runs.network.check(nic.bridge)
        owner = request.owner or m.ObjectIdentity()
        guest = guest_of(machine_description)
        limited = (
            ("mmds: the user data is too large for it; guests read the NoCloud disk",) if configuration.has_large_metadata(guest) else ()
        )
        record = MicroVmRecord(
            name=machine_description.name,
            token=token,
            owner=owner.uid,
            namespace=owner.namespace,
            request="" if owner.uid else description.digest(request),
            origin=origin,
            spec=asked.spec,
            user=self.free_user(),
            tags=machine_description.tags,
            limitations=(*asked.limitations, *(limited if asked.spec.mmds else ())),
        )
        self._store.claim(record).write_guest(guest)
        return record

    def free_user(self) -> int:
        """Return a user that no machine has; 0 when VMMs run as the driver."""
        if not self._settings.users:
            return 0
        used = {record.user for _, record in self._store.every()}
        found = next((each for each in self._settings.users if each not in used), 0)
        if not found:
            raise refusals.conflict("there is no free user for another machine", fix="widen PROVIDER_FIRECRACKER_USERS")
        return found

    async def build(self, id: str, guest: GuestRecord | None = None) -> None:
        """Make a machine's files, or what is missing of them."""
        async with self._store.lock(id.partition("/")[0]):
            found = self._store.find(id)
            if found is None or found[1].state != BUILDING:
                return
            folder, record = found
            try:
                if guest is not None:
                    folder.write_guest(guest)
                await self.builder.build(folder, record)
            except Exception:
                await self.undo(folder, record)
                raise

    async def undo(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Take away a machine that could not be made."""
        with contextlib.suppress(Exception):
            await asyncio.to_thread(self.builder.give_back, folder, record)
            await asyncio.to_thread(self._store.remove, folder)

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks and snapshots. One that is gone is deleted."""
        if self._store.find(request.id) is None:
            return m.TaskResponse()
        task = await self._board.run(f"{DELETE}:{request.id}", lambda: self.remove(request.id))
        return m.TaskResponse(task=task)

    async def remove(self, id: str) -> None:
        """Delete a machine. Each step may be repeated."""
        async with self._store.lock(id.partition("/")[0]):
            found = self._store.find(id)
            if found is None:
                return
            folder, record = found
            if record.state != DELETING:
                # From here on nothing starts it, whoever looks.
                record = msgspec.structs.replace(record, state=DELETING)
                folder.write(record)
            await self._runs.stop(folder, record)
            await self._runs.remove_networks(record)
            await asyncio.to_thread(self._store.remove, folder)

    async def recover(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Go on where a driver before this one has ended."""
        if record.state == DELETING:
            self._board.start(f"{DELETE}:{record.id}", lambda: self.remove(record.id))
        elif record.state == BUILDING and record.origin.source:
            # The source may have changed since; whoever wanted the clone calls again.
            await asyncio.to_thread(self._store.remove, folder)
        elif record.state == BUILDING:
            self._board.start(f"{CREATE}:{record.id}", lambda: self.build(record.id))


def guest_of(description: MachineDescription) -> GuestRecord:
    """Return the documents for a guest."""
    networks = tuple(msgspec.structs.replace(each, name=each.name or f"nic{index}") for index, each in enumerate(description.networks))
    return GuestRecord(user_data=description.user_data, meta_data=description.meta_data, networks=networks)


def ready(record: MicroVmRecord) -> MicroVmRecord:
    """Return a machine that is complete; raises Unavailable for one that is being made or deleted."""
    if record.state == READY:
        return record
    raise refusals.retry_later(f"machine {record.name} is being {'made' if record.state == BUILDING else 'deleted'}")


def _usable(record: MicroVmRecord) -> MicroVmRecord:
    if record.state == DELETING:
        raise refusals.retry_later(f"machine {record.name} is being deleted")
    return record

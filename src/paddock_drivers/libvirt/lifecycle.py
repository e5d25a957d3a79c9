"""Creating and deleting machines.

The domain is defined first, under a UUID that follows from its owner, and marked as incomplete; then its disks are made, and the mark goes.
So libvirt itself keeps a second machine of an owner out, and a creation that was interrupted is found by the next create, or by a delete.
"""

import asyncio
import logging
from typing import Any

import libvirt
import msgspec

from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import cloudinit, description, refusals
from paddock_drivers.kit.cloudinit import GuestDocuments
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.libvirt import clonexml, definition, domainview, failures, machines, marks, snapshots, support
from paddock_drivers.libvirt.definition import DomainPlan
from paddock_drivers.libvirt.hypervisor import Hypervisor
from paddock_drivers.libvirt.identifiers import MachineGoal, MachineTask
from paddock_drivers.libvirt.machines import LibvirtDomain, MachineStore
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk
from paddock_drivers.libvirt.storageport import DomainDisk, MachineStorage, NamedMachine

_LOG = logging.getLogger(__name__)


class DomainCreation:
    """Creates machines, each in a task of the process that goes on when its call has waited long enough."""

    def __init__(self, store: MachineStore, storage: MachineStorage, hypervisor: Hypervisor) -> None:
        self._store = store
        self._storage = storage
        self._hypervisor = hypervisor
        self._settings = store.connection.settings
        self._work: dict[str, asyncio.Task[None]] = {}

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        given, digest = description.of_create(request), description.digest(request)
        uuid = marks.machine_uuid(_identity(request, digest))
        work = self._work.get(uuid)
        if work is None:
            existing = await self._existing(uuid, request, digest)
            if existing is not None and (existing.view.marks is None or existing.view.marks.complete):
                return m.CreateResponse(id=existing.uuid)
            work = self._work.get(uuid) or self._begin(uuid, given, request, digest)
        done, _ = await asyncio.wait({work}, timeout=self._settings.create_seconds)
        if not done:
            return m.CreateResponse(id=uuid, task=m.TaskRef(id=str(MachineTask(MachineGoal.CREATED, uuid))))
        await asyncio.shield(work)
        return m.CreateResponse(id=uuid)

    async def status(self, uuid: str) -> TaskProgress:
        """Judge a creation: by the work of this process, and by the machine when another process began it."""
        work = self._work.get(uuid)
        if work is not None and not work.done():
            return RUNNING
        found = await self._store.find(uuid)
        if found is not None and (found.view.marks is None or found.view.marks.complete):
            return DONE
        return failed("the machine was not created: the work was interrupted or failed; create it again")

    async def close(self) -> None:
        """End the work of this process; the next create of each machine goes on."""
        for work in self._work.values():
            work.cancel()
        await asyncio.gather(*self._work.values(), return_exceptions=True)

    def _begin(self, uuid: str, description: MachineDescription, request: m.CreateRequest, digest: str) -> "asyncio.Task[None]":
        work = asyncio.create_task(self._create(uuid, description, request, digest))
        self._work[uuid] = work

        def over(ended: "asyncio.Task[None]") -> None:
            self._work.pop(uuid, None)
            if not ended.cancelled() and ended.exception() is not None:
                _LOG.info("machine not created", extra={"machine": uuid, "problem": str(ended.exception())})

        work.add_done_callback(over)
        return work

    async def _existing(self, uuid: str, request: m.CreateRequest, digest: str) -> LibvirtDomain | None:
        """The machine that the owner has; raises Conflict when its name belongs to another one."""
        found = await self._store.find(uuid)
        if found is not None:
            return found
        named = await self._store.find(request.name)
        if named is None:
            return None
        mine = named.view.marks
        owner = request.owner.uid if request.owner is not None else ""
        if mine is not None and owner and mine.owner == owner:
            return named
        whose = f"belongs to {mine.namespace}/{mine.name}" if mine is not None and mine.name else "is not this owner's"
        what = f"machine {request.name} cannot be created"
        raise refusals.conflict(what, why=f"a domain of this name exists and {whose}", fix="rename the VirtualMachine, or adopt that one")

    async def _create(self, uuid: str, description: MachineDescription, request: m.CreateRequest, digest: str) -> None:
        async with self._store.changing(uuid):
            abilities = await self._hypervisor.abilities()
            support.check(description, abilities)
            description = _with_addresses(description, uuid, await self._hypervisor.cards(description.networks, self._settings.network))
            seed_content = self._seed(description, uuid)
            disks = tuple([definition.limited(each, description.hardware) for each in await self._storage.plan(description, uuid)])
            limits = support.limitations(description, abilities)
            marked = _marks(request, digest, disks, limits)
            # The first definition has no seed: its volume is made with the other disks.
            plan = DomainPlan(given=description, uuid=uuid, disks=disks, seed=None, marks=marked)
            await self._define(plan, definition.build(plan, abilities, self._settings))
            try:
                await self._storage.make(disks)
                seed = await self._stored_seed(description, uuid, seed_content)
                await self._finish(msgspec.structs.replace(plan, seed=seed), abilities)
            except (ProviderError, asyncio.CancelledError) as error:
                if isinstance(error, ProviderError):
                    await self._undo(uuid, disks)
                raise

    async def _stored_seed(self, description: MachineDescription, uuid: str, content: bytes) -> DomainDisk | None:
        machine = NamedMachine(description.name, uuid)
        return await self._storage.keep_seed(machine, description.placement.datastore, content) if content else None

    async def _define(self, plan: DomainPlan, text: str) -> None:
        def work(conn: Any) -> None:
            try:
                conn.defineXML(text)
            except libvirt.libvirtError as error:
                if "already exists with uuid" in str(error):
                    why = "a domain of this name was defined meanwhile"
                    raise refusals.conflict(f"machine {plan.given.name} cannot be created", why=why) from error
                raise

        await self._store.connection.run(work)

    async def _finish(self, plan: DomainPlan, abilities: Any) -> None:
        complete = msgspec.structs.replace(plan.marks, state="")
        if plan.seed is not None:
            complete = complete.with_disk(MarkedDisk(marks.SEED_DISK, plan.seed.path, plan.seed.bytes))
        done = msgspec.structs.replace(plan, marks=complete)
        await self._define(done, definition.build(done, abilities, self._settings))

    def _seed(self, description: MachineDescription, uuid: str) -> bytes:
        documents = GuestDocuments(
            instance=uuid,
            hostname=description.name,
            networks=description.networks,
            user_data=description.user_data,
            meta_data=description.meta_data,
        )
        return cloudinit.image(documents) if cloudinit.wanted(documents) else b""

    async def _undo(self, uuid: str, disks: tuple[DomainDisk, ...]) -> None:
        """Leave nothing of a machine that could not be made. What cannot be removed now is found by the next create."""
        try:
            await self._storage.delete([each.path for each in disks if each.own and not each.imported])
            await self._store.connection.run(undefine, uuid)
        except ProviderError as error:
            _LOG.warning("incomplete machine left behind", extra={"machine": uuid, "problem": str(error)})


class DomainDeletion:
    """Deletes machines with the disks that the driver gave them."""

    def __init__(self, store: MachineStore, storage: MachineStorage) -> None:
        self._store = store
        self._storage = storage

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks. One that is gone is deleted.

        The disks go before the domain, which names them: a deletion that was interrupted can be repeated.
        """
        machine = await self._store.find(request.id)
        if machine is None:
            # Somebody may have undefined the domain, and left its disks.
            await self._storage.delete_left(request.id, request.owner.name if request.owner is not None else "")
            return m.TaskResponse()
        machines.check_owner(machine.view, request.owner)
        async with self._store.changing(machine.uuid):
            await self._store.connection.run(stop, machine.uuid)
            # What a foreign machine had is its owner's.
            known = machine.inactive.marks
            paths = [each.path for each in known.disks if each.own] if known is not None else []
            await self._storage.delete(paths)
            if known is not None and not known.complete and (source := known.notes.get(clonexml.CLONED_FROM)):
                await self._store.connection.run(snapshots.remove, source, clonexml.snapshot_of(machine.uuid))
            await self._store.connection.run(undefine, machine.uuid)
        return m.TaskResponse()


def undefine(conn: Any, uuid: str) -> None:
    """Undefine a domain with all that libvirt keeps for it. One that is gone is undefined. In a thread."""
    domain = machines.lookup(conn, uuid)
    if domain is None:
        return
    flags = (
        libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
        | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
        | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
        | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
    )
    # Older daemons, and the driver for tests, know fewer.
    for each in (flags, libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA, 0):
        try:
            domain.undefineFlags(each)
        except libvirt.libvirtError as error:
            if failures.code_of(error) == failures.NO_DOMAIN:
                return
            if each and failures.code_of(error) in (failures.NO_SUPPORT, failures.ARGUMENT_UNSUPPORTED, failures.INVALID_ARG):
                continue
            raise
        return


def stop(conn: Any, uuid: str) -> None:
    """End a domain at once. One that is off, or gone, has ended. In a thread."""
    domain = machines.lookup(conn, uuid)
    try:
        if domain is not None and domain.isActive():
            domain.destroy()
    except libvirt.libvirtError as error:
        if failures.code_of(error) not in (failures.NO_DOMAIN, failures.OPERATION_INVALID):
            raise


def _identity(request: m.CreateRequest, digest: str) -> str:
    """Return the text that a machine's UUID follows from: its owner, or the request of nobody."""
    owner = request.owner.uid if request.owner is not None else ""
    return owner or f"{request.name}/{digest}"


def _with_addresses(description: MachineDescription, uuid: str, cards: tuple[NetworkPayload, ...]) -> MachineDescription:
    """The machine with the MAC address of each card, by which the guest's documents name it."""
    made = (
        msgspec.structs.replace(nic, mac_address=definition.mac_of(uuid, index, nic.mac_address), model=nic.model.lower())
        for index, nic in enumerate(cards)
    )
    return msgspec.structs.replace(description, networks=tuple(made))


def _marks(request: m.CreateRequest, digest: str, disks: tuple[DomainDisk, ...], limits: tuple[str, ...]) -> MachineMarks:
    owner = request.owner or m.ObjectIdentity()
    notes = {"tags": ",".join(request.tags)} if request.tags else {}
    if request.user_data:
        notes[marks.DOCUMENTS] = marks.documents_digest(marks.machine_uuid(_identity(request, digest)), request.user_data)
    return MachineMarks(
        owner=owner.uid,
        namespace=owner.namespace,
        name=owner.name,
        request=digest,
        state=marks.INCOMPLETE,
        disks=tuple(MarkedDisk(each.name, each.path, each.bytes, each.own) for each in disks),
        limitations=limits,
        notes=notes,
    )


def is_complete(view: domainview.DomainView) -> bool:
    """Return whether a machine may be started and changed."""
    return view.marks is None or view.marks.complete

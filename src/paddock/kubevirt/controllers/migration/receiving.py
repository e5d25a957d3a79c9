"""The target of a migration from another server.

    WaitingForSync  a source may ask; what is missing is what it hears
    Running         QEMU waits for the guest, or has it and waits until its source lets it run
    the end         `arrival.json` of the machine says so, or what was kept of it

A source that goes before its guest is whole has kept it, so it is dropped here. One that goes afterwards has a minute to come back.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from paddock.base.errors import PaddockError
from paddock.engine.machine.directory import UnreadableState
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.livetarget import ReceiveRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubevirt.controllers.migration.liveparts import VMIS, LiveParts, LiveSubject
from paddock.kubevirt.controllers.migration.peers import PeerConnection, PeerReply, PeerRequest
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.prerequisites import MissingPrerequisite
from paddock.kubevirt.plan.machine import fencing
from paddock.kubevirt.plan.machine.receivers import TARGET
from paddock.kubevirt.plan.migration import decentralized
from paddock.kubevirt.plan.migration.decentralized import PeerFacts
from paddock.kubevirt.plan.migration.steps import FINAL

# A source whose connection is gone may be starting again.
PATIENCE_SECONDS = 60.0
_LOST = "the guest did not arrive: its source, or this server, ended meanwhile"
_CALLED_OFF = "the source called the migration off"
Admit = Callable[[VirtualMachineInstance], Awaitable[QemuMachine]]


class LiveReceiver:
    """Receives guests of other servers.

    `admit` prepares the machine of an instance once more, and raises `MissingPrerequisite`; `request` asks for a reconcile of a migration.
    """

    def __init__(self, parts: LiveParts, addresses: list[str], admit: Admit, request: Callable[[Key], None]) -> None:
        self._parts, self._addresses, self._admit, self._request = parts, addresses, admit, request
        # the sources that this process is connected with, by the UID of the migration
        self._sources: dict[str, PeerFacts] = {}
        self._refused: dict[str, str] = {}
        self._expiring: dict[str, asyncio.Task[None]] = {}

    def forget(self, uid: str) -> None:
        """Drop what is known of a migration that is gone or over."""
        self._refused.pop(uid, None)
        if (task := self._expiring.pop(uid, None)) is not None:
            task.cancel()

    def close(self) -> None:
        for uid in tuple(self._expiring):
            self.forget(uid)

    # --- the migration ----------------------------------------------------------------------------------------------------

    async def work(self, live: LiveSubject) -> Outcome:
        """Bring a migration a step on."""
        state, refused = self._state(live), self._refused.get(live.uid, "")
        step = decentralized.arrival_step(live.phase, state, deleting=live.seen.meta.deleting, refused=bool(refused))
        if step == "begin":
            return await self._begin(live)
        if step == "wait":
            if live.instance is None:
                return await self._fail(live, "the instance does not exist any more")
            await self._parts.block(live, decentralized.WAITS)
            return DONE
        if step == "follow":
            return await self._follow(live)
        if step == "drop":
            if live.machine is not None:
                await live.machine.drop_arrival(live.id)
            return again(0.1)
        if step == "succeed":
            return await self._succeed(live)
        deleted = "the migration was deleted" if live.seen.meta.deleting else ""
        return await self._fail(live, deleted or refused or (_CALLED_OFF if state == "dropped" else _LOST))

    def _state(self, live: LiveSubject) -> str:
        """Return what the files say of the guest: waiting, taken, dropped, or nothing. Raises `UnreadableState`: nobody can tell."""
        arrival = live.machine.arrival if live.machine is not None else None
        if arrival is not None and arrival.migration == live.id:
            return arrival.state
        # An ID that has ended before is none of a migration that is new.
        return self._parts.machines.migrations.state("target", live.id) if live.phase else ""

    async def _begin(self, live: LiveSubject) -> Outcome:
        decided = self._parts.machines.migrations.state("target", live.id)
        why = decentralized.obstacle(live.migration, live.instance, self._parts.others(live), decided)
        same = self._parts.by_id("target", live.id)
        if any(seen.meta.uid != live.uid and self._parts.subject(seen).phase not in ("", *FINAL) for seen in same):
            why = why or f"another migration here waits for {live.id}"
        if why:
            return await self._fail(live, why)
        if await self._parts.put_on_finalizer(live.seen):
            return DONE
        addresses = {"synchronizationAddresses": self._addresses}
        status = decentralized.entered(live.migration.status, decentralized.WAITING, self._parts.now(), **addresses)
        await self._parts.write(live, status)
        return DONE

    async def _follow(self, live: LiveSubject) -> Outcome:
        """The guest is on its way, or waits here."""
        if live.phase in decentralized.BEGINNING:
            source = self._sources.get(live.uid, PeerFacts())
            state = decentralized.begun(live.uid, source, self._parts.facts(live), self._parts.now())
            await self._parts.write_instance(live, state)
            status = decentralized.entered(live.migration.status, decentralized.RUNNING, self._parts.now(), migrationState=to_data(state))
            await self._parts.write(live, status)
        if live.uid not in self._sources and live.uid not in self._expiring:
            self._expiring[live.uid] = asyncio.create_task(self._expire(live), name=f"migration {live.seen.key}")
        if live.machine is not None and not live.machine.observed.live:
            await live.machine.drop_arrival(live.id)
            return again(0.1)
        return DONE

    async def _expire(self, live: LiveSubject) -> None:
        """A source that has not come back by then finds its guest dropped, and goes on with it."""
        await asyncio.sleep(PATIENCE_SECONDS)
        if live.machine is not None and live.uid not in self._sources:
            with contextlib.suppress(PaddockError):
                await live.machine.drop_arrival(live.id)
        self._request(live.seen.key)

    async def _succeed(self, live: LiveSubject) -> Outcome:
        """The guest is this server's. Its machine may be started here like any other."""
        if (above := await self._parts.machine_above(live)) is not None and fencing.reason(above.metadata.annotations):
            await self._parts.change_machine(above, {"metadata": {"annotations": {fencing.FENCE: None}}})
        await self._own(live)
        await self._parts.finish(self._parts.subject(live.seen))
        self.forget(live.uid)
        return DONE

    async def _own(self, live: LiveSubject) -> None:
        """The instance is a receiver no more."""
        annotations = live.instance.metadata.annotations if live.instance is not None else None
        if live.there is None or TARGET not in (annotations or {}):
            return
        change = merge_patch({"metadata": {"annotations": {TARGET: None}, "uid": live.there.meta.uid}})
        with contextlib.suppress(NotFound):
            self._parts.caches.instances.expectations.wrote(
                CachedObject.of(await self._parts.client.patch_raw(VMIS, live.there.key, change))
            )

    async def _fail(self, live: LiveSubject, why: str) -> Outcome:
        await self._parts.finish(live, why)
        self.forget(live.uid)
        return DONE

    # --- the source -------------------------------------------------------------------------------------------------------

    async def serve(self, request: PeerRequest, connection: PeerConnection) -> None:
        """Answer a source, and see to its guest while it is connected."""
        if request.verb == "take":
            await connection.send(PeerReply(yes=await self._take(request.migration)))
        elif request.verb == "drop":
            await connection.send(PeerReply(yes=await self._drop(request.migration, request.why)))
        else:
            await self._receive(request, connection)

    async def _take(self, migration: str) -> bool:
        """Whether the guest is ours. Raises `Unanswered` while nobody knows."""
        if (machine := self._machine(migration)) is not None:
            taken = await machine.take(migration)
        elif not (state := self._parts.machines.migrations.state("target", migration)):
            what = f"cannot tell what became of migration {migration}"
            raise Unanswered(what, why="this server knows nothing of it", fix="look at both servers, and delete one machine")
        else:
            taken = state == "taken"
        self._wake(migration)
        return taken

    async def _drop(self, migration: str, why: str) -> bool:
        dropped = True
        for seen in self._parts.by_id("target", migration):
            if self._parts.subject(seen).phase not in FINAL:
                self._refused.setdefault(seen.meta.uid, f"{_CALLED_OFF}: {why}" if why else _CALLED_OFF)
        if (machine := self._machine(migration)) is not None:
            dropped = await machine.drop_arrival(migration)
        self._wake(migration)
        return dropped

    def _machine(self, migration: str) -> QemuMachine | None:
        """Return the machine that the guest of a migration came, or comes, to."""
        for machine in self._parts.machines:
            with contextlib.suppress(UnreadableState):
                if (arrival := machine.arrival) is not None and arrival.migration == migration:
                    return machine
        return None

    def _wake(self, migration: str) -> None:
        for seen in self._parts.by_id("target", migration):
            self._request(seen.key)

    async def _receive(self, request: PeerRequest, connection: PeerConnection) -> None:
        found = self._waiting(request)
        if isinstance(found, PeerReply):
            await connection.send(found)
            return
        self._sources[found.uid] = request.source
        try:
            reply, machine = await self._accepted(found, request, connection.address)
            if reply.is_final:
                self._refused[found.uid] = reply.problem
            self._request(found.seen.key)
            await connection.send(reply)
            if machine is not None:
                await self._stay(machine, found.id, connection)
        finally:
            self._sources.pop(found.uid, None)
            self._request(found.seen.key)

    def _waiting(self, request: PeerRequest) -> LiveSubject | PeerReply:
        """Return the migration that waits for this source, or why there is none."""
        subjects = [self._parts.subject(seen) for seen in self._parts.by_id("target", request.migration)]
        live = next((each for each in subjects if each.phase == decentralized.WAITING), None)
        if live is None and any(each.phase in FINAL for each in subjects):
            return PeerReply(f"migration {request.migration} has ended there already", is_final=True)
        if live is None or live.seen.meta.deleting:
            return PeerReply(f"no VirtualMachineInstanceMigration there waits for migration {request.migration}")
        if live.uid in self._sources:
            return PeerReply("another source is connected for it")
        return live

    async def _accepted(self, live: LiveSubject, request: PeerRequest, address: str) -> tuple[PeerReply, QemuMachine | None]:
        """Have a QEMU wait for the guest; the machine, if it does."""
        if live.instance is None or request.guest is None:
            return PeerReply("its instance is not there"), None
        try:
            machine = await self._admit(live.instance)
        except MissingPrerequisite as missing:
            return PeerReply(missing.blocker.message), None
        credentials = self._parts.credentials("target")
        trusting = credentials.trusting(request.authority.encode())
        try:
            listens = await machine.receive(ReceiveRequest(live.id, request.guest, trusting, address))
        except RequestRefused as error:
            return PeerReply(error.why or str(error), is_final=error.reason == "NotReceivable"), None
        except PaddockError as error:
            with contextlib.suppress(PaddockError):
                await machine.drop_arrival(live.id)
            return PeerReply(str(error), is_final=True), None
        reply = PeerReply(address=listens, authority=credentials.authority.decode(), target=self._parts.facts(live))
        return reply, machine

    async def _stay(self, machine: QemuMachine, migration: str, connection: PeerConnection) -> None:
        """Tell the source when its guest is here. Drop a guest that is not whole when its source goes."""
        arrived = asyncio.create_task(machine.arrived(migration))
        gone = asyncio.create_task(connection.gone())
        try:
            await asyncio.wait((arrived, gone), return_when=asyncio.FIRST_COMPLETED)
            if not arrived.done():
                await machine.drop_arrival(migration)
                return
            error = arrived.exception()
            await connection.send(PeerReply(yes=error is None, problem=str(error or "")))
            await gone
        finally:
            for task in (arrived, gone):
                task.cancel()
            await asyncio.gather(arrived, gone, return_exceptions=True)

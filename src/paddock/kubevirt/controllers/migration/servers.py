"""The controller of migrations between servers: each migration is its source's or its target's."""

from collections.abc import Callable
from typing import Protocol

from paddock.engine.machine.machines import Machines
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.migration.controller import COMPONENT, INSTANCES, MIGRATIONS, NAMESPACES, POLICIES, MigrationCaches
from paddock.kubevirt.controllers.migration.liveparts import BY_INSTANCE, LiveParts, LiveSubject, PeerAccess
from paddock.kubevirt.controllers.migration.peers import Serve
from paddock.kubevirt.controllers.migration.receiving import Admit, LiveReceiver
from paddock.kubevirt.controllers.migration.sending import LiveSender
from paddock.kubevirt.plan.migration import decentralized
from paddock.kubevirt.plan.migration.steps import FINAL


class ListeningPort(Protocol):
    """A place at which other servers ask."""

    @property
    def addresses(self) -> list[str]:
        """What others write as `connectURL`."""

    def serve(self, serve: Serve) -> None:
        """Answer with this from now on."""

    async def close(self) -> None: ...


class MigrationDoor:
    """The way to other servers, and their way here. It is closed after the controllers."""

    def __init__(self, port: ListeningPort, peer_access: PeerAccess) -> None:
        self.port, self.access = port, peer_access
        self._ends: list[Callable[[], None]] = []

    def on_close(self, *ends: Callable[[], None]) -> None:
        """Call these before the port is closed."""
        self._ends += ends

    async def close(self) -> None:
        for end in self._ends:
            end()
        await self.port.close()


class ServerMigrationReconciler(KindReconciler):
    """Brings migrations between servers on."""

    def __init__(self, migrations: Informer, parts: LiveParts, sender: LiveSender, receiver: LiveReceiver) -> None:
        super().__init__(migrations)
        self._parts, self._sender, self._receiver = parts, sender, receiver
        # what is remembered of those that were seen
        self._uids: dict[Key, str] = {}

    async def forget(self, key: Key) -> None:
        """Drop what is known of a migration that is gone."""
        if (uid := self._uids.pop(key, None)) is not None:
            self._sender.forget(uid)
            self._receiver.forget(uid)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Call a migration off that is deleted, if that is still possible, and see it to its end."""
        return await self._bring_on(self._parts.subject(seen))

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one migration a step on."""
        return await self._bring_on(self._parts.subject(seen))

    async def _bring_on(self, live: LiveSubject) -> Outcome:
        side = decentralized.side_of(live.migration.spec)
        if not side:
            return DONE
        self._uids[live.seen.key] = live.uid
        if live.phase in FINAL:
            await self._parts.let_go(live.seen)
            return DONE
        return await (self._sender if side == "source" else self._receiver).work(live)


def wire(program: ControllerManager, machines: Machines, door: MigrationDoor, admit: Admit) -> Controller:
    """Add the controller to a program. `admit` prepares the machine of an instance that waits for a guest."""
    caches = MigrationCaches(*(program.informers.of(each) for each in (MIGRATIONS, INSTANCES, POLICIES, NAMESPACES)))
    parts = LiveParts(program.client, caches, machines, program.machinery, program.recorder.voice(COMPONENT), door.access)
    waiting: list[Controller] = []

    def request(key: Key) -> None:
        for each in waiting:
            each.offer(key)

    addresses = door.port.addresses
    sender, receiver = LiveSender(parts, addresses, request), LiveReceiver(parts, addresses, admit, request)
    reconciler = ServerMigrationReconciler(caches.migrations, parts, sender, receiver)
    controller = Controller(
        "servermigration", caches.migrations, reconciler.reconcile, machinery=program.machinery, recorder=program.recorder
    )
    waiting.append(controller)

    def of_instance(key: Key) -> list[Key]:
        return [each.key for each in caches.migrations.cache.by(BY_INSTANCE, str(key))]

    controller.watch(caches.instances, lambda change: of_instance(change.seen.key))

    def changed(machine: str) -> None:
        for seen in caches.instances.cache.by("uid", machine):
            for key in of_instance(seen.key):
                controller.offer(key)

    machines.listen(changed)
    door.port.serve(receiver.serve)
    door.on_close(sender.close, receiver.close)
    program.add(controller)
    return controller

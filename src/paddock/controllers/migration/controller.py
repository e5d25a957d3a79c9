"""A migration needs a second host. It is accepted, so that clients that make one get an answer, and fails at once and says why."""

from paddock.client.client import Client
from paddock.client.target import Data, Key, Target, declared
from paddock.dialects.kubevirt import instance, migration
from paddock.dialects.kubevirt.migration import VirtualMachineInstanceMigration
from paddock.meta import ages
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Controller, EventRecorder, Outcome
from paddock.runtime.informer import Informer
from paddock.runtime.kindreconciler import KindReconciler
from paddock.runtime.machinery import Machinery
from paddock.runtime.program import ControllerManager
from paddock.runtime.reference import reference
from paddock.runtime.statuses import StatusWriter

MIGRATIONS: Target[VirtualMachineInstanceMigration] = declared(migration.KINDS[0], VirtualMachineInstanceMigration)
INSTANCES: Target[Data] = declared(instance.KINDS[0], dict)
REASON = "single host"
_FINAL = ("Succeeded", "Failed")
# The source of events, as upstream names it.
COMPONENT = "virtualmachineinstancemigration-controller"


class MigrationReconciler(KindReconciler):
    """The controller of migrations."""

    def __init__(self, client: Client, caches: tuple[Informer, Informer], machinery: Machinery, recorder: EventRecorder) -> None:
        super().__init__(caches[0])
        self._migrations, self._instances = caches
        self._statuses = StatusWriter(client, MIGRATIONS, self._migrations.expectations)
        self._clock = machinery.clock
        self._recorder = recorder

    async def work(self, seen: CachedObject) -> Outcome:
        """Fail a migration that is new."""
        move = seen.read(MIGRATIONS)
        if move.status is not None and move.status.phase in _FINAL:
            return DONE
        name, now = move.spec.vmiName or "", ages.timestamp(self._clock.seconds())
        there = self._instances.cache.get(Key(seen.key.namespace, name))
        why = f"{REASON}: there is no other host to migrate to" if there is not None else f"VirtualMachineInstance {name} does not exist"
        state = {"migrationUid": seen.meta.uid, "completed": True, "failed": True, "failureReason": why, "endTimestamp": now}
        phases = [{"phase": phase, "phaseTransitionTimestamp": now} for phase in ("Pending", "Failed")]
        status = {"phase": "Failed", "migrationState": state, "phaseTransitionTimestamps": phases}
        if await self._statuses.write(seen, status) is None:
            return DONE
        note = f"VirtualMachineInstance migration uid {seen.meta.uid} failed. reason: {why}"
        self._recorder.tell(reference(MIGRATIONS, seen.meta), "Warning", "FailedMigration", note)
        if there is not None:
            self._recorder.tell(reference(INSTANCES, there.meta), "Warning", "FailedMigration", note)
        return DONE


def wire(program: ControllerManager) -> Controller:
    """The controller, wired to a program."""
    caches = (program.informers.of(MIGRATIONS), program.informers.of(INSTANCES))
    migrations = MigrationReconciler(program.client, caches, program.machinery, program.recorder.voice(COMPONENT))
    controller = Controller("migration", caches[0], migrations.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.watch(caches[1], lambda change: ())
    program.add(controller)
    return controller

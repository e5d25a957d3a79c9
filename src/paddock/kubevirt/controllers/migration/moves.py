"""The controller of migrations between the nodes of simulated guests: nothing is sent, so that a move is a change of objects.

The instance is written first. A step that is repeated after a sudden end writes the same.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.engine.simulated import behaviour
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.migration.controller import COMPONENT, MIGRATIONS
from paddock.kubevirt.kinds import instance
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.prerequisites import MissingPrerequisite
from paddock.kubevirt.plan.machine import migrations
from paddock.kubevirt.plan.migration import steps
from paddock.kubevirt.plan.migration.steps import MigrationView

INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
FINALIZER = "kubevirt.io/migrationJobFinalize"
# A node may have room, or be uncordoned, without an event that reaches a migration.
_PLACE_SECONDS = 2.0
Choose = Callable[[VirtualMachineInstance, Mapping[str, str]], str]


class MoveReconciler(KindReconciler):
    """Brings migrations between simulated nodes on."""

    def __init__(
        self, client: Client, caches: tuple[Informer, Informer], machinery: Machinery, recorder: EventRecorder, choose: Choose
    ) -> None:
        super().__init__(caches[0], ObjectFinalizer(client, FINALIZER))
        self._client = client
        self._migrations, self._instances = caches
        self._statuses = StatusWriter(client, MIGRATIONS, self._migrations.expectations)
        self._instance_statuses = StatusWriter(client, INSTANCES, self._instances.expectations)
        self._clock = machinery.clock
        self._recorder = recorder
        self._choose = choose
        # when the memory of each began to move, by the loop's clock
        self._begun: dict[Key, float] = {}

    async def forget(self, key: Key) -> None:
        """Drop what is known of a migration that is gone."""
        self._begun.pop(key, None)

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """One that is over has nothing to clear away, and one of volumes is not carried out here."""
        return _status(seen).get("phase") not in steps.FINAL and not _is_of_volumes(seen)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring a migration a step on."""
        if _is_of_volumes(seen):
            return DONE
        view, there = self._view(seen)
        if view.phase in steps.FINAL:
            await finalizers.take_off(self._client, MIGRATIONS, seen.meta, FINALIZER)
            return DONE
        now = ages.timestamp(self._clock.seconds())
        why = steps.obstacle(view)
        if there is None or why:
            return await self._enter(seen, there, view, steps.failed(view, why, now))
        moving = there.read(INSTANCES)
        if view.phase in ("", "Pending") and (moving.status is None or moving.status.phase != "Running"):
            # It begins when the instance runs.
            return again(_PLACE_SECONDS) if view.phase else await self._enter(seen, there, view, steps.following(view, now))
        target = ""
        if view.phase == "Scheduling":
            try:
                target = self._choose(moving, seen.read(MIGRATIONS).spec.addedNodeSelector or {})
            except MissingPrerequisite:
                return again(_PLACE_SECONDS)
        if view.phase == "Running" and (left := self._left(seen.key, moving)) > 0:
            return again(left)
        if view.phase == "Running" and (why := _behaviour(moving).migration_failure):
            return await self._enter(seen, there, view, steps.failed(view, why, now))
        return await self._enter(seen, there, view, steps.following(view, now, target))

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Abort a migration that is deleted while it is under way."""
        view, there = self._view(seen)
        if view.phase and view.phase not in steps.FINAL:
            now = ages.timestamp(self._clock.seconds())
            return await self._enter(seen, there, view, steps.failed(view, "the migration was deleted", now, aborted=True))
        await finalizers.take_off(self._client, MIGRATIONS, seen.meta, FINALIZER)
        return DONE

    def _left(self, key: Key, moving: VirtualMachineInstance) -> float:
        """Return the seconds that the memory of an instance still moves."""
        now = asyncio.get_running_loop().time()
        return self._begun.setdefault(key, now) + _behaviour(moving).migration - now

    def _view(self, seen: CachedObject) -> tuple[MigrationView, CachedObject | None]:
        name = seen.read(MIGRATIONS).spec.vmiName or ""
        there = self._instances.cache.get(Key(seen.key.namespace, name))
        return MigrationView(seen.meta.uid, _status(seen), orjson.loads(there.raw) if there is not None else None), there

    async def _enter(self, seen: CachedObject, there: CachedObject | None, view: MigrationView, status: Data) -> Outcome:
        """Write the next step; the watch brings the migration here again."""
        change = steps.instance_change(view, status)
        if change is not None and there is not None:
            await self._instance_statuses.write(there, change.status, labels=change.labels)
        if await self._statuses.write(seen, status) is not None and status["phase"] in steps.FINAL:
            self._begun.pop(seen.key, None)
            self._tell(seen, there, status)
        return DONE

    def _tell(self, seen: CachedObject, there: CachedObject | None, status: Data) -> None:
        state = status["migrationState"]
        if status["phase"] == "Failed":
            kind, reason, note = "Warning", "FailedMigration", f"VirtualMachineInstance migration failed: {state['failureReason']}"
        else:
            kind, reason = "Normal", "SuccessfulMigration"
            note = f"The VirtualMachineInstance migrated to node {state['targetNode']}."
        self._recorder.tell(reference(MIGRATIONS, seen.meta), kind, reason, note)
        if there is not None:
            self._recorder.tell(reference(INSTANCES, there.meta), kind, reason if kind == "Warning" else "Migrated", note)


def _is_of_volumes(seen: CachedObject) -> bool:
    return migrations.is_of_volumes(seen.read(MIGRATIONS))


def _status(seen: CachedObject) -> Data:
    return dict(orjson.loads(seen.raw).get("status") or {})


def _behaviour(moving: VirtualMachineInstance) -> behaviour.Behaviour:
    """Return what the annotations ask for. One without a meaning fails the migration."""
    try:
        return behaviour.read(moving.metadata.annotations or {})
    except ValueError as error:
        return msgspec.structs.replace(behaviour.Behaviour(), migration_failure=str(error))


def wire(program: ControllerManager, choose: Choose) -> Controller:
    """Add the controller to a program. `choose` names the node that an instance can move to."""
    caches = (program.informers.of(MIGRATIONS), program.informers.of(INSTANCES))
    recorder = program.recorder.voice(COMPONENT)
    moves = MoveReconciler(program.client, caches, program.machinery, recorder, choose)
    controller = Controller("nodemigration", caches[0], moves.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.watch(caches[1], lambda change: ())
    program.add(controller)
    return controller

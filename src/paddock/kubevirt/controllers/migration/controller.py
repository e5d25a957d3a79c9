"""Migrations. One to another node is accepted, so that clients that make one get an answer, and fails at once and says why.

One that moves volumes of a running machine is made here, and follows what the instance says of it:

    instance: VolumesChange is True  -->  migration Pending  -->  instance: migrationState  -->  Running  -->  Succeeded or Failed
"""

import contextlib
from typing import NamedTuple

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import holds
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import instance, migration, migrationpolicy
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.migration import MigrationPhaseTransition, MigrationStatus, VirtualMachineInstanceMigration
from paddock.kubevirt.kinds.migrationpolicy import MigrationPolicy
from paddock.kubevirt.kinds.status import MigrationState, VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance.volumemoves import CHANGE
from paddock.kubevirt.plan.machine import migrations
from paddock.kubevirt.plan.machine.runstrategy import life_of
from paddock.kubevirt.plan.migration import decentralized

MIGRATIONS: Target[VirtualMachineInstanceMigration] = declared(migration.KINDS[0], VirtualMachineInstanceMigration)
MIGRATION_DATA: Target[Data] = declared(migration.KINDS[0], dict)
INSTANCES: Target[Data] = declared(instance.KINDS[0], dict)
VMIS: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
POLICIES: Target[MigrationPolicy] = declared(migrationpolicy.KINDS[0], MigrationPolicy)
NAMESPACES = kind_target("", "Namespace")
BY_INSTANCE = "volume migrations of instances"
# The source of events, as upstream names it.
COMPONENT = "virtualmachineinstancemigration-controller"


class MigrationCaches(NamedTuple):
    migrations: Informer
    instances: Informer
    policies: Informer
    namespaces: Informer


class MigrationOthers(NamedTuple):
    """Whether somebody else carries migrations out: those between nodes, and those between servers."""

    nodes: bool = False
    servers: bool = False


class MigrationReconciler(KindReconciler):
    def __init__(
        self, client: Client, caches: MigrationCaches, machinery: Machinery, recorder: EventRecorder, others: MigrationOthers
    ) -> None:
        super().__init__(caches.migrations)
        self._others = others
        self._migrations, self._instances = caches.migrations, caches.instances
        self._policies, self._namespaces = caches.policies, caches.namespaces
        self._statuses = StatusWriter(client, MIGRATIONS, self._migrations.expectations)
        self._states = StatusWriter(client, VMIS, self._instances.expectations)
        self._client = client
        self._clock = machinery.clock
        self._recorder = recorder

    async def work(self, seen: CachedObject) -> Outcome:
        """Fail a migration that is new."""
        move = seen.read(MIGRATIONS)
        if migrations.is_final(move):
            return DONE
        if migrations.is_of_volumes(move):
            return await self._follow(seen, move)
        if self._others.servers if decentralized.side_of(move.spec) else self._others.nodes:
            return DONE
        name, now = move.spec.vmiName or "", ages.timestamp(self._clock.seconds())
        there = self._instances.cache.get(Key(seen.key.namespace, name))
        why = migrations.refusal(move, is_there=there is not None)
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

    async def _follow(self, seen: CachedObject, move: VirtualMachineInstanceMigration) -> Outcome:
        """Have the instance move its volumes, and say how far it is."""
        found = self._instances.expectations.latest(Key(seen.key.namespace, move.spec.vmiName or ""))
        if found is None or found.meta.deleting:
            with contextlib.suppress(NotFound):
                await self._client.delete(MIGRATIONS, seen.key, DeletionOptions(uid=seen.meta.uid))
            return DONE
        instance, now = found.read(VMIS), ages.timestamp(self._clock.seconds())
        status = instance.status or VirtualMachineInstanceStatus()
        state = status.migrationState
        if state is None or state.migrationUid != seen.meta.uid:
            if not holds(status.conditions, CHANGE):
                return DONE
            if life_of(instance).final:
                return DONE
            namespace = self._namespaces.cache.get(Key("", seen.key.namespace))
            policies = [each.read(POLICIES) for each in self._policies.cache]
            policy = migrations.chosen(policies, (namespace.meta.labels if namespace else None) or {}, found.meta.labels or {})
            state = migrations.begun(seen.meta.uid, status.nodeName or "", now, policy)
            written = await self._states.write(found, msgspec.structs.replace(status, migrationState=state))
            if written is None:
                return DONE
        if life_of(instance).final and not state.completed:
            state = migrations.ended(state, now)
        phase = "Running" if not state.completed else "Failed" if state.failed else "Succeeded"
        before = move.status or MigrationStatus()
        transitions = list(before.phaseTransitionTimestamps or ())
        for each in ("Pending", phase):
            if each not in [one.phase for one in transitions]:
                transitions.append(MigrationPhaseTransition(phase=each, phaseTransitionTimestamp=now))
        wanted = msgspec.structs.replace(before, phase=phase, migrationState=to_data(state), phaseTransitionTimestamps=transitions)
        if await self._statuses.write(seen, wanted) is not None and state.completed:
            self._tell(seen, found, state)
        return DONE

    def _tell(self, seen: CachedObject, instance: CachedObject, state: MigrationState) -> None:
        if state.failed:
            note = f"VirtualMachineInstance migration uid {seen.meta.uid} failed. reason: {state.failureReason}"
            kind, reason = "Warning", "FailedMigration"
        else:
            note, kind, reason = "The volumes of the VirtualMachineInstance are on their new claims.", "Normal", "VolumesMigrated"
        self._recorder.tell(reference(MIGRATIONS, seen.meta), kind, reason, note)
        self._recorder.tell(reference(INSTANCES, instance.meta), kind, reason, note)


class VolumeUpdateReconciler(KindReconciler):
    """Makes the migrations that move volumes, and deletes those that nobody needs."""

    def __init__(self, client: Client, caches: MigrationCaches, machinery: Machinery) -> None:
        super().__init__(caches.instances)
        self._client = client
        self._migrations = caches.migrations
        self._clock = machinery.clock

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring the migrations of one instance to what it needs."""
        instance = seen.read(VMIS)
        # One that was created a moment ago may not be in the cache.
        fresh = self._migrations.expectations.created_for(seen.meta.uid)
        found = [each.read(MIGRATIONS) for each in (*self._migrations.cache.by(BY_INSTANCE, str(seen.key)), *fresh)]
        plan = migrations.plan(instance, found, self._clock.seconds())
        for name in plan.delete:
            with contextlib.suppress(NotFound):
                await self._client.delete(MIGRATIONS, Key(seen.key.namespace, name))
        if plan.create:
            made = await self._client.create(MIGRATION_DATA, migrations.made(instance))
            self._migrations.expectations.wrote(CachedObject.from_data(made))
        return DONE if plan.again is None else again(plan.again)


def _of_instance(seen: CachedObject) -> tuple[str, ...]:
    """The instance whose volumes a migration moves."""
    move = seen.read(MIGRATIONS)
    return (str(Key(seen.key.namespace, move.spec.vmiName or "")),) if migrations.is_of_volumes(move) else ()


def wire(program: ControllerManager, others: MigrationOthers = MigrationOthers()) -> Controller:  # noqa: B008 - frozen
    """The controller, wired to a program."""
    caches = MigrationCaches(*(program.informers.of(each) for each in (MIGRATIONS, INSTANCES, POLICIES, NAMESPACES)))
    reconciler = MigrationReconciler(program.client, caches, program.machinery, program.recorder.voice(COMPONENT), others)
    controller = Controller("migration", caches.migrations, reconciler.reconcile, machinery=program.machinery, recorder=program.recorder)
    caches.migrations.cache.index(BY_INSTANCE, _of_instance)
    controller.watch(caches.instances, lambda change: [each.key for each in caches.migrations.cache.by(BY_INSTANCE, str(change.seen.key))])
    program.add(controller)
    updates = VolumeUpdateReconciler(program.client, caches, program.machinery)
    updater = Controller("volumeupdates", caches.instances, updates.reconcile, machinery=program.machinery, recorder=program.recorder)
    updater.watch(caches.migrations, lambda change: [Key(change.seen.key.namespace, change.seen.read(MIGRATIONS).spec.vmiName or "")])
    program.add(updater)
    return controller

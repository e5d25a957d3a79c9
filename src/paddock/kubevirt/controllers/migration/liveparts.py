"""What both sides of a migration between servers need: the objects, and how they are written."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from paddock.base.jsondata import Data
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.migration.controller import MIGRATIONS, MigrationCaches
from paddock.kubevirt.controllers.migration.peers import Dial, MakeCredentials
from paddock.kubevirt.kinds import instance, virtualmachine
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.migration import MigrationStatus, VirtualMachineInstanceMigration
from paddock.kubevirt.kinds.status import MigrationState, VirtualMachineInstanceStatus
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.instance.identity import launcher_uid
from paddock.kubevirt.plan.migration import decentralized
from paddock.kubevirt.plan.migration.decentralized import PeerFacts

VMIS: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
VMS: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
VM_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)
FINALIZER = "kubevirt.io/migrationJobFinalize"
BY_INSTANCE, BY_ID = "migrations between servers by instance", "migrations between servers by side and ID"


class PeerAccess(NamedTuple):
    """The way to other servers, and what this one shows on QEMU's lines to them."""

    dial: Dial
    credentials: MakeCredentials


class LiveSubject(NamedTuple):
    """A migration as it was seen, with its instance and machine, as far as they are there."""

    seen: CachedObject
    migration: VirtualMachineInstanceMigration
    there: CachedObject | None
    instance: VirtualMachineInstance | None
    machine: QemuMachine | None

    @property
    def uid(self) -> str:
        return self.seen.meta.uid

    @property
    def id(self) -> str:
        """The ID that both sides share."""
        return decentralized.id_of(self.migration.spec)

    @property
    def phase(self) -> str:
        return (self.migration.status.phase if self.migration.status is not None else "") or ""


class LiveParts:
    """The objects of migrations between servers."""

    def __init__(
        self,
        client: Client,
        caches: MigrationCaches,
        machines: Machines,
        machinery: Machinery,
        recorder: EventRecorder,
        peer_access: PeerAccess,
    ) -> None:
        self.client, self.caches, self.machines = client, caches, machines
        self.dial, self.credentials = peer_access
        self._clock, self._recorder = machinery.clock, recorder
        self._statuses = StatusWriter(client, MIGRATIONS, caches.migrations.expectations)
        self._states = StatusWriter(client, VMIS, caches.instances.expectations)
        caches.migrations.cache.index(BY_INSTANCE, _of_instance)
        caches.migrations.cache.index(BY_ID, _by_id)

    def now(self) -> str:
        return ages.timestamp(self._clock.seconds())

    def subject(self, seen: CachedObject) -> LiveSubject:
        """Return a migration with what it is about."""
        move = seen.read(MIGRATIONS)
        there = self.caches.instances.expectations.latest(Key(seen.key.namespace, move.spec.vmiName or ""))
        instance = there.read(VMIS) if there is not None else None
        machine = self.machines.get(there.meta.uid) if there is not None else None
        return LiveSubject(seen, move, there, instance, machine)

    def by_id(self, side: str, migration: str) -> list[CachedObject]:
        """Return the migrations of an ID on one side."""
        return self.caches.migrations.cache.by(BY_ID, f"{side} {migration}")

    def others(self, live: LiveSubject) -> Iterator[VirtualMachineInstanceMigration]:
        """Yield the other migrations of the instance."""
        place = str(Key(live.seen.key.namespace, live.migration.spec.vmiName or ""))
        for seen in self.caches.migrations.cache.by(BY_INSTANCE, place):
            if seen.meta.uid != live.uid:
                yield seen.read(MIGRATIONS)

    def facts(self, live: LiveSubject) -> PeerFacts:
        """Return what the other side learns of this one."""
        meta, instance = live.seen.meta, live.instance
        node = (instance.status.nodeName if instance is not None and instance.status is not None else "") or ""
        uid = (instance.metadata.uid if instance is not None else "") or ""
        pod = launcher_uid(instance) if instance is not None else ""
        return PeerFacts(node, meta.namespace or "", live.migration.spec.vmiName or "", uid, meta.uid, pod)

    async def put_on_finalizer(self, seen: CachedObject) -> bool:
        """Whether it was put on now, which brings the migration here again."""
        written = await finalizers.put_on(self.client, MIGRATIONS, seen.meta, FINALIZER)
        if written is not None:
            self.caches.migrations.expectations.wrote(written)
        return written is not None

    async def let_go(self, seen: CachedObject) -> None:
        """The migration is over, and may go."""
        await finalizers.take_off(self.client, MIGRATIONS, seen.meta, FINALIZER)

    async def write(self, live: LiveSubject, status: MigrationStatus) -> bool:
        """Write the status of a migration; return whether it changed."""
        return await self._statuses.write(live.seen, status) is not None

    async def write_instance(self, live: LiveSubject, state: MigrationState | None = None, blocked: str = "") -> None:
        """Write the state of the migration into its instance, and what blocks it."""
        if live.there is None or live.instance is None:
            return
        before = live.instance.status or VirtualMachineInstanceStatus()
        conditions = decentralized.failure_of_instance(before.conditions, blocked, self.now())
        status = msgspec.structs.replace(before, conditions=conditions, migrationState=state or before.migrationState)
        await self._states.write(live.there, status)

    async def block(self, live: LiveSubject, why: str) -> None:
        """Say what a migration waits for, in both objects."""
        if live.migration.status is not None and await self.write(live, decentralized.blocked(live.migration.status, why, self.now())):
            await self.write_instance(live, blocked=why)

    async def finish(self, live: LiveSubject, why: str = "") -> None:
        """Write the end of a migration into its instance and then into itself, with the events; `why`: it failed."""
        now, is_deleted = self.now(), live.seen.meta.deleting
        before = live.instance.status.migrationState if live.instance is not None and live.instance.status is not None else None
        known = before if before is not None and before.migrationUid == live.uid else decentralized.state_of(live.migration.status)
        state = decentralized.ended(known, live.uid, now, why, is_aborted=is_deleted)
        await self.write_instance(live, state)
        phase = decentralized.FAILED if why else decentralized.SUCCEEDED
        status = decentralized.entered(live.migration.status, phase, now, migrationState=to_data(state))
        if await self.write(live, decentralized.aborted(status, now) if is_deleted and why else status):
            self._tell(live, why)

    def _tell(self, live: LiveSubject, why: str) -> None:
        if why:
            kind, reason = "Warning", "FailedMigration"
            note = f"VirtualMachineInstance migration uid {live.uid} failed. reason: {why}"
        else:
            kind, reason, note = "Normal", "SuccessfulMigration", "Source node reported migration succeeded"
        self._recorder.tell(reference(MIGRATIONS, live.seen.meta), kind, reason, note)
        if live.there is not None:
            self._recorder.tell(reference(VMIS, live.there.meta), kind, reason if why else "Migrated", note)

    async def machine_above(self, live: LiveSubject) -> VirtualMachine | None:
        """Return the VirtualMachine of the instance, as it is stored now."""
        owners = (live.instance.metadata.ownerReferences if live.instance is not None else None) or ()
        name = next((each.name for each in owners if each.controller and each.kind == "VirtualMachine"), live.migration.spec.vmiName or "")
        return await self.client.find(VMS, Key(live.seen.key.namespace, name))

    async def change_machine(self, machine: VirtualMachine, change: Data) -> None:
        """Write a merge patch of a VirtualMachine; after it returned, it is stored."""
        metadata = {**change.get("metadata", {}), "uid": machine.metadata.uid}
        key = Key(machine.metadata.namespace or "", machine.metadata.name)
        try:
            await self.client.patch(VM_DATA, key, merge_patch({**change, "metadata": metadata}))
        except NotFound:
            return


def _of_instance(seen: CachedObject) -> tuple[str, ...]:
    move = seen.read(MIGRATIONS)
    return (str(Key(seen.key.namespace, move.spec.vmiName or "")),) if decentralized.side_of(move.spec) else ()


def _by_id(seen: CachedObject) -> tuple[str, ...]:
    move = seen.read(MIGRATIONS)
    side = decentralized.side_of(move.spec)
    return (f"{side} {decentralized.id_of(move.spec)}",) if side else ()

"""The controller of clones.

source -> snapshot (or the one that was named) -> restore to the target -> both are cleared away

The snapshot of a warm clone has the memory of the source, and is cleared away when the target's guest has gone on from there.
A clone that has succeeded goes with its target.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import DELETE, merge_patch
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import holds
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, EventRecorder, Outcome, owners
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.kindreconciler import ReportingReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.kinds import clone, instance, restore, snapshot, virtualmachine
from paddock.kubevirt.kinds.clone import VirtualMachineClone
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.snapshots import clones as plan
from paddock.kubevirt.plan.snapshots import forks, memory

CLONES: Target[VirtualMachineClone] = declared(clone.KINDS[0], VirtualMachineClone)
MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
SNAPSHOTS: Target[VirtualMachineSnapshot] = declared(snapshot.KINDS[0], VirtualMachineSnapshot)
INSTANCES: Target[Data] = declared(instance.KINDS[0], dict)
CONTENTS: Target[VirtualMachineSnapshotContent] = declared(snapshot.KINDS[1], VirtualMachineSnapshotContent)
RESTORES: Target[VirtualMachineRestore] = declared(restore.KINDS[0], VirtualMachineRestore)


class VirtualMachineClonePass(msgspec.Struct):
    """A clone, and how far it has come."""

    seen: CachedObject
    clone: VirtualMachineClone
    phase: str = ""
    why: str = ""


class CloneReconciler(ReportingReconciler[VirtualMachineClonePass]):
    def __init__(self, client: Client, informers: Informers, clock: Clock, recorder: EventRecorder) -> None:
        self._client = client
        self.clones = informers.of(CLONES)
        super().__init__(self.clones)
        self.machines = informers.of(MACHINES)
        self.snapshots = informers.of(SNAPSHOTS)
        self.restores = informers.of(RESTORES)
        self.instances = informers.of(INSTANCES)
        self._statuses = StatusWriter(client, CLONES, self.clones.expectations)
        self._clock = clock
        self._recorder = recorder

    async def begin(self, seen: CachedObject) -> VirtualMachineClonePass | Outcome:
        """Return a clone that is under way; clear away what one that has ended has made."""
        clone = seen.read(CLONES)
        if clone.status is not None and clone.status.phase in plan.FINAL:
            await self._clear(clone)
            if clone.status.phase == plan.SUCCEEDED and await self._is_gone(Key(seen.key.namespace, plan.target_name(clone))):
                await self._delete(CLONES.path(seen.key.namespace, seen.key.name))
            return DONE
        return VirtualMachineClonePass(seen, clone)

    async def act(self, clone_pass: VirtualMachineClonePass) -> Outcome:
        clone_pass.phase, clone_pass.why = await self._forward(clone_pass.clone)
        return DONE

    async def report(self, clone_pass: VirtualMachineClonePass, error: PaddockError | None) -> None:
        """Write the phase; an error leaves it where it is."""
        phase, why = clone_pass.phase, clone_pass.why
        if error is not None:
            phase, why = (clone_pass.clone.status.phase if clone_pass.clone.status is not None else None) or plan.SNAPSHOT, str(error)
        status = plan.status(clone_pass.clone, phase, ages.timestamp(self._clock.seconds()), why)
        if await self._statuses.write(clone_pass.seen, status) is not None and error is None:
            self._tell(clone_pass.seen, phase, why)

    async def _forward(self, clone: VirtualMachineClone) -> tuple[str, str]:
        """Go as far as possible; the phase it is in, and why when that needs words."""
        namespace = clone.metadata.namespace or ""
        restore = self.restores.cache.get(Key(namespace, plan.restore_name(clone)))
        if restore is None:
            if self.machines.cache.get(Key(namespace, plan.target_name(clone))) is not None:
                return plan.FAILED, f"a VirtualMachine {plan.target_name(clone)} is there already"
            return await self._begin(clone, namespace)
        status = restore.read(RESTORES).status
        if status is not None and status.complete:
            return await self._follow_guest(clone, namespace) if forks.is_wished(clone) else (plan.SUCCEEDED, "")
        if status is not None and holds(status.conditions, "Failure"):
            return plan.FAILED, next((each.message or each.reason or "" for each in status.conditions or () if each.type == "Failure"), "")
        return plan.RESTORE, ""

    async def _begin(self, clone: VirtualMachineClone, namespace: str) -> tuple[str, str]:
        snapshot = self.snapshots.cache.get(Key(namespace, plan.snapshot_name(clone)))
        if snapshot is None:
            if clone.spec.source.kind != "VirtualMachine":
                return plan.SNAPSHOT, f"waiting for VirtualMachineSnapshot {clone.spec.source.name}"
            source = self.machines.cache.get(Key(namespace, clone.spec.source.name))
            if source is None:
                return plan.SNAPSHOT, f"waiting for VirtualMachine {clone.spec.source.name}"
            if forks.is_wished(clone):
                self._note_identity(clone, msgspec.json.decode(source.raw))
            await self._create(SNAPSHOTS.path(namespace), plan.snapshot(clone, forks.NOTES if forks.is_wished(clone) else {}))
            return plan.SNAPSHOT, ""
        status = snapshot.read(SNAPSHOTS).status
        if status is not None and (status.phase == "Failed" or (status.phase == "Succeeded" and not status.readyToUse)):
            return plan.FAILED, (status.error.message if status.error is not None else None) or "the snapshot failed"
        if status is None or not status.readyToUse or not status.virtualMachineSnapshotContentName:
            return plan.SNAPSHOT, ""
        content = await self._client.find(CONTENTS, Key(namespace, status.virtualMachineSnapshotContentName))
        if content is None:
            return plan.FAILED, f"VirtualMachineSnapshotContent {status.virtualMachineSnapshotContentName} does not exist"
        copied, is_warm = content.spec.source.virtualMachine or {}, forks.is_wished(clone)
        await self._create(RESTORES.path(namespace), plan.restore(clone, copied, {forks.WISH: "true"} if is_warm else plan.COLD))
        if is_warm and clone.spec.source.kind != "VirtualMachine":
            self._note_identity(clone, copied)
        elif memory.is_in(content) and not is_warm:
            note = f"The memory in snapshot {plan.snapshot_name(clone)} is left out: the clone boots from its disks"
            self._recorder.tell(_about(clone), "Normal", "MemoryLeftOut", note)
        return plan.CREATING, ""

    async def _follow_guest(self, clone: VirtualMachineClone, namespace: str) -> tuple[str, str]:
        """Start the target of a warm clone, and wait until its guest has gone on: until then, its memory is that of the snapshot."""
        target = Key(namespace, plan.target_name(clone))
        machine = await self._client.find(MACHINES, target)
        if machine is None:
            return plan.FAILED, f"{target.name} was deleted before its guest went on"
        snapshot = await self._client.find(SNAPSHOTS, Key(namespace, plan.snapshot_name(clone)))
        name = snapshot.status.virtualMachineSnapshotContentName if snapshot is not None and snapshot.status is not None else None
        content = await self._client.find(CONTENTS, Key(namespace, name or ""))
        copied = (content.spec.source.virtualMachine if content is not None else None) or {}
        if (change := forks.start(msgspec.to_builtins(machine), copied)) is not None:
            await self._client.patch(MACHINES, target, merge_patch({"spec": change, "metadata": {"uid": machine.metadata.uid}}))
        instance = self.instances.cache.get(target)
        return forks.progress(instance.read(INSTANCES) if instance is not None else None)

    def _note_identity(self, clone: VirtualMachineClone, machine: Mapping[str, Any]) -> None:
        """Record what a warm clone will have in common with its source, before anything happens."""
        if note := forks.shared_identity(machine):
            self._recorder.tell(_about(clone), "Warning", "IdentityShared", note)

    async def _create(self, path: str, data: Data) -> None:
        try:
            await self._client.request("POST", path, body=msgspec.json.encode(data))
        except AlreadyExists:
            return

    async def _clear(self, clone: VirtualMachineClone) -> None:
        """Delete the intermediate objects of a clone. A snapshot that the user named stays."""
        namespace = clone.metadata.namespace or ""
        if self.restores.cache.get(Key(namespace, plan.restore_name(clone))) is not None:
            await self._delete(RESTORES.path(namespace, plan.restore_name(clone)))
        own = clone.spec.source.kind == "VirtualMachine"
        if own and self.snapshots.cache.get(Key(namespace, plan.snapshot_name(clone))) is not None:
            await self._delete(SNAPSHOTS.path(namespace, plan.snapshot_name(clone)))

    async def _is_gone(self, key: Key) -> bool:
        """Return whether there is no such machine; a new one may not be in the cache yet."""
        if self.machines.cache.get(key) is not None:
            return False
        return await self._client.find(MACHINES, key) is None

    async def _delete(self, path: str) -> None:
        try:
            await self._client.request("DELETE", path, body=msgspec.json.encode(DELETE.body()))
        except NotFound:
            return

    def _tell(self, seen: CachedObject, phase: str, why: str) -> None:
        if phase == plan.SUCCEEDED:
            self._recorder.tell(reference(CLONES, seen.meta), "Normal", "CloneSucceeded", "The machine has been cloned")
        elif phase == plan.FAILED:
            self._recorder.tell(reference(CLONES, seen.meta), "Warning", "CloneFailed", why)
        elif why:
            self._recorder.tell(reference(CLONES, seen.meta), "Normal", "SourceDoesNotExist", why)


def _about(clone: VirtualMachineClone) -> InvolvedObject:
    metadata = clone.metadata
    return InvolvedObject(CLONES.api_version, CLONES.kind, metadata.namespace or "", metadata.name, metadata.uid or "")


def wire(program: ControllerManager) -> None:
    """Add the controller to a program."""
    clones = CloneReconciler(program.client, program.informers, program.machinery.clock, program.recorder)
    controller = Controller("virtualmachineclones", clones.clones, clones.reconcile, machinery=program.machinery, recorder=program.recorder)
    for informer in (clones.snapshots, clones.restores):
        controller.watch(informer, owners(CLONES.group, CLONES.kind))
    for informer in (clones.machines, clones.snapshots, clones.instances):
        controller.watch(informer, lambda change: [each.key for each in clones.clones.cache.by("namespace", change.seen.key.namespace)])
    program.add(controller)

"""The controller: a VirtualMachineInstance and its machine, brought together one look at a time.

    instance        machine           what is done
    new             none              prepare (or say what is waited for), define, start
    wanted          live              carry out what changed in the spec; follow the guest
    going           live              stop it, with the grace that the instance gives it
    any             ended             say how it ended; then let go of what it held; then of the object

The machine's id is the instance's UID; what stays over starts (addresses, firmware variables, TPM) belongs to its owner's.
A machine without an instance is the sweeper's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from paddock.client.client import Client
from paddock.client.errors import Conflict, NotFound
from paddock.client.options import merge_patch
from paddock.client.target import Data, Key
from paddock.controllers.virtualmachineinstance.events import MachineEvents
from paddock.controllers.virtualmachineinstance.followers import Followers
from paddock.controllers.virtualmachineinstance.kinds import INSTANCES
from paddock.controllers.virtualmachineinstance.livechanges import LiveChanges
from paddock.controllers.virtualmachineinstance.observer import InstanceObserver
from paddock.controllers.virtualmachineinstance.preparer import Preparer
from paddock.controllers.virtualmachineinstance.prerequisites import MissingPrerequisite
from paddock.dialects.kubevirt.instance import OUTDATED, VirtualMachineInstance
from paddock.dialects.kubevirt.status import VirtualMachineInstanceStatus
from paddock.engine.engine import Engine
from paddock.engine.machine.machine import QemuMachine
from paddock.meta.conditions import holds
from paddock.plan.instance.observed import StartBlocker
from paddock.plan.instance.phases import FINAL, RUNNING, SUCCEEDED
from paddock.plan.instance.report import status_of
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.informer import Informer

HOLDS_INSTANCE = "kubevirt.io/foregroundDeleteVirtualMachine"
HOLDS_FOR_MACHINE = "kubevirt.io/virtualMachineControllerFinalize"
_NODE_LABEL = "kubevirt.io/nodeName"
_GRACE_SECONDS = 30
# A cache that has not heard of our own last write yet is looked at again this much later, should the event not come sooner.
_STALE_SECONDS = 1.0


@dataclass(frozen=True)
class ReconcilerParts:
    """What the controller works with."""

    preparer: Preparer
    followers: Followers
    changes: LiveChanges
    seeing: InstanceObserver
    telling: MachineEvents


class InstanceReconciler:
    """Reconciles VirtualMachineInstances."""

    def __init__(self, client: Client, informer: Informer, engine: Engine, parts: ReconcilerParts) -> None:
        self._client = client
        self._informer = informer
        self._engine = engine
        self._parts = parts
        # the revision of our last write of each: what is older says nothing
        self._written: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Bring one instance and its machine together."""
        seen = self._informer.cache.get(key)
        if seen is None:
            self._written.pop(key, None)
            self._parts.preparer.forget(key)
            return DONE
        if int(seen.meta.resourceVersion or 0) < self._written.get(key, 0):
            return again(_STALE_SECONDS)
        instance = seen.read(INSTANCES)
        machine = self._engine.machines.get(seen.meta.uid)
        hold, pause = None, None
        try:
            machine = await self._act(instance, machine)
        except MissingPrerequisite as waits:
            hold, pause = waits.hold, waits.again
        await self._report(seen, instance, machine, hold)
        return DONE if pause is None else again(max(pause, 0.05))

    # --- acting -----------------------------------------------------------------------------------------------------------

    async def _act(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> QemuMachine | None:
        """Do what the state asks for; the machine that is there afterwards."""
        if _is_final(instance) or (machine is not None and machine.observed.phase == "ended"):
            return machine
        if machine is not None and machine.observed.live:
            # After a start of Paddock the networks hear of the cards that are in use already.
            await self._parts.preparer.reconnect(instance)
        if instance.metadata.deletionTimestamp:
            await self._end(instance, machine)
            return machine
        if machine is None or machine.observed.phase == "defined":
            # One that ran and is not known any more is lost, not new.
            return machine if machine is None and _phase(instance) == RUNNING else await self._begin(instance)
        if machine.observed.phase == "running":
            await self._go_on(instance, machine)
        return machine

    async def _begin(self, instance: VirtualMachineInstance) -> QemuMachine:
        try:
            config = await self._parts.preparer.prepare(instance)
            machine = await self._engine.machines.define(instance.metadata.uid or "", config)
            await machine.start(paused=instance.spec.startStrategy == "Paused")
            return machine
        finally:
            self._parts.preparer.begun(instance)

    async def _go_on(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        follower = self._parts.followers.of(instance, machine)
        if follower.dead:
            self._parts.telling.unhealthy(instance)
            await machine.stop(0)
        else:
            await self._parts.changes.carry_out(instance, machine)

    async def _end(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> None:
        """The instance is going: have the guest shut down, within the time it was given."""
        if machine is None or not machine.observed.live:
            return
        grace = _grace(instance)
        if machine.observed.phase != "stopping":
            self._parts.telling.stopping(instance)
        elif machine.observed.deadline <= self._parts.seeing.seconds() + grace:
            # It is under way, and nobody has less patience than before.
            return
        await machine.stop(grace)

    # --- saying -----------------------------------------------------------------------------------------------------------

    async def _report(
        self, seen: CachedObject, instance: VirtualMachineInstance, machine: QemuMachine | None, hold: StartBlocker | None
    ) -> None:
        """Write the status when it changed. When it is over, let go of everything, the object last."""
        going = bool(instance.metadata.deletionTimestamp)
        before = instance.status or VirtualMachineInstanceStatus()
        sight = self._parts.seeing.look(instance, machine, hold)
        status = status_of(instance, sight)
        if going and status.phase not in FINAL and (machine is None or machine.observed.phase == "defined"):
            # It never ran: there is nothing to wait for.
            status = msgspec.structs.replace(status, phase=SUCCEEDED)
        labels = _labels(seen.meta.labels or {}, status)
        if status != before or labels:
            await self._write(seen, before, status, labels)
            self._parts.telling.changed(instance, status, sight.observed)
        if status.phase in FINAL:
            await self._let_go(instance, machine)
            if going:
                await self._release(seen)

    async def _write(
        self,
        seen: CachedObject,
        before: VirtualMachineInstanceStatus,
        after: VirtualMachineInstanceStatus,
        labels: Mapping[str, str | None],
    ) -> None:
        """The kind has no status of its own to write to. Whoever was faster is looked at first."""
        metadata: Data = {"resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid}
        if labels:
            metadata["labels"] = dict(labels)
        changes = _changes(msgspec.to_builtins(before), msgspec.to_builtins(after))
        await self._patch(seen.key, {"metadata": metadata, "status": changes})

    async def _let_go(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> None:
        """What the machine held and nobody needs any more: followers, its directory, its taps, its scratch files."""
        await self._parts.followers.drop(instance.metadata.uid or "")
        if machine is not None:
            if machine.observed.live:
                return
            await machine.forget()
        self._parts.changes.forget(instance.metadata.uid or "")
        await self._parts.preparer.release(instance)

    async def _release(self, seen: CachedObject) -> None:
        """Let the object go, as far as it waits for us. One without a machine above it waits for nobody else."""
        ours = {HOLDS_INSTANCE} if seen.meta.ownerReferences else {HOLDS_INSTANCE, HOLDS_FOR_MACHINE}
        if not ours & set(seen.meta.finalizers or ()):
            return
        try:
            fresh = await self._client.get(INSTANCES, seen.key)
            if fresh.metadata.uid != seen.meta.uid:
                return
            kept = [each for each in fresh.metadata.finalizers or () if each not in ours]
            metadata = {"finalizers": kept or None, "resourceVersion": fresh.metadata.resourceVersion, "uid": seen.meta.uid}
            await self._patch(seen.key, {"metadata": metadata})
        except NotFound:
            return

    async def _patch(self, key: Key, document: Data) -> None:
        try:
            written = await self._client.patch(INSTANCES, key, merge_patch(document))
        except Conflict:
            # Nothing is known of what the cache holds now: let it be looked at, not compared.
            self._written.pop(key, None)
            raise
        self._written[key] = int(written.metadata.resourceVersion or 0)


def _labels(there: Mapping[str, str], status: VirtualMachineInstanceStatus) -> dict[str, str | None]:
    """What is to be changed of an instance's labels."""
    changes: dict[str, str | None] = {}
    if status.nodeName and _NODE_LABEL not in there:
        changes[_NODE_LABEL] = status.nodeName
    outdated = status.phase == RUNNING and holds(status.conditions, "Outdated")
    if outdated != (OUTDATED in there):
        changes[OUTDATED] = "" if outdated else None
    return changes


def _changes(before: Data, after: Data) -> Data:
    """A merge patch from one status to the other. Lists are replaced."""
    gone = {name: None for name in before if name not in after}
    return gone | {name: _change(before.get(name), value) for name, value in after.items() if before.get(name) != value}


def _change(before: object, after: object) -> object:
    if isinstance(before, dict) and isinstance(after, dict):
        return _changes(before, after)
    return after


def _phase(instance: VirtualMachineInstance) -> str:
    return (instance.status.phase if instance.status is not None else None) or ""


def _is_final(instance: VirtualMachineInstance) -> bool:
    return _phase(instance) in FINAL


def _grace(instance: VirtualMachineInstance) -> int:
    """The shortest that anybody said: the deletion itself, or the spec."""
    said = (instance.metadata.deletionGracePeriodSeconds, instance.spec.terminationGracePeriodSeconds)
    return min((each for each in said if each is not None), default=_GRACE_SECONDS)

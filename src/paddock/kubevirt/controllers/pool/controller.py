"""One look at a pool: its machines, what is missing or too much, who is to change, and what the status says.

Two controllers: one looks at pools, one lets machines go that carry a pool's finalizer. `Expectations` keeps the machines and
instances that a pool has deleted, so that it deletes nothing twice.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.base.jsonequality import identical
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import DeletionOptions, merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages, failure, selectors
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubernetes.meta.patch import apply_json_patch
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.adoption import release
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject, CachedOwner
from paddock.kubernetes.runtime.controller import DONE, Controller, EventRecorder, Outcome, again, owners
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ReportingReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import is_owned, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.pool import targets
from paddock.kubevirt.controllers.pool.revisions import RevisionKeeper, Revisions
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.poolfields import PoolStatus
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import runrequests
from paddock.kubevirt.plan.machine.instances import POOL_REVISION
from paddock.kubevirt.plan.machine.runstrategy import RunStrategy, strategy_of
from paddock.kubevirt.plan.pool import machines, preservation, scale
from paddock.kubevirt.plan.pool.scale import PoolMember, ScaleContext

_FAILURE, _PAUSED = "ReplicaFailure", "ReplicaPaused"
_SUCCESSFUL_PAUSED = "SuccessfulPaused"
# The source of events, as upstream names it.
COMPONENT = "virtualmachinepool-controller"


class PoolCaches:
    """The informers that the controller reads."""

    def __init__(self, informers: Informers) -> None:
        self.pools = informers.of(targets.POOLS)
        self.machines = informers.of(targets.MACHINES)
        self.instances = informers.of(targets.INSTANCES)
        self.disks = informers.of(targets.DISKS)
        self.revisions = informers.of(targets.REVISIONS)
        self.nodes = informers.of(targets.NODES)

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node."""
        seen = self.nodes.cache.get(Key("", name)) if name else None
        return (seen.meta.labels if seen is not None else None) or {}

    async def release_disks(self, client: Client, machine: VirtualMachine) -> None:
        """Have a machine let go of everything on which its disks lie."""
        uid, namespace = machine.metadata.uid or "", machine.metadata.namespace or ""
        owned = (each.key.name for each in self.disks.cache.by("owner", uid))
        for name in dict.fromkeys((*preservation.disk_names(machine), *owned)):
            for target in (targets.DISKS, targets.CLAIMS):
                await release(client, target, Key(namespace, name), uid)


class PoolPass(msgspec.Struct):
    """One pool and its machines."""

    seen: CachedObject
    pool: VirtualMachinePool
    members: list[PoolMember]
    revisions: Revisions
    plan: scale.ScalePlan
    trouble: str = ""


class PoolReconciler(ReportingReconciler[PoolPass]):
    def __init__(self, client: Client, caches: PoolCaches, machinery: Machinery, recorder: EventRecorder) -> None:
        super().__init__(caches.pools)
        self._client = client
        self._caches = caches
        self._clock = machinery.clock
        self._chance = machinery.chance
        self._recorder = recorder
        self._revisions = RevisionKeeper(client, caches.revisions)
        self._statuses = StatusWriter(client, targets.POOLS, caches.pools.expectations)
        self._machine_statuses = StatusWriter(client, targets.MACHINES, caches.machines.expectations)

    async def begin(self, seen: CachedObject) -> PoolPass:
        """Return a pool with its machines, and the plan for them."""
        pool = seen.read(targets.POOLS)
        # Of the same moment as the machines: one that comes while they are read is neither a member nor in the way.
        taken = {each.meta.name for each in self._caches.machines.cache.by("namespace", seen.key.namespace)}
        members = await self._members(seen, pool)
        revisions = await self._revisions.current(pool, seen)
        same = revisions.same_disks, revisions.same_labels
        around = ScaleContext(taken, revisions.name, *same, self._clock.seconds(), self._chance.random)
        return PoolPass(seen, pool, members, revisions, scale.plan(pool, members, around))

    async def conclude(self, pool_pass: PoolPass) -> None:
        """Forget revisions that no machine has, once nothing is left to be done."""
        if pool_pass.plan == scale.ScalePlan(wait=pool_pass.plan.wait):
            used = {each.revision for each in pool_pass.members} | {each.instance_revision or "" for each in pool_pass.members}
            await self._revisions.prune(pool_pass.seen.key.namespace, pool_pass.revisions, frozenset(used))

    # --- reading ----------------------------------------------------------------------------------------------------------

    async def _members(self, seen: CachedObject, pool: VirtualMachinePool) -> list[PoolMember]:
        """The machines of the pool. Those that its selector does not mean any more are let go."""
        found = []
        for number, each in enumerate(self._caches.machines.cache.by("owner", seen.meta.uid)):
            if number and number % scale.BURST == 0:
                # Reading thousands of machines must not keep everybody else waiting.
                await asyncio.sleep(0)
            if not selectors.matches(pool.spec.selector, each.meta.labels or {}) and not each.meta.deleting:
                await self._release(each, seen.meta.uid)
                continue
            machine = each.read(targets.MACHINES)
            instance = self._caches.instances.cache.get(each.key)
            revision, node = None, ""
            if instance is not None and is_owned(instance.meta, each.meta.uid):
                revision, node = (instance.meta.labels or {}).get(POOL_REVISION, ""), _node_of(instance)
            restarting = instance is not None and _is_leaving(self._caches.instances, instance)
            deleting = _is_leaving(self._caches.machines, each)
            found.append(PoolMember(machine, revision, deleting, restarting, self._caches.node_labels(node)))
        return found

    async def _release(self, seen: CachedObject, uid: str) -> None:
        """The machine goes its own way."""
        owned = orjson.loads(seen.raw)["metadata"].get("ownerReferences") or []
        rest = [each for each in owned if each.get("uid") != uid]
        held = [each for each in seen.meta.finalizers or () if each != machines.FINALIZER]
        metadata = {"ownerReferences": rest or None, "finalizers": held or None, "resourceVersion": seen.meta.resourceVersion}
        await self._client.patch(targets.MACHINE_DATA, seen.key, merge_patch({"metadata": metadata}))

    # --- acting -----------------------------------------------------------------------------------------------------------

    async def act(self, pool_pass: PoolPass) -> Outcome:
        """Make, delete, change and restart machines, as the plan says."""
        wanted, revisions = pool_pass.plan, pool_pass.revisions
        by_name = {each.name: each for each in pool_pass.members}
        pool_pass.trouble = "FailedScaleOut"
        for index in wanted.make:
            await self._make(pool_pass, index, revisions.name)
        pool_pass.trouble = "FailedScaleIn"
        for name in wanted.delete:
            if name in wanted.anew:
                self._tell_disks(pool_pass, by_name[name])
            await self._delete(pool_pass, by_name[name])
        await self._unmark(pool_pass, wanted.delete)
        pool_pass.trouble = "FailedUpdate"
        for name in wanted.rewrite:
            await self._rewrite(pool_pass, by_name[name], revisions.name)
        for name in wanted.restart:
            await self._restart(pool_pass, by_name[name])
        return DONE if wanted.wait is None else again(wanted.wait)

    async def _make(self, pool_pass: PoolPass, index: int, revision: str) -> None:
        wanted = machines.replica(pool_pass.pool, index, revision)
        try:
            await self._client.create(targets.MACHINES, wanted)
        except AlreadyExists:
            # Made a moment ago, or by somebody else: the next look knows.
            return
        except PaddockError as error:
            key = Key(wanted.metadata.namespace or "", wanted.metadata.name)
            self._tell(pool_pass, "Warning", "FailedCreate", f"Error creating VM {key}: {error}")
            raise
        self._tell(pool_pass, "Normal", "SuccessfulCreate", f"Created VM {wanted.metadata.namespace}/{wanted.metadata.name}")

    async def _delete(self, pool_pass: PoolPass, member: PoolMember) -> None:
        """Delete a machine. Where its disks are kept it is marked first, then they are released, so that none is ever lost in between."""
        meta = member.machine.metadata
        key, uid = Key(meta.namespace or "", meta.name), meta.uid or ""
        try:
            found = await self._client.get(targets.MACHINE_DATA, key)
            if not self._is_member(pool_pass, found, uid):
                # It was deleted, or left the pool, since it was chosen: the next look decides anew.
                return
            if member.is_marked or preservation.keeps_scaled_in(pool_pass.pool):
                found = await self._mark(key, found, preservation.OFFLINE)
                await self._caches.release_disks(self._client, from_data(found, targets.MACHINES.cls))
            # Nothing is deleted that has changed since, such as a machine that somebody has just taken out of the pool.
            revision = found["metadata"]["resourceVersion"]
            await self._client.delete(targets.MACHINE_DATA, key, DeletionOptions(uid=uid, revision=revision, propagation="Background"))
        except NotFound:
            return
        self._caches.machines.expectations.deleted(CachedObject.from_data(found))
        self._tell(pool_pass, "Normal", "SuccessfulDelete", f"Deleted VM {key}")

    def _is_member(self, pool_pass: PoolPass, machine: Data, uid: str) -> bool:
        """Return whether a machine, as the server has it, is the one that was chosen and still of the pool."""
        metadata = machine["metadata"]
        owned = any(each.get("uid") == pool_pass.seen.meta.uid for each in metadata.get("ownerReferences") or ())
        matches = selectors.matches(pool_pass.pool.spec.selector, metadata.get("labels") or {})
        return metadata["uid"] == uid and not metadata.get("deletionTimestamp") and owned and matches

    async def _mark(self, key: Key, machine: Data, preserved: str | None) -> Data:
        """Note on a machine that its disks stay when it goes, or that they do not; the machine as it is then."""
        metadata = machine["metadata"]
        if (metadata.get("annotations") or {}).get(preservation.STATE_PRESERVATION) == preserved:
            return machine
        change = {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {preservation.STATE_PRESERVATION: preserved},
        }
        return await self._client.patch(targets.MACHINE_DATA, key, merge_patch({"metadata": change}))

    async def _unmark(self, pool_pass: PoolPass, deleted: Collection[str]) -> None:
        """Take back what a scale-in had begun that is not wanted any more. The machine adopts its disks again."""
        for each in pool_pass.members:
            if each.is_marked and not each.deleting and each.name not in deleted:
                seen = self._caches.machines.cache.get(Key(pool_pass.seen.key.namespace, each.name))
                if seen is not None:
                    await self._mark(seen.key, orjson.loads(seen.raw), None)

    def _tell_disks(self, pool_pass: PoolPass, member: PoolMember) -> None:
        """Say, before it is done, what becomes of disks that other templates replace."""
        templates = member.machine.spec.dataVolumeTemplates or ()
        names = ", ".join(each.metadata.name for each in templates if each.metadata is not None and each.metadata.name)
        key = Key(member.machine.metadata.namespace or "", member.name)
        note = f"VM {key} is made anew because the pool's dataVolumeTemplates changed"
        if preservation.keeps_scaled_in(pool_pass.pool):
            kept = f"{note}; statePreservation keeps {names or 'its disks'}: delete what is to be replaced while the machine is stopped"
            self._tell(pool_pass, "Warning", "DisksKept", kept)
        else:
            self._tell(pool_pass, "Warning", "DataLoss", f"{note}: what is on {names or 'its disks'} is lost")

    async def _rewrite(self, pool_pass: PoolPass, member: PoolMember, revision: str) -> None:
        """Another spec for a machine; its identity stays."""
        key = Key(member.machine.metadata.namespace or "", member.name)
        index = scale.number_of(pool_pass.pool, member.name)
        seen = self._caches.machines.cache.get(key)
        if index is None or seen is None:
            return
        before = orjson.loads(seen.raw)
        made = scale.rewritten(before, to_data(machines.replica(pool_pass.pool, index, revision)))
        if identical(made, before):
            return
        made.pop("status", None)
        await self._client.update(targets.MACHINE_DATA, made)
        self._tell(pool_pass, "Normal", "SuccessfulUpdate", f"Updated VM {key}")

    async def _restart(self, pool_pass: PoolPass, member: PoolMember) -> None:
        """The instance ends, and the next one is made from the spec of now."""
        key = Key(member.machine.metadata.namespace or "", member.name)
        seen, machine = self._caches.instances.cache.get(key), self._caches.machines.cache.get(key)
        if seen is None or machine is None:
            return
        try:
            if strategy_of(member.machine.spec) in (RunStrategy.RERUN, RunStrategy.MANUAL):
                change = runrequests.restart(machine.read(targets.MACHINES), seen.read(targets.INSTANCES))
                requested = apply_json_patch(orjson.loads(machine.raw), change.status)
                await self._machine_statuses.write(machine, requested["status"])
            else:
                await self._client.delete(targets.INSTANCE_DATA, key, DeletionOptions(uid=seen.meta.uid))
        except (NotFound, failure.Failure):
            # It has ended, or a restart is under way.
            return
        self._caches.instances.expectations.deleted(seen)

    def _tell(self, pool_pass: PoolPass, kind: str, reason: str, note: str) -> None:
        self._recorder.tell(reference(targets.POOLS, pool_pass.seen.meta), kind, reason, note)

    # --- reporting --------------------------------------------------------------------------------------------------------

    async def report(self, pool_pass: PoolPass, error: PaddockError | None) -> None:
        """Write how many machines there are, and what stands in the way."""
        pool = pool_pass.pool
        wanted = PoolStatus(
            replicas=len(pool_pass.members),
            readyReplicas=sum(each.is_ready for each in pool_pass.members),
            labelSelector=selectors.text(pool.spec.selector),
            conditions=self._conditions(pool_pass, error) or None,
        )
        if await self._statuses.write(pool_pass.seen, wanted) is not None:
            self._tell_pause(pool_pass)

    def _tell_pause(self, pool_pass: PoolPass) -> None:
        was = holds(pool_pass.pool.status.conditions if pool_pass.pool.status is not None else None, _PAUSED)
        if pool_pass.pool.spec.paused and not was:
            self._tell(pool_pass, "Normal", _SUCCESSFUL_PAUSED, "The pool is paused: nothing is scaled or updated")
        elif was and not pool_pass.pool.spec.paused:
            self._tell(pool_pass, "Normal", "SuccessfulResume", "The pool goes on")

    def _conditions(self, pool_pass: PoolPass, error: PaddockError | None) -> list[Condition]:
        known = {each.type: each for each in (pool_pass.pool.status.conditions if pool_pass.pool.status is not None else None) or ()}
        found = []
        if error is not None:
            found.append(Condition(type=_FAILURE, status="True", reason=pool_pass.trouble or "FailedScaleOut", message=str(error)))
        if pool_pass.pool.spec.paused:
            found.append(Condition(type=_PAUSED, status="True", reason=_SUCCESSFUL_PAUSED, message="Pool controller is paused"))
        now = ages.timestamp(self._clock.seconds())
        for index, each in enumerate(found):
            old = known.get(each.type)
            found[index] = msgspec.structs.replace(each, lastTransitionTime=old.lastTransitionTime if old is not None else now)
        return found


class PoolFinalizer(KindReconciler):
    """Lets machines go that carry a pool's finalizer: those that are deleted, and those that belong to no pool any more."""

    def __init__(self, client: Client, caches: PoolCaches) -> None:
        super().__init__(caches.machines)
        self._client = client
        self._caches = caches

    async def work(self, seen: CachedObject) -> Outcome:
        """Take the finalizer off a machine that belongs to no pool any more."""
        return DONE if _in_pool(seen) else await self._take_off(seen)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Take the finalizer off a machine that is being deleted, after its disks were released where they stay."""
        if machines.FINALIZER not in (seen.meta.finalizers or ()):
            return DONE
        machine = seen.read(targets.MACHINES)
        if preservation.is_marked(machine.metadata.annotations) or await self._keeps(seen):
            await self._caches.release_disks(self._client, machine)
        return await self._take_off(seen)

    async def _take_off(self, seen: CachedObject) -> Outcome:
        await finalizers.take_off(self._client, targets.MACHINES, seen.meta, machines.FINALIZER)
        return DONE

    async def _keeps(self, seen: CachedObject) -> bool:
        """Return whether the pool of a machine keeps the disks of what others delete. One that is deleted itself keeps nothing."""
        owner = next(_pools_of(seen), None)
        if owner is None:
            return False
        try:
            pool = await self._client.get(targets.POOLS, Key(seen.key.namespace, owner.name))
        except NotFound:
            return False
        return pool.metadata.uid == owner.uid and not pool.metadata.deletionTimestamp and preservation.keeps_deleted(pool)


def _in_pool(seen: CachedObject) -> bool:
    return any(True for _ in _pools_of(seen))


def _pools_of(seen: CachedObject) -> Iterator[CachedOwner]:
    return (each for each in seen.meta.ownerReferences or () if (each.group, each.kind) == (targets.POOLS.group, targets.POOLS.kind))


def _is_leaving(informer: Informer, seen: CachedObject) -> bool:
    return seen.meta.deleting or informer.expectations.is_leaving(seen.meta.uid)


def _node_of(instance: CachedObject) -> str:
    return str((orjson.loads(instance.raw).get("status") or {}).get("nodeName") or "")


def wire(program: ControllerManager) -> Controller:
    """The controllers, wired to a program; the one of the pools is returned."""
    caches = PoolCaches(program.informers)
    pools = PoolReconciler(program.client, caches, program.machinery, program.recorder.voice(COMPONENT))
    controller = Controller("pool", caches.pools, pools.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.watch(caches.machines, owners(targets.POOLS.group, targets.POOLS.kind))
    controller.watch(caches.revisions, owners(targets.POOLS.group, targets.POOLS.kind))
    for informer in (caches.disks, caches.nodes):
        controller.watch(informer, lambda change: ())

    def of_instance(change: CacheChange) -> Iterable[Key]:
        machine = caches.machines.cache.get(change.seen.key)
        found = machine.meta.ownerReferences if machine is not None else None
        return [Key(change.seen.key.namespace, each.name) for each in found or () if each.kind == targets.POOLS.kind]

    controller.watch(caches.instances, of_instance)
    program.add(controller)
    leaving = PoolFinalizer(program.client, caches)
    program.add(Controller("pool-machines", caches.machines, leaving.reconcile, machinery=program.machinery, recorder=program.recorder))
    return controller

"""One pass over a VMSnapshot, from its key alone.

schedule? --yes--> make what is due
    |
   no --> finalizer --> taken? --no--> take
                          |
                         yes --> keep: expiry, retention, lineage
"""

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.snapshots.context import SnapshotAccess, SnapshotMemory, SnapshotPass
from paddock.dialects.virtrigaud.controllers.snapshots.deletion import SnapshotDeletion
from paddock.dialects.virtrigaud.controllers.snapshots.keeping import SnapshotKeeping
from paddock.dialects.virtrigaud.controllers.snapshots.scheduling import SnapshotScheduling
from paddock.dialects.virtrigaud.controllers.snapshots.taking import SnapshotTaking
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.snapshots import records, schedules
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import Outcome
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer, ObjectMemories


class VirtrigaudSnapshotReconciler(KindReconciler):
    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts.caches.snapshots, ObjectFinalizer(parts.client, marks.SNAPSHOT_FINALIZER))
        self._parts = parts
        access = SnapshotAccess(parts)
        self._taking = SnapshotTaking(access)
        self._keeping = SnapshotKeeping(access)
        self._scheduling = SnapshotScheduling(access)
        self._deletion = SnapshotDeletion(access)
        self._memories = ObjectMemories(lambda seen: SnapshotMemory(seen.meta.uid))

    async def work(self, seen: CachedObject) -> Outcome:
        """Make what a schedule says, or take the snapshot, or keep it."""
        snapshot_pass = self._pass(seen)
        if schedules.is_schedule(snapshot_pass.snapshot):
            return await self._scheduling.advance(snapshot_pass)
        return await (self._keeping if records.is_complete(snapshot_pass.snapshot) else self._taking).advance(snapshot_pass)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Delete the snapshot where it is."""
        return await self._deletion.advance(self._pass(seen))

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether it is a snapshot; a schedule has nothing to clear away."""
        return not schedules.is_schedule(seen.read(targets.SNAPSHOTS))

    async def forget(self, key: Key) -> None:
        """Drop what is remembered of a snapshot that is gone."""
        self._memories.forget(key)

    def _pass(self, seen: CachedObject) -> SnapshotPass:
        snapshot = seen.read(targets.SNAPSHOTS)
        machine = self._parts.caches.machines.cache.get(Key(seen.key.namespace, snapshot.spec.vmRef.name))
        return SnapshotPass(seen, snapshot, self._memories.of(seen), machine.read(targets.MACHINES) if machine is not None else None)

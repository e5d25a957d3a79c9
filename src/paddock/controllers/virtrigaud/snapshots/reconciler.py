"""One pass over a VMSnapshot, from its key alone.

schedule? --yes--> make what is due
    |
   no --> finalizer --> taken? --no--> take
                          |
                         yes --> keep: expiry, retention, lineage
"""

from paddock.client.target import Key
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.controllers.virtrigaud.snapshots.context import SnapshotAccess, SnapshotMemory, SnapshotPass
from paddock.controllers.virtrigaud.snapshots.deletion import SnapshotDeletion
from paddock.controllers.virtrigaud.snapshots.keeping import SnapshotKeeping
from paddock.controllers.virtrigaud.snapshots.scheduling import SnapshotScheduling
from paddock.controllers.virtrigaud.snapshots.taking import SnapshotTaking
from paddock.plan.virtrigaud import marks
from paddock.plan.virtrigaud.snapshots import records, schedules
from paddock.runtime import finalizers
from paddock.runtime.controller import DONE, Outcome


class VirtrigaudSnapshotReconciler:
    """Reconciles VirtRigaud's snapshots."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        access = SnapshotAccess(parts)
        self._taking = SnapshotTaking(access)
        self._keeping = SnapshotKeeping(access)
        self._scheduling = SnapshotScheduling(access)
        self._deletion = SnapshotDeletion(access)
        self._memories: dict[Key, SnapshotMemory] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Bring one snapshot a step on."""
        caches = self._parts.caches
        seen = caches.snapshots.cache.get(key)
        if seen is None:
            self._memories.pop(key, None)
            return DONE
        memory = self._memories.get(key)
        if memory is None or memory.uid != seen.meta.uid:
            memory = self._memories[key] = SnapshotMemory(seen.meta.uid)
        snapshot = seen.read(targets.SNAPSHOTS)
        machine = caches.machines.cache.get(Key(key.namespace, snapshot.spec.vmRef.name))
        look = SnapshotPass(seen, snapshot, memory, machine.read(targets.MACHINES) if machine is not None else None)
        if seen.meta.going:
            return await self._deletion.advance(look)
        if schedules.is_schedule(snapshot):
            return await self._scheduling.advance(look)
        written = await finalizers.put_on(self._parts.client, targets.SNAPSHOTS, seen.meta, marks.SNAPSHOT_FINALIZER)
        if written is not None:
            caches.snapshots.expectations.wrote(written)
            return DONE
        return await (self._keeping if records.is_complete(snapshot) else self._taking).advance(look)

"""The memory that a VirtualMachineSnapshotContent keeps: packed when nobody has used it for a while, removed with the content."""

from paddock.base.clock import Clock
from paddock.engine.memorystates import MemoryStates
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubevirt.controllers.snapshots.targets import CONTENTS
from paddock.kubevirt.plan.snapshots import memory

# While it is being written.
_WAIT_SECONDS = 60.0


class MemoryReconciler(KindReconciler):
    """Reconciles contents that have memory, which is kept under their UIDs: a user chooses names."""

    def __init__(self, client: Client, contents: Informer, memories: MemoryStates, clock: Clock) -> None:
        super().__init__(contents)
        self._client = client
        self._memories = memories
        self._clock = clock

    async def work(self, seen: CachedObject) -> Outcome:
        """Pack a memory that is cold."""
        if memory.FINALIZER not in (seen.meta.finalizers or ()):
            return DONE
        state = self._memories.get(seen.meta.uid)
        if state is None:
            return again(_WAIT_SECONDS)
        if state.packed:
            return DONE
        left = memory.COLD_SECONDS - self._memories.age(seen.meta.uid, self._clock.seconds())
        if left > 0:
            return again(left)
        await self._memories.pack(seen.meta.uid)
        return DONE

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Remove the memory. A guest that has begun to go on from it has the file by a name of its own."""
        if memory.FINALIZER in (seen.meta.finalizers or ()):
            self._memories.delete(seen.meta.uid)
            await finalizers.take_off(self._client, CONTENTS, seen.meta, memory.FINALIZER)
        return DONE

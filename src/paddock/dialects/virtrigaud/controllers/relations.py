"""The snapshots of machines in the caches, and what a change of one concerns."""

from collections.abc import Iterable
from typing import Any

import orjson

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmsnapshot import VMSnapshot
from paddock.dialects.virtrigaud.plan import marks, reverting
from paddock.dialects.virtrigaud.plan.conditions import PROVISIONING, holds
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.informer import Informer

# Index of snapshots by their machine.
SNAPSHOT_OF = "machine of a snapshot"
_STATUS_MEMBERS = ("phase", "snapshotID", "creationTime", "completionTime", "size", "parent")


class SnapshotRelations:
    def __init__(self, machines: Informer, snapshots: Informer) -> None:
        self._machines = machines
        self._snapshots = snapshots
        snapshots.cache.index(SNAPSHOT_OF, lambda seen: (str(_machine_key(seen)),))

    def all(self, machine: Key) -> list[VMSnapshot]:
        """The snapshots of a machine."""
        return [seen.read(targets.SNAPSHOTS) for seen in self._snapshots.cache.by(SNAPSHOT_OF, str(machine))]

    def keys(self, machine: Key) -> list[Key]:
        """The places of the snapshots of a machine."""
        return [seen.key for seen in self._snapshots.cache.by(SNAPSHOT_OF, str(machine))]

    def reverted(self, vm: VirtrigaudVirtualMachine) -> VMSnapshot | None:
        """The snapshot that a machine is to go back to, if it exists."""
        seen = self._snapshots.cache.get(Key(namespace_of(vm), reverting.wanted(vm)))
        return seen.read(targets.SNAPSHOTS) if seen is not None else None

    def state(self, vm: VirtrigaudVirtualMachine) -> tuple[str | None, str | None] | None:
        """The facts that count of the snapshot that a machine is to go back to."""
        found = self.reverted(vm) if reverting.wanted(vm) else None
        return (found.metadata.uid, found.status.phase if found.status is not None else None) if found is not None else None

    # --- what a change concerns -------------------------------------------------------------------------------------------

    def machines(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a snapshot to its machine, and to those that are to go back to it."""
        if _snapshot_facets(change.old) == _snapshot_facets(change.new):
            return ()
        key = change.seen.key
        found = {_machine_key(change.seen): None}
        for seen in self._machines.cache.by("namespace", key.namespace):
            # Few machines go back to a snapshot, and only those are read.
            if b'"revertToRef"' in seen.raw and reverting.wanted(seen.read(targets.MACHINES)) == key.name:
                found[seen.key] = None
        return [each for each in found if self._machines.cache.get(each) is not None]

    def siblings(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a snapshot to the others of its machine, its schedule among them."""
        if _snapshot_facets(change.old) == _snapshot_facets(change.new):
            return ()
        return [key for key in self.keys(_machine_key(change.seen)) if key != change.seen.key]

    def of_machine(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a machine to its snapshots."""
        found = self.keys(change.seen.key)
        return found if found and _machine_facets(change.old) != _machine_facets(change.new) else ()


def _machine_key(seen: CachedObject) -> Key:
    return Key(seen.key.namespace, seen.read(targets.SNAPSHOTS).spec.vmRef.name)


def _snapshot_facets(seen: CachedObject | None) -> tuple[Any, ...] | None:
    """The facts that count of a snapshot for its machine and for the other snapshots."""
    if seen is None:
        return None
    status = orjson.loads(seen.raw).get("status") or {}
    return (seen.meta.uid, seen.meta.generation, seen.meta.deleting, *(orjson.dumps(status.get(name)) for name in _STATUS_MEMBERS))


def _machine_facets(seen: CachedObject | None) -> tuple[Any, ...] | None:
    """The facts that count of a machine for its snapshots."""
    if seen is None:
        return None
    vm = seen.read(targets.MACHINES)
    if vm.status is None:
        return (seen.meta.uid, seen.meta.deleting, reverting.wanted(vm))
    revert = (vm.status.provider or {}).get(marks.REVERT)
    return (seen.meta.uid, seen.meta.deleting, reverting.wanted(vm), vm.status.id, holds(vm.status.conditions, PROVISIONING), revert)

"""The memory in a restore: whether the guest can go on on this host, before anything is touched."""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from paddock.base import reasons
from paddock.base.jsondata import Data
from paddock.engine.engine import Engine
from paddock.engine.machine import forks as engine_forks
from paddock.engine.machine import rehosting
from paddock.engine.machine.directory import UnreadableState
from paddock.engine.machine.suspension import SPARE
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubevirt.controllers.snapshots.targets import MACHINES
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshotContent
from paddock.kubevirt.plan.snapshots import forks, memory
from paddock.kubevirt.plan.snapshots.restores import RestoreRefused, is_made_by

_STRATEGY = ("running", "runStrategy")


def has_memory(restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent) -> bool:
    """Return whether a restore brings the memory back, too."""
    return memory.is_in(content) and not memory.is_declined(restore)


def go_on(restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, machine: Data) -> None:
    """Have a restored machine go on from the memory, if the restore brings that back: it ran, so it runs again."""
    if not has_memory(restore, content):
        return
    machine["metadata"]["annotations"][memory.CONTINUES] = content.metadata.uid
    before = (content.spec.source.virtualMachine or {}).get("spec") or {}
    machine["spec"] = {name: value for name, value in machine["spec"].items() if name not in _STRATEGY}
    machine["spec"] |= {name: before[name] for name in _STRATEGY if before.get(name) is not None}


class RestoredMemories:
    """Checks memories before a restore."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def check(self, restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, seen: CachedObject | None) -> None:
        """Raise `RestoreRefused` if the guest could not go on. A machine that is written already is past that."""
        target = seen.read(MACHINES) if seen is not None else None
        if has_memory(restore, content) and not (target is not None and is_made_by(restore, target.metadata.annotations)):
            memory.check(restore, content, target, self._mismatches(content.metadata.uid or "", fork=forks.is_wished(restore)))
        elif forks.is_wished(restore) and not memory.is_in(content):
            what, why = "the snapshot cannot be cloned warm", "it has no memory"
            raise RestoreRefused(what, why=why, fix="take one with memory, of a running machine", reason=reasons.MEMORY_MISMATCH)

    def _mismatches(self, id: str, *, fork: bool) -> Iterator[str]:
        try:
            state = self._engine.memories.get(id)
        except UnreadableState as error:
            yield str(error)
            return
        if state is None:
            yield "its memory is gone"
            return
        saved = state.record.saved
        if fork:
            yield from engine_forks.obstacles(saved.config, agent=saved.agent)
        # Its disks are those of then, and not there yet.
        yield from rehosting.mismatches(saved, state.record.qemu, self._engine.facts.view(replace(saved.config, disks=())))
        found = os.statvfs(self._engine.memories.root)
        if state.packed and (free := found.f_bavail * found.f_frsize) < (need := state.size + SPARE):
            yield f"its memory takes {need >> 20} MiB, and {self._engine.memories.root} has room for {free >> 20} MiB"

"""The memory in snapshots of machines: which has it, its note, and the restores that can use it (docs/spec/kubevirt.md 7). Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from paddock.base import ownnames, reasons
from paddock.kubernetes.meta.conditions import holds
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.snapshots import forks
from paddock.kubevirt.plan.snapshots.machines import source_uid
from paddock.kubevirt.plan.snapshots.restores import RestoreRefused

WISH, STATE, CONTINUES = ownnames.MEMORY.name, ownnames.MEMORY_STATE.name, ownnames.CONTINUES.name
# Of contents: the memory goes with them.
FINALIZER = ownnames.MEMORY.name
# A memory that nobody has used for so long is packed.
COLD_SECONDS = 600.0
_DISKS_ALONE = f'to restore the disks alone, give the restore the annotation {WISH}: "false"'
# Made anew at each start, from what a user wrote.
_UNCHANGING = ("cloudInitNoCloud", "cloudInitConfigDrive", "configMap", "secret", "serviceAccount", "downwardAPI", "sysprep")


class MemoryNote(msgspec.Struct, frozen=True, rename="camel"):
    """The annotation that tells of a memory."""

    bytes: int
    pause_milliseconds: int
    qemu: str

    @property
    def text(self) -> str:
        return f"memory {-(-self.bytes >> 20)} MiB, the guest stood still for {self.pause_milliseconds} ms"


def is_wished(snapshot: VirtualMachineSnapshot) -> bool:
    """Return whether a snapshot is to have the memory."""
    return (snapshot.metadata.annotations or {}).get(WISH) == "true"


def is_in(content: VirtualMachineSnapshotContent) -> bool:
    """Return whether a content has memory."""
    return FINALIZER in (content.metadata.finalizers or ())


def is_declined(restore: VirtualMachineRestore) -> bool:
    """Return whether a restore is for the disks alone."""
    return (restore.metadata.annotations or {}).get(WISH) == "false"


def note_of(annotations: Mapping[str, str] | None) -> MemoryNote | None:
    """Return what annotations tell of a memory."""
    try:
        return msgspec.json.decode((annotations or {}).get(STATE, ""), type=MemoryNote)
    except msgspec.DecodeError:
        return None


def unchanging(volumes: Iterable[Volume]) -> frozenset[str]:
    """Return the volumes that hold the same at each start."""
    return frozenset(each.name for each in volumes if any(getattr(each, member, None) is not None for member in _UNCHANGING))


def obstacle(machine: VirtualMachine) -> str:
    """Return the reason why a machine as it is written cannot be restored with memory; empty: it can."""
    if machine.status is not None and holds(machine.status.conditions, "RestartRequired"):
        return "the machine was changed since its start, and runs on other hardware than it would be restored with; restart it first"
    return ""


def check(
    restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, target: VirtualMachine | None, mismatches: Iterable[str]
) -> None:
    """Refuse a restore whose guest could not go on. `mismatches`: the reasons why not on this host."""
    found, is_fork = list(mismatches), forks.is_wished(restore)
    if is_fork and target is not None:
        found.append("a warm clone is another machine than its source")
    elif not is_fork and (target is None or target.metadata.uid != source_uid(content)):
        found.append("the memory belongs to the machine of the snapshot, with its name and its addresses, and that is not the target")
    if restore.spec.patches and not is_fork:
        found.append("the patches change the machine, and the guest knows the former one")
    if found:
        what = "the snapshot cannot be restored with its memory"
        raise RestoreRefused(what, why="; ".join(found), fix=_DISKS_ALONE, reason=reasons.MEMORY_MISMATCH)

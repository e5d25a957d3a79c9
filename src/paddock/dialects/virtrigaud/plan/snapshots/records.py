"""A snapshot's status: the record of what was requested of which Provider, and the phase, conditions and message that follow.

The record is the entry of `providerStatus`: its name is the Provider's, its path the machine's id there, its id the snapshot's. It is
written before the first request, so that a snapshot can be found and deleted whatever becomes of the machine's object.
"""

from collections.abc import Iterable

import msgspec

from paddock.dialects.virtrigaud.kinds.vmsnapshot import ProviderSnapshot, RetentionPolicy, SnapshotConfig, VMSnapshot, VMSnapshotStatus
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.conditions import DELETING, READY, AspectValue, find, settled
from paddock.kubernetes.meta.world import namespace_of

CREATING, EXPIRED = "Creating", "Expired"
PENDING, PHASE_CREATING, PHASE_READY = "Pending", "Creating", "Ready"
PHASE_DELETING, FAILED, PHASE_EXPIRED = "Deleting", "Failed", "Expired"


class SnapshotPlace(msgspec.Struct, frozen=True):
    """The machine at a Provider of which a snapshot was requested."""

    provider_namespace: str
    provider_name: str
    machine_id: str

    def __str__(self) -> str:
        return f"Provider {self.provider_namespace}/{self.provider_name}"


def of(snapshot: VMSnapshot) -> VMSnapshotStatus:
    """The status of a snapshot; an empty one if it has none."""
    return snapshot.status or VMSnapshotStatus()


def config(snapshot: VMSnapshot) -> SnapshotConfig:
    """The options of a snapshot."""
    return snapshot.spec.snapshotConfig or SnapshotConfig()


def policy(snapshot: VMSnapshot) -> RetentionPolicy:
    """The retention of a snapshot."""
    return snapshot.spec.retentionPolicy or RetentionPolicy()


def label(snapshot: VMSnapshot) -> str:
    """The name under which people know a snapshot."""
    return config(snapshot).name or snapshot.metadata.name


def place(snapshot: VMSnapshot) -> SnapshotPlace | None:
    """The machine of which the snapshot was requested; None as long as nothing was requested."""
    for name, entry in (of(snapshot).providerStatus or {}).items():
        namespace, slash, rest = name.partition("/")
        if entry.path:
            return SnapshotPlace(namespace if slash else namespace_of(snapshot), rest if slash else name, entry.path)
    return None


def recorded(snapshot: VMSnapshot, where: SnapshotPlace, id: str, now: str, *, available: bool) -> dict[str, ProviderSnapshot]:
    """The record with what the Provider has answered."""
    same = where.provider_namespace == namespace_of(snapshot)
    name = where.provider_name if same else f"{where.provider_namespace}/{where.provider_name}"
    state = "Available" if available else "Requested"
    return {name: ProviderSnapshot(available=available, id=id or None, path=where.machine_id, state=state, lastUpdated=now)}


def is_complete(snapshot: VMSnapshot) -> bool:
    """Return whether the Provider has confirmed the snapshot."""
    status = of(snapshot)
    return bool(status.snapshotID and status.completionTime)


def is_usable(snapshot: VMSnapshot) -> bool:
    """Return whether the machine can go back to the snapshot."""
    return is_complete(snapshot) and of(snapshot).phase == PHASE_READY and snapshot.metadata.deletionTimestamp is None


def is_ended(snapshot: VMSnapshot) -> bool:
    """Return whether nothing is tried any more for the present spec. What was not requested yet depends on what the Provider reports."""
    status = of(snapshot)
    ready = find(status.conditions, READY)
    current = ready is not None and ready.observedGeneration == snapshot.metadata.generation
    return status.phase == FAILED and current and place(snapshot) is not None


def is_active(snapshot: VMSnapshot) -> bool:
    """Return whether the snapshot is still to be taken."""
    return snapshot.metadata.deletionTimestamp is None and not is_complete(snapshot) and of(snapshot).phase != FAILED


def settle(snapshot: VMSnapshot, status: VMSnapshotStatus, values: Iterable[AspectValue], now: str, phase: str) -> VMSnapshotStatus:
    """The status with these conditions and this phase, and the message that follows."""
    generation = snapshot.metadata.generation
    conditions = settled(status.conditions, values, now, generation)
    condition = find(conditions, DELETING if phase == PHASE_DELETING else READY)
    message = (condition.message if condition is not None else "") or None
    return msgspec.structs.replace(status, conditions=conditions, observedGeneration=generation, phase=phase, message=message)


def gone(machine: str) -> AspectValue:
    """The condition of a snapshot whose machine is gone."""
    text = f"the machine of VirtualMachine {machine} is gone, so nothing can go back to this snapshot; delete it if nobody needs it"
    return AspectValue(READY, "False", reasons.MACHINE_GONE, text)

"""Going back to a snapshot: when it is due, and the record that makes it happen once (docs/spec/virtrigaud.md 2.1.8).

    begun --> requested --> sizes --> done
      |           |
      +--> failed <+

The record is in the machine's status. It names the snapshot by its UID, so the same reference is carried out once, and again after it was
cleared. While it is `begun` or `requested` nobody changes the machine's power. `sizes` means that the provider has confirmed the revert and
has not yet been asked again for the sizes of the spec.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from paddock.dialects.virtrigaud.kinds.shared import StatusCondition
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmsnapshot import VMSnapshot
from paddock.dialects.virtrigaud.plan import marks, reasons
from paddock.dialects.virtrigaud.plan.conditions import READY, AspectValue, false
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.kubernetes.meta.world import namespace_of

REVERTED = "Reverted"
# A revert whose task failed so often is not tried again.
MOST_FAILURES = 3
RevertState = Literal["begun", "requested", "sizes", "done", "failed"]


class RevertRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A revert of a machine."""

    # the snapshot's UID and name, and its id at the provider
    uid: str
    name: str
    id: str
    state: RevertState = "begun"
    task: str = ""
    failures: int = 0
    # when the provider confirmed it
    at: str = ""
    # why it failed, and the reason of the condition
    problem: str = ""
    reason: str = ""


def record(status: VirtrigaudMachineStatus) -> RevertRecord | None:
    """The revert that is under way or was the last one."""
    text = (status.provider or {}).get(marks.REVERT)
    try:
        return msgspec.json.decode(text, type=RevertRecord) if text else None
    except msgspec.MsgspecError:
        return None


def with_record(status: VirtrigaudMachineStatus, revert_record: RevertRecord | None) -> VirtrigaudMachineStatus:
    """The status with another record."""
    provider = {name: value for name, value in (status.provider or {}).items() if name != marks.REVERT}
    if revert_record is not None:
        provider[marks.REVERT] = msgspec.json.encode(revert_record).decode()
    return msgspec.structs.replace(status, provider=provider or None)


def is_under_way(status: VirtrigaudMachineStatus) -> bool:
    """Return whether the machine goes back to a snapshot now."""
    found = record(status)
    return found is not None and found.state in ("begun", "requested", "sizes")


def wanted(vm: VirtrigaudVirtualMachine) -> str:
    """The name of the snapshot that a machine is to go back to; empty without one."""
    ref = vm.spec.snapshot.revertToRef if vm.spec.snapshot is not None else None
    return ref.name if ref is not None else ""


def blocker(vm: VirtrigaudVirtualMachine, status: VirtrigaudMachineStatus, snapshot: VMSnapshot | None) -> AspectValue | None:
    """The condition of a machine that cannot go back to the snapshot that it names; None if it can."""
    name = f"VMSnapshot {namespace_of(vm)}/{wanted(vm)}"
    if snapshot is None:
        return false(READY, reasons.WAITING, f"{name} does not exist; create it, or clear spec.snapshot.revertToRef")
    if snapshot.spec.vmRef.name != vm.metadata.name:
        text = f"{name} is of VirtualMachine {snapshot.spec.vmRef.name}; name a snapshot of this machine in spec.snapshot.revertToRef"
        return false(READY, reasons.VALIDATION_ERROR, text)
    place = records.place(snapshot)
    if records.is_complete(snapshot) and place is not None and place.machine_id != status.id:
        text = f"{name} is of a machine that this one has replaced; clear spec.snapshot.revertToRef"
        return false(READY, reasons.VALIDATION_ERROR, text)
    if not records.is_usable(snapshot):
        phase = records.of(snapshot).phase or "not taken yet"
        return false(READY, reasons.VALIDATION_ERROR, f"{name} is not Ready ({phase}); wait until it is, or name another one")
    return None


def is_recorded(conditions: Sequence[StatusCondition] | None) -> bool:
    """Return whether the status has a condition about a revert."""
    return any(each.type == REVERTED for each in conditions or ())

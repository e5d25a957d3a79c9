"""The events of a machine (docs/spec/kubevirt.md 2.7), from the change of its status."""

from collections.abc import Iterator, Sequence

import msgspec

from paddock.engine.machine.observation import Observation, RunEnd
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance import ends, suspension
from paddock.kubevirt.plan.instance.conditions import FAULTS
from paddock.kubevirt.plan.instance.phases import FINAL, RUNNING
from paddock.kubevirt.plan.instance.prerequisites import REFUSAL, REFUSED
from paddock.kubevirt.plan.instance.qemulog import legible


class InstanceEvent(msgspec.Struct, frozen=True):
    """An event of an instance. `kind` is Normal or Warning."""

    kind: str
    reason: str
    note: str


CREATED = InstanceEvent("Normal", "Created", "VirtualMachineInstance defined.")
STARTED = InstanceEvent("Normal", "Started", "VirtualMachineInstance started.")
STOPPING = InstanceEvent("Normal", "ShuttingDown", "Signaled Graceful Shutdown")
UNHEALTHY = InstanceEvent("Warning", "Unhealthy", "Liveness probe failed: the machine is ended.")
RESUMED = InstanceEvent("Normal", "Resumed", "The guest goes on where it was suspended.")
RESPONDING = InstanceEvent("Normal", "GuestResponding", "The guest can be used again.")
_ENDS = {
    "guest-shutdown": InstanceEvent("Normal", "Stopped", "The VirtualMachineInstance was shut down."),
    "guest-reboot": InstanceEvent("Normal", "Stopped", "The VirtualMachineInstance rebooted, which ends it."),
    "saved": InstanceEvent("Normal", "Stopped", "The VirtualMachineInstance was saved."),
    "discarded": InstanceEvent("Normal", "Stopped", "The saved state of the VirtualMachineInstance was discarded."),
    "killed": InstanceEvent("Normal", "Deleted", "Signaled Deletion"),
}


def events_between(
    before: VirtualMachineInstanceStatus, after: VirtualMachineInstanceStatus, observed: Observation | None
) -> Iterator[InstanceEvent]:
    """The events that follow when one status becomes another."""
    if after.phase == RUNNING and before.phase != RUNNING:
        yield CREATED
        yield STARTED
    if after.phase in FINAL and before.phase not in FINAL and observed is not None and observed.end is not None:
        yield _end(observed.end)
    yield from _faults(before.conditions or (), after.conditions or ())
    yield from _suspension(before, after)
    for each in after.conditions or ():
        if each in (before.conditions or ()):
            continue
        if each.type == "Synchronized" and each.status == "False":
            yield _unsynchronized(each)
        if each.type == "AccessCredentialsSynchronized":
            good = each.status == "True"
            reason = "AccessCredentialsSyncSuccess" if good else "AccessCredentialsSyncFailed"
            yield InstanceEvent("Normal" if good else "Warning", reason, each.message or "Access credentials sync successful.")


def _unsynchronized(condition: Condition) -> InstanceEvent:
    """Return the event of a failure. KubeVirt has a reason of its own for a launcher that is refused."""
    said = condition.message or condition.reason or ""
    if condition.reason == REFUSED:
        return InstanceEvent("Warning", REFUSED, said.replace(REFUSAL, "Error creating pod: ", 1))
    return InstanceEvent("Warning", "SyncFailed", said)


def _suspension(before: VirtualMachineInstanceStatus, after: VirtualMachineInstanceStatus) -> Iterator[InstanceEvent]:
    """The guest went to disk, or came back."""
    was, now = (holds(status.conditions, suspension.SUSPENDED) for status in (before, after))
    if now and not was:
        message = next(each.message for each in after.conditions or () if each.type == suspension.SUSPENDED)
        yield InstanceEvent("Normal", suspension.SAVED, message or "")
    elif was and not now and after.phase == RUNNING:
        yield RESUMED


def _faults(before: Sequence[Condition], after: Sequence[Condition]) -> Iterator[InstanceEvent]:
    """A fault when it comes, and its end."""
    old, new = (next((each for each in those if each.type == "Ready"), Condition()) for those in (before, after))
    if new.reason in FAULTS and new.reason != old.reason:
        yield InstanceEvent("Warning", new.reason or "", new.message or "")
    elif old.reason in FAULTS and new.status == "True":
        yield RESPONDING


def _end(end: RunEnd) -> InstanceEvent:
    if end.reason in _ENDS:
        return _ENDS[end.reason]
    return InstanceEvent("Warning", "Stopped", ends.crashed(end.reason, legible(end.text)))

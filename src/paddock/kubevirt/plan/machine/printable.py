"""The status of a machine in one word: an ordered table, the first row that holds wins (docs/spec/kubevirt.md 2.6)."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine.runstrategy import life_of

_FILLED = ("Succeeded", "PendingPopulation")
_STARTING = ("Pending", "Scheduling", "Scheduled")
_BROKEN = ("Error", "ImagePullFailed")


class ClaimedDisk(msgspec.Struct, frozen=True):
    """A disk whose content comes from a claim: its DataVolume, if it has one, and its claim, if it is there."""

    name: str
    # None: there is no DataVolume; empty: it has not said anything yet
    phase: str | None = None
    conditions: tuple[Condition, ...] = ()
    # of the claim; None: there is none
    claim: str | None = None
    # a DataVolume of this name is about to be made
    expected: bool = False

    @property
    def is_filled(self) -> bool:
        """True if a machine may start with it."""
        if self.phase is None:
            return self.claim is not None or not self.expected
        return self.phase in (*_FILLED, "WaitForFirstConsumer")

    @property
    def is_broken(self) -> bool:
        """True if its import has failed, for good or for now."""
        running = condition(self.conditions, "Running")
        return self.phase == "Failed" or (running is not None and running.status == "False" and running.reason in _BROKEN)

    @property
    def is_being_filled(self) -> bool:
        """True if its content is on its way."""
        if self.phase is None:
            return self.expected and self.claim is None
        return self.phase not in _FILLED and (self.claim == "Bound" or self.phase != "WaitForFirstConsumer")

    @property
    def is_unbound(self) -> bool:
        """True if its claim waits for a volume."""
        return self.claim is not None and self.claim != "Bound"


class PrintableFacts(msgspec.Struct, frozen=True):
    """Everything the word depends on."""

    machine: VirtualMachine
    instance: VirtualMachineInstance | None
    disks: Sequence[ClaimedDisk] = ()
    # a new instance is wanted, whatever holds it
    wants_start: bool = False
    # and nothing but disks holds it
    start_is_due: bool = False
    failing: bool = False

    @property
    def phase(self) -> str:
        """The phase of the instance; empty without one."""
        status = self.instance.status if self.instance is not None else None
        return (status.phase if status is not None else None) or ""

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """The conditions of the instance."""
        status = self.instance.status if self.instance is not None else None
        return {each.type: each for each in (status.conditions if status is not None else None) or ()}

    def is_refused(self, type: str, reason: str) -> bool:
        """Return whether a condition of the instance is False for this reason."""
        found = self.conditions.get(type)
        return found is not None and found.status == "False" and found.reason == reason


def condition(conditions: Sequence[Condition], type: str) -> Condition | None:
    """A condition by its type."""
    return next((each for each in conditions if each.type == type), None)


def _ending(printable_facts: PrintableFacts) -> bool:
    return printable_facts.instance is not None and printable_facts.instance.metadata.deletionTimestamp is not None


def _stopping(printable_facts: PrintableFacts) -> bool:
    return _ending(printable_facts) and not life_of(printable_facts.instance).final


def _migrating(printable_facts: PrintableFacts) -> bool:
    status = printable_facts.instance.status if printable_facts.instance is not None else None
    move = status.migrationState if status is not None else None
    return move is not None and move.startTimestamp is not None and not move.completed and not move.failed


def _paused(printable_facts: PrintableFacts) -> bool:
    found = printable_facts.conditions.get("Paused")
    return printable_facts.phase == "Running" and found is not None and found.status == "True"


def _suspended(printable_facts: PrintableFacts) -> bool:
    found = printable_facts.conditions.get("Suspended")
    return printable_facts.phase == "Running" and found is not None and found.status == "True"


def _wants_to_run(printable_facts: PrintableFacts) -> bool:
    return printable_facts.wants_start or (printable_facts.instance is not None and not life_of(printable_facts.instance).final)


def _is_down(printable_facts: PrintableFacts) -> bool:
    return printable_facts.instance is None or life_of(printable_facts.instance).final


ROWS: tuple[tuple[str, Callable[[PrintableFacts], bool]], ...] = (
    ("Terminating", lambda observed: observed.machine.metadata.deletionTimestamp is not None),
    ("Stopping", _stopping),
    ("Migrating", _migrating),
    ("Suspended", _suspended),
    ("Paused", _paused),
    ("Running", lambda observed: observed.phase == "Running"),
    ("ErrorPvcNotFound", lambda observed: observed.is_refused("Synchronized", "FailedPvcNotFound")),
    ("DataVolumeError", lambda observed: any(disk.is_broken for disk in observed.disks)),
    ("ErrorUnschedulable", lambda observed: observed.is_refused("PodScheduled", "Unschedulable")),
    ("Provisioning", lambda observed: any(disk.is_being_filled for disk in observed.disks)),
    ("WaitingForVolumeBinding", lambda observed: _wants_to_run(observed) and any(disk.is_unbound for disk in observed.disks)),
    ("ErrImagePull", lambda observed: observed.is_refused("Synchronized", "ErrImagePull")),
    ("ImagePullBackOff", lambda observed: observed.is_refused("Synchronized", "ImagePullBackOff")),
    ("Starting", lambda observed: observed.phase in _STARTING or observed.start_is_due),
    ("CrashLoopBackOff", lambda observed: observed.failing),
    # `Stopped` invites a start, a restore or a clone, so it has to mean that the stop is complete.
    ("Stopping", _ending),
    ("Stopped", _is_down),
    ("WaitingForReceiver", lambda observed: observed.phase == "WaitingForSync"),
)


def printable(printable_facts: PrintableFacts) -> str:
    return next((word for word, holds in ROWS if holds(printable_facts)), "Unknown")

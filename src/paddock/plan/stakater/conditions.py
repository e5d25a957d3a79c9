"""What is said of a machine in a condition: a status, one word for programs, a sentence for people."""

import msgspec

from paddock.meta.conditions import Condition

SYNCED, READY = "Synced", "Ready"


class ConditionValue(msgspec.Struct, frozen=True):
    """One condition without its type and time."""

    status: str
    reason: str
    message: str = ""

    def condition(self, type: str) -> Condition:
        """As it stands in a status."""
        return Condition(type=type, status=self.status, reason=self.reason, message=self.message or None)


def no(reason: str, message: str = "") -> ConditionValue:
    """It does not hold."""
    return ConditionValue("False", reason, message)


def creating(step: str) -> ConditionValue:
    """Not ready yet: the step that is under way."""
    return no("Creating", step)


SUCCESS = ConditionValue("True", "ReconcileSuccess")
AVAILABLE = ConditionValue("True", "Available")
PAUSED = no("ReconcilePaused", 'the annotation crossplane.io/paused is "true": nothing is written until it is removed')
PAUSE = "crossplane.io/paused"


class ApplyBlocker(msgspec.Struct, frozen=True):
    """Why nothing is applied at the moment. A wait that is no error leaves it open whether the machine is in step."""

    synced: ConditionValue
    # None: the machine is as ready as it is
    ready: ConditionValue | None = None


def waiting(reason: str, message: str) -> ApplyBlocker:
    """Something outside has to come first."""
    return ApplyBlocker(ConditionValue("Unknown", reason, message), no(reason, message))


def refused(reason: str, message: str) -> ApplyBlocker:
    """Somebody has to change something first."""
    return ApplyBlocker(no(reason, message))

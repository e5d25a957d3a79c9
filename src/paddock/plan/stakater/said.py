"""What is said of a machine in a condition: a status, one word for programs, a sentence for people."""

import msgspec

from paddock.meta.conditions import Condition

SYNCED, READY = "Synced", "Ready"


class Said(msgspec.Struct, frozen=True):
    """One condition without its type and time."""

    status: str
    reason: str
    message: str = ""

    def condition(self, type: str) -> Condition:
        """As it stands in a status."""
        return Condition(type=type, status=self.status, reason=self.reason, message=self.message or None)


def no(reason: str, message: str = "") -> Said:
    """It does not hold."""
    return Said("False", reason, message)


def creating(step: str) -> Said:
    """Not ready yet: the step that is under way."""
    return no("Creating", step)


SUCCESS = Said("True", "ReconcileSuccess")
AVAILABLE = Said("True", "Available")
PAUSED = no("ReconcilePaused", 'the annotation crossplane.io/paused is "true": nothing is written until it is removed')
PAUSE = "crossplane.io/paused"


class Hold(msgspec.Struct, frozen=True):
    """Why nothing is applied at the moment. A wait that is no error leaves it open whether the machine is in step."""

    synced: Said
    # None: the machine is as ready as it is
    ready: Said | None = None


def waiting(reason: str, message: str) -> Hold:
    """Something outside has to come first."""
    return Hold(Said("Unknown", reason, message), no(reason, message))


def refused(reason: str, message: str) -> Hold:
    """Somebody has to change something first."""
    return Hold(no(reason, message))

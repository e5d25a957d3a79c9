"""Conditions of VirtRigaud's kinds: each has a stable reason, a message that names the object at fault, and the observed generation."""

from collections.abc import Iterable, Sequence

import msgspec

from paddock.dialects.virtrigaud.kinds.shared import StatusCondition

READY, PROVISIONING, RECONFIGURING, DELETING = "Ready", "Provisioning", "Reconfiguring", "Deleting"
TLS = "TLSConfigured"
PLACEMENT = "Placement"
IMPORTED_DISK = "ImportedDisk"
POWER, RESTART_REQUIRED, UNSUPPORTED = "PowerTransition", "RestartRequired", "Unsupported"


class AspectValue(msgspec.Struct, frozen=True):
    """A condition without its time and generation."""

    type: str
    status: str
    reason: str
    message: str = ""
    # the time of the transition is that of this observation, though the status is the same
    anew: bool = False


def true(type: str, reason: str, message: str = "") -> AspectValue:
    return AspectValue(type, "True", reason, message)


def false(type: str, reason: str, message: str = "") -> AspectValue:
    """A condition that does not hold."""
    return AspectValue(type, "False", reason, message)


def find(conditions: Sequence[StatusCondition] | None, type: str) -> StatusCondition | None:
    """The condition of a type."""
    return next((each for each in conditions or () if each.type == type), None)


def holds(conditions: Sequence[StatusCondition] | None, type: str, reason: str = "") -> bool:
    """Return whether a condition is True, for this reason where one is given."""
    found = find(conditions, type)
    return found is not None and found.status == "True" and reason in ("", found.reason)


def settled(
    before: Sequence[StatusCondition] | None, aspect_values: Iterable[AspectValue], now: str, generation: int | None
) -> list[StatusCondition]:
    """The conditions with these values. One that says the same as before keeps its time; the others stay as they are."""
    found = {each.type: each for each in before or ()}
    for each in aspect_values:
        old = found.get(each.type)
        kept = old is not None and old.status == each.status and not each.anew
        since = old.lastTransitionTime if kept and old is not None else now
        found[each.type] = StatusCondition(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            lastTransitionTime=since,
            observedGeneration=generation,
        )
    return list(found.values())


def without(conditions: Sequence[StatusCondition] | None, *types: str) -> list[StatusCondition] | None:
    """The conditions without those of some types."""
    return [each for each in conditions or () if each.type not in types] or None

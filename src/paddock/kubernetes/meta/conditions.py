"""Conditions: what a controller has observed, for people and for `kubectl wait`."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from paddock.kubernetes.schema.field import Field, Object, Time

_LONGEST_REASON = 1024


class Condition(Object):
    """One observed aspect of an object."""

    type: Annotated[str, Field("The aspect.", required=True)] = ""
    status: Annotated[str, Field("Whether it holds.", required=True, enum=("True", "False", "Unknown"))] = ""
    reason: Annotated[str | None, Field("One word for programs.", max_length=_LONGEST_REASON)] = None
    message: Annotated[str | None, Field("A sentence for people: what, why, what to do.", max_length=32768)] = None
    lastTransitionTime: Annotated[Time | None, Field("When the status last changed.")] = None
    lastProbeTime: Annotated[Time | None, Field("When it was last looked at.", nullable=True)] = None
    observedGeneration: Annotated[int | None, Field("The generation this was observed for.", ge=0)] = None


def settled(before: Sequence[Condition] | None, conditions: Iterable[Condition], now: str) -> list[Condition]:
    """The conditions of a status after a check: the checked ones as found, the others as they were.

    The time of a transition stays while the status stays. When nothing differs the result equals `before`, so nothing is written.
    A reason that quotes an error is cut to its longest: the server would refuse the whole status for it.
    """
    found = {each.type: each for each in before or ()}
    for each in conditions:
        old = found.get(each.type)
        since = old.lastTransitionTime if old is not None and old.status == each.status and old.lastTransitionTime else now
        found[each.type] = msgspec.structs.replace(each, reason=each.reason and each.reason[:_LONGEST_REASON], lastTransitionTime=since)
    return list(found.values())


def holds(conditions: Sequence[Condition] | None, type: str) -> bool:
    """Return whether a condition is there and True."""
    return any(each.type == type and each.status == "True" for each in conditions or ())

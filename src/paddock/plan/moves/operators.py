"""Signs that an operator reconciles a dialect on a cluster. Without one, a machine that arrives there would never start."""

from collections.abc import Sequence
from typing import Any

from paddock.meta import ages
from paddock.plan.moves.moveplan import Hindrance

Data = dict[str, Any]
# Holders renew their leases every few seconds, but the clocks of the two computers may differ by minutes.
_FRESH_SECONDS = 300.0
# A controller gives a machine its first status sooner.
_YOUNG_SECONDS = 30.0


def missing(kind: str, dialect: str, leases: Sequence[Data] | None, machines: Sequence[Data], now: float) -> Hindrance:
    """Return a hindrance if no operator reconciles a dialect. `leases` are those of a cluster; None if the user may not see them.

    The names of the leases of `paddock operator` end with the dialect. Other operators show by the status that they write to machines.
    """
    start = f"start it there: paddock operator --dialect {dialect}"
    ours = [each for each in leases or () if str(each["metadata"]["name"]).endswith(f"-{dialect}")]
    if any(_is_held(each, now) for each in ours):
        return Hindrance()
    if ours:
        places = ", ".join(f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in ours)
        return Hindrance(f"no operator looks after {kind} at the target: nobody holds the lease {places}; {start}")
    if ignored := next((each for each in machines if not each.get("status") and _age(each, now) > _YOUNG_SECONDS), None):
        metadata = ignored["metadata"]
        return Hindrance(
            f"no operator looks after {kind} at the target: {metadata['namespace']}/{metadata['name']}, made "
            f"{ages.since(now - _age(ignored, now), now)} ago, has no status; {start}"
        )
    if any(each.get("status") for each in machines):
        return Hindrance()
    if leases is None:
        return Hindrance(
            f"you may not see whether an operator looks after {kind} at the target: without one, the move stops with the machine off",
            is_certain=False,
        )
    return Hindrance(
        f"no operator looks after {kind} at the target: there is no lease of one, and no machine with a status; {start}. If another "
        f"program reconciles them, create one machine there first"
    )


def _is_held(lease: Data, now: float) -> bool:
    spec = lease.get("spec") or {}
    renewed = ages.seconds_of(spec.get("renewTime") or "")
    return bool(spec.get("holderIdentity")) and renewed is not None and now - renewed < _FRESH_SECONDS


def _age(data: Data, now: float) -> float:
    return now - (ages.seconds_of(data["metadata"].get("creationTimestamp") or "") or now)

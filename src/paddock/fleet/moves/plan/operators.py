"""Signs that an operator reconciles a dialect on a cluster. Without one, a machine that arrives there would never start."""

from collections.abc import Sequence

from paddock.base.jsondata import Data
from paddock.fleet.moves.plan.moveplan import Hindrance
from paddock.kubernetes import catalog
from paddock.kubernetes.meta import ages

# Holders renew their leases every few seconds, but the clocks of the two computers may differ by minutes.
_FRESH_SECONDS = 300.0
# A controller gives a machine its first status sooner.
_YOUNG_SECONDS = 30.0
_PAUSES = tuple(machine.paused_by for dialect in catalog.fronts() for machine in dialect.machines if machine.paused_by)


def missing(kind: str, dialect: str, leases: Sequence[Data] | None, machines: Sequence[Data], now: float) -> Hindrance:
    """Return a hindrance if no operator reconciles a dialect. `leases` are those of a cluster; None if the user may not see them.

    The names of the leases of `paddock operator` end with the dialect. Other operators show by the status that they write to machines.
    """
    start = f"start it there: paddock operator --dialect {dialect}"
    ours = [each for each in leases or () if str(each["metadata"]["name"]).endswith(f"-{dialect}")]
    if any(_is_held(each, now) for each in ours):
        return Hindrance()
    # Another program may have taken over from one of ours, and a single machine may wait for something else.
    is_served = any(each.get("status") for each in machines)
    sign = ""
    if ours:
        places = ", ".join(f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in ours)
        sign = f"nobody holds the lease {places}"
    elif ignored := next((each for each in machines if _is_ignored(each, now)), None):
        metadata = ignored["metadata"]
        age = ages.since(now - _age(ignored, now), now)
        sign = f"{metadata['namespace']}/{metadata['name']}, made {age} ago, has no status"
    if sign and is_served:
        return Hindrance(f"perhaps no operator looks after {kind} at the target: {sign}; if so, {start}", is_certain=False)
    if sign:
        return Hindrance(f"no operator looks after {kind} at the target: {sign}; {start}")
    if is_served:
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


def _is_ignored(machine: Data, now: float) -> bool:
    """Return whether a controller would have given the machine a status."""
    annotations = machine["metadata"].get("annotations") or {}
    is_paused = any(annotations.get(each) == "true" for each in _PAUSES)
    return not machine.get("status") and not is_paused and _age(machine, now) > _YOUNG_SECONDS


def _age(data: Data, now: float) -> float:
    return now - (ages.seconds_of(data["metadata"].get("creationTimestamp") or "") or now)

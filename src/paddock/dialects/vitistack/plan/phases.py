"""The phases of a machine, as a table (docs/spec/vitistack.md section 3).

           +----------> Failed <-----------+
           |            ^    ^             |
    () -> Pending -> Creating -> Running <-> Stopped

Failed is the end for a generation: a new one, or another value of the annotation for it, begins at Pending again.
"""

from collections import deque
from collections.abc import Mapping

PENDING, CREATING, RUNNING, STOPPED, FAILED = "Pending", "Creating", "Running", "Stopped", "Failed"
# Nobody has said anything about the machine yet.
NEW = ""

NEXT: Mapping[str, tuple[str, ...]] = {
    NEW: (PENDING,),
    PENDING: (CREATING, FAILED),
    CREATING: (RUNNING, FAILED),
    RUNNING: (STOPPED, FAILED),
    STOPPED: (RUNNING, FAILED),
    FAILED: (),
}


def step(before: str, target: str, *, restarts: bool = False) -> str:
    """The next phase on the way to the one that holds. Where no way leads, the machine stays where it is."""
    if before == FAILED:
        return PENDING if restarts else FAILED
    return before if before == target else _first_step(before, target) or before


def _first_step(before: str, target: str) -> str | None:
    """Breadth first. A machine does not fail on its way elsewhere, so no way leads through Failed."""
    ways: deque[tuple[str, str]] = deque((each, each) for each in NEXT[before])
    met = {before}
    while ways:
        first, at = ways.popleft()
        if at == target:
            return first
        if at not in met and at != FAILED:
            met.add(at)
            ways.extend((first, each) for each in NEXT[at])
    return None

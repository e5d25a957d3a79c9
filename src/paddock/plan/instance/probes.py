"""Probes: when a machine counts as ready, and when as dead. The attempts themselves are somebody else's."""

from dataclasses import dataclass, replace
from typing import Literal

from paddock.dialects.kubevirt.access import Probe

Way = Literal["exec", "ping", "http", "tcp"]


@dataclass(frozen=True)
class ProbeSchedule:
    """How often a probe is made, and how many results in a row change the verdict. Zero and absent mean the default."""

    delay: int
    period: int
    timeout: int
    successes: int
    failures: int


@dataclass(frozen=True)
class ProbeVerdict:
    """What the results so far say. A machine is not ready before a probe has succeeded, and not dead before one has failed."""

    good: bool
    in_a_row: int = 0


def schedule_of(probe: Probe) -> ProbeSchedule:
    """The schedule of a probe, with defaults."""
    return ProbeSchedule(
        delay=probe.initialDelaySeconds or 0,
        period=probe.periodSeconds or 10,
        timeout=probe.timeoutSeconds or 1,
        successes=probe.successThreshold or 1,
        failures=probe.failureThreshold or 3,
    )


def way_of(probe: Probe) -> Way:
    """How the probe is made."""
    if probe.exec is not None:
        return "exec"
    if probe.guestAgentPing is not None:
        return "ping"
    return "http" if probe.httpGet is not None else "tcp"


def judged(before: ProbeVerdict, answered: bool, schedule: ProbeSchedule) -> ProbeVerdict:
    """The verdict after one more result."""
    if answered == before.good:
        return replace(before, in_a_row=0)
    count = before.in_a_row + 1
    needed = schedule.successes if answered else schedule.failures
    return ProbeVerdict(answered) if count >= needed else replace(before, in_a_row=count)


def suppressed(way: Way, *, paused: bool, busy: bool) -> bool:
    """A ping says nothing about a guest that was stopped on purpose: while it is paused, dumped, or snapshots are made of it."""
    return way == "ping" and (paused or busy)

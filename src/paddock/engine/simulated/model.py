"""The next event of a simulated guest. Pure: it follows from the observation and the behaviour, so that it goes on after a restart."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from paddock.engine.machine.observation import Observation
from paddock.engine.simulated.behaviour import Behaviour

What = Literal["begin", "run", "fail", "agent", "panic", "crash", "power-off", "reboot", "kill"]
# the milestone of a guest's last reset
RESET = "reset"


class GuestEvent(Struct, frozen=True):
    """Something that happens by itself."""

    what: What
    # seconds since the epoch
    at: float
    # the reason, where there is one
    text: str = ""


def next_event(observed: Observation, behaviour: Behaviour, *, has_agent: bool) -> GuestEvent | None:
    """Return the event that comes first; None if the guest only goes on. `has_agent`: the machine has a channel for an agent."""
    return min(_events(observed, behaviour, has_agent=has_agent), key=lambda each: each.at, default=None)


def _events(observed: Observation, behaviour: Behaviour, *, has_agent: bool) -> Iterator[GuestEvent]:
    times = observed.times
    if observed.phase == "queued":
        yield GuestEvent("begin", times.get("queued", 0.0))
    elif observed.phase == "starting":
        at = times.get("started", 0.0) + behaviour.start
        yield GuestEvent("fail", at, behaviour.start_failure) if behaviour.start_failure else GuestEvent("run", at)
    elif observed.phase == "stopping":
        yield GuestEvent("kill", observed.deadline)
        # A guest that stands still hears no button.
        if behaviour.obeys_power and not observed.paused and observed.deadline > times.get("stopping", 0.0):
            yield GuestEvent("power-off", times.get("stopping", 0.0) + behaviour.shutdown)
    elif observed.phase == "running" and not observed.paused:
        yield from _own(observed, behaviour, has_agent=has_agent)


def _own(observed: Observation, behaviour: Behaviour, *, has_agent: bool) -> Iterator[GuestEvent]:
    """The events of a guest that runs."""
    begun = observed.times.get("running", 0.0)
    if has_agent and behaviour.agent and not observed.agent:
        yield GuestEvent("agent", max(begun, observed.times.get(RESET, 0.0)) + behaviour.boot)
    if behaviour.panic_after is not None:
        yield GuestEvent("panic", begun + behaviour.panic_after)
    if behaviour.crash_after is not None:
        yield GuestEvent("crash", begun + behaviour.crash_after)
    if behaviour.shutdown_after is not None:
        yield GuestEvent("power-off", begun + behaviour.shutdown_after)
    if behaviour.reboot_after is not None and not observed.resets:
        yield GuestEvent("reboot", begun + behaviour.reboot_after)

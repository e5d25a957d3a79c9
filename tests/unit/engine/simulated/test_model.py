"""The next event of a simulated guest, from its observation alone."""

import pytest

from paddock.engine.machine.observation import Observation
from paddock.engine.simulated.behaviour import Behaviour
from paddock.engine.simulated.model import GuestEvent, next_event

RUNS = Observation(phase="running", times={"running": 100.0})
AGENT = Observation(phase="running", agent=True, times={"running": 100.0})
STOPS = Observation(phase="stopping", deadline=130.0, times={"stopping": 100.0})


@pytest.mark.parametrize(
    ("observed", "behaviour", "wanted"),
    [
        (Observation(), Behaviour(), None),
        (Observation(phase="queued", times={"queued": 5.0}), Behaviour(), GuestEvent("begin", 5.0)),
        (Observation(phase="starting", times={"started": 5.0}), Behaviour(start=2.0), GuestEvent("run", 7.0)),
        (Observation(phase="starting", times={"started": 5.0}), Behaviour(start=2.0, start_failure="no"), GuestEvent("fail", 7.0, "no")),
        (RUNS, Behaviour(boot=3.0), GuestEvent("agent", 103.0)),
        (RUNS, Behaviour(agent=False), None),
        (AGENT, Behaviour(), None),
        (AGENT, Behaviour(panic_after=1.0, crash_after=2.0), GuestEvent("panic", 101.0)),
        (AGENT, Behaviour(crash_after=2.0), GuestEvent("crash", 102.0)),
        (AGENT, Behaviour(shutdown_after=2.0), GuestEvent("power-off", 102.0)),
        (AGENT, Behaviour(reboot_after=2.0), GuestEvent("reboot", 102.0)),
        (Observation(phase="running", agent=True, resets=1, times={"running": 1.0}), Behaviour(reboot_after=2.0), None),
        (Observation(phase="running", resets=1, times={"running": 1.0, "reset": 9.0}), Behaviour(boot=1.0), GuestEvent("agent", 10.0)),
        (Observation(phase="running", paused="user", times={"running": 1.0}), Behaviour(panic_after=1.0), None),
        (STOPS, Behaviour(shutdown=4.0), GuestEvent("power-off", 104.0)),
        (STOPS, Behaviour(obeys_power=False), GuestEvent("kill", 130.0)),
        (STOPS, Behaviour(shutdown=99.0), GuestEvent("kill", 130.0)),
        (Observation(phase="stopping", deadline=100.0, times={"stopping": 100.0}), Behaviour(shutdown=0.0), GuestEvent("kill", 100.0)),
        (Observation(phase="suspended"), Behaviour(), None),
        (Observation(phase="ended"), Behaviour(panic_after=1.0), None),
    ],
)
def test_the_next_event(observed: Observation, behaviour: Behaviour, wanted: GuestEvent | None) -> None:
    assert next_event(observed, behaviour, has_agent=True) == wanted


def test_a_machine_without_a_channel_has_no_agent() -> None:
    assert next_event(RUNS, Behaviour(), has_agent=False) is None

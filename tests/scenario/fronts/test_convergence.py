"""Front doors come to the same end in any weather: requests and answers lost, refused and late, watches cut, news missed, restarts.

Every run of the tests plays some seeds of each dialect, `make weather` 10,000 in all. WEATHER=first:end says which to play.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.scenario.fronts.trial import calm, moves_of, stormy
from tests.scenario.fronts.weather_kubermatic import KUBERMATIC
from tests.scenario.fronts.weather_stakater import STAKATER
from tests.scenario.fronts.weather_vitistack import VITISTACK

DIALECTS = {"kubermatic": KUBERMATIC, "stakater": STAKATER, "vitistack": VITISTACK}
FIRST, END = (int(each) for each in os.environ.get("WEATHER", "0:50").split(":"))
IN_ONE_TEST = 25
# Storms over the same moves, so that good weather is played once for all of them.
STORMS = 5
# of real time, on however busy a machine
_LONGEST_SECONDS = 120


@contextmanager
def _ending(what: str) -> Iterator[None]:
    """In virtual time a loop without pauses never ends; a trial takes less than a second of a processor."""

    def give_up(*_: object) -> None:
        raise AssertionError(f"it does not end: {what}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("first", range(FIRST, END, IN_ONE_TEST))
@pytest.mark.parametrize("name", DIALECTS)
def test_the_end_does_not_depend_on_the_weather(name: str, first: int) -> None:
    dialect = DIALECTS[name]
    for seed in range(first, min(first + IN_ONE_TEST, END)):
        moves = moves_of(dialect, seed // STORMS)
        with _ending(f"WEATHER={seed}:{seed + 1}, {name}: {moves}"):
            assert stormy(dialect, moves, seed) == calm(dialect, moves), f"WEATHER={seed}:{seed + 1}, {name}: {moves}"


def test_a_defect_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers that take whatever is there for what is wanted end elsewhere."""
    monkeypatch.setattr("paddock.runtime.desired.DesiredSet._is_so", lambda self, wanted, data, digest, seen: seen is not None)
    broken = stormy(VITISTACK, (), 0)
    monkeypatch.undo()
    assert broken != calm(VITISTACK, ())

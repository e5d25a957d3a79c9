"""Front doors come to the same end in any weather: requests and answers lost, refused and late, watches cut, news missed, restarts.

Every run of the tests plays some seeds of each dialect, `make weather` 10,000 in all. WEATHER=first:end says which to play.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.scenario.fronts.trial import calm, moves_of, stormy
from tests.scenario.fronts.weather_kubermatic import KUBERMATIC
from tests.scenario.fronts.weather_stakater import STAKATER
from tests.scenario.fronts.weather_vitistack import VITISTACK

DIALECTS = {"kubermatic": KUBERMATIC, "stakater": STAKATER, "vitistack": VITISTACK}
FIRST, END = (int(each) for each in os.environ.get("WEATHER", "0:25").split(":"))
IN_ONE_TEST = 25
# Storms over the same moves, so that good weather is played once for all of them.
STORMS = 5


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Add the name of the trial to every error."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise


@pytest.mark.parametrize("first", range(FIRST, END, IN_ONE_TEST))
@pytest.mark.parametrize("name", DIALECTS)
def test_the_end_does_not_depend_on_the_weather(name: str, first: int) -> None:
    dialect = DIALECTS[name]
    for seed in range(first, min(first + IN_ONE_TEST, END)):
        moves = moves_of(dialect, seed // STORMS)
        with _named(f"WEATHER={seed}:{seed + 1}, {name}: {moves}"):
            assert stormy(dialect, moves, seed) == calm(dialect, moves)


def test_a_defect_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers that take whatever is there for what is wanted end elsewhere."""
    monkeypatch.setattr("paddock.runtime.desired.DesiredSet._is_so", lambda self, wanted, data, digest, seen: seen is not None)
    broken = stormy(VITISTACK, (), 0)
    monkeypatch.undo()
    assert broken != calm(VITISTACK, ())

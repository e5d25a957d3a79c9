"""Front doors come to the same end in any weather: requests and answers lost, refused and late, watches cut, news missed, restarts.

Every run of the tests plays some seeds of each dialect, `make weather` 1,000 of each. WEATHER=first:end says which to play, and
WHOLE=1 that a costly dialect has as many as the others.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scenario.fronts.trial import calm, moves_of, stormy
from tests.scenario.fronts.weather_kubermatic import KUBERMATIC
from tests.scenario.fronts.weather_stakater import STAKATER
from tests.scenario.fronts.weather_virtrigaud import VIRTRIGAUD, VIRTRIGAUD_OPERATIONS
from tests.scenario.fronts.weather_vitistack import VITISTACK

ROOT = Path(__file__).parents[3]
DIALECTS = {
    "kubermatic": KUBERMATIC,
    "stakater": STAKATER,
    "virtrigaud": VIRTRIGAUD,
    "virtrigaud-operations": VIRTRIGAUD_OPERATIONS,
    "vitistack": VITISTACK,
}
FIRST, END = (int(each) for each in os.environ.get("WEATHER", "0:25").split(":"))
IN_ONE_TEST = 25
# A dialect whose storms cost eight times as much plays the first of each test.
SAMPLES = {} if "WHOLE" in os.environ else {"virtrigaud-operations": 5}
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
    end = min(first + SAMPLES.get(name, IN_ONE_TEST), END)
    for seed in range(first, end):
        moves = moves_of(dialect, seed // STORMS)
        with _named(f"WEATHER={seed}:{seed + 1}, {name}: {moves}"):
            assert stormy(dialect, moves, seed) == calm(dialect, moves)


_PLAYED = """
import itertools, os, time
if "SLOW" in os.environ:
    time.perf_counter = itertools.count(1).__next__  # whatever is timed takes a second
from tests.scenario.fronts import test_convergence as weather
from tests.scenario.fronts.trial import WitnessedChance, moves_of, stormy
chance, dialect = WitnessedChance(756), weather.DIALECTS["virtrigaud-operations"]
stormy(dialect, moves_of(dialect, 756 // weather.STORMS), 756, chance)
print(chance.digest.hexdigest())
"""


def test_a_storm_follows_from_its_seed_alone() -> None:
    """Neither the hashes of texts, nor the places of objects in memory, nor the speed of the computer decide what comes first."""
    usual = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
    ways = [usual, {**usual, "PYTHONHASHSEED": "2", "SLOW": "1"}]
    found = [subprocess.run((sys.executable, "-c", _PLAYED), env=each, capture_output=True, check=True).stdout for each in ways]
    assert found[0] == found[1]


def test_a_defect_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers that take whatever is there for what is wanted end elsewhere."""
    monkeypatch.setattr("paddock.kubernetes.runtime.desired.DesiredSet._is_so", lambda self, wanted, data, digest, seen: seen is not None)
    broken = stormy(VITISTACK, (), 0)
    monkeypatch.undo()
    assert broken != calm(VITISTACK, ())


def test_a_machine_that_is_made_twice_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that does not look for its caller's machine makes a second one after a lost answer."""
    monkeypatch.setattr("paddock_drivers.fake.lifecycle.FakeLifecycle._existing", lambda self, request: None)
    made, _, removed = VIRTRIGAUD.moves[:3]
    problems = []
    for seed in range(5):
        try:
            stormy(VIRTRIGAUD, (removed, made) * 10, seed)
        except AssertionError as error:
            problems.append(str(error))
            if "left over" in problems[-1] or "two machines" in problems[-1]:
                return
    pytest.fail(f"no storm shows it: {problems}")

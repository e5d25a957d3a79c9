"""When results of a probe change its verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.dialects.kubevirt.access import Probe
from paddock.plan.instance import probes
from paddock.schema.field import Empty

THREE = probes.ProbeSchedule(delay=0, period=1, timeout=1, successes=2, failures=3)


def verdicts(good: bool, results: str) -> str:
    verdict, seen = probes.ProbeVerdict(good), ""
    for each in results:
        verdict = probes.judged(verdict, each == "+", THREE)
        seen += "R" if verdict.good else "."
    return seen


@pytest.mark.parametrize(
    ("good", "results", "seen"),
    [
        (False, "++", ".R"),
        (False, "+-++", "...R"),
        (True, "---", "RR."),
        (True, "--+---", "RRRRR."),
        (True, "---++", "RR..R"),
    ],
)
def test_results_in_a_row_change_the_verdict(good: bool, results: str, seen: str) -> None:
    assert verdicts(good, results) == seen


def test_zero_and_absent_mean_the_default() -> None:
    assert probes.schedule_of(Probe(periodSeconds=0)) == probes.ProbeSchedule(delay=0, period=10, timeout=1, successes=1, failures=3)


def test_a_ping_says_nothing_about_a_paused_guest() -> None:
    assert probes.way_of(Probe(guestAgentPing=Empty())) == "ping"
    assert probes.suppressed("ping", paused=True, busy=False)
    assert not probes.suppressed("exec", paused=True, busy=False)


@given(st.booleans(), st.lists(st.booleans(), max_size=30))
def test_a_verdict_never_changes_on_fewer_results_than_it_takes(good: bool, results: list[bool]) -> None:
    verdict, run = probes.ProbeVerdict(good), 0
    for index, each in enumerate(results):
        before = verdict
        verdict = probes.judged(verdict, each, THREE)
        run = run + 1 if index and results[index - 1] == each else 1
        if verdict.good != before.good:
            assert run >= (2 if each else 3)

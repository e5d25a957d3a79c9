"""Changes of a probe's verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta.pods import HTTPGetAction, HTTPHeader
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.access import Probe
from paddock.kubevirt.plan.instance import probes

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


def test_what_a_user_wrote_ends_no_line_of_a_request() -> None:
    action = HTTPGetAction(path="a b\r\nX: 1", port=80, httpHeaders=[HTTPHeader(name="A\r\nB", value="1\r\n\r\nGET /")])
    request = probes.http_request(action)
    assert request.endswith(b"\r\n\r\n") and request.count(b"\r\n\r\n") == 1
    assert request.split(b"\r\n")[0] == b"GET /a%20b%0D%0AX:%201 HTTP/1.1"
    assert b"\r\nAB: 1GET /\r\n" in request


@pytest.mark.parametrize(
    ("line", "good"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.0 301\r\n", True),
        (b"HTTP/1.1 404 Not Found\r\n", False),
        (b"HTTP/1.1 500 \r\n", False),
        (b"HTTP/1.1\r\n", False),
        (b"SSH-2.0-OpenSSH 200\r\n", False),
        (b"", False),
    ],
)
def test_an_answer_of_2xx_or_3xx_is_a_success(line: bytes, good: bool) -> None:
    assert probes.is_http_success(line) == good

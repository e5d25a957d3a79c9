"""The circuit breaker: ten failures open it, a minute later three probes decide."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract.breaker import BreakerSettings, BreakerState, CallOutcome, CircuitBreaker

OK, BAD, GIVEN_UP = CallOutcome.HEALTHY, CallOutcome.FAILED, CallOutcome.UNKNOWN


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hand() -> Hand:
    return Hand()


def breaker(now: Callable[[], float]) -> CircuitBreaker:
    return CircuitBreaker(BreakerSettings(), now)


def calls(target: CircuitBreaker, outcome: CallOutcome, count: int) -> None:
    for _ in range(count):
        assert target.wait() == 0
        target.leave(target.enter(), outcome)


@pytest.mark.spec("virtrigaud", 100)
def test_ten_failures_in_a_row_open_it(hand: Hand) -> None:
    target = breaker(hand)
    calls(target, BAD, 9)
    calls(target, OK, 1)
    calls(target, BAD, 9)
    assert target.wait() == 0
    calls(target, BAD, 1)
    assert target.state is BreakerState.OPEN
    assert target.wait() == 60


@pytest.mark.spec("virtrigaud", 100)
def test_three_probes_close_it(hand: Hand) -> None:
    target = breaker(hand)
    calls(target, BAD, 10)
    hand.now += 59.9
    assert target.wait() == pytest.approx(0.1)
    hand.now += 0.1
    periods = []
    for _ in range(3):
        assert target.wait() == 0
        periods.append(target.enter())
    assert target.wait() > 0, "a fourth call waits"
    for period in periods:
        assert target.state is BreakerState.HALF_OPEN
        target.leave(period, OK)
    assert target.state is BreakerState.CLOSED
    calls(target, BAD, 9)
    assert target.state is BreakerState.CLOSED


@pytest.mark.spec("virtrigaud", 100)
def test_one_failed_probe_opens_it_again(hand: Hand) -> None:
    target = breaker(hand)
    calls(target, BAD, 10)
    hand.now += 60
    calls(target, OK, 2)
    calls(target, BAD, 1)
    assert target.state is BreakerState.OPEN
    assert target.wait() == 60


def test_a_probe_that_is_given_up_makes_room(hand: Hand) -> None:
    target = breaker(hand)
    calls(target, BAD, 10)
    hand.now += 60
    calls(target, GIVEN_UP, 10)
    calls(target, OK, 3)
    assert target.state is BreakerState.CLOSED


def test_a_call_of_an_earlier_period_decides_nothing(hand: Hand) -> None:
    target = breaker(hand)
    slow = target.enter()
    calls(target, BAD, 10)
    hand.now += 60
    probe = target.enter()
    target.leave(slow, BAD)
    assert target.state is BreakerState.HALF_OPEN
    target.leave(probe, OK)
    assert target.wait() == 0


@given(st.lists(st.tuples(st.sampled_from(CallOutcome), st.integers(0, 40)), max_size=60))
def test_it_never_stays_shut(steps: list[tuple[CallOutcome, int]]) -> None:
    hand = Hand()
    target = breaker(hand)
    for outcome, pause in steps:
        hand.now += pause
        if target.wait() == 0:
            target.leave(target.enter(), outcome)
    hand.now += 60
    calls(target, OK, 3)
    assert target.state is BreakerState.CLOSED

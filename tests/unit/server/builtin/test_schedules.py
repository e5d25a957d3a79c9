"""Schedules of CronJobs that nothing can read."""

import pytest

from paddock.server.builtin.controllers import schedule_problem


@pytest.mark.parametrize(
    ("minutes", "why"),
    [
        ("9" * 5000, "failed to parse int from 99"),
        ("*/" + "9" * 5000, "failed to parse int from 99"),
        ("*/x", "failed to parse int from x: invalid step"),
        ("*/0", "step of range should be a positive number: */0"),
        ("\u0663", "failed to parse int from \u0663"),
    ],
)
def test_numbers_that_are_none(minutes: str, why: str) -> None:
    assert schedule_problem(f"{minutes} * * * *").startswith(why)

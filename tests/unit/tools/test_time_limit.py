"""A run with a limit leaves out what it cannot begin in time, and says so."""

import pytest

TESTS = "def test_first(): ...\ndef test_second(): ..."
# The run begins at 0, its tests at 10 and at 20.
CONFTEST = """
from tools.gate.plugin import TimeLimit
moments = iter((0, 10, 20))
def pytest_configure(config): config.pluginmanager.register(TimeLimit({limit}, lambda: next(moments)))
"""


@pytest.mark.parametrize(("limit", "passed", "left_out"), [(60, 2, 0), (15, 1, 1), (5, 0, 2)])
def test_what_begins_too_late_is_left_out(pytester: pytest.Pytester, limit: float, passed: int, left_out: int) -> None:
    pytester.makeconftest(CONFTEST.format(limit=limit))
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, skipped=left_out)
    assert (f"{left_out} tests were left out: the {limit:g} s of this run were over" in result.stdout.str()) == bool(left_out)

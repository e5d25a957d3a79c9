"""A run with a limit leaves out what it cannot begin in time, and says so."""

import pytest

TESTS = """
import time

def test_first():
    time.sleep({pause})

def test_second():
    pass
"""


@pytest.mark.parametrize(("limit", "passed", "left_out"), [(60, 2, 0), (0.2, 1, 1), (-1, 0, 2)])
def test_what_begins_too_late_is_left_out(pytester: pytest.Pytester, limit: float, passed: int, left_out: int) -> None:
    pytester.makeconftest(
        f"from tests.conftest import TimeLimit\ndef pytest_configure(config): config.pluginmanager.register(TimeLimit({limit}))"
    )
    pytester.makepyfile(TESTS.format(pause=0.3 if limit == 0.2 else 0))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, skipped=left_out)
    assert (f"{left_out} tests were left out: the {limit:g} s of this run were over" in result.stdout.str()) == bool(left_out)

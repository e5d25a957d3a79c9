"""Second attempts in real pytest runs, in one process and with workers."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tools.gate.attempts import SecondAttempts

def pytest_configure(config):
    config.pluginmanager.register(SecondAttempts())
"""
# The first attempt of each leaves a file and fails.
FLAKY = """
import pytest
from pathlib import Path
@pytest.mark.parametrize("number", range({count}))
def test_flaky(number):
    mark = Path(__file__).with_name(f"tried-{{number}}")
    tried = mark.exists()
    mark.touch()
    assert tried
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize(("count", "code"), [(1, 0), (5, 0), (6, 1)])
def test_a_few_tests_may_pass_at_their_second_attempt_and_are_named(
    pytester: pytest.Pytester, workers: tuple[str, ...], count: int, code: int
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_flaky=FLAKY.format(count=count))
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider", *workers)
    assert ran.ret == code
    named = [line for line in ran.outlines if line.startswith("passed only at the second attempt: ")]
    assert len(set(named)) == count and "passed only at the second attempt: test_flaky.py::test_flaky[0]" in named
    assert any(line.startswith(f"RED: {count} tests passed only") for line in ran.outlines) == bool(code)


def test_the_second_attempt_has_fixtures_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        """
        import pytest
        made = []
        @pytest.fixture(scope="module")
        def server():
            made.append(0)
            if len(made) == 1:
                raise OSError("the port is taken")
            yield len(made)
        def test_one(server): assert server == 2
        def test_two(server): assert server == 2
        """
    )
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert ran.ret == 0
    ran.assert_outcomes(passed=2)
    assert "passed only at the second attempt: test_the_second_attempt_has_fixtures_of_its_own.py::test_one" in ran.outlines


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_is_broken_fails_twice(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("def test_broken():\n    assert 0")
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider", *workers)
    assert ran.ret == 1
    ran.assert_outcomes(failed=1)
    assert "second attempt" not in ran.stdout.str()

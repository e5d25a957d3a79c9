"""The list of what costs most, in one process and with workers."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# Start and collection take 7 s, and each phase of a test takes 1 s; the child of a worker reads the same clock.
CONFTEST = f"""
import itertools, sys
sys.path.insert(0, {str(ROOT)!r})
from tools.gate.cputimes import CpuTimes
def pytest_configure(config): config.pluginmanager.register(CpuTimes(1, itertools.count(7.0).__next__))
"""


@pytest.mark.parametrize(("workers", "before"), [((), "7.0"), (("-n1",), "7.0"), (("-n2",), "7.0 + 7.0")])
def test_the_most_expensive_are_listed(pytester: pytest.Pytester, workers: tuple[str, ...], before: str) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_a="def test_one(): ...", test_b="import pytest\n@pytest.mark.skip\ndef test_two(): ...\ndef test_three(): ...")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *workers)
    result.assert_outcomes(passed=2, skipped=1)
    # A test that is skipped before it begins has two phases.
    result.stdout.fnmatch_lines([f"8.0 s in 3 tests; before the first of each process {before} s"])
    listed = [line.split() for line in result.stdout.lines if " s test_" in line]
    assert [each for each, *_ in listed] == ["5.00", "3.00"]
    assert listed[0][2] == "test_b.py"


def test_the_time_of_children_counts(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST.replace("(1, itertools.count(7.0).__next__)", "(1)"))
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    pytester.makepyfile(test_a=f"import subprocess, sys\ndef test_one(): subprocess.run([sys.executable, '-S', '-c', {busy!r}])")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    (seconds,) = [float(line.split()[0]) for line in result.stdout.lines if "::test_one" in line]
    assert seconds >= 0.3

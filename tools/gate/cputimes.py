"""Lists the tests and modules that take most CPU time, including that of their child processes.

The time of a child counts where the child is waited for, so a server of a module counts for the test that ends it. A fixture counts for
the test that makes it first. With pytest-xdist each worker measures, and the process that controls them adds up.
"""

import heapq
import resource
from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest

from tools.gate.record import module_of

_CPU = "cpu-seconds"


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that it waited for."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class CpuTimes:
    """The CPU time of each test of a run, from the end of the one before it."""

    def __init__(self, shown: int, clock: Callable[[], float] = cpu_seconds) -> None:
        self._shown = shown
        self._clock = clock
        self._last = 0.0
        self._before: list[float] = []
        self._tests: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the CPU time of start and collection; the process that controls workers collects nothing."""
        self._last = self._clock()
        if session.items:
            self._before.append(self._last)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> None:
        """Note the CPU time of the phase of a test that has just ended."""
        now = self._clock()
        item.user_properties.append((_CPU, now - self._last))
        self._last = now

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the phases of a test: the report of the last has them all."""
        if report.when == "teardown":
            spent = (seconds for name, seconds in report.user_properties if name == _CPU)
            self._tests[report.nodeid] += sum(seconds for seconds in spent if isinstance(seconds, float))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send what this worker took before its first test to the process that controls it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_CPU] = self._before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive what a worker took before its first test."""
        self._before += getattr(node, "workeroutput", {}).get(_CPU, ())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the sum and the two lists."""
        before = " + ".join(f"{seconds:.1f}" for seconds in self._before)
        terminalreporter.section("CPU time")
        terminalreporter.write_line(
            f"{sum(self._tests.values()):.1f} s in {len(self._tests)} tests; before the first of each process {before} s"
        )
        modules: defaultdict[str, float] = defaultdict(float)
        for node, seconds in self._tests.items():
            modules[module_of(node)] += seconds
        for each in (modules, self._tests):
            terminalreporter.write_line("")
            for node, seconds in heapq.nlargest(self._shown, each.items(), key=itemgetter(1)):
                terminalreporter.write_line(f"{seconds:8.2f} s {node}")

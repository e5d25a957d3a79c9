"""Names the tests that failed and passed at their second attempt, and fails a run that has too many of them.

pytest-rerunfailures repeats a test. One test in twenty thousand that loses a race on a busy machine does not make a run red, but everybody
reads its name; more of them say that something is wrong.
"""

import pytest

LIMIT = 5


class SecondAttempts:
    """What failed once and was tried again."""

    def __init__(self) -> None:
        self._failed_first: list[str] = []
        self._failed_again: set[str] = set()

    @property
    def flaky(self) -> list[str]:
        """Return the tests that passed at their second attempt."""
        return [each for each in self._failed_first if each not in self._failed_again]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a first attempt that failed, and a second one that did, too."""
        if report.outcome == "rerun":
            self._failed_first.append(report.nodeid)
        elif report.failed:
            self._failed_again.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail for too many."""
        if exitstatus == pytest.ExitCode.OK and len(self.flaky) > LIMIT:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Not to be overlooked."""
        flaky = self.flaky
        if len(flaky) > LIMIT:
            terminalreporter.write_line(f"RED: {len(flaky)} tests passed only at their second attempt; {LIMIT} are tolerated", red=True)
        for test in flaky:
            terminalreporter.write_line(f"passed only at the second attempt: {test}", yellow=True)

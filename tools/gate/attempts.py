"""A failed test is tried once more; what passes then is named, and too much of it fails the run.

One test in twenty thousand that loses a race on a busy machine does not make a run red, but everybody reads its name. More of them say that
something is wrong.
"""

import pytest
from _pytest.runner import runtestprotocol

LIMIT = 5
_AGAIN = "rerun"


class SecondAttempts:
    """What failed once and was tried again."""

    def __init__(self) -> None:
        self._failed_first: list[str] = []
        self._failed_again: set[str] = set()

    @property
    def flaky(self) -> list[str]:
        """Return the tests that passed at their second attempt."""
        return [each for each in self._failed_first if each not in self._failed_again]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and again with fixtures of its own if it fails."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        first = next((each for each in reports if each.failed), None)
        if first is not None and not item.session.shouldstop:
            _name_outcome(first)
            item.ihook.pytest_runtest_logreport(report=first)
            # What a module or the session has made may be what went wrong.
            item.session._setupstate.teardown_exact(None)
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for each in reports:
            item.ihook.pytest_runtest_logreport(report=each)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """Show a first attempt that failed."""
        return (_AGAIN, "R", "RERUN") if _outcome_of(report) == _AGAIN else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a first attempt that failed, and a second one that did, too."""
        if _outcome_of(report) == _AGAIN:
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
        for report in terminalreporter.getreports(_AGAIN):
            if report.nodeid in flaky:
                terminalreporter.write_line(f"passed only at the second attempt: {report.nodeid}", yellow=True)
                terminalreporter.write_line(str(report.longreprtext))


def _outcome_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    return report.outcome


def _name_outcome(report: pytest.TestReport) -> None:
    """Give a report an outcome that is neither a pass nor a failure."""
    setattr(report, "outcome", _AGAIN)  # noqa: B010 - pytest has no such outcome

"""What every test shares: golden files, the property tests' profiles and the record of what proves which spec item."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.golden import Golden
from tools.conformance.plugin import ConformanceRecorder

ROOT = Path(__file__).resolve().parent.parent

# The ordinary run is repeatable: the same examples every time. `make soak` looks for new ones, many more.
settings.register_profile("test", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, max_examples=3000, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paddock")
    group.addoption("--golden-update", action="store_true", help="rewrite golden files instead of comparing with them")
    group.addoption("--limit", type=float, metavar="SECONDS", help="leave out the tests that would begin later than that, and say how many")
    group.addoption("--conformance-results", metavar="FILE", help="write which spec items were tested, with outcomes")


def pytest_configure(config: pytest.Config) -> None:
    results = config.getoption("--conformance-results")
    config.pluginmanager.register(ConformanceRecorder(spec_folder=ROOT / "docs" / "spec", results=Path(results) if results else None))
    if config.getoption("--limit") is not None:
        config.pluginmanager.register(TimeLimit(config.getoption("--limit")))


def pytest_sessionstart(session: pytest.Session) -> None:
    # Servers of tests are kept apart like any others, but not in this host's own record.
    os.environ["PADDOCK_HOST_DIR"] = tempfile.mkdtemp(prefix="paddock-claims-")


def pytest_sessionfinish(session: pytest.Session) -> None:
    shutil.rmtree(os.environ["PADDOCK_HOST_DIR"], ignore_errors=True)


class TimeLimit:
    """A run that has to end in time leaves out what it cannot begin any more, instead of being cut off."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds
        self._left_out = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Before any fixture of the test is made."""
        if self._clock() > self._end:
            self._left_out += 1
            pytest.skip(f"no time: the run was given {self._seconds:g} s")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Not to be overlooked."""
        if self._left_out:
            terminalreporter.write_line(f"{self._left_out} tests were left out: the {self._seconds:g} s of this run were over", red=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(folder=request.path.parent, update=bool(request.config.getoption("--golden-update")))

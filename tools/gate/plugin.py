"""The pytest side: a run that has to end in time leaves out what it cannot begin, and a record says what that is worth.

With pytest-xdist each worker chooses and leaves out alike, and the process that controls them judges.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tools.gate import record, usage, verdict
from tools.gate.record import Outcome, Record, Run, module_of

_LEFT_OUT = "left-out"
_COLLECTED = "gate-collected"
PARTS = ("missing", "covered")


class TimeLimit:
    """A run that has to end in time leaves out what it cannot begin any more, instead of being cut off."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds
        self._left_out: set[str] = set()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Run after marks and needs have skipped what they skip anyway, and before any fixture of the test is made."""
        if self._clock() > self._end:
            item.user_properties.append((_LEFT_OUT, self._seconds))
            pytest.skip(f"no time: the run was given {self._seconds:g} s")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count here as well as in the recorder: a run without a record says what it left out."""
        if is_left_out(report):
            self._left_out.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Not to be overlooked."""
        if self._left_out:
            terminalreporter.write_line(
                f"{len(self._left_out)} tests were left out: the {self._seconds:g} s of this run were over", red=True
            )


def is_left_out(report: pytest.TestReport) -> bool:
    """Return whether a test was left out for want of time."""
    return report.skipped and any(name == _LEFT_OUT for name, _ in report.user_properties)


@dataclass(frozen=True, slots=True)
class Settings:
    """The record of a suite, what to do with it, and the command that writes it."""

    file: Path
    root: Path
    writes: bool = False
    part: str = ""
    command: str = ""


@dataclass(slots=True)
class _Seen:
    """The tests of a run."""

    collected: list[str] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)


class SuiteRecorder:
    """Orders a suite by its record, judges what the run leaves out, and writes what passed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._record = record.read(settings.file) if settings.file.exists() else None
        self._seen = _Seen()
        self._digests: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._verdict = verdict.Verdict(0)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Put first what the record does not prove; a part of the suite is those tests, or the others."""
        self._look([item.nodeid for item in items])
        proven = {item.nodeid for item in items if self._is_proven(item.nodeid)}
        items.sort(key=lambda item: item.nodeid in proven)
        if self._settings.part:
            wanted = [item for item in items if (item.nodeid in proven) == (self._settings.part == "covered")]
            config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
            items[:] = wanted

    def _look(self, nodes: Sequence[str]) -> None:
        self._seen.collected = list(nodes)
        self._counts = Counter(module_of(node) for node in nodes)
        root = self._settings.root
        self._digests = dict(usage.digests(self._counts, repository_files(root), lambda file: (root / file).read_bytes()))

    def _is_proven(self, node: str) -> bool:
        module = module_of(node)
        return self._record is not None and self._record.proof(node, self._digests[module], self._counts[module]) is not None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The process that controls workers collects nothing itself: each of them tells at its end what it collected."""
        if not self._seen.collected:
            self._look(getattr(node, "workeroutput", {}).get(_COLLECTED, ()))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ended; an expected failure is a pass."""
        node, seen = report.nodeid, self._seen
        if is_left_out(report):
            seen.left_out.add(node)
        elif report.failed:
            seen.failed.add(node)
        elif report.skipped:
            seen.outcomes[node] = "passed" if hasattr(report, "wasxfail") else "skipped"
        elif report.when == "teardown":
            # One that was interrupted has not ended, and says nothing.
            seen.outcomes.setdefault(node, "passed")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge, and write."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_COLLECTED] = self._seen.collected
            return
        self._verdict = verdict.judge(self._record, self._seen.left_out, self._digests, self._counts)
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._settings.part:
            session.exitstatus = pytest.ExitCode.OK
        if exitstatus == pytest.ExitCode.OK and self._verdict.red:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._settings.writes:
            self._write(session.config)

    def _write(self, config: pytest.Config) -> None:
        seen, root = self._seen, self._settings.root
        outcomes = {node: outcome for node, outcome in seen.outcomes.items() if node not in seen.failed | seen.left_out}
        run = Run(
            commit=commit_of(root),
            date=time.strftime("%Y-%m-%d", time.gmtime()),
            digests=self._digests,
            collected=frozenset(seen.collected),
            outcomes=outcomes,
            failed=frozenset(seen.failed),
            # Named tests and names are a part of a module, which says nothing of the rest of it.
            whole=not config.option.keyword and not any("::" in argument for argument in config.args),
        )
        new = (self._record or Record()).with_run(run, frozenset(repository_files(root)))
        self._settings.file.write_text(record.render(new), encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what it is worth that tests were left out."""
        for line in verdict.lines(self._verdict, self._settings.command):
            terminalreporter.write_line(line, red=self._verdict.red)


def repository_files(root: Path) -> list[str]:
    """Return the files that Git follows, relative to the root; a clone without history has them all. Without Git, what lies there."""
    ran = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if ran.returncode == 0:
        found = ran.stdout.decode().split("\0")
    else:
        found = [str(each.relative_to(root)) for each in root.rglob("*") if not _is_made(each.relative_to(root))]
    return [each for each in found if each and (root / each).is_file()]


def _is_made(path: Path) -> bool:
    """Return whether a path is in what tools make and Git does not follow."""
    return any(part in ("__pycache__", "build", "dist") or part.endswith(".egg-info") or part in _CACHES for part in path.parts)


_CACHES = (".git", ".venv", ".cache", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".import_linter_cache")


def commit_of(root: Path) -> str:
    """Return the commit that is checked out, in short."""
    ran = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"

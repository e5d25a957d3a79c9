"""The pytest side: a run that has to end in time leaves out what it cannot begin, and a record says what that is worth.

With pytest-xdist each worker chooses and leaves out alike, and the process that controls them judges.
"""

import hashlib
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tools.gate import record, usage, verdict
from tools.gate.record import Code, Record, Run, module_of
from tools.gate.verdict import Policy, Verdict

_LEFT_OUT = "left-out"
_COLLECTED = "gate-collected"
PARTS = ("missing", "covered")
# The choices by marks that leave out nothing that a record speaks of.
_EVERYTHING = ("", "not soak")


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
    policy: Policy = field(default_factory=Policy)


@dataclass(slots=True)
class _Seen:
    """The tests of a run; those that were skipped with the reason."""

    collected: list[str] = field(default_factory=list)
    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)


class SuiteRecorder:
    """Orders a suite by its record, judges what the run leaves out, and writes what passed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._record = record.read(settings.file) if settings.file.exists() else Record()
        self._seen = _Seen()
        self._code = Code({}, {})
        self._verdict = Verdict()

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
        if self._settings.part == "covered":
            # The time may end before they do, so each commit begins with others.
            commit = commit_of(self._settings.root)
            items.sort(key=lambda item: hashlib.sha256(f"{commit} {module_of(item.nodeid)}".encode()).digest())

    def _look(self, nodes: Sequence[str]) -> None:
        self._seen.collected = list(nodes)
        counts = Counter(module_of(node) for node in nodes)
        self._code = Code(digests(self._settings.root, counts), counts)

    def _is_proven(self, node: str) -> bool:
        proof = self._record.proof(node, self._code)
        return proof is not None and proof.digest == self._code.digest_of(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The process that controls workers collects nothing itself: each of them tells at its end what it collected."""
        if not self._seen.collected:
            self._look(getattr(node, "workeroutput", {}).get(_COLLECTED, ()))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that skips itself as a whole."""
        if report.skipped:
            self._seen.skipped[report.nodeid] = reason_of(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ended; an expected failure is a pass."""
        node, seen = report.nodeid, self._seen
        if report.failed:
            seen.failed.add(node)
        elif report.skipped and not hasattr(report, "wasxfail"):
            seen.skipped[node] = reason_of(report)
        elif report.when == "teardown" and node not in seen.skipped:
            # One that was interrupted has not ended, and says nothing.
            seen.passed.add(node)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge, and write."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_COLLECTED] = self._seen.collected
            return
        self._verdict = verdict.judge(self._record, self._seen.skipped, self._code, self._settings.policy, today())
        if exitstatus == pytest.ExitCode.OK or (exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._settings.part):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if self._verdict.red else pytest.ExitCode.OK
        if self._settings.writes:
            self._write(session.config)

    def _write(self, config: pytest.Config) -> None:
        seen, root = self._seen, self._settings.root
        run = Run(
            commit=commit_of(root),
            date=today(),
            digests=self._code.digests,
            collected=frozenset(seen.collected),
            passed=frozenset(seen.passed - seen.failed),
            failed=frozenset(seen.failed),
            # Named tests, names and marks choose a part of a module, which says nothing of the rest of it.
            whole=not config.option.keyword
            and config.option.markexpr in _EVERYTHING
            and not any("::" in argument for argument in config.args),
        )
        new = self._record.with_run(run, frozenset(repository_files(root)))
        self._settings.file.write_text(record.render(new), encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what it is worth that tests were left out."""
        for line in verdict.lines(self._verdict, len(self._seen.passed | self._seen.failed), self._settings.command):
            terminalreporter.write_line(line, red=self._verdict.red)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test was skipped."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def today() -> str:
    """Return the date, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def digests(root: Path, modules: Iterable[str]) -> Mapping[str, str]:
    """Return the digest of the code that each test module of a repository uses."""
    return usage.digests(modules, repository_files(root), lambda file: (root / file).read_bytes())


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

"""The pytest side: checks each ``@pytest.mark.spec(name, *items)`` at collection and records how the test ended.

A mark of an item that has clauses names them after the item: ``@pytest.mark.spec("kube-api", 27, "labels")``.

The items travel as user properties of the test reports. With pytest-xdist the workers' reports reach the controlling
process with their properties, so only that process writes the file and nothing has to be merged.

A run of a part keeps what the file says of tests that were left out: those of files that were not looked at, those that a choice of
names or marks passed over, and those that were skipped. What is there no more goes. A test that is skipped because the machine lacks
something counts as skipped when the file knows nothing of it; one that the run had no time for says nothing. Workers collect, and tell the
controlling process what they found.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tools.conformance import checklist, clauses
from tools.conformance.results import ItemId, Outcome, ProviderRun, TestResult, parse_item, parse_run, read, write

Digests = Callable[[Iterable[str]], Mapping[str, str]]

_PROPERTY = "spec-item"
# A run leaves tests out for these reasons, which say nothing of the machine.
_LEFT_OUT = ("slow: ", "no time: ")
# A run of the providers' conformance suite.
RUN_PROPERTY = "provider-run"
# Members of what a worker tells at its end.
_SEEN, _CHOSEN = "conformance-seen", "conformance-chosen"


class WrongMark(Exception):
    """A mark names no item of a spec."""


@dataclass(frozen=True, slots=True)
class SpecChoice:
    """One item, or one clause of it; pytest runs the tests that are marked with it: ``--spec-item "kube-api 140 DeviceClass"``."""

    spec: str
    number: int
    clause: str = ""

    @classmethod
    def parse(cls, text: str) -> "SpecChoice":
        spec, number, *clause = text.split(" ", 2)
        return cls(spec, int(number), *clause)

    def is_named_by(self, mark: pytest.Mark) -> bool:
        words = [self.spec, self.number, *([self.clause] if self.clause else [])]
        return set(words) <= set(mark.args)


class SpecChoices:
    """Keeps the tests whose marks name one of the items or clauses."""

    def __init__(self, choices: Sequence[SpecChoice]) -> None:
        self._choices = choices

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if any(self._is_named_by(mark) for mark in item.iter_markers("spec"))]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen

    def _is_named_by(self, mark: pytest.Mark) -> bool:
        return any(choice.is_named_by(mark) for choice in self._choices)


class ConformanceRecorder:
    """One per pytest process; writes ``results`` at the end when a path was given, with the ``digests`` of the tests' code if asked to."""

    def __init__(self, *, spec_folder: Path, results: Path | None, digests: Digests = lambda files: {}) -> None:
        self._spec_folder = spec_folder
        self._results = results
        self._digests = digests
        self._items: dict[str, tuple[ItemId, ...]] = {}
        self._runs: dict[str, tuple[ProviderRun, ...]] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._skipped: set[str] = set()
        self._left_out_nodes: set[str] = set()
        # the tests of every collected file, and those that the run chose of them
        self._seen: set[str] = set()
        self._chosen: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A wrong mark is an error of its file's collection, which fails the run and is shown, with workers too."""
        report = yield
        try:
            for node in report.result if report.passed else ():
                if isinstance(node, pytest.Item):
                    self._seen.add(node.nodeid)
                    self._note_items(node)
        except WrongMark as error:
            report.outcome, report.longrepr, report.result = "failed", str(error), []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        items = tuple(parse_item(str(value)) for name, value in report.user_properties if name == _PROPERTY)
        runs = tuple(parse_run(str(value)) for name, value in report.user_properties if name == RUN_PROPERTY)
        if report.when == "teardown" and (items or runs) and report.nodeid not in self._left_out_nodes:
            # One that was interrupted has not ended, and says nothing.
            self._items[report.nodeid] = items
            self._runs[report.nodeid] = runs
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.add(report.nodeid)
            if _reason(report).startswith(_LEFT_OUT):
                self._left_out_nodes.add(report.nodeid)
        self._outcomes[report.nodeid] = _worse(self._outcomes.get(report.nodeid, "passed"), _outcome(report))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended. One that crashed tells nothing, and the others have collected the same."""
        told = getattr(node, "workeroutput", None) or {}
        self._seen.update(told.get(_SEEN, ()))
        self._chosen.update(told.get(_CHOSEN, ()))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._chosen.update(item.nodeid for item in session.items)
        told = getattr(session.config, "workeroutput", None)
        if told is not None:
            told.update({_SEEN: sorted(self._seen), _CHOSEN: sorted(self._chosen)})
        if self._results is None or told is not None:
            return
        results = {result.node: result for result in (*self._ran(), *self._left_out(session))}
        write(self._results, results.values())

    def _ran(self) -> Iterator[TestResult]:
        digests, date = self._digests({_file(node) for node in self._items}), time.strftime("%Y-%m-%d", time.gmtime())
        for node, items in self._items.items():
            yield TestResult(node, items, self._outcomes[node], self._runs[node], digests.get(_file(node), ""), date)

    def _left_out(self, session: pytest.Session) -> Iterable[TestResult]:
        """Yield the known results of tests that did not run."""
        if not self._seen or self._results is None or not self._results.exists():
            return
        files = {_file(node) for node in self._seen}
        for result in read(self._results):
            there = result.node in self._seen if _file(result.node) in files else (session.config.rootpath / _file(result.node)).exists()
            if there and (result.node not in self._chosen or result.node in self._skipped):
                yield result

    def _note_items(self, test: pytest.Item) -> None:
        markers = list(test.iter_markers("spec"))
        proved = {item for marker in markers for item in items_of(marker, self._totals, self._clauses, test.nodeid)}
        test.user_properties.extend((_PROPERTY, f"{spec}:{number}") for spec, number in sorted(proved))

    @cached_property
    def _checklists(self) -> Mapping[str, Sequence[checklist.Item]]:
        return checklist.read_checklists(self._spec_folder)

    @cached_property
    def _totals(self) -> Mapping[str, int]:
        return {spec: len(items) for spec, items in self._checklists.items()}

    @cached_property
    def _clauses(self) -> Mapping[ItemId, Sequence[str]]:
        return clauses.read_clauses(self._spec_folder / "clauses.toml", self._checklists)


def items_of(marker: pytest.Mark, totals: Mapping[str, int], clauses_of: Mapping[ItemId, Sequence[str]], node: str) -> Iterable[ItemId]:
    """The items that one marker names, each of which the specs must have."""
    if marker.kwargs or len(marker.args) < 2 or not isinstance(marker.args[0], str):
        raise WrongMark(f'{node}: write @pytest.mark.spec("stakater", 14) with a spec and at least one item')
    spec, *rest = marker.args
    named = [each for each in rest[1:] if isinstance(each, str)]
    numbers = [each for each in rest if each not in named]
    if spec not in totals:
        raise WrongMark(f"{node}: there is no spec {spec!r}; the specs are {', '.join(totals)}")
    for number in numbers:
        if type(number) is not int or not 1 <= number <= totals[spec]:
            raise WrongMark(f"{node}: spec {spec} has the items 1 to {totals[spec]}, not {number!r}")
        known = clauses_of.get((spec, number), ())
        if bool(known) != bool(named) or not set(named) <= set(known):
            wanted = f"the clauses {', '.join(map(repr, known))}; name those that the test proves" if known else "no clauses"
            raise WrongMark(f"{node}: item {number} of {spec} has {wanted}")
        yield spec, number


def _file(node: str) -> str:
    return node.partition("::")[0]


def _reason(report: pytest.TestReport) -> str:
    """Return the reason of a skipped test."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return text.removeprefix("Skipped: ")


def _outcome(report: pytest.TestReport) -> Outcome:
    # An expected failure is reported as skipped; either way the item is not shown to be met.
    if report.skipped:
        return "skipped"
    return "failed" if report.failed else "passed"


def _worse(one: Outcome, other: Outcome) -> Outcome:
    order: tuple[Outcome, ...] = ("passed", "skipped", "failed")
    return max(one, other, key=order.index)

"""The results of a test run for the spec items: the tests marked with each item, and how each one ended.

The file is JSON, sorted, with days and no times, so that two equal runs of a day write equal files.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["passed", "failed", "skipped"]
ItemId = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ProviderRun:
    """A run of the providers' conformance suite, or of a part of it: which driver, against what, and how each case ended.

    `capabilities` are the names of what the provider says that it can do.
    """

    driver: str
    against: str
    capabilities: tuple[str, ...]
    cases: tuple[tuple[str, Outcome], ...]


@dataclass(frozen=True, slots=True)
class TestResult:
    """One marked test case and its outcome; ``node`` is pytest's id, with parameters.

    ``code`` is the digest of the code that it ran on, where that was noted (``tools/gate``); ``date`` is the day of the run, in UTC.
    """

    __test__ = False  # not a test class, whatever its name looks like to pytest

    node: str
    items: tuple[ItemId, ...]
    outcome: Outcome
    runs: tuple[ProviderRun, ...] = ()
    code: str = ""
    date: str = ""

    @property
    def file(self) -> str:
        """Return the file of the test."""
        return self.node.partition("::")[0]


def write(path: Path, results: Iterable[TestResult]) -> None:
    rows = [_row(result) for result in sorted(results, key=lambda result: result.node)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"tests": rows}, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[TestResult, ...]:
    return tuple(_result(row) for row in json.loads(path.read_text(encoding="utf-8"))["tests"])


def parse_item(text: str) -> ItemId:
    spec, _, number = text.rpartition(":")
    return spec, int(number)


def as_text(run: ProviderRun) -> str:
    """Return a run as the property of a test."""
    return json.dumps({**asdict(run), "cases": dict(run.cases)}, sort_keys=True)


def parse_run(text: str) -> ProviderRun:
    """Return the run that a property of a test holds."""
    return _run(json.loads(text))


def _row(result: TestResult) -> dict[str, object]:
    row: dict[str, object] = {
        "node": result.node,
        "outcome": result.outcome,
        "items": [f"{spec}:{number}" for spec, number in result.items],
    }
    row |= {name: text for name, text in (("code", result.code), ("date", result.date)) if text}
    return {**row, "runs": [json.loads(as_text(run)) for run in result.runs]} if result.runs else row


def _run(data: Mapping[str, Any]) -> ProviderRun:
    return ProviderRun(data["driver"], data["against"], tuple(data["capabilities"]), tuple(sorted(data["cases"].items())))


def _result(row: Mapping[str, Any]) -> TestResult:
    node, outcome, items = row["node"], row["outcome"], row["items"]
    assert isinstance(node, str) and isinstance(items, list)
    assert outcome in ("passed", "failed", "skipped")
    runs = tuple(_run(run) for run in row.get("runs", ()))
    return TestResult(node, tuple(parse_item(item) for item in items), outcome, runs, row.get("code", ""), row.get("date", ""))

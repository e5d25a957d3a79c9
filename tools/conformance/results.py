"""The results of a test run for the spec items: the tests marked with each item, and how each one ended.

The file is JSON, sorted, without times, so that two equal runs write equal files.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["passed", "failed", "skipped"]
ItemId = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TestResult:
    """One marked test case and its outcome; ``node`` is pytest's id, with parameters."""

    __test__ = False  # not a test class, whatever its name looks like to pytest

    node: str
    items: tuple[ItemId, ...]
    outcome: Outcome


def write(path: Path, results: Iterable[TestResult]) -> None:
    rows = [
        {"node": result.node, "outcome": result.outcome, "items": [f"{spec}:{number}" for spec, number in result.items]}
        for result in sorted(results, key=lambda result: result.node)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"tests": rows}, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[TestResult, ...]:
    return tuple(_result(row) for row in json.loads(path.read_text(encoding="utf-8"))["tests"])


def parse_item(text: str) -> ItemId:
    spec, _, number = text.rpartition(":")
    return spec, int(number)


def _result(row: Mapping[str, object]) -> TestResult:
    node, outcome, items = row["node"], row["outcome"], row["items"]
    assert isinstance(node, str) and isinstance(items, list)
    assert outcome in ("passed", "failed", "skipped")
    return TestResult(node, tuple(parse_item(item) for item in items), outcome)

"""Findings as lines and as data."""

import json

import pytest
import yaml

from paddock.base.lines import one_line
from paddock.fleet.documents import report
from paddock.fleet.documents.objects import LocatedFinding
from paddock.kubernetes.meta.manifests.document import Position
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding


def located(found: Finding) -> LocatedFinding:
    return LocatedFinding("dir/f.yaml", Position(3, 7), "VirtualMachine/web", found)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            finding.invalid(("spec", "disks", 0, "size"), "x", "not a quantity", "schema/format"),
            'dir/f.yaml:3:7: error: VirtualMachine/web: spec.disks[0].size: Invalid value: "x": not a quantity (schema/format)',
        ),
        (
            Finding(path=("spec", "foo"), message='unknown field "spec.foo"; did you mean "fou"?', rule="schema/unknown-field"),
            'dir/f.yaml:3:7: error: VirtualMachine/web: spec.foo: unknown field; did you mean "fou"? (schema/unknown-field)',
        ),
        (finding.warning((), "all of it", "a/b"), "dir/f.yaml:3:7: warning: VirtualMachine/web: all of it (a/b)"),
        (finding.note(("a",), "one\ntwo\x1b[2J", "a/b"), "dir/f.yaml:3:7: note: VirtualMachine/web: a: one\\ntwo\\x1b[2J (a/b)"),
    ],
)
def test_line(found: Finding, line: str) -> None:
    assert report.line(located(found)) == line


def test_data() -> None:
    found = located(finding.required(("spec", "size"), "schema/required", "it counts"))
    assert report.as_data(found) == {
        "file": "dir/f.yaml",
        "line": 3,
        "column": 7,
        "severity": "error",
        "kind": "VirtualMachine",
        "name": "web",
        "field": "spec.size",
        "message": "Required value: it counts",
        "rule": "schema/required",
        "cause": "FieldValueRequired",
    }


def test_structured() -> None:
    value = {"b": ["on", 1], "a": None}
    assert json.loads(report.structured(value, "json")) == value
    assert yaml.safe_load(report.structured(value, "yaml")) == value


def test_tally() -> None:
    tally = report.FindingTally()
    assert tally.summary() == "0 objects: nothing found"
    tally.objects = 1
    tally.add([located(finding.warning((), "w", "r")), located(finding.invalid((), 1, "e", "r")), located(finding.warning((), "w", "r"))])
    assert tally.summary() == "1 object: 1 error, 2 warnings"
    assert tally.as_data() == {"objects": 1, "errors": 1, "warnings": 2, "notes": 0}


@pytest.mark.parametrize(("text", "line"), [("größe ☃", "größe ☃"), ("a\nb\tc\r", "a\\nb\\tc\\x0d"), ("\x9b31m\u2028", "\\x9b31m\\u2028")])
def test_one_line(text: str, line: str) -> None:
    assert one_line(text) == line

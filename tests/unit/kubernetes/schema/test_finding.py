"""Findings speak in the forms of the Kubernetes API."""

from typing import Any

import pytest

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path, Severity


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec",), "spec"),
        (("spec", "disks", 0, "name"), "spec.disks[0].name"),
        (("spec", "labels", "a.b/c"), "spec.labels[a.b/c]"),
        (("spec", "labels", "a.b"), "spec.labels[a.b]"),
        (("spec", "labels", "a/b"), "spec.labels[a/b]"),
        (("spec", "labels", ""), "spec.labels[]"),
        (("spec", "labels", "plain-word"), "spec.labels.plain-word"),
        (("a.b",), "a.b"),
        ((0, "name"), "[0].name"),
    ],
)
def test_a_path_as_kubernetes_writes_it(path: Path, text: str) -> None:
    assert finding.format_path(path) == text
    assert finding.required(path, "x/y").field == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ('say "x"\n', '"say \\"x\\"\\n"'),
        (1, "1"),
        (True, "true"),
        (None, "null"),
        ({"a": [1]}, '{"a":[1]}'),
        (2**100, str(2**100)),
        ("\ud800", '"\\ud800"'),
        ("x" * 200, '"' + "x" * 99 + '..."'),
        (["x" * 200], '["' + "x" * 98 + "...]"),
    ],
)
def test_a_value_as_a_message_shows_it(value: Any, text: str) -> None:
    assert finding.show(value) == text


PATH: Path = ("spec", "x")


@pytest.mark.parametrize(
    ("found", "message", "cause"),
    [
        (finding.invalid(PATH, "a", "must be b", "r"), 'Invalid value: "a": must be b', CauseType.INVALID),
        (finding.secret_invalid(PATH, "must be b", "r"), "Invalid value: must be b", CauseType.INVALID),
        (finding.required(PATH, "r"), "Required value", CauseType.REQUIRED),
        (finding.required(PATH, "r", "say so"), "Required value: say so", CauseType.REQUIRED),
        (finding.unsupported(PATH, "a", ("b", "c"), "r"), 'Unsupported value: "a": supported values: "b", "c"', CauseType.NOT_SUPPORTED),
        (
            finding.unsupported(PATH, "a", ("b",), "r", "try b"),
            'Unsupported value: "a": supported values: "b"; try b',
            CauseType.NOT_SUPPORTED,
        ),
        (finding.duplicate(PATH, "a", "r"), 'Duplicate value: "a"', CauseType.DUPLICATE),
        (finding.duplicate(PATH, "a", "r", "why"), 'Duplicate value: "a": why', CauseType.DUPLICATE),
        (finding.forbidden(PATH, "not here", "r"), "Forbidden: not here", CauseType.FORBIDDEN),
        (finding.too_many(PATH, 3, 1, "r"), "Too many: 3: must have at most 1 item", CauseType.TOO_MANY),
        (finding.too_many(PATH, 3, 2, "r"), "Too many: 3: must have at most 2 items", CauseType.TOO_MANY),
        (finding.too_long(PATH, 9, "r"), "Too long: must be no more than 9 characters", CauseType.TOO_LONG),
        (finding.too_long(PATH, 9, "r", "bytes"), "Too long: may not be more than 9 bytes", CauseType.TOO_LONG),
    ],
)
def test_an_error_has_its_words_and_its_cause(found: Finding, message: str, cause: CauseType) -> None:
    assert (found.path, found.message, found.rule, found.cause, found.severity) == (PATH, message, "r", cause, Severity.ERROR)


def test_warnings_and_notes_refuse_nothing() -> None:
    assert finding.warning(PATH, "mind this", "r").severity is Severity.WARNING
    assert finding.note(PATH, "by the way", "r").severity is Severity.NOTE

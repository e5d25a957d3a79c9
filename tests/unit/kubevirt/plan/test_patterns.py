"""Path patterns and rows of the table of changes."""

from typing import Any

import pytest

from paddock.kubevirt.plan.changes.differences import ValueChange
from paddock.kubevirt.plan.changes.effects import Effect, EffectRow, best
from paddock.kubevirt.plan.changes.patterns import generalize, parse, places

DATA: dict[str, Any] = {"a": {"b": [{"c": 1}, {"d": 2}, 5], "m": {"x": {"c": 3}, "y": {"c": 4}}}, "n": None}


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [("a.b[].c", ("a", "b", "[]", "c")), ("a", ("a",)), ("a[]", ("a", "[]")), ("a[][].*.b", ("a", "[]", "[]", "*", "b"))],
)
def test_parse(pattern: str, parts: tuple[str, ...]) -> None:
    assert parse(pattern) == parts


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.b[].c", [(("a", "b", 0, "c"), 1)]),
        ("a.m.*.c", [(("a", "m", "x", "c"), 3), (("a", "m", "y", "c"), 4)]),
        ("n", [(("n",), None)]),
        ("a.b.c", []),
        ("a[].c", []),
        ("q.r", []),
        ("n.x", []),
    ],
)
def test_places(pattern: str, found: list[tuple[Any, Any]]) -> None:
    assert [(path, value) for path, _, value in places(parse(pattern), DATA)] == found


def test_generalize() -> None:
    assert generalize(("a", 3, "b", 0)) == ("a", "[]", "b", "[]")


ROWS = (
    EffectRow("a", Effect.RESTART, "all"),
    EffectRow("a.b", Effect.LIVE, "up", (ValueChange.UP,)),
    EffectRow("a.b", Effect.NONE, "b"),
    EffectRow("a.l[]", Effect.LIVE, "plugged", (ValueChange.ADDED,), ("claim",)),
    EffectRow("a.*.deep", Effect.LOSS, "deep"),
)


@pytest.mark.parametrize(
    ("path", "how", "entry", "why"),
    [
        ("a", ValueChange.CHANGED, None, "all"),
        ("a.z", ValueChange.CHANGED, None, "all"),
        ("a.b", ValueChange.CHANGED, None, "b"),
        ("a.b", ValueChange.UP, None, "up"),
        ("a.b.c", ValueChange.DOWN, None, "b"),
        ("a.l[]", ValueChange.ADDED, {"claim": {}}, "plugged"),
        ("a.l[]", ValueChange.ADDED, {"image": {}}, "all"),
        ("a.l[]", ValueChange.REMOVED, {"claim": {}}, "all"),
        ("a.q.deep.er", ValueChange.CHANGED, None, "deep"),
        ("z", ValueChange.CHANGED, None, None),
        ("a.b", None, None, "b"),
    ],
)
def test_the_longest_pattern_wins(path: str, how: ValueChange | None, entry: object, why: str | None) -> None:
    row = best(ROWS, parse(path), how, entry)
    assert (row and row.why) == why

"""The size limits, and that the check itself sees what it should."""

from pathlib import Path

import pytest

from tools import sizes

ROOT = Path(__file__).parents[2]


def test_everything_is_within_the_limits_or_has_a_reason() -> None:
    assert sizes.judge(sizes.measure_tree(ROOT), sizes.read_reasons(ROOT)) == []


def function(*, lines: int, parameters: str = "") -> str:
    return f"def long({parameters}):\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\n" * 500, []),
        ("x = 1\n" * 501, ["m.py: 501 lines, limit 500"]),
        (function(lines=50), []),
        (function(lines=51), ["m.py::long: 51 lines, limit 50"]),
        ("class A:\n  def f(self, a, b, c, d, e, g): pass\n", []),
        ("class A:\n  def f(self, a, b, c, *, d, e, g, h): pass\n", ["m.py::A.f: 7 parameters, limit 6"]),
        ("if True:\n  async def f(a, b, c, /, d, e, g, h): pass\n", ["m.py::f: 7 parameters, limit 6"]),
    ],
)
def test_measure(source: str, expected: list[str]) -> None:
    assert sizes.judge(sizes.measure(source, "m.py"), {}) == expected


def test_an_exception_needs_a_reason_and_a_cause() -> None:
    excess = sizes.Excess("m.py::f", "51 lines, limit 50")
    assert sizes.judge([excess], {"m.py::f": "a table"}) == []
    assert sizes.judge([excess], {"m.py::f": " "}) == ["m.py::f: 51 lines, limit 50"]
    assert sizes.judge([], {"m.py::f": "a table"}) == ["m.py::f: is within the limits; take its exception out"]

"""The equality of JSON values."""

from typing import Any

import pytest

from paddock.base.jsonequality import identical, identical_apart


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1]}, {"a": [1.0]}, False),
        (0, False, False),
        ("0", "0", True),
    ],
)
def test_equal_is_not_enough(left: Any, right: Any, same: bool) -> None:
    assert identical(left, right) == same
    assert identical_apart({"it": left}, {"it": right}, frozenset()) == same


def test_members_that_are_left_apart_may_differ() -> None:
    apart = frozenset(("status",))
    assert identical_apart({"spec": {"a": 1}, "status": 1}, {"spec": {"a": 1}, "status": 2}, apart)
    assert identical_apart({"spec": 1, "status": 1}, {"spec": 1}, apart)
    assert not identical_apart({"spec": 1}, {"status": 2}, apart)
    assert not identical_apart({"spec": {"a": 1}}, {"spec": {"a": 2}}, apart)

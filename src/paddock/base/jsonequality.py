"""Comparison of JSON values. It is apart from `jsondata` because it loads orjson, which short commands do not need."""

from typing import Any

import orjson

from paddock.base.jsondata import CONTAINERS


def identical(left: Any, right: Any) -> bool:
    """Return True if two values are the same JSON. In Python, True == 1 == 1.0, so `==` can only prove that values differ."""
    if left is right:
        return True
    if left != right:
        return False
    if not isinstance(left, CONTAINERS):
        return type(left) is type(right)
    return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)


def identical_apart(left: dict[str, Any], right: dict[str, Any], apart: frozenset[str]) -> bool:
    """Return True if two objects are the same JSON except for some members."""
    names = left.keys() - apart
    return names == right.keys() - apart and all(identical(left[name], right[name]) for name in names)

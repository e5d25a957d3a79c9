"""Plain JSON data: dicts, lists, texts, numbers, true, false and null."""

from typing import Any

import orjson

# `dict | list` would be made anew for each question.
CONTAINERS = (dict, list)


def copied(value: Any) -> Any:
    """A copy, down to the last list. Five times as fast as `copy.deepcopy`, which has to expect cycles and classes."""
    if isinstance(value, dict):
        return {key: copied(member) if isinstance(member, CONTAINERS) else member for key, member in value.items()}
    if isinstance(value, list):
        return [copied(entry) if isinstance(entry, CONTAINERS) else entry for entry in value]
    return value


def identical(left: Any, right: Any) -> bool:
    """Return True if two values are the same JSON. To Python true is 1 and 1 is 1.0, so equal is not enough; it decides most questions."""
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

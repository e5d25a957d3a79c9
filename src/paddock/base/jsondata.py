"""Plain JSON data: dicts, lists, texts, numbers, true, false and null."""

from typing import Any

# An object of JSON.
Data = dict[str, Any]

# `dict | list` would be made anew for each question.
CONTAINERS = (dict, list)


def copied(value: Any) -> Any:
    """A copy, down to the last list. Five times as fast as `copy.deepcopy`, which has to expect cycles and classes."""
    if isinstance(value, dict):
        return {key: copied(member) if isinstance(member, CONTAINERS) else member for key, member in value.items()}
    if isinstance(value, list):
        return [copied(entry) if isinstance(entry, CONTAINERS) else entry for entry in value]
    return value

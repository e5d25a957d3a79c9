"""Values of an object by a dotted path, as field selectors and selectable fields name them."""

from typing import Any

from paddock.kubernetes.schema.finding import Path


def at(data: Any, path: str) -> Any:
    """The value at `spec.color`, or None."""
    for part in path.strip(".").split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(part)
    return data


def text_at(data: Any, path: str) -> str:
    """The value as field selectors compare it: booleans and numbers in their JSON form, the empty text when absent."""
    value = at(data, path)
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def value_at(data: Any, path: Path) -> Any:
    """The value at the path of a finding; None where it leads nowhere."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data

"""Values of an object by the path of a finding."""

from typing import Any

from paddock.schema.finding import Path


def value_at(data: Any, path: Path) -> Any:
    """The value at a path; None where it leads nowhere."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data

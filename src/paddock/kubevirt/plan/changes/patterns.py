"""Path patterns: `spec.disks[].size`, with `[]` for every entry of a list and `*` for every member of a map."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from paddock.kubernetes.schema.finding import Path

Parts = tuple[str, ...]
ENTRY = "[]"
MEMBER = "*"


@cache
def parse(pattern: str) -> Parts:
    """`spec.disks[].size` -> ("spec", "disks", "[]", "size")."""
    return tuple(part for part in pattern.replace(ENTRY, f".{ENTRY}").split(".") if part)


def places(parts: Parts, data: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any], Any]]:
    """Every place of the data that a pattern means: its path, the object it is a member of, and the value."""
    head, rest = parts[0], parts[1:]
    if head == ENTRY:
        if isinstance(data, list):
            for index, entry in enumerate(data):
                yield from places(rest, entry, (*path, index)) if rest else ()
        return
    if not isinstance(data, dict):
        return
    for key in tuple(data) if head == MEMBER else (head,) if head in data else ():
        if rest:
            yield from places(rest, data[key], (*path, key))
        else:
            yield (*path, key), data, data[key]


def generalize(path: Path) -> Parts:
    """A path of an object as the parts of a pattern."""
    return tuple(ENTRY if isinstance(part, int) else part for part in path)

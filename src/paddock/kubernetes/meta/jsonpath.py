"""The JSONPaths of printer columns and scale subresources: members, indices, `[*]`, and filters on equality.

.spec.replicas   .status.conditions[?(@.type=='Ready')].status   .status.ips[*]   .metadata.annotations['a.b/c']
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from paddock.base.errors import Terminal

_STEP = re.compile(
    r"""\.(?P<member>(?:\\.|[^.\[\]\\])+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
      | \[\?\(\s*@\.(?P<key>[\w.-]+)\s*==\s*(?P<mark>['"]?)(?P<value>.*?)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)
Step = Callable[[Any], Iterable[Any]]


class BadPath(Terminal):
    """The text is not a JSONPath that is understood."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a JSONPath", fix="begin with a dot and use members, [index], [*] and [?(@.key=='value')]")


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """A function that gives all values at a path; raises `BadPath`."""
    steps, at = [], 0
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise BadPath(text)
        steps.append(_step(match))
        at = match.end()
    if not steps:
        raise BadPath(text)

    def values(data: Any) -> list[Any]:
        found: list[Any] = [data]
        for step in steps:
            found = [value for place in found for value in step(place)]
        return found

    return values


def _step(match: "re.Match[str]") -> Step:
    if match["member"] is not None or match["quoted"] is not None:
        name = match["quoted"] if match["member"] is None else re.sub(r"\\(.)", r"\1", match["member"])
        return lambda place: _every(place) if name == "*" else _member(place, name)
    if match["index"] is not None:
        index = int(match["index"])
        return lambda place: place[index : index + 1 or None] if isinstance(place, list) else ()
    if match["all"] is not None:
        return _every
    key, wanted = match["key"].split("."), match["value"]
    return lambda place: [each for each in _every(place) if _text(_at(each, key)) == wanted]


def _member(place: Any, name: str) -> Iterator[Any]:
    if isinstance(place, dict) and name in place:
        yield place[name]


def _every(place: Any) -> Iterable[Any]:
    if isinstance(place, list):
        return place
    return place.values() if isinstance(place, dict) else ()


def _at(place: Any, key: list[str]) -> Any:
    for part in key:
        place = place.get(part) if isinstance(place, dict) else None
    return place


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)

"""Reads ``docs/spec/unmet.toml``: why an item is not met yet.

One table per spec; a key is an item, a range or a list of both, and the value is the reason::

    [stakater]
    "54-56, 60" = "needs the controllers"

The reason holds for those of the items that are not met. A key all of whose items are met would tell something untrue.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from tools.conformance.results import ItemId

_PART = re.compile(r"(\d+)(?:-(\d+))?")


class ReasonsError(Exception):
    """The file names an item that does not exist, or names one twice."""


@dataclass(frozen=True, slots=True)
class Reason:
    """``key`` is as written in the file, and the same for all its items."""

    key: str
    text: str


def read_reasons(path: Path, totals: Mapping[str, int]) -> dict[ItemId, Reason]:
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return parse(tomllib.load(file), totals)


def outdated(reasons: Mapping[ItemId, Reason], met: Set[ItemId]) -> list[tuple[str, str]]:
    """Spec and key of the reasons that hold for no item any more."""
    keys = [(spec, reason.key) for (spec, _), reason in reasons.items()]
    alive = {(item[0], reason.key) for item, reason in reasons.items() if item not in met}
    return [key for key in dict.fromkeys(keys) if key not in alive]


def parse(tables: Mapping[str, Mapping[str, str]], totals: Mapping[str, int]) -> dict[ItemId, Reason]:
    reasons: dict[ItemId, Reason] = {}
    for spec, table in tables.items():
        if spec not in totals:
            raise ReasonsError(f"there is no spec {spec!r}; the specs are {', '.join(totals)}")
        for key, reason in table.items():
            for number in numbers(spec, key):
                if not 1 <= number <= totals[spec]:
                    raise ReasonsError(f"{spec} has the items 1 to {totals[spec]}, not {number}")
                if (spec, number) in reasons:
                    raise ReasonsError(f"{spec} item {number} has two reasons")
                reasons[spec, number] = Reason(key, reason)
    return reasons


def numbers(spec: str, key: str) -> Iterator[int]:
    """Yield the numbers of a key: an item, a range, or a list of both."""
    for part in key.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ReasonsError(f"{spec}: {key!r} is no item, range or list such as 7, 54-56")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ReasonsError(f"{spec}: the range {part.strip()} runs backwards")
        yield from range(first, last + 1)

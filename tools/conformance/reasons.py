"""Reads ``docs/spec/unmet.toml``: why an item is not met yet.

One table per spec; a key is an item, a range or a list of both, and the value is the reason::

    [stakater]
    "54-56, 60" = "needs the controllers"
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.conformance.results import ItemId

_PART = re.compile(r"(\d+)(?:-(\d+))?")


class ReasonsError(Exception):
    """The file names an item that does not exist, or names one twice."""


def read_reasons(path: Path, totals: Mapping[str, int]) -> dict[ItemId, str]:
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return parse(tomllib.load(file), totals)


def parse(tables: Mapping[str, Mapping[str, str]], totals: Mapping[str, int]) -> dict[ItemId, str]:
    reasons: dict[ItemId, str] = {}
    for spec, table in tables.items():
        if spec not in totals:
            raise ReasonsError(f"there is no spec {spec!r}; the specs are {', '.join(totals)}")
        for key, reason in table.items():
            for number in _numbers(spec, key):
                if not 1 <= number <= totals[spec]:
                    raise ReasonsError(f"{spec} has the items 1 to {totals[spec]}, not {number}")
                if (spec, number) in reasons:
                    raise ReasonsError(f"{spec} item {number} has two reasons")
                reasons[spec, number] = reason
    return reasons


def _numbers(spec: str, key: str) -> Iterator[int]:
    for part in key.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ReasonsError(f"{spec}: {key!r} is no item, range or list such as 7, 54-56")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ReasonsError(f"{spec}: the range {part.strip()} runs backwards")
        yield from range(first, last + 1)

"""Reads ``docs/spec/engine.toml``: the items that speak of disks, memory, processors, networks or guests.

A fake engine can agree with a wrong implementation, so the page tells which of these items a test on the real engine proves::

    stakater = "57-59, 62"
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from tools.conformance.reasons import ReasonsError, numbers
from tools.conformance.results import ItemId


def read_items(path: Path, totals: Mapping[str, int]) -> frozenset[ItemId]:
    """Return the items that the file names."""
    if not path.exists():
        return frozenset()
    with path.open("rb") as file:
        return parse(tomllib.load(file), totals)


def parse(lists: Mapping[str, str], totals: Mapping[str, int]) -> frozenset[ItemId]:
    """Return the items of the lists; each has to be there."""
    found = set()
    for spec, key in lists.items():
        if spec not in totals:
            raise ReasonsError(f"engine.toml: there is no spec {spec!r}; the specs are {', '.join(totals)}")
        for number in numbers(spec, key):
            if not 1 <= number <= totals[spec]:
                raise ReasonsError(f"engine.toml: {spec} has the items 1 to {totals[spec]}, not {number}")
            found.add((spec, number))
    return frozenset(found)

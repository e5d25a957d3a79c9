"""Reads ``docs/spec/clauses.toml``: the clauses of items that say several things, each of which needs a test of its own.

One table per spec; a key is an item, and a clause is words of its text::

    [kube-api]
    27 = ["names", "labels"]

A mark of such an item names the clauses that its test proves: ``@pytest.mark.spec("kube-api", 27, "labels")``.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.conformance.checklist import Item
from tools.conformance.reasons import ReasonsError
from tools.conformance.results import ItemId


def read_clauses(path: Path, checklists: Mapping[str, Sequence[Item]]) -> dict[ItemId, tuple[str, ...]]:
    """Return the clauses of the items that the file names."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return parse(tomllib.load(file), checklists)


def parse(tables: Mapping[str, Mapping[str, Sequence[str]]], checklists: Mapping[str, Sequence[Item]]) -> dict[ItemId, tuple[str, ...]]:
    """Return the clauses of the tables; each has to stand in the text of its item."""
    found: dict[ItemId, tuple[str, ...]] = {}
    for spec, table in tables.items():
        texts = {str(item.number): item.text for item in checklists.get(spec, ())}
        for number, clauses in table.items():
            for clause in clauses:
                if clause not in texts.get(number, ""):
                    raise ReasonsError(f"clauses.toml: item {number} of {spec} does not say {clause!r}")
            found[spec, int(number)] = tuple(clauses)
    return found

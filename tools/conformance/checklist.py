"""Reads the numbered checklists that end the files in ``docs/spec``.

The items are counted 1, 2, 3 ... through the whole checklist; several may stand on one line ("4. Alpha. 5. Beta."), and
lines without a number are group headings. A number only opens an item when it is the next one and stands where a
sentence may begin, so figures inside the text ("octet 2.", "equals 2.4;") are not taken for items.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# The order of the conformance page.
SPECS: Sequence[str] = ("stakater", "vitistack", "kubermatic", "virtrigaud", "kubevirt", "kube-api")

_SECTION = re.compile(r"^## \d+\. (?:Checklist|Testable statements)\b.*$", re.MULTILINE)
_LINE_START = re.compile(r"(\d+)\. ")


class ChecklistError(Exception):
    """A checklist cannot be read; says which file, and what was expected there."""


@dataclass(frozen=True, slots=True)
class Item:
    number: int
    text: str


def read_checklists(folder: Path) -> dict[str, tuple[Item, ...]]:
    """Reads every spec's checklist, in the order of the page."""
    return {spec: parse((folder / f"{spec}.md").read_text(encoding="utf-8"), name=spec) for spec in SPECS}


def parse(document: str, *, name: str) -> tuple[Item, ...]:
    """Returns the items of the document's last section, numbered 1 to n without a gap."""
    headings = list(_SECTION.finditer(document))
    if not headings:
        raise ChecklistError(f"{name}: no section 'Checklist' or 'Testable statements'")
    items: list[Item] = []
    for line in document[headings[-1].end() :].splitlines():
        if line.startswith("## "):
            break
        opening = _LINE_START.match(line)
        if opening is None:
            continue
        expected = len(items) + 1
        if int(opening[1]) != expected:
            raise ChecklistError(f"{name}: expected item {expected}, found {line[:60]!r}")
        items.extend(_items_of(line, first=expected))
    if not items:
        raise ChecklistError(f"{name}: the checklist has no items")
    return tuple(items)


def _items_of(line: str, *, first: int) -> Iterator[Item]:
    number, rest = first, line[len(f"{first}. ") :]
    while following := re.search(rf"(?<=[.;:)])\s+{number + 1}\. ", rest):
        yield Item(number, rest[: following.start()].strip())
        number, rest = number + 1, rest[following.end() :]
    yield Item(number, rest.strip())

"""Reads ``mutants.toml``. A mutant replaces one piece of a file, and breaks what one item, or one clause of it, promises::

    [[mutant]]
    item = "kube-api 140 DeviceClass"
    fault = "the server does not know the kind DeviceClass"
    file = "src/paddock/server/builtin/devices.py"
    old = "..."
    new = "..."

``old`` occurs once in the file. ``tests`` names the folders where the tests of the item are; without it, the quick suites.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.conformance.plugin import SpecChoice

QUICK_SUITES = ("tests/unit", "tests/contract", "tests/scenario", "tests/arch")


@dataclass(frozen=True, slots=True)
class Mutant:
    item: str
    fault: str
    file: str
    old: str
    new: str
    tests: Sequence[str] = QUICK_SUITES

    @property
    def choice(self) -> SpecChoice:
        return SpecChoice.parse(self.item)


def read(path: Path) -> tuple[Mutant, ...]:
    with path.open("rb") as file:
        return tuple(Mutant(**{**each, "tests": tuple(each.get("tests", QUICK_SUITES))}) for each in tomllib.load(file)["mutant"])


def apply(mutant: Mutant, root: Path) -> str:
    """Put the fault into the file below ``root``, and return the text that the file had."""
    path = root / mutant.file
    text = path.read_text(encoding="utf-8")
    if (count := text.count(mutant.old)) != 1 or mutant.old == mutant.new:
        raise ValueError(f"{mutant.item}: {mutant.file} has {count} times {mutant.old!r}; it needs one, and another text to replace it")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return text


def test_files(choice: SpecChoice, root: Path, folders: Iterable[str]) -> Iterator[Path]:
    """Yield the test modules that may have a mark of the item; pytest chooses the tests among theirs.

    A table may build its marks from numbers, so a module counts when it has the item's number and speaks of the spec.
    """
    number = re.compile(rf"\b{choice.number}\b")
    for folder in folders:
        for path in sorted((root / folder).rglob("test_*.py")):
            text = path.read_text(encoding="utf-8")
            if number.search(text) and (f'"{choice.spec}"' in text or choice.spec in path.parts):
                yield path.relative_to(root)

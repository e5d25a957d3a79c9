"""k9s at a terminal, as docs/manifests/k9s.md uses it."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.pages import Block, Reader, blocks
from tests.reference import recipes
from tests.reference.build import Recipe
from tests.reference.pages.conftest import DOCS, OURS
from tests.reference.pages.screen import Screen, at_screen

# The build takes five minutes of processor time.
pytestmark = [pytest.mark.reference, pytest.mark.soak]


class Typist:
    """A reader who follows `keys` blocks, too: `$` starts a program at a terminal, which the later blocks go on with."""

    def __init__(self, reader: Reader, ending: ExitStack) -> None:
        self._reader = reader
        self._ending = ending
        self._screen: Screen | None = None

    def follow(self, page: Path) -> None:
        """Do every block in order."""
        for block in blocks(page):
            if block.language != "keys":
                self._reader.do(block)
                continue
            for word, rest in steps(block):
                self._step(word, rest)

    def _step(self, word: str, rest: str) -> None:
        if word == "$":
            environment = {"HOME": str(self._reader.folder), **self._reader.environment}
            self._screen = self._ending.enter_context(at_screen(shlex.split(rest), environment, self._reader.folder))
            return
        assert self._screen is not None
        if word == "press":
            self._screen.press(rest)
        else:
            self._screen.shows(rest)


def steps(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the lines of a `keys` block as word and rest."""
    for line in block.text.splitlines():
        word, _, rest = line.partition(" ")
        assert word in ("$", "press", "see"), f"{block.page.name}:{block.line}: no step: {line}"
        yield word, rest.strip()


def test_the_page(reader: Callable[..., Reader], program: Callable[[Recipe], Path]) -> None:
    with ExitStack() as ending:
        Typist(reader(program(recipes.K9S), OURS), ending).follow(DOCS / "manifests/k9s.md")


def test_the_page_names_the_version() -> None:
    assert recipes.K9S.version.removeprefix("v") in (DOCS / "manifests/k9s.md").read_text()

"""Every shell block of the README and the guide is run by a test, or says why not; and the commands of all of them exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.app import main as server
from paddock.base.errors import PaddockError
from paddock.cli import arguments, commandtree, main
from paddock.cli.verbs import VerbsParser
from tests.kit.pages import ROOT, Block, blocks, guides, runners

PAGES = [ROOT / "README.md", *guides()]
# The words by which a block begins the program; "sudo" may stand before them.
PROGRAMS = ("paddock", ".venv/bin/paddock", "venv/bin/paddock")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


def unmarked(page: Path) -> list[str]:
    """The shell blocks of a page that no test runs and that do not say why."""
    if runners(page):
        return []
    return [f"{page.name}:{block.line}" for block in blocks(page) if block.is_shell and not block.reason]


@each_page
def test_each_shell_block_runs_or_says_why_not(page: Path) -> None:
    fix = "write `<!-- not run: REASON -->` before the block, or `<!-- run by: tests/... -->` for a page of a test (tests/kit/pages.py)"
    assert unmarked(page) == [], fix


@each_page
def test_the_tests_that_pages_name_follow_them(page: Path) -> None:
    for name in runners(page):
        assert page.name in (ROOT / name).read_text(encoding="utf-8"), f"{name} does not name {page.name}"


def test_a_block_without_a_mark_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ ls\n```\n\n<!-- not run: no -->\n```sh\nls\n```\n\n```yaml\na: 1\n```\n")
    assert unmarked(page) == ["page.md:1"]


TREE = {entry.words: entry for entry in commandtree.walk(main.every(server.COMMANDS))}
_SUBSTITUTION = re.compile(r"\$\((?P<command>[^()]*)\)")


def paddock_commands(block: Block) -> Iterator[list[str]]:
    """Yield the words after `paddock` of each such command in a block."""
    for text in block.commands:
        yield from _paddock_commands(text.replace("\\\n", " "))


def _paddock_commands(text: str) -> Iterator[list[str]]:
    for inner in _SUBSTITUTION.finditer(text):
        yield from _paddock_commands(inner["command"])
    for line in _SUBSTITUTION.sub("substituted", text).splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        words.whitespace_split = True
        command: list[str] = []
        for word in [*words, ";"]:
            if word and word[0] in "|&;<>":
                called = command[1:] if command[:1] == ["sudo"] else command
                if called and called[0] in PROGRAMS:
                    yield called[1:]
                command = []
            else:
                command.append(word)


def mistake(words: list[str]) -> str:
    """Return why a command of Paddock would not be understood; empty if it would."""
    given = list(words)
    entry = TREE.get(tuple(given[:1]))
    # A command with verbs may do something without one.
    while entry is not None and (below := TREE.get((*entry.words, *given[1:2]))) is not None and below is not entry:
        entry, given = below, given[1:]
    if entry is not None and isinstance(entry.parser(), VerbsParser):
        entry = None
    if entry is None:
        return f"there is no command `paddock {' '.join(words)}`"
    try:
        entry.parser().parse_args(given[1:])
    except arguments.HelpRequested:
        return ""
    except PaddockError as error:
        return f"paddock {' '.join(words)}: {error}"
    return ""


@each_page
def test_the_commands_of_paddock_are_understood(page: Path) -> None:
    found = [mistake(words) for block in blocks(page) if block.is_shell for words in paddock_commands(block)]
    assert [each for each in found if each] == []


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("paddock up --detach", ""),
        ("paddock up --detatch", "--detatch"),
        ("paddock fly", "there is no command"),
        ("paddock image sell x", "there is no command"),
        ("paddock image ls --known | head", ""),
        ("echo paddock fly", ""),
        ('kubectl apply -f "$(paddock exemples)" && ls', "there is no command"),
        ("sudo .venv/bin/paddock up --detatch  # away", "--detatch"),
    ],
)
def test_commands_that_would_not_be_understood_are_seen(text: str, outcome: str) -> None:
    found = [mistake(words) for words in paddock_commands(Block(Path("page.md"), 1, "sh", "", text + "\n"))]
    assert (outcome in "".join(found)) if outcome else not any(found)

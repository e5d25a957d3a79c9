"""The fenced blocks of a documentation page, and a directory in which a test runs them as a reader would.

A block of the languages `console`, `sh`, `bash` and `shell` is a shell block. In `console`, the lines after `$ ` are commands; the other
lines are output, which the commands have to print in this order, where `...` stands for anything. A block with a `title="NAME"` is a file:
the reader saves it under that name.

The comment `<!-- not run: REASON -->` before a block says why no test runs it; `<!-- not run below: REASON -->` holds to the end of the
page. The comment `<!-- run by: tests/.../test_name.py -->` names the test that runs the other blocks of its page.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The folders below docs of the pages for users; those that are generated, and those for contributors, lie beside them.
GUIDES = ("start", "use", "manifests", "run", "cluster", "dialects", "providers", "testing", "about")
SHELLS = ("bash", "console", "sh", "shell")
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w-]*)(?P<rest>[^\n`]*)$")
_TITLE = re.compile(r'\btitle="([^"]+)"')
_NOT_RUN = re.compile(r"^ *<!-- not run(?P<below> below)?: (?P<reason>\S.*?) -->$")
_RUN_BY = re.compile(r"^<!-- run by: (?P<test>\S+\.py) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    # why no test runs it
    reason: str = ""

    @property
    def is_shell(self) -> bool:
        """True if a reader would type it."""
        return self.language in SHELLS and not self.title

    @property
    def commands(self) -> list[str]:
        """What a reader types, a command for each entry; a script is one entry."""
        if self.language != "console":
            return [self.text]
        found: list[str] = []
        for line in self.text.splitlines():
            if line.startswith(("$ ", "# ")):
                found.append(line[2:])
            elif found and (found[-1].endswith("\\") or line.startswith("> ")):
                found[-1] += "\n" + line.removeprefix("> ")
        return found

    @property
    def output(self) -> list[str]:
        """The lines of a console that are no commands."""
        lines: list[str] = []
        continued = False
        for line in self.text.splitlines() if self.language == "console" else ():
            command = continued or line.startswith(("$ ", "# ", "> "))
            continued = command and line.endswith("\\")
            if not command and line.strip():
                lines.append(line)
        return lines


def guides() -> list[Path]:
    """Return the pages for users that people write."""
    return [page for folder in GUIDES for page in sorted((ROOT / "docs" / folder).glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    reason = below = ""
    number = 0
    while number < len(lines):
        line = lines[number]
        if marked := _NOT_RUN.match(line):
            reason = marked["reason"]
            below = reason if marked["below"] else below
        elif opened := _FENCE.match(line):
            end = next((at for at in range(number + 1, len(lines)) if lines[at].strip() == opened["fence"]), len(lines))
            text = "\n".join(each.removeprefix(opened["indent"]) for each in lines[number + 1 : end]) + "\n"
            title = _TITLE.search(opened["rest"])
            yield Block(page, number + 1, opened["language"], title[1] if title else "", text, reason or below)
            reason, number = "", end
        elif line.strip():
            # A comment speaks of the block that it stands before.
            reason = ""
        number += 1


def runners(page: Path) -> list[str]:
    """Return the tests that a page names as those that run its blocks."""
    return [match["test"] for match in _RUN_BY.finditer(page.read_text(encoding="utf-8"))]


class BlockFailed(AssertionError):
    """A block of a page does not do what the page says."""

    def __init__(self, block: Block, why: str, output: str) -> None:
        super().__init__(f"{block.page.name}:{block.line}: {why}\n{block.text}--- it printed:\n{output}")


@dataclass
class Reader:
    """A reader of a page: a directory, an environment, and every block in order."""

    folder: Path
    environment: Mapping[str, str]
    seconds: float = 300.0
    # a program that the shell runs under: `ip netns exec NAME`
    within: tuple[str, ...] = ()
    # exit codes beside 0 that a block may end with, for pages that show mistakes
    codes: tuple[int, ...] = ()
    # what each shell block printed
    printed: list[str] = field(default_factory=list)

    def follow(self, page: Path) -> None:
        """Save the files and run the shell blocks of a page, except those that say why they are not run."""
        for block in blocks(page):
            self.do(block)

    def do(self, block: Block) -> None:
        """Save or run one block."""
        if block.title and not block.reason:
            file = self.folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.is_shell and not block.reason:
            self._run(block)

    def _run(self, block: Block) -> None:
        # What one block exports or enters holds in the next, as in a reader's terminal.
        kept = self.folder.with_name(f"{self.folder.name}.environment")
        entered = [f". {kept}"] if kept.exists() else []
        allowed = "|".join(map(str, (0, *self.codes)))
        checked = [f"{command.rstrip()}\ncase $? in {allowed}) ;; *) exit 1 ;; esac" for command in block.commands]
        commands = checked if self.codes else ["set -e", *block.commands]
        script = "\n".join([*entered, *commands, f"{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > {kept}"])
        ran = subprocess.run(
            [*self.within, "bash", "-c", script],
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder), "TERM": "dumb", **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.seconds,
        )
        self.printed.append(ran.stdout)
        if ran.returncode:
            raise BlockFailed(block, f"it ended with {ran.returncode}", ran.stdout)
        if missing := unseen(block.output, ran.stdout):
            raise BlockFailed(block, f"it did not print {missing!r}", ran.stdout)


def unseen(expected: list[str], printed: str) -> str:
    """Return the first expected line that does not appear in its turn; empty if all do. A page may fold a line into two."""
    lines = [_words(line) for line in printed.splitlines()]
    waiting = [_words(line) for line in expected]
    at = 0
    while waiting:
        for folded in (1, 2):
            wanted = " ".join(waiting[:folded])
            pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("...")))
            found = next((number for number in range(at, len(lines)) if pattern.fullmatch(lines[number])), None)
            if found is not None:
                break
        if found is None:
            return waiting[0]
        at, waiting = found + 1, waiting[folded:]
    return ""


def _words(line: str) -> str:
    return " ".join(line.split())

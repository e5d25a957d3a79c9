"""Tables that are redrawn, and colours, on a terminal of 80 columns and in a pipe, with machines that do not run."""

import re
from pathlib import Path

import pytest
import yaml

from tests.host.commands.ownservers import Servers
from tests.host.commands.terminals import ROWS, PipedCommand, Terminal, rows
from tests.host.runs.conftest import machine

pytestmark = pytest.mark.needs("qemu")
LONG = "a-machine-with-a-name-that-no-terminal-of-80-columns-has-room-for"
# The SGR sequences of colours; others only move the cursor and clear.
COLOUR = re.compile(rb"\x1b\[[0-9;]+m")


@pytest.fixture
def lab(servers: Servers) -> Servers:
    """A server of the user's own."""
    servers.up(servers.default)
    return servers


def make(servers: Servers, folder: Path, *names: str) -> None:
    """Make machines that are off."""
    file = folder / "machines.yaml"
    file.write_text(yaml.safe_dump_all(machine(name, strategy="Halted") for name in names))
    servers.good("apply", "-f", str(file))


def ageless(terminal: Terminal) -> list[str]:
    """Return the lines of a screen without the seconds that pass between two commands."""
    return [re.sub(r" *\d+s\b", " 0s", line) for line in terminal.lines]


def test_a_list_is_redrawn_in_place_and_fits(lab: Servers, work: Path) -> None:
    make(lab, work, "web")
    watching = lab.terminal("ls", "-w")
    watching.until_shown(lambda lines: rows(lines, "web") and " Stopped " in rows(lines, "web")[0])
    piped = PipedCommand(lab.start("ls", "-w"))
    piped.until(b" Stopped ")
    make(lab, work, LONG, "db")
    watching.until_shown(lambda lines: len(rows(lines, "a-machine-with")) == 1 and len(rows(lines, "db")) == 1)
    lab.good("rm", "web", "--yes")
    lines = watching.until_shown(lambda lines: not rows(lines, "web"))
    assert [len(rows(lines, name)) for name in ("NAME", "db", "a-machine-with")] == [1, 1, 1], lines
    assert len(lines) == 3, "no row is folded"
    watching.type(b"\x03")
    assert watching.ended() == 130 and b"Traceback" not in watching.everything
    # A pipe gets the rows that changed, whole and without anything that moves a cursor.
    piped.until(LONG.encode())
    assert b"\x1b" not in piped.everything and len(re.findall(rb"(?m)^NAME ", piped.everything)) == 1
    assert piped.interrupt()[0] == 130


def test_a_list_that_is_higher_than_the_terminal_says_so(lab: Servers, work: Path) -> None:
    make(lab, work, *(f"web-{number:02}" for number in range(ROWS + 6)))
    watching = lab.terminal("ls", "-w")
    lines = watching.until_shown(lambda lines: any("more lines" in line for line in lines))
    assert rows(lines, "NAME") and len(lines) <= ROWS - 1
    watching.type(b"\x03")
    assert watching.ended() == 130
    assert len(lab.good("ls").splitlines()) == ROWS + 7


def test_colours_are_for_terminals_that_want_them(lab: Servers, work: Path) -> None:
    make(lab, work, "web")

    def shown(*words: str, **variables: str) -> Terminal:
        terminal = lab.terminal(*words, **variables)
        assert terminal.ended() == 0, terminal.everything
        return terminal

    for words in (("ls",), ("info", "web")):
        coloured = shown(*words)
        assert COLOUR.search(coloured.everything), words
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            plain = shown(*words, **variables)
            assert not COLOUR.search(plain.everything) and ageless(plain) == ageless(coloured)
        assert "\x1b" not in lab.good(*words)

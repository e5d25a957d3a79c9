"""Tables that are redrawn, progress and colours, on a terminal of 80 columns and in a pipe, beside a real guest."""

import re

import pytest

from tests.host.commands.isolated import IsolatedHost
from tests.host.commands.terminals import COLUMNS, PipedCommand

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")
LONG = "a-machine-with-a-name-that-no-terminal-of-eighty-columns-has-room-for"


def rows(lines: list[str], name: str) -> list[str]:
    return [line for line in lines if line.startswith(name)]


def test_lists_are_redrawn_in_place_and_fit(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    watching = isolated.terminal("ls", "-w")
    watching.until_shown(lambda lines: rows(lines, "web") and " Running " in rows(lines, "web")[0])
    piped = PipedCommand(isolated.start("ls", "-w"))
    piped.until(b" Running ")
    isolated.good("run", "tiny", "-n", LONG, "--no-wait")
    watching.until_shown(lambda lines: len(rows(lines, "a-machine-with")) == 1)
    isolated.good("stop", "web", "--force")
    lines = watching.until_shown(lambda lines: rows(lines, "web") and " Stopped " in rows(lines, "web")[0])
    assert [len(rows(lines, "NAME")), len(rows(lines, "web")), len(rows(lines, "a-machine-with"))] == [1, 1, 1], lines
    assert len(lines) == 3 and all(len(line) < COLUMNS for line in lines)
    watching.type(b"\x03")
    assert watching.ended() == 130 and b"Traceback" not in watching.everything
    # A pipe gets the rows that changed, whole and without anything that moves a cursor.
    piped.until(b" Stopped ")
    assert LONG.encode() in piped.everything and b"\x1b" not in piped.everything
    assert len(re.findall(rb"(?m)^NAME ", piped.everything)) == 1
    assert piped.interrupt()[0] == 130


def test_use_is_measured_on_a_terminal_and_in_a_pipe(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    watching = isolated.terminal("top", "-w")
    first = watching.until_shown(lambda lines: rows(lines, "web"))
    assert first[0].split() == ["NAME", "CPU", "MEMORY", "GUEST", "READ/s", "WRITE/s", "IN/s", "OUT/s"]
    assert all(len(line) < COLUMNS for line in first)
    before = watching.everything.count(b"\x1b[J")
    watching.until_shown(lambda _: watching.everything.count(b"\x1b[J") >= before + 2)
    assert len(rows(watching.lines, "web")) == 1 and len(watching.lines) == 2, "it is drawn in place"
    watching.type(b"\x03")
    assert watching.ended() == 130
    table = isolated.good("top").splitlines()
    assert [line.split()[0] for line in table] == ["NAME", "web"]


def test_progress_is_a_bar_that_goes_or_lines_that_stay(isolated: IsolatedHost) -> None:
    terminal = isolated.terminal("run", "tiny", "-n", "web")
    assert terminal.ended(240) == 0
    assert re.search(rb"\x1b\[2Kweb: [a-z]", terminal.everything), "a bar was drawn while the guest booted"
    assert terminal.lines[0].startswith("web is usable"), "the result stands where the bar was"
    assert not [line for line in terminal.lines if line.startswith("web:")]
    # Without a terminal on standard error there are no bars.
    code, out, err = isolated.call("restart", "web")
    assert (code, out) == (0, "vm/web restarted\n") and "\x1b" not in err
    dumb = isolated.terminal("restart", "web", TERM="dumb")
    assert dumb.ended(120) == 0 and b"\x1b" not in dumb.everything


def test_colours_are_for_terminals_that_want_them(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    coloured = isolated.terminal("ls")
    assert coloured.ended() == 0 and coloured.colours == {"green"}
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = isolated.terminal("ls", **variables)
        assert plain.ended() == 0 and plain.colours == set() and plain.lines == coloured.lines
    assert "\x1b" not in isolated.good("ls")
    info = isolated.terminal("info", "web", NO_COLOR="1")
    assert info.ended() == 0 and b"\x1b[3" not in info.everything

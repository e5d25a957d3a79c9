"""Use and progress on a terminal of 80 columns and in a pipe, beside a real guest; test_lists.py has what needs no guest."""

import re

import pytest

from tests.host.commands.isolated import IsolatedHost
from tests.host.commands.terminals import rows

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")


def test_use_is_measured_on_a_terminal_and_in_a_pipe(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    watching = isolated.terminal("top", "-w")
    first = watching.until_shown(lambda lines: rows(lines, "web"))
    assert first[0].split() == ["NAME", "CPU", "MEMORY", "GUEST", "READ/s", "WRITE/s", "IN/s", "OUT/s"]
    assert len(first) == 2, "no row is folded"
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

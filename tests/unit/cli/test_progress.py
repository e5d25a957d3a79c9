"""Bars and lines of progress: pure lines, and a bar on a clock of its own."""

import io
import os
import pty
import subprocess
import sys

import pytest

from paddock.cli.console import Console
from paddock.cli.progress import ProgressBar, ProgressOutput, ProgressState, bar_line, seconds, size, text_line

HALF = ProgressState("downloading", 50 << 20, 100 << 20, per_second=10 << 20, elapsed=5)
UNKNOWN = ProgressState("waiting for the guest", elapsed=75)

LINES = {
    "at 80 columns": (HALF, 80, "downloading  [##################..................]  50 %  10.0 MiB/s  5 s left"),
    "at 50 columns the bar is left out": (HALF, 50, "downloading  50 %  10.0 MiB/s  5 s left"),
    "at 12 columns the text is cut": (HALF, 12, "downloading"),
    "of unknown length": (UNKNOWN, 80, "waiting for the guest  1 min 15 s"),
    "nothing to do is done": (ProgressState("storing", 0, 0), 30, "storing  [###########]  100 %"),
    "a label cannot move the cursor": (ProgressState("a\x1b[2Jb", elapsed=1), 40, "a\\x1b[2Jb  1 s"),
    "more than there was is all": (ProgressState("disk", 3, 2, in_bytes=False), 30, "disk  [##############]  100 %"),
}


@pytest.mark.parametrize(("state", "width", "line"), LINES.values(), ids=LINES)
def test_a_line_fits_its_terminal(state: ProgressState, width: int, line: str) -> None:
    assert bar_line(state, width) == line and len(line) < width


def test_colours_do_not_change_the_text() -> None:
    coloured = bar_line(HALF, 80, colours=True)
    assert coloured.replace("\x1b[36m", "").replace("\x1b[0m", "") == bar_line(HALF, 80) != coloured


def test_lines_of_a_log() -> None:
    assert text_line(HALF) == "downloading 50 %, 10.0 MiB/s, 5 s left"
    assert text_line(UNKNOWN) == "waiting for the guest 1 min 15 s"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB"), (9 << 50, "9216.0 TiB")]
)
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(("count", "text"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3700, "1 h 1 min")])
def test_spans(count: float, text: str) -> None:
    assert seconds(count) == text


class Stage:
    """A bar whose clock stands still, and what it wrote."""

    def __init__(self, *, width: int = 0, quiet: bool = False) -> None:
        self.now = 0.0
        self.written: list[str] = []
        console = Console(io.BytesIO(), io.BytesIO())
        self.bar = ProgressBar(console, quiet=quiet, out=ProgressOutput(self.written.append, lambda: width), now=lambda: self.now)

    def at(self, now: float, label: str, done: float = 0.0, total: float | None = None) -> None:
        self.now = now
        self.bar.show(label, done, total)
        self.bar.draw()


def test_what_is_over_within_a_second_is_not_shown() -> None:
    stage = Stage()
    for tenth in range(10):
        stage.at(tenth * 0.09, "downloading", tenth, 10)
    assert stage.written == []


def test_a_pipe_gets_a_line_for_each_ten_per_cent() -> None:
    stage = Stage()
    for percent in range(101):
        stage.at(2 + percent * 0.1, "downloading", percent << 20, 100 << 20)
    assert len(stage.written) == 11
    assert stage.written[5] == "paddock: downloading 50 %, 10.0 MiB/s, 5 s left\n"


def test_a_pipe_is_reminded_of_a_step_of_unknown_length() -> None:
    stage = Stage()
    for second in range(2, 70):
        stage.at(second, "building")
    assert stage.written == ["paddock: building 0 s\n", "paddock: building 30 s\n", "paddock: building 1 min 0 s\n"]


def test_a_terminal_is_redrawn_in_place_and_cleared() -> None:
    stage = Stage(width=60)
    with stage.bar:
        stage.at(2, "downloading", 1, 4)
        stage.bar.say("web-1 is ready")
        stage.at(3, "downloading", 2, 4)
    assert [each.partition("  [")[0] for each in stage.written] == [
        "\r\x1b[2Kdownloading", "\r\x1b[2K", "web-1 is ready\n", "\r\x1b[2Kdownloading", "\r\x1b[2K",
    ]  # fmt: skip


def test_quiet_shows_nothing_but_what_stays() -> None:
    stage = Stage(width=60, quiet=True)
    stage.at(5, "downloading", 1, 4)
    stage.bar.say("done")
    assert stage.written == ["done\n"]


def test_the_speed_is_that_of_the_last_seconds_and_of_each_step_alone() -> None:
    stage = Stage()
    stage.at(2, "downloading", 900 << 20, 1000 << 20)
    stage.at(4, "downloading", 920 << 20, 1000 << 20)
    stage.at(5, "storing", 10, 100)
    assert stage.written == ["paddock: downloading 90 %\n", "paddock: storing 10 %\n"]


PROGRAM = """
from paddock.cli.console import Console
from paddock.cli.progress import ProgressBar
late = iter([0.0])
with ProgressBar(Console(), now=lambda: next(late, 5.0)) as bar:
    bar.show("working", 1, 4)
    bar.draw()
print("result")
"""


@pytest.mark.parametrize(
    ("environment", "coloured", "in_place"), [({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False)]
)
def test_on_a_real_terminal(environment: dict[str, str], coloured: bool, in_place: bool) -> None:
    leader, terminal = pty.openpty()
    base = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=base | environment
    )
    os.close(terminal)
    text = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 0
    assert ("\x1b[36m" in text, "\x1b[2K" in text) == (coloured, in_place)
    assert "working" in text and text.endswith("result\r\n")

"""Tables and the terminal that they are for."""

import pytest

from paddock.cli import tables, terminal
from paddock.cli.tables import Cell, TableColumn
from paddock.cli.terminal import PIPE, Screen

COLUMNS = (TableColumn(title="NAME", shrinks=True), TableColumn(title="STATUS"), TableColumn(title="CPUS", right=True))
ROWS: list[tables.Row] = [("web", Cell("Running", "green"), "2"), ("a-rather-long-name", "Stopped", ""), ("bad\nname", "Failed", "16")]


def test_a_table_is_whole_in_a_pipe() -> None:
    assert tables.text(COLUMNS, ROWS) == (
        "NAME                 STATUS    CPUS\n"
        "web                  Running      2\n"
        "a-rather-long-name   Stopped      -\n"
        "bad\\nname            Failed      16\n"
    )
    assert tables.text(COLUMNS, ROWS, header=False).startswith("web ")
    assert tables.text(COLUMNS, [], header=False) == ""


@pytest.mark.parametrize("width", [20, 30, 34, 80])
def test_a_table_fits_its_terminal(width: int) -> None:
    found = tables.lines(COLUMNS, ROWS, Screen(columns=width))
    least = 8 + 3 + 7 + 3 + 4
    assert max(map(len, found)) <= max(width, least)
    assert ("…" in found[2]) == (width < 35)


def test_colours_take_no_room() -> None:
    found = tables.lines(COLUMNS, ROWS, Screen(columns=80, colours=True))
    assert found[1] == "web                  \x1b[32mRunning\x1b[0m      2"
    assert found[0].startswith("\x1b[1mNAME\x1b[0m")


def test_a_stream_without_a_descriptor_is_a_pipe() -> None:
    assert terminal.current({"TERM": "xterm"}) == PIPE
    assert PIPE.paint("text", "red") == "text"
    assert PIPE.width == 80

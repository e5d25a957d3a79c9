"""Tables for people: columns that fit the terminal, cut where they must be, whole where nobody looks at them."""

from collections.abc import Sequence
from typing import NamedTuple

from paddock.base.lines import Colour, one_line
from paddock.cli.terminal import PIPE, Screen

_GAP = 3
_CUT = "…"


class TableColumn(NamedTuple):
    """A column. `shrinks` allows it to be cut to `least` characters when a row is too long for the terminal."""

    title: str
    right: bool = False
    shrinks: bool = False
    least: int = 8


class Cell(NamedTuple):
    """A text with its colour."""

    text: str
    colour: Colour = ""


Row = Sequence[Cell | str]


def lines(columns: Sequence[TableColumn], rows: Sequence[Row], screen: Screen = PIPE, *, header: bool = True) -> list[str]:
    """Return the lines of a table. Where lines may be of any length, nothing is cut."""
    table = [[_cell(each) for each in row] for row in rows]
    if header:
        table.insert(0, [Cell(each.title, "bold") for each in columns])
    if not table:
        return []
    widths = [max(len(row[index].text) for row in table) for index in range(len(columns))]
    widths = _fitted(columns, widths, screen.columns)
    return [_line(columns, row, widths, screen) for row in table]


def text(columns: Sequence[TableColumn], rows: Sequence[Row], screen: Screen = PIPE, *, header: bool = True) -> str:
    """Return a table as text."""
    return "".join(f"{line}\n" for line in lines(columns, rows, screen, header=header))


def _cell(value: Cell | str) -> Cell:
    cell = Cell(value) if isinstance(value, str) else value
    return cell if cell.text.isprintable() and cell.text else Cell(one_line(cell.text) or "-", cell.colour)


def _fitted(columns: Sequence[TableColumn], widths: list[int], limit: int) -> list[int]:
    """Take characters off the columns that may shrink, from the widest first, until a row fits."""
    surplus = sum(widths) + _GAP * (len(widths) - 1) - limit if limit else 0
    widths = list(widths)
    while surplus > 0:
        able = [index for index, each in enumerate(columns) if each.shrinks and widths[index] > max(each.least, len(each.title))]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
        surplus -= 1
    return widths


def _line(columns: Sequence[TableColumn], row: Sequence[Cell], widths: Sequence[int], screen: Screen) -> str:
    parts = []
    last = len(row) - 1
    for index, (column, cell, width) in enumerate(zip(columns, row, widths, strict=True)):
        shown = cell.text if len(cell.text) <= width else f"{cell.text[: width - 1]}{_CUT}"
        space = " " * (width - len(shown))
        painted = screen.paint(shown, cell.colour)
        parts.append(f"{space}{painted}" if column.right else painted if index == last else f"{painted}{space}")
    return (" " * _GAP).join(parts).rstrip()

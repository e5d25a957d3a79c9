"""The terminal of a command: is there one, its size, and colours."""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from paddock.base.lines import Colour

# Without a terminal: what fits a page of documentation.
_WIDTH, _HEIGHT = 80, 24
_CODES: Mapping[Colour, str] = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "grey": "90", "bold": "1"}
# The cursor to the first column, everything from there to the end cleared.
CLEAR_BELOW = "\r\x1b[J"


class Screen(NamedTuple):
    """What standard output is. `columns` is 0 where lines may be of any length."""

    interactive: bool = False
    columns: int = 0
    rows: int = _HEIGHT
    colours: bool = False

    @property
    def width(self) -> int:
        """The columns to lay text out for."""
        return self.columns or _WIDTH

    def paint(self, text: str, colour: Colour) -> str:
        """Return the text in a colour, or as it is where there are no colours."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.colours and colour and text else text

    def up(self, lines: int) -> str:
        """Return what moves the cursor up that many lines and clears what follows."""
        return f"\x1b[{lines}A{CLEAR_BELOW}" if lines else CLEAR_BELOW


PIPE = Screen()


def current(environ: Mapping[str, str] = os.environ) -> Screen:
    """Return the terminal that standard output is. A pipe or a file has no width and no colours."""
    try:
        descriptor = sys.stdout.fileno()
        if not os.isatty(descriptor):
            return PIPE
        size = os.get_terminal_size(descriptor)
    except (OSError, ValueError):
        # A test's stream has no descriptor, and a closed one no size.
        return PIPE
    columns = _number(environ.get("COLUMNS", "")) or size.columns or _WIDTH
    dumb = environ.get("TERM") in (None, "", "dumb")
    # https://no-color.org: any value that is not empty counts.
    return Screen(interactive=not dumb, columns=columns, rows=size.lines or _HEIGHT, colours=not dumb and not environ.get("NO_COLOR"))


def has_input() -> bool:
    """Return whether a person can answer a question: standard input and standard error are terminals."""
    try:
        return os.isatty(sys.stdin.fileno()) and os.isatty(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0

"""The progress of the demonstration: a table that is redrawn in place on a terminal; elsewhere a line for each change."""

import shutil
import time
from collections.abc import Sequence
from typing import TextIO


class Screen:
    """Shows lines that stay, and a table. Elsewhere than on a terminal, lines have the seconds since the start before them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.live = out.isatty()
        self._last: dict[str, str] = {}
        self._drawn = 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """A line that stays."""
        self._out.write(f"{text}\n" if self.live else f"{self.seconds:6.1f} s  {text}\n")
        self._out.flush()

    def draw(self, lines: Sequence[str]) -> None:
        """Draw a table in place of the one before; nothing where nothing can be redrawn."""
        if not self.live:
            return
        size = shutil.get_terminal_size()
        # Lines that left the screen cannot be redrawn, so a low screen has the beginning of the table.
        shown = [line[: size.columns - 1] for line in lines[: max(size.lines - 1, 1)]]
        above = f"\x1b[{self._drawn}F" if self._drawn else ""
        # What was longer is cleared line by line, and what was lower below, so that nothing flickers.
        self._out.write(above + "".join(f"{line}\x1b[K\n" for line in shown) + "\x1b[J")
        self._out.flush()
        self._drawn = len(shown)

    def settle(self, lines: Sequence[str]) -> None:
        """The last table, whole, in place of the one before; later lines come below."""
        above = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        self._out.write(above + "".join(f"{line}\n" for line in lines))
        self._out.flush()
        self._drawn = 0

    def tell(self, lines: Sequence[tuple[str, str]]) -> None:
        """Named lines, each when its text changes; nothing on a terminal, which has the table."""
        for name, text in lines:
            if not self.live and self._last.get(name) != text:
                self.say(f"{name}  {text}")
        self._last = dict(lines)

"""One line for each guest: redrawn in place on a terminal; elsewhere printed when it says something new."""

import shutil
import time
from collections.abc import Sequence
from typing import TextIO


class Screen:
    """Shows named lines. Plain lines have the seconds since the start before them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._told: dict[str, str] = {}
        self._drawn = 0
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._out.write(f"{self._seconds()}  {text}\n")
        self._out.flush()

    def show(self, lines: Sequence[tuple[str, str]], heading: tuple[str, str] = ("", "")) -> None:
        """Each line has a name and a text. A terminal has the heading above them."""
        if self._live:
            self._redraw([heading, *lines] if any(heading) else lines)
        else:
            for name, text in lines:
                if self._told.get(name) != text:
                    self.say(f"{name}  {text}")
        self._told = dict(lines)
        self._out.flush()

    def settle(self) -> None:
        """Keep the drawn lines; later ones come below."""
        self._drawn = 0

    def _redraw(self, lines: Sequence[tuple[str, str]]) -> None:
        width = shutil.get_terminal_size().columns - 1
        above = f"\x1b[{self._drawn}F" if self._drawn else ""
        drawn = [f"\x1b[2K{f'{self._seconds()}  {name}  {text}'[:width]}\n" for name, text in lines]
        self._out.write(above + "".join(drawn))
        self._drawn = len(lines)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._started:6.1f} s"

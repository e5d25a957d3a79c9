"""A view that changes: redrawn in place on a terminal, the changed lines one below the other elsewhere."""

from collections.abc import Sequence

from paddock.cli.console import Console
from paddock.cli.terminal import Screen


class LiveView:
    """The lines that stand on the screen now."""

    def __init__(self, console: Console, screen: Screen) -> None:
        self._console = console
        self._screen = screen
        self._drawn = 0
        self._before: set[str] = set()

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines in place of those before."""
        if self._screen.interactive:
            self._redraw(lines)
        else:
            # A reader of a pipe wants what changed, as of `kubectl get -w`. A column that becomes wider changes no row.
            words = [" ".join(line.split()) for line in lines]
            new = [line for line, each in zip(lines, words, strict=True) if each not in self._before]
            self._before = set(words)
            self._console.out("".join(f"{line}\n" for line in new))
        self._console.flush()

    def _redraw(self, lines: Sequence[str]) -> None:
        # What has left the screen at its top cannot be drawn over.
        room = max(self._screen.rows - 2, 1)
        shown = list(lines[:room])
        if len(lines) > room:
            shown[-1] = f"... {len(lines) - room + 1} more lines; make the terminal higher to see them"
        self._console.out(self._screen.up(self._drawn) + "".join(f"{line}\n" for line in shown))
        self._drawn = len(shown)

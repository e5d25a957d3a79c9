"""Questions before something changes. Without a terminal nobody can answer, so nothing changes without --yes."""

import os
import sys

from paddock.cli.console import Console

_YES = ("y", "yes")


def agreed(console: Console, question: str, *, yes: bool) -> bool:
    """Return True if the change may happen: with `--yes`, or if the person at the terminal answers yes.

    Without a terminal nobody is asked: the caller says that nothing has happened, and that `--yes` is the way.
    """
    if yes:
        return True
    if not answerable():
        return False
    console.ask(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in _YES


def refused(console: Console, outcome: str, way: str) -> None:
    """Say that nothing has happened. Only where nobody could be asked, the way without a question helps."""
    console.say(f"paddock: {outcome}" if answerable() else f"paddock: {outcome}; {way}")


def answerable() -> bool:
    """Return True if a person can read a question and answer it."""
    try:
        return os.isatty(sys.stdin.fileno()) and os.isatty(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False

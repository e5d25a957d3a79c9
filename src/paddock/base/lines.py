"""Lines for people: what they may contain, the colours they may have, and who writes them."""

from typing import Literal, Protocol

Colour = Literal["", "red", "green", "yellow", "cyan", "grey", "bold"]
# Characters that would move a cursor or break a line of a report.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class LinePrinter(Protocol):
    """Writes a line for the person who waits: the console of a command does."""

    def say(self, line: str) -> None: ...


def one_line(text: str) -> str:
    """A text without the characters that would spoil a line."""
    return text if text.isprintable() else text.translate(_CONTROL)

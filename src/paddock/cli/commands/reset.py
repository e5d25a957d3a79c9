"""`paddock reset`: resets machines, as the button of a computer does."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Reset machines at once, as the button of a computer does. The guest gets no time, and its data may suffer."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return powercommands.parser("reset", _TEXT, waits=False)


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("reset", parser(), argv, console)

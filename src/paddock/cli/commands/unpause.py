"""`paddock unpause`: lets paused machines go on."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Unpause machines."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return powercommands.parser("unpause", _TEXT)


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("unpause", parser(), argv, console)

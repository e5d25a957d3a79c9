"""`paddock resume`: lets suspended machines go on."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Resume suspended machines where they were, and wait until they run. For a paused machine, use `paddock unpause`."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return powercommands.parser("resume", _TEXT)


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("resume", parser(), argv, console)

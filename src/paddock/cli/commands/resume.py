"""`paddock resume`: lets suspended machines go on."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Let suspended machines go on where they were, and wait until they run. A paused machine goes on with `paddock unpause`."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return powercommands.parser("resume", _TEXT)


def run(given: Sequence[str], console: Console) -> int:
    """Run the command."""
    return powercommands.carry_out("resume", parser(), given, console)

"""`paddock stop`: shuts machines down, and waits until they have stopped."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Shut machines down and wait until they have stopped. The command changes the object
that you wrote, so that they stay stopped."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = powercommands.parser("stop", _TEXT)
    options.add_argument("--force", "--now", action="store_true", help="Cut the power instead of shutting the guest down")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("stop", parser(), argv, console)

"""`paddock restart`: stops machines and starts them again."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Shut machines down, start them again, and wait for the guest: until its agent answers, if it had one before."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = powercommands.parser("restart", _TEXT)
    options.add_argument("--force", "--now", action="store_true", help="Cut the power instead of shutting the guest down")
    options.add_argument("--soft", action="store_true", help="Have the guest reboot itself, within the same instance")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("restart", parser(), argv, console)

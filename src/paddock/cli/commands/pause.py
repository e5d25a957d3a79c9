"""`paddock pause`: stops the processors of machines."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Stop the processors of machines. Their memory stays as it is; `paddock unpause` starts them again."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return powercommands.parser("pause", _TEXT)


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("pause", parser(), argv, console)

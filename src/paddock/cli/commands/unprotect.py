"""`paddock unprotect`: takes the protection of machines off."""

from collections.abc import Sequence

from paddock.cli import arguments, protection
from paddock.cli.console import Console

_TEXT = """Take the label kubevirt.io/vm-delete-protection off, so that the machines can be deleted again."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return protection.parser("unprotect", _TEXT)


def run(argv: Sequence[str], console: Console) -> int:
    return protection.carry_out(parser(), argv, console, protected=False)

"""`paddock protect`: protects machines from deletion."""

from collections.abc import Sequence

from paddock.cli import arguments, protection
from paddock.cli.console import Console

_TEXT = """Protect machines from deletion with the label kubevirt.io/vm-delete-protection. The server of `paddock up` refuses to delete
such a machine for any client; on other servers the command says whether anything enforces the label."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return protection.parser("protect", _TEXT)


def run(argv: Sequence[str], console: Console) -> int:
    return protection.carry_out(parser(), argv, console, protected=True)

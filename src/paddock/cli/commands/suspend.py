"""`paddock suspend`: writes the memory of guests to disk and ends their processes."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Write the memory of guests to disk and free it. `paddock resume` or `paddock start` resumes them where they were, also after
a restart of the host. Until then their disks and hardware stay as they are."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = powercommands.parser("suspend", _TEXT)
    options.add_argument("--discard", action="store_true", help="Give up what was written: the next start boots the guest")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("suspend", parser(), argv, console)

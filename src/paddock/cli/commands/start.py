"""`paddock start`: starts machines, and waits until they run."""

from collections.abc import Sequence

from paddock.cli import arguments, powercommands
from paddock.cli.console import Console

_TEXT = """Start machines and wait until they run. The command changes the object that you wrote: runStrategy or running, VirtRigaud's
powerState, or Vitistack's annotation."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = powercommands.parser("start", _TEXT)
    options.add_argument("--paused", action="store_true", help="Start with paused processors (KubeVirt)")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    return powercommands.carry_out("start", parser(), argv, console)

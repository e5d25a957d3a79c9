"""`paddock suspend`: refuses, and names what comes closest. Suspending to disk does not exist yet."""

from collections.abc import Sequence
from typing import NoReturn

from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console

_TEXT = """Suspend a machine to disk. Paddock cannot do this yet: it would write the memory of the guest to disk and
free it. The command says so, and names what comes closest."""
_EXITS = {0: "never, for now", 2: "always, for now"}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("suspend", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    arguments.add_machine(options, "Machine to suspend")
    arguments.add_server(options)
    return options


def run(given: Sequence[str], _: Console) -> NoReturn:
    """Refuse."""
    parsed = parser().parse_args(given)
    raise Terminal(
        f"cannot suspend {parsed.name}",
        why="Paddock cannot suspend machines to disk yet",
        fix=f"`paddock pause {parsed.name}` holds the guest and keeps its memory; `paddock stop {parsed.name}` frees it",
    )

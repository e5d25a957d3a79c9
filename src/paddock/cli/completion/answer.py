"""`paddock __complete WORD...`: the question that shells ask. It fails quietly, because nobody reads its errors."""

from collections.abc import Sequence

from paddock.cli.commandtree import Commands
from paddock.cli.completion import names
from paddock.cli.completion.candidates import complete, lines
from paddock.cli.console import Console
from paddock.cli.exits import GOOD


def run(given: Sequence[str], console: Console, commands: Commands) -> int:
    """Print the candidates for the last word."""
    console.out(lines(complete(given, commands, names.lookup)))
    return GOOD

"""`paddock __complete WORD...`: the question that shells ask. It fails quietly, because nobody reads its errors."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from paddock.cli.completion.candidates import Candidate, CommandFacts, NamesQuery, complete, lines
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

_FACTS = Path(__file__).parent / "facts" / "commands.json"


def read() -> Mapping[str, CommandFacts]:
    """Return the facts of every command of the program."""
    commands: Mapping[str, CommandFacts] = json.loads(_FACTS.read_bytes())
    return commands


def run(given: Sequence[str], console: Console) -> int:
    """Print the candidates for the last word."""
    console.out(lines(complete(given, read(), _names)))
    return GOOD


def _names(query: NamesQuery) -> Iterable[Candidate]:
    from paddock.cli.completion import names  # noqa: PLC0415 - commands, options and files complete without a client

    return names.lookup(query)

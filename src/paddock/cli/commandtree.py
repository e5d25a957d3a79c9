"""The tree of all commands with their parsers: the facts of completion, man pages and the reference are made of it.

A command is a module with `parser()`, which builds its parser and does nothing else, and `run(arguments, console)`, which begins with
`parser().parse_args(arguments)`. A command that only has verbs has `COMMANDS` as well: verb -> module and summary.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from paddock.cli.arguments import Parser

# command -> its module and its summary
Commands = Mapping[str, tuple[str, str]]


class CommandEntry(NamedTuple):
    """A command of the tree, and the module that has its parser."""

    words: tuple[str, ...]
    module: str
    summary: str

    @property
    def name(self) -> str:
        """Its words, as one types them after `paddock`."""
        return " ".join(self.words)

    def parser(self) -> Parser:
        """Return its parser; loads the module."""
        made: Parser = import_module(self.module).parser()
        return made

    def verbs(self) -> "Commands":
        """Return the commands below it; loads the module."""
        below: Commands = getattr(import_module(self.module), "COMMANDS", {})
        return below


def walk(commands: Commands, above: tuple[str, ...] = ()) -> Iterator[CommandEntry]:
    """Yield every command, each before the verbs below it."""
    for word, (module, summary) in commands.items():
        entry = CommandEntry((*above, word), module, summary)
        yield entry
        yield from walk(entry.verbs(), entry.words)

"""`paddock COMMAND --help` without loading the command: its parser is made again of the generated facts."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.arguments import Container, Parser
from paddock.cli.completion.candidates import CommandFacts, read


def show(words: Sequence[str]) -> None:
    """Raise `HelpRequested` if the words after `paddock` are those of a command and `--help`.

    Return if the command has to be loaded: it parses every other line, and lists its own verbs.
    """
    *command, last = words
    if last in ("-h", "--help") and (facts := _find(command)) and facts["options"]:
        _parser(command, facts).print_help()


def _find(command: Sequence[str]) -> CommandFacts | None:
    commands, facts = read(), None
    for word in command:
        facts = commands.get(word)
        if facts is None:
            return None
        commands = facts["verbs"]
    return facts


def _parser(command: Sequence[str], facts: CommandFacts) -> Parser:
    """Return a parser that says what the command's own one says, and parses nothing."""
    made = arguments.parser(" ".join(command), facts["description"])
    made.usage, made.epilog = facts["usage"], facts["epilog"]
    groups: dict[str, Container] = {"arguments": made, "options": made}
    # The first one is `--help`, which every parser has.
    for option in facts["options"][1:]:
        title = option["group"]
        if not title:
            continue
        if title not in groups:
            groups[title] = made.add_argument_group(title)
        groups[title].add_argument(
            *(option["names"] or ["argument"]),
            action=argparse.Action,
            nargs=option["nargs"],
            metavar=option["metavar"],
            help=option["text"].replace("%", "%%"),
        )
    return made

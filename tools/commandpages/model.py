"""What a parser says of its command, without the layout of its help."""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.arguments import Parser
from paddock.cli.commandtree import CommandEntry, walk
from paddock.cli.verbs import VerbsParser

_EXITS = "exit codes:\n"


class OptionText(NamedTuple):
    """An option or argument as one types it, and its text."""

    invocation: str
    text: str


class OptionGroup(NamedTuple):
    """Options below a title of the help."""

    title: str
    options: Sequence[OptionText]


class CommandText(NamedTuple):
    """A command with everything that its parser says."""

    entry: CommandEntry
    usage: str
    text: str
    groups: Sequence[OptionGroup]
    exits: Sequence[tuple[str, str]]
    epilog: str
    verbs: Sequence[tuple[str, str]]


def commands() -> Iterator[CommandText]:
    """Yield every command of the program."""
    for entry in walk(main.every(COMMANDS)):
        yield _text(entry)


def _text(entry: CommandEntry) -> CommandText:
    parser = entry.parser()
    epilog = parser.epilog or ""
    before, marked, codes = epilog.partition(_EXITS)
    exits = [(code, meaning) for code, _, meaning in (line.strip().partition("  ") for line in codes.splitlines())] if marked else []
    groups = [] if isinstance(parser, VerbsParser) else list(_groups(parser))
    verbs = [(name, summary) for name, (_, summary) in entry.verbs().items()]
    return CommandText(entry, parser.usage or entry.name, parser.description or "", groups, exits, before.strip(), verbs)


def _groups(parser: Parser) -> Iterator[OptionGroup]:
    layout = parser._get_formatter()
    for group in parser._action_groups:
        shown = [each for each in group._group_actions if each.help != argparse.SUPPRESS]
        if shown:
            yield OptionGroup(group.title or "", [OptionText(layout._format_action_invocation(each), text_of(each)) for each in shown])


def paragraphs(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the paragraphs of a description; True for one whose lines stay as they are, because they are a table."""
    for paragraph in text.split("\n\n"):
        is_table = any(line.startswith("  ") for line in paragraph.splitlines())
        yield is_table, paragraph if is_table else " ".join(paragraph.split())


def text_of(action: argparse.Action) -> str:
    """Return the text of an option, with its default filled in."""
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    return " ".join((action.help % {"default": action.default, "prog": ""} if "%" in action.help else action.help).split())

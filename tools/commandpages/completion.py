"""src/paddock/cli/completion/facts/commands.json: what the parsers say to those who complete a command line."""

import argparse
import json
from collections.abc import Mapping

from paddock.app.main import COMMANDS
from paddock.cli import arguments, main
from paddock.cli.commandtree import CommandEntry, Commands
from paddock.cli.completion.candidates import CommandFacts, OptionFacts
from paddock.cli.verbs import VerbsParser
from tools.commandpages.model import text_of


def files() -> Mapping[str, str]:
    """Return the facts of every command."""
    return {"commands.json": json.dumps(_facts((), main.every(COMMANDS)), ensure_ascii=False, indent=1) + "\n"}


def _facts(above: tuple[str, ...], commands: Commands) -> Mapping[str, CommandFacts]:
    return {word: _command(CommandEntry((*above, word), module, summary)) for word, (module, summary) in commands.items()}


def _command(entry: CommandEntry) -> CommandFacts:
    parser = entry.parser()
    # Nobody asks for the help of verbs with the Tab key.
    options = [] if isinstance(parser, VerbsParser) else [_option(each) for each in parser._actions]
    return {"summary": entry.summary, "options": options, "verbs": _facts(entry.words, entry.verbs())}


def _option(action: argparse.Action) -> OptionFacts:
    values = arguments.completion(action)
    return {
        "names": list(action.option_strings),
        "nargs": 1 if action.nargs is None else action.nargs,
        "repeatable": isinstance(action, argparse._AppendAction | argparse._ExtendAction),
        "values": str(values) if isinstance(values, arguments.KnownNames) else list(values),
        "text": text_of(action),
    }

"""src/paddock/cli/completion/facts/commands.json: what the parsers say for completion and for the help of a command."""

import argparse
import json
from collections.abc import Mapping

from paddock.app.main import COMMANDS
from paddock.cli import arguments, main
from paddock.cli.arguments import Parser
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
    options = [] if isinstance(parser, VerbsParser) else [_option(each, parser) for each in parser._actions]
    return {
        "summary": entry.summary,
        "usage": parser.usage or "",
        "description": parser.description or "",
        "epilog": parser.hint if parser._experts else parser.epilog or "",
        "options": options,
        "verbs": _facts(entry.words, entry.verbs()),
    }


def _option(action: argparse.Action, parser: Parser) -> OptionFacts:
    values = arguments.completion(action)
    return {
        "names": list(action.option_strings),
        "nargs": 1 if action.nargs is None else action.nargs,
        "repeatable": isinstance(action, argparse._AppendAction | argparse._ExtendAction),
        "values": str(values) if isinstance(values, arguments.KnownNames) else list(values),
        "metavar": "" if action.nargs == 0 else str(action.metavar or action.dest.upper()),
        "text": text_of(action),
        "group": _group(action, parser),
    }


def _group(action: argparse.Action, parser: Parser) -> str:
    shown = [each for each in parser._action_groups if each not in parser._experts and action.help != argparse.SUPPRESS]
    return next((each.title or "" for each in shown if action in each._group_actions), "")

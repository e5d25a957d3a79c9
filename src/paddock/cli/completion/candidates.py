"""Lists the words that may come next on a command line. Pure, apart from loading the module of one command.

The answer has the form of cobra's `__complete`: a candidate a line, a tab and its text, and a last line with a directive. So
`kubectl paddock` completes as kubectl's own commands do.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntFlag
from typing import NamedTuple

from paddock.cli import arguments
from paddock.cli.arguments import KnownNames, Parser
from paddock.cli.commandtree import CommandEntry, Commands
from paddock.cli.verbs import VerbsParser


class Directive(IntFlag):
    """What the shell does with the candidates; the numbers are cobra's."""

    DEFAULT = 0
    NO_SPACE = 2
    NO_FILES = 4
    ONLY_DIRECTORIES = 16


class Candidate(NamedTuple):
    """A word, and what it means."""

    word: str
    text: str = ""


class Completion(NamedTuple):
    """The answer to a shell."""

    candidates: Sequence[Candidate]
    directive: Directive = Directive.NO_FILES


class NamesQuery(NamedTuple):
    """A question for names that only the host or its server knows, and the words of the command line so far."""

    names: KnownNames
    begun: str
    words: Sequence[str]


# Answers with the names that begin as the question says.
Lookup = Callable[[NamesQuery], Iterable[Candidate]]
_OWN = {"help": "Show the commands, or the help of one"}


def complete(words: Sequence[str], commands: Commands, lookup: Lookup) -> Completion:
    """Return what may stand in place of the last word; the words begin after the program's name."""
    begun = words[-1] if words else ""
    if len(words) <= 1:
        return Completion(_starting(begun, _summaries(commands) | _OWN))
    if words[0] == "help":
        return Completion(_starting(begun, _summaries(commands)) if len(words) == 2 else [])
    if words[0] not in commands:
        return Completion([])
    entry, rest = CommandEntry((words[0],), *commands[words[0]]), words[1:]
    while verbs := entry.verbs():
        has_options = not isinstance(entry.parser(), VerbsParser)
        if len(rest) == 1:
            own = _Line(entry.parser(), words, lookup).complete(rest) if has_options else Completion([])
            return Completion([*_starting(begun, _summaries(verbs)), *own.candidates], own.directive)
        if rest[0] not in verbs:
            if has_options:
                break
            return Completion([])
        entry, rest = CommandEntry((*entry.words, rest[0]), *verbs[rest[0]]), rest[1:]
    return _Line(entry.parser(), words, lookup).complete(rest)


class _Line:
    """The words after a command, as its parser understands them."""

    def __init__(self, parser: Parser, words: Sequence[str], lookup: Lookup) -> None:
        self._words = words
        self._lookup = lookup
        self._options = {name: action for action in parser._actions for name in action.option_strings}
        self._positionals = [action for action in parser._actions if not action.option_strings]

    def complete(self, rest: Sequence[str]) -> Completion:
        """Return what may stand in place of the last of the words."""
        before, begun = rest[:-1], rest[-1]
        used: set[argparse.Action] = set()
        waiting: argparse.Action | None = None
        count, ended = 0, False
        for word in before:
            if waiting is not None and not word.startswith("-"):
                waiting = waiting if waiting.nargs in ("+", "*") else None
            elif word == "--":
                ended, waiting = True, None
            elif word.startswith("-") and word != "-" and not ended:
                name, equals, _ = word.partition("=")
                option = self._options.get(name)
                used |= {option} if option is not None else set()
                waiting = option if option is not None and not equals and option.nargs not in (0, "?") else None
            else:
                count += 1
        if waiting is not None and not (begun.startswith("-") and waiting.nargs in ("+", "*")):
            return self._value(waiting, begun)
        if begun.startswith("-") and not ended:
            return self._option(begun, used)
        return self._positional(count, begun)

    def _option(self, begun: str, used: set[argparse.Action]) -> Completion:
        name, equals, value = begun.partition("=")
        option = self._options.get(name)
        if equals:
            if option is None or option.nargs == 0:
                return Completion([])
            found = self._value(option, value)
            return Completion([Candidate(f"{name}={word}", text) for word, text in found.candidates], found.directive)
        return Completion(list(self._unused(begun, used)))

    def _unused(self, begun: str, used: set[argparse.Action]) -> Iterator[Candidate]:
        for name, action in self._options.items():
            is_spent = action in used and not isinstance(action, argparse._AppendAction | argparse._ExtendAction)
            # The long name says more; the short one is for those who know it.
            is_wanted = name.startswith("--") or (begun == "-" and len(action.option_strings) == 1) or name == begun
            if name.startswith(begun) and is_wanted and not is_spent:
                yield Candidate(name, text_of(action))

    def _positional(self, count: int, begun: str) -> Completion:
        for action in self._positionals:
            if action.nargs in ("*", "+", argparse.REMAINDER) or count == 0:
                return self._value(action, begun)
            count -= 1
        return Completion([])

    def _value(self, action: argparse.Action, begun: str) -> Completion:
        known = arguments.completion(action)
        if known is KnownNames.FILES:
            return Completion([], Directive.DEFAULT)
        if known is KnownNames.DIRECTORIES:
            return Completion([], Directive.ONLY_DIRECTORIES)
        if isinstance(known, KnownNames):
            return Completion(sorted(self._lookup(NamesQuery(known, begun, self._words))))
        return Completion([Candidate(word) for word in known if word.startswith(begun)])


def text_of(action: argparse.Action) -> str:
    """Return the text of an option, with its default filled in."""
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    return " ".join((action.help % {"default": action.default, "prog": ""} if "%" in action.help else action.help).split())


def lines(completion: Completion) -> str:
    """Return the answer as shells read it."""
    rows = [f"{word}\t{text}" if text else word for word, text in completion.candidates]
    return "\n".join([*rows, f":{int(completion.directive)}"]) + "\n"


def _summaries(commands: Commands) -> dict[str, str]:
    return {name: summary for name, (_, summary) in commands.items()}


def _starting(begun: str, texts: dict[str, str]) -> list[Candidate]:
    return [Candidate(word, text) for word, text in texts.items() if word.startswith(begun)]

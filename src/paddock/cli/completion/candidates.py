"""`paddock __complete WORD...`, the question that shells ask: lists the words that may come next on a command line.

It loads no command: what the parsers of all commands say is generated into `facts/commands.json`.

The answer has the form of cobra's `__complete`: a candidate a line, a tab and its text, and a last line with a directive. So
`kubectl paddock` completes as kubectl's own commands do.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntFlag
from pathlib import Path
from typing import NamedTuple, TypedDict

from paddock.cli.arguments import KnownNames
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

_FACTS = Path(__file__).parent / "facts" / "commands.json"


class OptionFacts(TypedDict):
    """The facts that complete and describe an option; an argument has no `names`."""

    names: list[str]
    # as in argparse: 0, 1, "?", "*", "+" or "..."
    nargs: int | str
    repeatable: bool
    # words, or one of `KnownNames`
    values: list[str] | str
    metavar: str
    # with its default filled in
    text: str
    # its title in the help; empty when the help leaves the option out
    group: str


class CommandFacts(TypedDict):
    """The facts that complete a command and make its help; a command with verbs only has no options."""

    summary: str
    usage: str
    description: str
    epilog: str
    options: list[OptionFacts]
    verbs: "Mapping[str, CommandFacts]"


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


def run(given: Sequence[str], console: Console, lookup: Lookup) -> int:
    """Print the candidates for the last word."""
    console.out(lines(complete(given, read(), lookup)))
    return GOOD


def read() -> Mapping[str, CommandFacts]:
    """Return the facts of every command of the program."""
    commands: Mapping[str, CommandFacts] = json.loads(_FACTS.read_bytes())
    return commands


def complete(words: Sequence[str], commands: Mapping[str, CommandFacts], lookup: Lookup) -> Completion:
    """Return what may stand in place of the last word; the words begin after the program's name."""
    begun = words[-1] if words else ""
    if len(words) <= 1:
        return Completion(_starting(begun, _summaries(commands) | _OWN))
    if words[0] == "help":
        return Completion(_starting(begun, _summaries(commands)) if len(words) == 2 else [])
    if words[0] not in commands:
        return Completion([])
    command, rest = commands[words[0]], words[1:]
    while len(rest) > 1 and rest[0] in command["verbs"]:
        command, rest = command["verbs"][rest[0]], rest[1:]
    own = _Line(command["options"], words, lookup).complete(rest)
    verbs = _starting(begun, _summaries(command["verbs"])) if len(rest) == 1 else []
    return Completion([*verbs, *own.candidates], own.directive)


class _Line:
    """The words after a command, as its parser understands them."""

    def __init__(self, options: Sequence[OptionFacts], words: Sequence[str], lookup: Lookup) -> None:
        self._words = words
        self._lookup = lookup
        self._options = {name: option for option in options for name in option["names"]}
        self._positionals = [option for option in options if not option["names"]]

    def complete(self, rest: Sequence[str]) -> Completion:
        """Return what may stand in place of the last of the words."""
        before, begun = rest[:-1], rest[-1]
        used: set[str] = set()
        waiting: OptionFacts | None = None
        count, ended = 0, False
        for word in before:
            if waiting is not None and not word.startswith("-"):
                waiting = waiting if waiting["nargs"] in ("+", "*") else None
            elif word == "--":
                ended, waiting = True, None
            elif word.startswith("-") and word != "-" and not ended:
                name, equals, _ = word.partition("=")
                option = self._options.get(name)
                used |= set(option["names"]) if option is not None else set()
                waiting = option if option is not None and not equals and option["nargs"] not in (0, "?") else None
            else:
                count += 1
        if waiting is not None and not (begun.startswith("-") and waiting["nargs"] in ("+", "*")):
            return self._value(waiting, begun)
        if begun.startswith("-") and not ended:
            return self._option(begun, used)
        return self._positional(count, begun)

    def _option(self, begun: str, used: set[str]) -> Completion:
        name, equals, value = begun.partition("=")
        option = self._options.get(name)
        if equals:
            if option is None or option["nargs"] == 0:
                return Completion([])
            found = self._value(option, value)
            return Completion([Candidate(f"{name}={word}", text) for word, text in found.candidates], found.directive)
        return Completion(list(self._unused(begun, used)))

    def _unused(self, begun: str, used: set[str]) -> Iterator[Candidate]:
        for name, option in self._options.items():
            is_spent = name in used and not option["repeatable"]
            # The long name says more; the short one is for those who know it.
            is_wanted = name.startswith("--") or (begun == "-" and len(option["names"]) == 1) or name == begun
            if name.startswith(begun) and is_wanted and not is_spent:
                yield Candidate(name, option["text"])

    def _positional(self, count: int, begun: str) -> Completion:
        for argument in self._positionals:
            if argument["nargs"] in ("*", "+", "...") or count == 0:
                return self._value(argument, begun)
            count -= 1
        return Completion([])

    def _value(self, option: OptionFacts, begun: str) -> Completion:
        values = option["values"]
        if values == KnownNames.FILES:
            return Completion([], Directive.DEFAULT)
        if values == KnownNames.DIRECTORIES:
            return Completion([], Directive.ONLY_DIRECTORIES)
        if isinstance(values, str):
            return Completion(sorted(self._lookup(NamesQuery(KnownNames(values), begun, self._words))))
        return Completion([Candidate(word) for word in values if word.startswith(begun)])


def lines(completion: Completion) -> str:
    """Return the answer as shells read it."""
    rows = [f"{word}\t{text}" if text else word for word, text in completion.candidates]
    return "\n".join([*rows, f":{int(completion.directive)}"]) + "\n"


def _summaries(commands: Mapping[str, CommandFacts]) -> dict[str, str]:
    return {name: command["summary"] for name, command in commands.items()}


def _starting(begun: str, texts: dict[str, str]) -> list[Candidate]:
    return [Candidate(word, text) for word, text in texts.items() if word.startswith(begun)]

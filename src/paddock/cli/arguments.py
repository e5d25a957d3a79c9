"""Command lines: their parser, the layout of their help, and the options that several commands share."""

import argparse
import textwrap
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from paddock.base import duration
from paddock.base.errors import UsageError
from paddock.cli import terminal

# Columns of a help that is piped; of one on a terminal, the least and the most: longer lines are hard to read.
_WIDTH, _NARROWEST, _WIDEST = 80, 60, 120
_TEXT_COLUMN = 26
# In place of a default.
REQUIRED = "(required)"
FORMATS = ("text", "json", "yaml")
VIEWS = ("wide", "json", "yaml", "name")
EXITS: Mapping[int, str] = {0: "success", 2: "failure, or wrong usage"}
# Those of a command that changes a machine when a person agrees.
CHANGE_EXITS: Mapping[int, str] = {
    0: "success",
    1: "nothing was changed: the answer was no, or --yes is missing",
    2: "wrong usage, or the change is refused",
}
MACHINE = "[KIND/]NAME"
# What a machine is called, for the help.
MACHINE_TEXT, MACHINES_TEXT = "Machine, such as web or stakater/web", "Machine, such as web or stakater/web; repeatable"
# Options go to a parser or to one of its groups.
Container = argparse._ActionsContainer


class KnownNames(StrEnum):
    """Values of options and arguments that only this host or its server knows. Shells ask `paddock __complete` for them."""

    FILES = "files"
    DIRECTORIES = "directories"
    COMMANDS = "commands"
    CONTEXTS = "contexts"
    NAMESPACES = "namespaces"
    KINDS = "kinds"
    MACHINES = "machines"
    OBJECTS = "objects"
    PROVIDERS = "providers"
    IMAGES = "images"


class HelpRequested(Exception):
    """A request for the help text, which is the message."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves printing and ending to its caller.

    Its help leaves out the groups of options for experts. `help_text` has them, too, and so have man pages and completion.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._experts: list[Container] = []
        # Stands below the help in place of the epilog while options are left out.
        self.hint = ""

    def add_expert_group(self, title: str) -> Container:
        """Add a titled group of options that only `--help-all` shows."""
        group = self.add_argument_group(title)
        self._experts.append(group)
        return group

    def format_help(self) -> str:
        """Return the help without the options for experts."""
        if not self._experts:
            return super().format_help()
        groups, epilog = self._action_groups, self.epilog
        self._action_groups = [each for each in groups if each not in self._experts]
        self.epilog = self.hint
        try:
            return super().format_help()
        finally:
            self._action_groups, self.epilog = groups, epilog

    columns = _WIDTH

    def help_text(self) -> str:
        """Return the help with every option."""
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`."""
        raise UsageError(message, fix=f"see `{self.prog} --help`")

    def print_help(self, file: object = None) -> NoReturn:
        """Raise `HelpRequested`."""
        self.fit()
        raise HelpRequested(self.format_help())

    def fit(self) -> None:
        """Lay the help out for the terminal, within what can be read."""
        self.columns = min(max(terminal.current().width, _NARROWEST), _WIDEST)


class HelpAll(argparse.Action):
    """The option that shows every option."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Raise `HelpRequested`."""
        assert isinstance(parser, Parser)
        parser.fit()
        raise HelpRequested(parser.help_text())


class _Layout(argparse.HelpFormatter):
    """The layout of the help text, the same in every version of Python."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        names = ", ".join(action.option_strings)
        if action.nargs == 0:
            return names
        value = str(action.metavar or action.dest.upper())
        # The value of a switch may be left out: --anonymous-auth, --anonymous-auth=false.
        return f"{names}[={value}]" if action.nargs == "?" else f"{names} {value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        # An option such as --request-timeout stays whole.
        return textwrap.wrap(text, width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # A paragraph with indented lines is a table.
        filled = (each if "\n  " in f"\n{each}" else "\n".join(self._split_lines(each, width)) for each in text.split("\n\n"))
        return "\n\n".join(filled)


def parser(command: str, text: str, usage: str = "[OPTIONS]", exits: Mapping[int, str] = EXITS) -> Parser:
    """Return the parser of a command. `text` describes it, `usage` follows its name, `exits` are its exit codes with their meanings."""
    codes = "\n".join(f"  {code}  {meaning}" for code, meaning in exits.items())
    made: Parser = Parser(
        # argparse makes one for each option that is added, and asks shutil for the width unless it is given.
        formatter_class=lambda prog: _Layout(prog, max_help_position=_TEXT_COLUMN, width=made.columns),
        prog=f"paddock {command}",
        usage=f"paddock {command} {usage}",
        description=text,
        epilog=f"exit codes:\n{codes}",
        allow_abbrev=False,
        add_help=False,
    )
    made._positionals.title = "arguments"
    made.add_argument("-h", "--help", action="help", help="Show this help and exit")
    return made


def add_server(options: Container, *, namespace: Sequence[str] = ("-n", "--namespace")) -> None:
    """Add the options that choose a server and a namespace. `namespace` has the names of the latter's option."""
    named = options.add_argument(*namespace, metavar="NAME", default="", help="Namespace to use (default: the kubeconfig's)")
    complete_with(named, KnownNames.NAMESPACES)
    options.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="Kubeconfig to use (default: $KUBECONFIG, the running server of the default directory, or ~/.kube/config)",
    )
    named = options.add_argument("--context", metavar="NAME", default="", help="Kubeconfig context to use (default: the current one)")
    complete_with(named, KnownNames.CONTEXTS)
    options.add_argument("-v", "--verbose", action="store_true", help="Say which server is used")


def add_all_namespaces(options: Container) -> None:
    options.add_argument("-A", "--all-namespaces", action="store_true", help="All namespaces")


def add_selector(options: Container) -> None:
    """Add `-l`."""
    options.add_argument("-l", "--selector", metavar="LABELS", default="", help="Label selector, such as app=web,tier!=test")


def add_watch(options: Container) -> None:
    """Add `-w`."""
    options.add_argument("-w", "--watch", action="store_true", help="Keep showing changes; Ctrl+C ends it")


def add_views(options: Container, views: tuple[str, ...] = VIEWS) -> None:
    """Add `-o` of a command that shows objects. Without it, the output is a table or a text for people."""
    add_choice(options, ("-o", "--output"), views, "Output format (default: a text for people)")


def add_dry_run(options: Container) -> None:
    options.add_argument("--dry-run", action="store_true", help="Have the server check the change, and change nothing")


def add_quiet(options: Container) -> None:
    """Add `-q`."""
    options.add_argument("-q", "--quiet", action="store_true", help="No progress and no remarks")


def add_yes(options: Container) -> None:
    options.add_argument("-y", "--yes", action="store_true", help="Ask no question")


def add_wait(options: Container, seconds: int = 300) -> None:
    """Add `--wait`, `--no-wait` and `--timeout`. A command waits by default."""
    options.add_argument("--wait", action="store_true", default=True, help="Wait for the result (default)")
    options.add_argument("--no-wait", dest="wait", action="store_false", help="Return as soon as the server accepts the request")
    add_timeout(options, seconds)


def add_timeout(options: Container, seconds: int | None = 300, text: str = "Longest time to wait") -> None:
    """Add `--timeout` of a command that always waits, or whose `--wait` is its own. None: for ever."""
    usual = "for ever" if seconds is None else _minutes(seconds)
    default = None if seconds is None else float(seconds)
    text = f"{text}, such as 90s or 5m (default: {usual})"
    options.add_argument("--timeout", type=_seconds, default=default, metavar="DURATION", help=text)


def _minutes(seconds: int) -> str:
    return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"


def _seconds(word: str) -> float:
    try:
        found = duration.parse(f"{word}s" if word.isdecimal() else word) / duration.SECOND
    except duration.NotADuration as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found < 0:
        raise argparse.ArgumentTypeError(f'"{word}" is below zero; write a time such as 90s or 5m')
    return found


def add_directory(options: Container) -> None:
    """Add `--dir`, the directory of a server."""
    text = "Directory of the server (default: $PADDOCK_DIR, /var/lib/paddock for root, or ~/.local/state/paddock)"
    options.add_argument("--dir", type=Path, default=None, metavar="DIR", help=text)


def add_files(options: Container) -> None:
    """Add `-f`, which takes files, directories and `-`. It is repeatable, and the letter is optional."""
    text = "File to read, directory to read recursively (*.yaml, *.yml, *.json), or - for standard input; repeatable"
    options.add_argument("-f", "--filename", dest="files", metavar="FILE", nargs="+", action="extend", default=[], help=text)
    options.add_argument("more_files", metavar="FILE", nargs="*", help=argparse.SUPPRESS)


def files(options: Parser, parsed: argparse.Namespace) -> list[str]:
    """Return the inputs that the command line names; raise `UsageError` when it names none."""
    named: list[str] = [*parsed.files, *parsed.more_files]
    if not named:
        options.error("name at least one input: -f FILE, -f DIRECTORY or -f -")
    return named


def add_format(options: Container, default: str = "text", formats: tuple[str, ...] = FORMATS) -> None:
    """Add `-o`."""
    add_choice(options, ("-o", "--output"), formats, f"Output format (default: {default})", default)


def add_choice(options: Container, names: Sequence[str], choices: Sequence[str], text: str, default: str | None = None) -> None:
    """Add an option with a closed set of values. argparse words its error differently from version to version; this one is stable."""
    required = default == REQUIRED
    made = options.add_argument(*names, type=one_of(choices), metavar="|".join(choices), default=default, help=text, required=required)
    complete_with(made, choices)


def add_machine(options: Container, text: str, *, optional: bool = False, metavar: str = MACHINE) -> None:
    """Add the machine as an argument, `name`; shells complete it. Where it is optional, it may be empty."""
    nargs, default = ("?", "") if optional else (None, None)
    complete_with(options.add_argument("name", metavar=metavar, nargs=nargs, default=default, help=text), KnownNames.MACHINES)


def complete_with(action: argparse.Action, values: "Sequence[str] | KnownNames") -> None:
    """Say what shells complete the value of an option or argument with: these words, or names that a server or host knows.

    FILE and DIR, as metavar or as its end, complete paths without this.
    """
    vars(action)["completion"] = values


def completion(action: argparse.Action) -> "Sequence[str] | KnownNames":
    """Return what completes the value of an option or argument; nothing when only its user knows."""
    named: Sequence[str] | KnownNames | None = vars(action).get("completion")
    if named is not None:
        return named
    metavar = str(action.metavar or "").rstrip(".").split("|")
    if "FILE" in metavar:
        return KnownNames.FILES
    return KnownNames.DIRECTORIES if "DIR" in metavar else ()


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Return the type of an argument that takes one of these words."""

    def check(word: str) -> str:
        if word not in choices:
            raise argparse.ArgumentTypeError(f'"{word}" is none of {", ".join(choices)}')
        return word

    return check

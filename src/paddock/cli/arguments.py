"""Command lines: their parser, the layout of their help, and the options that several commands share."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from paddock.base.errors import Terminal

_WIDTH = 80
_TEXT_COLUMN = 26
# In place of a default.
REQUIRED = "(required)"
FORMATS = ("text", "json", "yaml")
EXITS: Mapping[int, str] = {0: "success", 2: "failure, or wrong usage"}
# Options go to a parser or to one of its groups.
Container = argparse._ActionsContainer


class UsageError(Terminal):
    """The command line is wrong."""


class HelpRequested(Exception):
    """A request for the help text, which is the message."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves printing and ending to its caller."""

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`."""
        raise UsageError(message, fix=f"see `{self.prog} --help`")

    def print_help(self, file: object = None) -> NoReturn:
        """Raise `HelpRequested`."""
        raise HelpRequested(self.format_help())


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
        import textwrap  # noqa: PLC0415 - only a help needs it, and commands have to start quickly

        # An option such as --request-timeout stays whole.
        return textwrap.wrap(text, width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # A paragraph with indented lines is a table.
        return text if "\n  " in text else "\n".join(self._split_lines(text, width))


def parser(command: str, text: str, usage: str = "[OPTIONS]", exits: Mapping[int, str] = EXITS) -> Parser:
    """Return the parser of a command. `text` describes it, `usage` follows its name, `exits` are its exit codes with their meanings."""
    codes = "\n".join(f"  {code}  {meaning}" for code, meaning in exits.items())
    made = Parser(
        # Asking for the width of the terminal would load a good part of the standard library, for each option.
        formatter_class=lambda prog: _Layout(prog, max_help_position=_TEXT_COLUMN, width=_WIDTH),
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


def add_server(options: Container) -> None:
    """Add the options that choose a server and a namespace."""
    options.add_argument("-n", "--namespace", metavar="NAME", default="", help="Namespace to use (default: the kubeconfig's)")
    options.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="Kubeconfig to use (default: $KUBECONFIG, the running server of the default directory, or ~/.kube/config)",
    )
    options.add_argument("--context", metavar="NAME", default="", help="Kubeconfig context to use (default: the current one)")


def add_directory(options: Container) -> None:
    """Add `--dir`, the directory of a server."""
    text = "Directory of the server (default: $PADDOCK_DIR, /var/lib/paddock for root, or ~/.local/state/paddock)"
    options.add_argument("--dir", type=Path, default=None, metavar="DIR", help=text)


def check_name(word: str) -> None:
    """Raise `Terminal` for a name that would change the path of a request."""
    if not word or set(word) & set("/?#% "):
        raise Terminal(f'"{word}" is no name')


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
    options.add_argument(*names, type=_one_of(choices), metavar="|".join(choices), default=default, help=text, required=default == REQUIRED)


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def check(word: str) -> str:
        if word not in choices:
            raise argparse.ArgumentTypeError(f'"{word}" is none of {", ".join(choices)}')
        return word

    return check

"""The options that several commands have, each said once."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from paddock.base.errors import Terminal

_WIDTH = 100
# In place of a default.
REQUIRED = "(required)"
FORMATS = ("text", "json", "yaml")
_CODES = "exit codes: 0 good, 1 findings, 2 usage or unreadable input, 3 losses with --strict"


class UsageError(Terminal):
    """The command line is wrong."""


class HelpRequested(Exception):
    """Help was asked for."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves printing and ending to its caller."""

    def error(self, message: str) -> NoReturn:
        """The command line is wrong."""
        raise UsageError(message, fix=f"`{self.prog} --help` tells more")

    def print_help(self, file: object = None) -> NoReturn:
        """Help was asked for."""
        raise HelpRequested(self.format_help())


def parser(command: str, text: str) -> Parser:
    """The parser of a command."""
    # Asking for the width of the terminal would load a good part of the standard library, for each option.
    return Parser(
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=_WIDTH),
        prog=f"paddock {command}",
        description=text,
        epilog=_CODES,
        allow_abbrev=False,
    )


def add_server(options: Parser, namespace: str) -> None:
    """Which server is talked to, and in which of its namespaces: that of what `namespace` says."""
    options.add_argument("-n", "--namespace", metavar="NS", default="", help=f"{namespace} namespace (default: the kubeconfig's)")
    options.add_argument(
        "--kubeconfig",
        metavar="K",
        type=Path,
        help="how to reach the server (default: $KUBECONFIG, the running server of the default directory, ~/.kube/config)",
    )
    options.add_argument("--context", metavar="C", default="", help="a context of the kubeconfig (default: its current one)")


def check_name(word: str) -> None:
    """Raise when a word would lead elsewhere in a path."""
    if not word or set(word) & set("/?#% "):
        raise Terminal(f'"{word}" is no name')


def add_files(options: Parser) -> None:
    """`-f`, which takes files, directories and `-`, and may stand several times; the letter may be left out."""
    text = "file, directory (recursively *.yaml, *.yml, *.json) or - for standard input"
    options.add_argument("-f", "--filename", dest="files", metavar="F", nargs="+", action="extend", default=[], help=text)
    options.add_argument("more_files", metavar="F", nargs="*", help=argparse.SUPPRESS)


def files(options: Parser, parsed: argparse.Namespace) -> list[str]:
    """The inputs that were named; none is an error."""
    named: list[str] = [*parsed.files, *parsed.more_files]
    if not named:
        options.error("name at least one input: -f FILE, -f DIRECTORY or -f -")
    return named


def add_format(options: Parser, default: str = "text", formats: tuple[str, ...] = FORMATS) -> None:
    """`-o`."""
    add_choice(options, ("-o", "--output"), formats, f"form of the output (default: {default})", default)


def add_choice(options: Parser, names: Sequence[str], choices: Sequence[str], text: str, default: str | None = None) -> None:
    """An option with a closed set of values. The words of argparse for a wrong one differ from version to version; these do not."""
    options.add_argument(
        *names, type=_one_of(choices), metavar=f"{{{','.join(choices)}}}", default=default, help=text, required=default == REQUIRED
    )


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def check(word: str) -> str:
        if word not in choices:
            raise argparse.ArgumentTypeError(f'"{word}" is none of {", ".join(choices)}')
        return word

    return check

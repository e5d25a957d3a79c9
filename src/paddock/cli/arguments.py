"""The options that several commands have, each said once."""

import argparse

FORMATS = ("text", "json", "yaml")
_CODES = "exit codes: 0 good, 1 findings, 2 usage or unreadable input, 3 losses with --strict"


def parser(command: str, text: str) -> argparse.ArgumentParser:
    """The parser of a command."""
    return argparse.ArgumentParser(prog=f"paddock {command}", description=text, epilog=_CODES, allow_abbrev=False)


def add_files(options: argparse.ArgumentParser) -> None:
    """`-f`, which takes files, directories and `-`, and may stand several times; the letter may be left out."""
    text = "file, directory (recursively *.yaml, *.yml, *.json) or - for standard input"
    options.add_argument("-f", "--filename", dest="files", metavar="F", nargs="+", action="extend", default=[], help=text)
    options.add_argument("more_files", metavar="F", nargs="*", help=argparse.SUPPRESS)


def files(options: argparse.ArgumentParser, parsed: argparse.Namespace) -> list[str]:
    """The inputs that were named; none is an error."""
    named: list[str] = [*parsed.files, *parsed.more_files]
    if not named:
        options.error("name at least one input: -f FILE, -f DIRECTORY or -f -")
    return named


def add_format(options: argparse.ArgumentParser, default: str = "text", formats: tuple[str, ...] = FORMATS) -> None:
    """`-o`."""
    options.add_argument("-o", "--output", choices=formats, default=default, help=f"form of the output (default: {default})")

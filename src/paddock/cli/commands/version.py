"""`paddock version`: prints the version and the commit that it was built from."""

import platform
from collections.abc import Sequence

from paddock.base import build
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

_TEXT = "Print the version, and the commit that the program was built from."
_EXITS = {0: "success", 2: "wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("version", _TEXT, exits=_EXITS)
    arguments.add_format(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    output = parser().parse_args(argv).output
    found = build.read()
    if output == "text":
        console.out(f"paddock {found}\n")
        return GOOD
    from paddock.fleet.documents import report  # noqa: PLC0415 - YAML and the kinds take longer to load than the usual text

    data = {"version": found.version, "commit": found.commit, "python": platform.python_version(), "machine": platform.machine()}
    console.out(report.structured(data, output))
    return GOOD

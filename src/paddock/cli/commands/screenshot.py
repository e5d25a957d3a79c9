"""`paddock screenshot`: a picture of a machine's display."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console

_TEXT = "Take a picture of the display of a machine, as PNG."


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("screenshot", _TEXT, "[OPTIONS] [KIND/]NAME")
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    # -f is virtctl's name for it.
    text = "File to write, or - for standard output (default: NAME.png)"
    options.add_argument("-o", "-f", "--output", "--file", metavar="FILE", default="", help=text)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.output == "-" and os.isatty(sys.stdout.fileno()):
        options.error("a terminal shows no PNG; name a file")

    async def taken() -> tuple[str, bytes]:
        async with commandline.reached(parsed, console, "take a picture of the display") as guest:
            return guest.name, await guest.screenshot()

    name, picture = servers.serve(taken())
    if parsed.output == "-":
        sys.stdout.buffer.write(picture)
        sys.stdout.buffer.flush()
        return 0
    path = Path(parsed.output or f"{name}.png")
    path.write_bytes(picture)
    console.out(f"{path}\n")
    return 0

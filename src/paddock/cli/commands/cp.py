"""`paddock cp`: copies files between this host and a guest by the guest's agent; the guest needs no network."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paddock.cli import arguments, progress, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests import copying

_TEXT = """Copy a file, or with -r a directory, to or from a guest by its guest agent. The guest needs no network; it needs
qemu-guest-agent and a POSIX shell. Write NAME:PATH for a path of the guest; it begins with /. A local path with a colon needs ./ before it.
Modes are kept, checksums are compared, and a file takes its place when it is whole. A new file in a guest belongs to the owner of its
directory."""


class CopyEnd(NamedTuple):
    """One side of a copy. `machine` is empty for this host."""

    machine: str
    path: str


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("cp", _TEXT, "[OPTIONS] SOURCE TARGET")
    options.add_argument("source", metavar="SOURCE", help="FILE, or NAME:PATH")
    options.add_argument("target", metavar="TARGET", help="FILE or directory, or NAME:PATH")
    for action in options._get_positional_actions():
        arguments.complete_with(action, arguments.KnownNames.FILES)
    options.add_argument("-r", "-R", "--recursive", action="store_true", help="Copy directories")
    arguments.add_quiet(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    source, target = end_of(parsed.source), end_of(parsed.target)
    if bool(source.machine) == bool(target.machine):
        options.error("name a guest on one side: paddock cp FILE NAME:/PATH, or paddock cp NAME:/PATH FILE")
    parsed.name = source.machine or target.machine
    servers.serve(_copy(parsed, source, target, console))
    return 0


def end_of(text: str) -> CopyEnd:
    """Return what one side of a copy means: `NAME:PATH` and `KIND/NAME:PATH` are in a guest, everything else is here."""
    machine, colon, path = text.partition(":")
    if not colon or not machine or machine.startswith((".", "/", "~")):
        return CopyEnd("", text)
    return CopyEnd(machine, path)


async def _copy(parsed: argparse.Namespace, source: CopyEnd, target: CopyEnd, console: Console) -> None:
    async with commandline.reached(parsed, console, "copy files") as guest:
        with progress.ProgressBar(console, quiet=parsed.quiet) as bar:

            def show(done: int, total: int) -> None:
                bar.show(f"copying {Path(source.path).name}", done, total)

            if target.machine:
                await copying.send(guest, Path(source.path), target.path, show, recursive=parsed.recursive)
                return
            _, left_out = await copying.fetch(guest, source.path, Path(target.path), show, recursive=parsed.recursive)
    for each in left_out:
        console.say(f"paddock: left out {each}")

"""`paddock down`: stops the server of a directory; `--purge` also ends its guests and removes its host resources."""

import argparse
import os
import signal
import sys
import time

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal, Transient
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

TEXT = "Stop the control plane. Guests keep running, and the next `paddock up` adopts them."


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("down", TEXT)
    arguments.add_directory(options)
    options.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="Seconds to wait (default: 60)")
    words = "Also end its guests and remove its networks, control groups and user IDs from this host; keep disks and objects"
    options.add_argument("--purge", action="store_true", help=words)
    options.add_argument("--delete-data", action="store_true", help="With --purge: also delete the directory with all objects and disks")
    options.add_argument("--yes", action="store_true", help="With --purge: do not ask for confirmation")
    return options


def run(given: list[str], console: Console) -> int:
    """Stop the server and wait until it has ended. Guests and their networks stay without `--purge`."""
    parsed = parser().parse_args(given)
    places = DataPaths((parsed.dir or default_root()).absolute())
    if parsed.delete_data and not parsed.purge:
        raise Terminal("--delete-data goes with --purge", fix="write `paddock down --purge --delete-data`")
    if parsed.purge:
        _confirm(places, parsed, console)
    _stop(places, parsed.timeout, console)
    if parsed.purge:
        _purge(places, parsed, console)
    elif os.geteuid() == 0:
        _collect(console)
    return GOOD


def _stop(places: DataPaths, patience: float, console: Console) -> None:
    found = process.find(places)
    if found is None:
        console.say(f"paddock: no server is running in {places.root}")
        return
    os.kill(found.pid, signal.SIGTERM)
    end = time.monotonic() + patience
    while process.is_alive(found):
        if time.monotonic() > end:
            raise Transient(f"the server {found.pid} is still stopping", fix="wait, or look at its log")
        time.sleep(0.05)
    console.out(f"stopped the server in {places.root}\n")


def _confirm(places: DataPaths, parsed: argparse.Namespace, console: Console) -> None:
    from paddock.app.directory import purge  # noqa: PLC0415 - a plain stop does without the engine

    for line in purge.describe(places, data=parsed.delete_data):
        console.say(f"paddock: {line}")
    if parsed.yes:
        return
    if not sys.stdin.isatty():
        raise Terminal("nobody is there to be asked", fix="give --yes")
    console.out("Go on? [y/N] ")
    console.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Terminal("nothing was done", why="it was not confirmed")


def _purge(places: DataPaths, parsed: argparse.Namespace, console: Console) -> None:
    import asyncio  # noqa: PLC0415

    from paddock.app.commands import ctx  # noqa: PLC0415
    from paddock.app.directory import purge  # noqa: PLC0415

    asyncio.run(purge.clear(places, parsed.timeout))
    if parsed.delete_data and places.root.is_dir():
        purge.delete(places)
        ctx.forget(places.root, os.environ)
        console.out(f"deleted {places.root}\n")
    console.out(f"removed what {places.root} had on this host\n")


def _collect(console: Console) -> None:
    """Networks of directories that are gone."""
    import asyncio  # noqa: PLC0415

    from paddock.engine.networks import hostnetwork, hostobjects  # noqa: PLC0415

    if not hostnetwork.why_not_routed():
        for gone in asyncio.run(hostobjects.collect()):
            console.say(f"paddock: removed the network of {gone}, which is gone")

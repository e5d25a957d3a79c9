"""`paddock down`: stop the server of a directory; with `--purge`, end its guests and remove what it has on this host."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal, Transient
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

TEXT = "stop the control plane"


def run(given: list[str], console: Console) -> int:
    """Ask the server to stop and wait until it has. Guests and their networks stay unless they are purged."""
    options = arguments.parser("down", TEXT)
    options.add_argument("--dir", type=Path, default=None, help="directory of the server")
    options.add_argument("--timeout", type=float, default=60.0, help="seconds to wait (default: 60)")
    words = "end its guests, too, and remove its networks, control groups and user numbers from this host; disks and objects stay"
    options.add_argument("--purge", action="store_true", help=words)
    options.add_argument("--delete-data", action="store_true", help="with --purge: delete the directory with all objects and disks")
    options.add_argument("--yes", action="store_true", help="with --purge: do not ask")
    parsed = options.parse_args(given)
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

    from paddock.app.directory import purge  # noqa: PLC0415

    asyncio.run(purge.clear(places, parsed.timeout))
    if parsed.delete_data and places.root.is_dir():
        purge.delete(places)
        console.out(f"deleted {places.root}\n")
    console.out(f"removed what {places.root} had on this host\n")


def _collect(console: Console) -> None:
    """Networks of directories that are gone."""
    import asyncio  # noqa: PLC0415

    from paddock.engine.networks import hostnetwork, hostobjects  # noqa: PLC0415

    if not hostnetwork.why_not_routed():
        for gone in asyncio.run(hostobjects.collect()):
            console.say(f"paddock: removed the network of {gone}, which is gone")

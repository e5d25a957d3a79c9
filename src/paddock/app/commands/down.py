"""`paddock down`: stops the server of a directory; `--guests` shuts down its guests, `--purge` also removes its host resources."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from paddock.app.directory import contents, diskformat, guestkind, process, purge, shutdown
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.engine.networks import hostnetwork, hostobjects

TEXT = """Stop the control plane. Guests keep running, and the next `paddock up` adopts them. With --guests, the guests shut down as
well, and those that should run start again with the next `paddock up`."""
_DELETE = """With --purge: also delete all objects and disks, and the directory if nothing else is in it; refused for a directory without
a server's data"""
_SERVER_SECONDS, _GUEST_SECONDS = 60.0, 300.0
# A process that was killed and waits for a device stays longer.
_KILL_SECONDS = 5.0


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("down", TEXT)
    arguments.add_directory(options)
    words = "Seconds to wait for the server, and with --guests for the guests (default: 60; with --guests: 300)"
    options.add_argument("--timeout", type=float, metavar="SECONDS", help=words)
    words = "Also shut down its guests, those with the lowest PriorityClass first, each with its termination grace period"
    options.add_argument("--guests", action="store_true", help=words)
    options.add_argument("--all", action="store_true", help="With --guests: of all directories of root on this host, too")
    words = "Also end its guests and remove its networks, control groups and user IDs from this host; keep disks and objects"
    options.add_argument("--purge", action="store_true", help=words)
    options.add_argument("--delete-data", action="store_true", help=_DELETE)
    options.add_argument("--yes", action="store_true", help="With --purge: do not ask for confirmation")
    return options


def run(argv: list[str], console: Console) -> int:
    """Stop the server and wait until it has ended. Guests and their networks stay without `--purge`."""
    parsed = parser().parse_args(argv)
    places = DataPaths((parsed.dir or default_root()).absolute())
    _check(parsed)
    if parsed.guests and guestkind.kind_of(places.root) == "simulated":
        why = "no process of them is on this host"
        raise Terminal("simulated guests cannot be shut down without their server", why=why, fix="leave --guests out, or stop the machines")
    if parsed.timeout is None:
        parsed.timeout = _GUEST_SECONDS if parsed.guests else _SERVER_SECONDS
    if parsed.purge:
        diskformat.check(places.root)
        _confirm(places, parsed, console)
    if parsed.guests:
        _shut_down(places, parsed, console)
    else:
        _stop(places, parsed.timeout, console)
    if parsed.purge:
        _purge(places, parsed, console)
    elif os.geteuid() == 0:
        _collect(console)
    return GOOD


def _check(parsed: argparse.Namespace) -> None:
    if parsed.delete_data and not parsed.purge:
        raise Terminal("--delete-data goes with --purge", fix="write `paddock down --purge --delete-data`")
    if parsed.all and (parsed.purge or not parsed.guests):
        raise Terminal("--all goes with --guests, and not with --purge", fix="write `paddock down --guests --all`")


def _shut_down(places: DataPaths, parsed: argparse.Namespace, console: Console) -> None:
    """Stop the servers, which would start the guests again, and kill those that do not stop; then shut down the guests."""
    directories = {places.root: places}
    if parsed.all:
        try:
            directories |= {root: DataPaths(root) for root in shutdown.roots_on_host()}
        except PaddockError as error:
            console.say(f"paddock: only the guests in {places.root} shut down: {error}")
    directories = {root: each for root, each in directories.items() if _may_shut_down(root, parsed, console)}
    for each in directories.values():
        if process.find(each) is not None:
            _stop_or_kill(each, min(_SERVER_SECONDS, parsed.timeout), console)
    asyncio.run(shutdown.shut_down_all([each.engine for each in directories.values()], parsed.timeout, console))


def _may_shut_down(root: Path, parsed: argparse.Namespace, console: Console) -> bool:
    """Return whether the guests of a directory may be shut down; with `--all`, those of a newer Paddock keep no other ones from it."""
    # A number that cannot be read keeps nobody from a shutdown of the host: the records of guests have versions of their own.
    with contextlib.suppress(diskformat.FormatUnreadable):
        try:
            diskformat.check(root)
        except diskformat.NewerDirectory as error:
            if not parsed.all:
                raise
            console.say(f"paddock: the guests in {root} do not shut down: {error}")
            return False
    return True


def _stop_or_kill(places: DataPaths, patience: float, console: Console) -> None:
    try:
        _stop(places, patience, console)
    except Transient:
        found = process.find(places)
        if found is not None:
            console.say(f"paddock: killing the server in {places.root}: process {found.pid} did not stop within {patience:g} s")
            os.kill(found.pid, signal.SIGKILL)
            _wait_for(found, _KILL_SECONDS)


def _stop(places: DataPaths, patience: float, console: Console) -> None:
    found = process.find(places)
    if found is None:
        console.say(f"paddock: no server is running in {places.root}")
        return
    os.kill(found.pid, signal.SIGTERM)
    _wait_for(found, patience)
    console.out(f"stopped the server in {places.root}\n")


def _wait_for(running_server: process.RunningServer, patience: float) -> None:
    end = time.monotonic() + patience
    while process.is_alive(running_server):
        if time.monotonic() > end:
            raise Transient(f"the server {running_server.pid} is still stopping", fix="wait, or look at its log")
        time.sleep(0.05)


def _confirm(places: DataPaths, parsed: argparse.Namespace, console: Console) -> None:
    if parsed.delete_data:
        contents.check(places.root)
    for line in purge.describe(places, data=parsed.delete_data, orderly=parsed.guests):
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
    asyncio.run(purge.clear(places, parsed.timeout))
    if parsed.delete_data and places.root.is_dir():
        from paddock.app.directory import contexts  # noqa: PLC0415 - a plain stop does without the client's libraries

        contents.delete(places.root)
        contexts.forget(places.root, os.environ)
        if kept := contents.others(places.root):
            console.say(f"paddock: kept what Paddock did not make in {places.root}: {contents.listed(kept)}")
        console.out(f"deleted {'the data of Paddock in ' if places.root.exists() else ''}{places.root}\n")
    console.out(f"removed what {places.root} had on this host\n")


def _collect(console: Console) -> None:
    """Networks of directories that are gone."""
    if hostnetwork.may_filter():
        for gone in asyncio.run(hostobjects.collect()):
            console.say(f"paddock: removed the network of {gone}, which is gone")

"""`paddock backup restore`: restores the store of a stopped server from a backup. With `--replace`, a store that is there moves aside."""

import argparse
import shlex
import sqlite3
import time
from pathlib import Path

from paddock.app.directory import diskformat, process
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.server.store import backup

TEXT = """Restore the store of a stopped server from a backup: every object of the server is as it was then. A server that has a store
keeps it, and the command fails. With --replace, the command moves that store aside, to store.db.before-TIME beside it, and deletes
nothing. The disks of machines stay as they are; `paddock restore` brings the disks of one machine back."""


def parser() -> Parser:
    options = arguments.parser("backup restore", TEXT, "[OPTIONS] FILE")
    arguments.add_directory(options)
    words = "Move a store that is there aside, to store.db.before-TIME, and put the backup in its place"
    options.add_argument("--replace", action="store_true", help=words)
    options.add_argument("source", type=Path, metavar="FILE", help="Backup to restore, written by `paddock backup`")
    return options


def run(argv: list[str], console: Console) -> int:
    """Restore; the server continues with revisions above all it ever issued."""
    parsed = parser().parse_args(argv)
    places = DataPaths(parsed.dir or default_root())
    diskformat.check(places.root)
    if process.find(places) is not None:
        raise Terminal(f"the server in {places.root} is running", fix="stop it first: paddock down")
    places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = time.time()
    aside = backup.place_aside(places.store, now) if parsed.replace else None
    try:
        backup.restore(parsed.source, places.store, now=now, aside=aside)
    except backup.StoreConflict as error:
        raise backup.StoreConflict(error.what, why=error.why, fix=_fix(parsed) if aside is None else error.fix) from None
    except (sqlite3.Error, OSError) as error:
        raise Terminal(f"cannot restore {parsed.source}", why=str(error), fix="is it a backup of paddock?") from error
    if aside is not None:
        console.out(f"moved the store that was there to {aside}\n")
    console.out(f"restored {parsed.source} to {places.store}\n")
    return 0


def _fix(parsed: argparse.Namespace) -> str:
    words = ["paddock", "backup", "restore", "--replace", *(["--dir", str(parsed.dir)] if parsed.dir else []), str(parsed.source)]
    return f"`{shlex.join(words)}` moves the store aside and deletes nothing"

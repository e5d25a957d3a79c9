"""`paddock backup restore`: replaces the store of a stopped server with a backup."""

import sqlite3
import time
from pathlib import Path

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.store import backup

TEXT = """Replace the store of a stopped server with a backup: every object of the server is as it was then. The disks of machines stay as
they are; `paddock restore` brings the disks of one machine back."""


def parser() -> Parser:
    """Return the parser."""
    options = arguments.parser("backup restore", TEXT, "[OPTIONS] FILE")
    arguments.add_directory(options)
    options.add_argument("source", type=Path, metavar="FILE", help="Backup to restore, written by `paddock backup`")
    return options


def run(given: list[str], console: Console) -> int:
    """Restore; the server continues with revisions above all it ever issued."""
    parsed = parser().parse_args(given)
    places = DataPaths(parsed.dir or default_root())
    if process.find(places) is not None:
        raise Terminal(f"the server in {places.root} is running", fix="stop it first: paddock down")
    places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        backup.restore(parsed.source, places.store, now=time.time())
    except (sqlite3.Error, OSError) as error:
        raise Terminal(f"cannot restore {parsed.source}", why=str(error), fix="is it a backup of paddock?") from error
    console.out(f"restored {parsed.source} to {places.store}\n")
    return 0

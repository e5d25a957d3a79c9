"""`paddock backup`: a copy of the store while the server runs, or when it does not."""

import sqlite3
from pathlib import Path

from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.store import backup

TEXT = "copy the store to a file, also while the server runs"


def run(given: list[str], console: Console) -> int:
    """Copy what is committed; readers do not disturb the writer."""
    options = arguments.parser("backup", TEXT)
    options.add_argument("--dir", type=Path, default=None, help="directory of the server")
    options.add_argument("target", type=Path, help="the file to write")
    parsed = options.parse_args(given)
    source = DataPaths(parsed.dir or default_root()).store
    if not source.exists():
        raise Terminal(f"there is no store at {source}", fix="name the server's directory: --dir")
    try:
        backup.copy(source, parsed.target)
    except (sqlite3.Error, OSError) as error:
        raise Terminal(f"cannot copy {source} to {parsed.target}", why=str(error)) from error
    console.out(f"wrote {parsed.target}\n")
    return 0

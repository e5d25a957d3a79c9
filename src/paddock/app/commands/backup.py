"""`paddock backup`: copies the store of a server, running or stopped. `paddock backup restore` takes such a copy back."""

import sqlite3
from pathlib import Path

from paddock.app.commands import backup_restore
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.server.store import backup

TEXT = """Copy the store of a server to a file. The server may be running. `paddock backup restore FILE` restores the store of a
stopped server from such a file; to write to a file of that name, call it ./restore."""

# The way back is a command below this one.
COMMANDS = {"restore": ("paddock.app.commands.backup_restore", "Restore the store of a stopped server from a backup")}


def parser() -> Parser:
    options = arguments.parser("backup", TEXT, "[OPTIONS] FILE | paddock backup restore [OPTIONS] FILE")
    arguments.add_directory(options)
    options.add_argument("target", type=Path, metavar="FILE", help="File to write")
    return options


def run(argv: list[str], console: Console) -> int:
    """Copy the committed state; a reader does not disturb the writer."""
    if argv[:1] == ["restore"]:
        return backup_restore.run(argv[1:], console)
    parsed = parser().parse_args(argv)
    source = DataPaths(parsed.dir or default_root()).store
    if not source.exists():
        raise Terminal(f"there is no store at {source}", fix="name the server's directory: --dir")
    try:
        backup.copy(source, parsed.target)
    except (sqlite3.Error, OSError) as error:
        raise Terminal(f"cannot copy {source} to {parsed.target}", why=str(error)) from error
    console.out(f"wrote {parsed.target}\n")
    return 0

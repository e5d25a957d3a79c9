"""Copies of a store, and making a store of one."""

import os
import sqlite3
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.store import database
from paddock.store.watermark import Watermark

# Restored stores continue at a revision made of the time: more of them than any server issues in a second, and small enough to
# stay exact in clients that keep revisions in floating point.
_REVISIONS_A_SECOND = 2**20
# How far a restored store skips ahead when the clock says less than its revisions.
_STEP = 2**40


def copy_to(source: sqlite3.Connection, target: Path) -> None:
    """Copy the committed content of a store to a new file."""
    if target.exists():
        raise Terminal(f"cannot write the backup {target}", why="the file exists", fix="name another one")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        copy = sqlite3.connect(target)
        try:
            source.backup(copy, pages=256)
        finally:
            copy.close()
        _synchronise(target)
    except BaseException:
        target.unlink()
        raise


def copy(source: Path, target: Path) -> None:
    """Copy the committed content of a store, which another process may be using."""
    connection = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    try:
        copy_to(connection, target)
    finally:
        connection.close()


def restore(backup: Path, path: Path, *, now: float) -> int:
    """Put a backup in the place of a store that is not in use; returns the revision from which it continues.

    Revisions continue above everything that either may have issued, also when the same backup is restored again, and no history
    is taken over, so that a client that remembers a revision of the lost time lists again instead of missing changes. The new
    store appears at its place whole or not at all.
    """
    mark = Watermark(path)
    fresh = path.with_name(path.name + ".restoring")
    try:
        # A write-ahead log that is left over would be taken for one of the new file.
        for there in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            if there.exists():
                raise Terminal(f"cannot restore to {path}", why=f"{there} exists", fix="move it away first")
        for left in (fresh, fresh.with_name(fresh.name + "-wal"), fresh.with_name(fresh.name + "-shm")):
            left.unlink(missing_ok=True)
        copy(backup, fresh)
        floor = _raise_floor(fresh, backup, mark.read(), int(now) * _REVISIONS_A_SECOND)
        _synchronise(fresh)
        fresh.rename(path)
        _synchronise(path.parent)
    finally:
        fresh.unlink(missing_ok=True)
        mark.close()
    return floor


def _raise_floor(path: Path, backup: Path, issued: int, time: int) -> int:
    connection = database.connect(path)
    try:
        database.check(connection, backup)
        newest = max(database.load(connection, backup).revision, issued)
        floor = time if time > newest else newest + _STEP
        with database.transaction(connection):
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('floor', ?), ('compacted', ?)", (floor, floor))
            connection.execute("DELETE FROM log WHERE revision NOT IN (SELECT revision FROM current)")
    finally:
        connection.close()
    return floor


def _synchronise(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)

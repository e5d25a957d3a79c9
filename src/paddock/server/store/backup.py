"""Copies of a store, and making a store of one."""

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.server.store import database
from paddock.server.store.watermark import Watermark

# Restored stores continue at a revision made of the time: more of them than any server issues in a second, and small enough to
# stay exact in clients that keep revisions in floating point.
_REVISIONS_A_SECOND = 2**20
# How far a restored store skips ahead when the clock says less than its revisions.
_STEP = 2**40


class StoreConflict(Terminal):
    """A file is where a store or a backup is to be written."""


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


def place_aside(path: Path, now: float) -> Path | None:
    """Return where the store that is at a path moves to when another one takes its place; None if nothing is there."""
    if not any(each.exists() for each in _files(path)):
        return None
    return path.with_name(f"{path.name}.before-{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H-%M-%S.%f}")


def restore(backup: Path, path: Path, *, now: float, aside: Path | None = None) -> int:
    """Put a backup in the place of a store that is not in use; returns the revision from which it continues.

    A store that is there moves to `aside`, and is refused without it: raises `StoreConflict`. It may itself be the backup.

    Revisions continue above everything that either may have issued, also when the same backup is restored again, and no history
    is taken over, so that a client that remembers a revision of the lost time lists again instead of missing changes. The new
    store appears at its place whole or not at all.
    """
    mark = Watermark(path)
    fresh = path.with_name(path.name + ".restoring")
    try:
        # A write-ahead log that is left over would be taken for one of the new file.
        there = [each for each in _files(path) if each.exists()]
        if there and aside is None:
            raise StoreConflict(f"cannot restore to {path}", why=f"{there[-1]} exists", fix="move it away first")
        if aside is not None and (taken := next((each for each in _files(aside) if each.exists()), None)):
            raise StoreConflict(f"cannot move {path} aside", why=f"{taken} exists", fix="repeat the command")
        for left in _files(fresh):
            left.unlink(missing_ok=True)
        copy(backup, fresh)
        floor = _raise_floor(fresh, backup, mark.read(), int(now) * _REVISIONS_A_SECOND)
        _synchronise(fresh)
        if aside is not None:
            _move(path, aside)
        fresh.rename(path)
        _synchronise(path.parent)
    finally:
        fresh.unlink(missing_ok=True)
        mark.close()
    return floor


def _files(path: Path) -> tuple[Path, ...]:
    """A store and what SQLite keeps beside it. The store moves last: a start that finds it without its log refuses it."""
    return path.with_name(path.name + "-shm"), path.with_name(path.name + "-wal"), path


def _move(path: Path, aside: Path) -> None:
    for source, target in zip(_files(path), _files(aside), strict=True):
        if source.exists():
            source.rename(target)
    _synchronise(path.parent)


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

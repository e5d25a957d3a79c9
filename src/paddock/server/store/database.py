"""The SQLite file of a store: its tables, what holds them together, and the errors when they do not hold.

The tables (docs/reference/on-disk.md):

    log(revision, collection, namespace, name, value, previous, deleted, checksum)
                                                            every write since the last compaction, and every current one
    current(collection, namespace, name -> revision)        which of them are current
    meta(key, value)                                        format, compacted, floor

`floor` is the revision below which no new one is given out; a restored backup raises it above everything ever issued.
"""

import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from paddock.server.store.contract import CommittedWrite, Damaged, StoredValue, StoreKey

FORMAT = 2
RESTORE = "restore a backup: `paddock backup restore --replace FILE` moves what is left aside"
_SCHEMA = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY, collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    value BLOB NOT NULL, previous INTEGER NOT NULL, deleted INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE current (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (collection, namespace, name)) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_TABLES = {"log", "current", "meta"}
_LARGEST_IDLE_LOG = 64 * 1024 * 1024

Connect = Callable[[Path], sqlite3.Connection]
Row = tuple[int, str, str, str, bytes, int, int, int]


def connect(path: Path) -> sqlite3.Connection:
    """A connection with the settings that the promises of the store rest on. The file must exist: none is made by chance."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    try:
        return settled(connection)
    except BaseException:
        connection.close()
        raise


def settled(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Give a connection the settings of a store."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=2000")
    connection.execute(f"PRAGMA journal_size_limit={_LARGEST_IDLE_LOG}")
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


class transaction:
    """BEGIN, then COMMIT or ROLLBACK. The sqlite3 module's own context manager begins too late to be relied on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def begin(self) -> None:
        """Nothing is written until the commit."""
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Write everything, durably, or nothing."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.roll_back()


def row(change: CommittedWrite) -> Row:
    """A change as it stands in the log."""
    previous = change.previous.revision if change.previous is not None else 0
    place = (change.revision, *change.key)
    return (*place, change.value, previous, int(change.deleted), _checksum(*place, previous, int(change.deleted), value=change.value))


def _checksum(*columns: object, value: bytes) -> int:
    """Return the checksum of a row, which reveals a change of it on disk."""
    return zlib.crc32(value, zlib.crc32("/".join(map(str, columns)).encode()))


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; check the ones of an old store. Raises `Damaged`."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    if not tables:
        with transaction(connection):
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))
        return
    check(connection, path)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `Damaged` unless a file is a store of this format that holds together."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    found = connection.execute("SELECT value FROM meta WHERE key='format'").fetchone() if "meta" in tables else None
    if found is None:
        raise Damaged(f"{path} is not a store of Paddock", why="it has no format", fix="name another file")
    if found[0] != FORMAT:
        fix = "use the Paddock that wrote it, or a newer one" if found[0] > FORMAT else "use the Paddock that wrote it"
        raise Damaged(f"{path} has the format {found[0]}", why=f"this Paddock reads format {FORMAT}", fix=fix)
    if not tables >= _TABLES:
        raise damaged(path, f"the table {min(_TABLES - tables)} is missing")
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise damaged(path, verdict)


def damaged(path: Path, why: str) -> Damaged:
    """The stored data does not hold together."""
    return Damaged(f"{path} is damaged", why=why, fix=RESTORE)


class StoreContent(NamedTuple):
    """Everything that a store holds."""

    records: list[StoredValue]
    changes: list[CommittedWrite]
    revision: int
    compacted: int


def load(connection: sqlite3.Connection, path: Path) -> StoreContent:
    """Read a store; raises `Damaged` when something of it is missing or was changed by something else than a store."""
    # Text that is none is found by its checksum.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    meta: dict[str, int] = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    compacted = meta.get("compacted", 0)
    log: dict[int, StoredValue] = {}
    changes: list[CommittedWrite] = []
    for *place, value, previous, deleted, kept in connection.execute("SELECT * FROM log ORDER BY revision"):
        if not isinstance(value, bytes) or _checksum(*place, previous, deleted, value=value) != kept:
            raise damaged(path, f"{place[1]} {place[3]} was changed on the disk")
        revision, collection, namespace, name = place
        # Thousands of keys share both.
        key = StoreKey(sys.intern(collection), sys.intern(namespace), name)
        log[revision] = StoredValue(key, revision, value)
        if revision > compacted:
            changes.append(CommittedWrite(revision, key, value, log.get(previous), bool(deleted)))
    newest = max(log, default=0)
    if len(changes) != max(0, newest - compacted):
        raise damaged(path, f"revisions between {compacted} and {newest} are missing")
    return StoreContent(list(_current(connection, path, log)), changes, max(newest, compacted, meta.get("floor", 0)), compacted)


def _current(connection: sqlite3.Connection, path: Path, log: dict[int, StoredValue]) -> Iterable[StoredValue]:
    for *place, revision in connection.execute("SELECT collection, namespace, name, revision FROM current"):
        record = log.get(revision)
        if record is None or record.key != StoreKey(*place):
            raise damaged(path, f"the value of {place[0]} {place[2]} is missing from its log")
        yield record

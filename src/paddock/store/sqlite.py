"""The store on disk: one SQLite file in WAL mode with full synchronisation.

Reading happens in memory. A group of writes is put into a transaction on the event loop, where a row costs microseconds, and
committed in a thread, because that waits for the disk; rows inserted by the thread would fight the loop for the interpreter, row
by row. Everything slow happens in that thread, one thing at a time. The tables (docs/dev/on-disk.md):

    log(revision, collection, namespace, name, value, previous, deleted)   every write since the last compaction, and every current one
    current(collection, namespace, name -> revision)                      which of them are current
    meta(key, value)                                                       format, compacted, floor

`floor` is the revision below which no new one is given out; a restored backup raises it far above everything ever issued.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from paddock.base.errors import Terminal
from paddock.store.contract import Change, Damaged, Follower, Key, Make, Pending, Record, Unavailable
from paddock.store.history import History
from paddock.store.writes import Writes

T = TypeVar("T")
FORMAT = 1
# A restored backup continues this far above its newest revision: more than any installation issues in its life, and small
# enough that thousands of restores stay exact in clients that keep revisions in floating point.
RESTORE_STEP = 2**40
HEAL_SECONDS = 1.0
_COMPACT_BATCH = 1000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY, collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    value BLOB NOT NULL, previous INTEGER NOT NULL, deleted INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS current (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (collection, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


class InUse(Terminal):
    """Another process has the store open."""


Connect = Callable[[Path], sqlite3.Connection]


def connect(path: Path) -> sqlite3.Connection:
    """A connection with the settings that the promises of the store rest on."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=2000")
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


class SqliteStore:
    """The store's contract on a file. Made by `open_store`."""

    def __init__(self, path: Path, lock: int, connect: Connect, heal_seconds: float) -> None:
        self._path = path
        self._lock = lock
        self._connect = connect
        self._heal_seconds = heal_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        # Whoever holds it has the connection to themselves.
        self._turn = asyncio.Lock()
        self._connection: sqlite3.Connection | None = None
        self._history = History()
        self._healing: asyncio.Task[None] | None = None
        self._load()
        self._writes = Writes(self._history, self._commit)

    # --- reading: memory only -------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        return self._history.revision

    @property
    def compacted(self) -> int:
        return self._history.compacted

    @property
    def unavailable(self) -> str:
        return self._writes.unavailable

    def decided(self, key: Key) -> Record | None:
        return self._writes.decided(key)

    def deciding(self, collection: str) -> tuple[Key, ...]:
        return self._writes.deciding(collection)

    def get(self, key: Key) -> Record | None:
        return self._history.get(key)

    def scan(self, collection: str) -> Iterator[Record]:
        return self._history.scan(collection)

    def collections(self) -> tuple[str, ...]:
        return self._history.collections()

    def follow(self, follower: Follower) -> None:
        self._writes.follow(follower)

    def history(self, after: int) -> tuple[Change, ...]:
        return self._history.after(after)

    def snapshot(self, collection: str, revision: int) -> tuple[Record, ...]:
        return self._history.snapshot(collection, revision)

    # --- writing --------------------------------------------------------------------------------------------------------

    def put(self, key: Key, expected: int, make: Make) -> Pending:
        return self._writes.offer(key, expected, make, delete=False)

    def delete(self, key: Key, expected: int, make: Make) -> Pending:
        return self._writes.offer(key, expected, make, delete=True)

    async def compact(self, revision: int) -> None:
        # The newest row stays even when it is a deletion: it is what the next revision is counted from after a restart.
        forgotten = [change for change in self._history.after(self.compacted) if change.revision <= min(revision, self.revision - 1)]
        for start in range(0, len(forgotten), _COMPACT_BATCH):
            batch = forgotten[start : start + _COMPACT_BATCH]
            try:
                await self._in_thread(partial(self._forget, batch))
            except sqlite3.Error as error:
                raise self._failed(error) from error
            self._history.forget(batch[-1].revision)

    async def backup(self, target: Path) -> None:
        """Copy the committed store to a new file while it is in use."""
        await self._writes.settle()
        await self._in_thread(lambda: _copy(self._opened(), target))

    async def close(self) -> None:
        await self._writes.close()
        if self._healing is not None:
            self._healing.cancel()
            await asyncio.gather(self._healing, return_exceptions=True)
        await self._in_thread(self._shut)
        self._thread.shutdown()
        os.close(self._lock)

    async def _commit(self, changes: tuple[Change, ...]) -> None:
        try:
            async with self._turn:
                transaction = self._insert(changes)
                await asyncio.get_running_loop().run_in_executor(self._thread, transaction.commit)
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> Unavailable:
        """Turn read-only with the reason, and begin to look for the end of it."""
        reason = f"the store cannot write to {self._path}: {error}"
        self._writes.unavailable = reason
        if self._healing is None:
            self._healing = asyncio.create_task(self._heal())
        return Unavailable("cannot write", why=reason, fix="free space or mend the disk; writing resumes by itself")

    async def _heal(self) -> None:
        while self._writes.unavailable:
            await asyncio.sleep(self._heal_seconds)
            try:
                await self._in_thread(self._reopen)
            except sqlite3.Error as error:
                self._writes.unavailable = f"the store cannot write to {self._path}: {error}"
            else:
                self._writes.unavailable = ""
        self._healing = None

    def _insert(self, changes: tuple[Change, ...]) -> "_transaction":
        """A transaction with a group of writes in it, ready to commit."""
        log: list[tuple[Any, ...]] = []
        # Only the last write of each key in the group decides what is current.
        current: dict[Key, Change] = {}
        for change in changes:
            replaced = change.previous.revision if change.previous is not None else 0
            log.append((change.revision, *change.key, change.value, replaced, change.deleted))
            current[change.key] = change
        kept = [(*key, change.revision) for key, change in current.items() if not change.deleted]
        gone = [key for key, change in current.items() if change.deleted]
        connection = self._opened()
        transaction = _transaction(connection)
        transaction.begin()
        try:
            connection.executemany("INSERT INTO log VALUES (?,?,?,?,?,?,?)", log)
            connection.executemany("INSERT OR REPLACE INTO current VALUES (?,?,?,?)", kept)
            connection.executemany("DELETE FROM current WHERE collection=? AND namespace=? AND name=?", gone)
        except BaseException:
            transaction.roll_back()
            raise
        return transaction

    # --- in the thread --------------------------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], T]) -> T:
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect(self._path)
        return self._connection

    def _shut(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _forget(self, batch: list[Change]) -> None:
        rows = [(change.previous.revision,) for change in batch if change.previous is not None]
        rows += [(change.revision,) for change in batch if change.deleted]
        connection = self._opened()
        with _transaction(connection):
            connection.executemany("DELETE FROM log WHERE revision=?", rows)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('compacted', ?)", (batch[-1].revision,))

    def _reopen(self) -> None:
        """Prove that writing works again, on a new connection, and take back what a failed commit may have left."""
        self._shut()
        connection = self._opened()
        known = self._history.revision
        with _transaction(connection):
            left = connection.execute(
                "SELECT collection, namespace, name, previous FROM log WHERE revision>? ORDER BY revision DESC", (known,)
            )
            for *key, previous in left.fetchall():
                connection.execute("DELETE FROM current WHERE collection=? AND namespace=? AND name=?", key)
                if 0 < previous <= known:
                    connection.execute("INSERT OR REPLACE INTO current VALUES (?,?,?,?)", (*key, previous))
            connection.execute("DELETE FROM log WHERE revision>?", (known,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('healed', ?)", (known,))

    # --- start ----------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        connection = self._opened()
        _prepare(connection, self._path)
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        records = [Record(Key(*key), revision, value) for *key, revision, value in connection.execute(_CURRENT_ROWS)]
        if len(records) != connection.execute("SELECT count(*) FROM current").fetchone()[0]:
            raise Damaged(
                f"{self._path} is damaged", why="current values are missing from its log", fix="restore a backup: paddock restore"
            )
        compacted = meta.get("compacted", 0)
        changes = [_change(row) for row in connection.execute(_CHANGE_ROWS, (compacted,))]
        newest = connection.execute("SELECT max(revision) FROM log").fetchone()[0] or 0
        self._history.load(records, changes, revision=max(newest, meta.get("floor", 0)), compacted=compacted)


_CURRENT_ROWS = "SELECT c.collection, c.namespace, c.name, c.revision, l.value FROM current c JOIN log l ON l.revision = c.revision"
_CHANGE_ROWS = """
SELECT l.revision, l.collection, l.namespace, l.name, l.value, l.deleted, p.revision, p.value
FROM log l LEFT JOIN log p ON p.revision = l.previous WHERE l.revision > ? ORDER BY l.revision
"""


def _change(row: tuple[Any, ...]) -> Change:
    revision, collection, namespace, name, value, deleted, previous_revision, previous_value = row
    key = Key(collection, namespace, name)
    previous = None if previous_revision is None else Record(key, previous_revision, previous_value)
    return Change(revision, key, value, previous, bool(deleted))


class _transaction:
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
        """Take everything back."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.roll_back()


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; check the ones of an old store."""
    connection.executescript(_SCHEMA)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (FORMAT,))
    (found,) = connection.execute("SELECT value FROM meta WHERE key='format'").fetchone()
    if found != FORMAT:
        raise Damaged(f"{path} has the format {found}", why=f"this Paddock reads format {FORMAT}", fix="use the Paddock that wrote it")
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise Damaged(f"{path} is damaged", why=verdict, fix="restore a backup: paddock restore")


def _copy(source: sqlite3.Connection, target: Path) -> None:
    if target.exists():
        raise Terminal(f"cannot write the backup {target}", why="the file exists", fix="name another one")
    with sqlite3.connect(target) as copy:
        source.backup(copy, pages=256)
    copy.close()
    target.chmod(0o600)


def open_store(path: Path, *, connect: Connect = connect, heal_seconds: float = HEAL_SECONDS) -> SqliteStore:
    """Open or make the store of a file; raises `InUse` or `Damaged`."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InUse(f"{path} is in use", why="another process has it open", fix="stop it first: paddock down") from None
    try:
        path.touch(mode=0o600)
        return SqliteStore(path, lock, connect, heal_seconds)
    except sqlite3.DatabaseError as error:
        os.close(lock)
        raise Damaged(f"{path} cannot be read", why=str(error), fix="restore a backup: paddock restore") from error
    except BaseException:
        os.close(lock)
        raise


def copy(source: Path, target: Path) -> None:
    """Copy the committed content of a store, which another process may be using."""
    connection = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
    try:
        _copy(connection, target)
    finally:
        connection.close()


def restore(backup: Path, path: Path) -> None:
    """Put a backup in the place of a store that is not in use.

    Revisions continue far above everything that either may have issued, and no history is taken over, so that a client that
    remembers a revision of the lost time lists again instead of missing changes.
    """
    if path.exists():
        raise Terminal(f"cannot restore to {path}", why="the file exists", fix="move it away first")
    copy(backup, path)
    with connect(path) as connection:
        _prepare(connection, path)
        newest = connection.execute(
            "SELECT max(coalesce((SELECT max(revision) FROM log), 0), coalesce((SELECT value FROM meta WHERE key='floor'), 0))"
        ).fetchone()[0]
        floor = newest + RESTORE_STEP
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('floor', ?), ('compacted', ?)", (floor, floor))
        connection.execute("DELETE FROM log WHERE revision NOT IN (SELECT revision FROM current)")
    connection.close()

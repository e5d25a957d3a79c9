"""The store on disk: one SQLite file in WAL mode with full synchronisation.

Reading happens in memory. A group of writes is put into a transaction on the event loop, where a row costs microseconds, and
committed in a thread, because that waits for the disk; rows inserted by the thread would fight the loop for the interpreter, row
by row. Everything slow happens in that thread, one thing at a time. What is in the file is `database`'s matter, and `watermark`
remembers beside it how far revisions were given out.

When a write fails, the store turns read-only and looks every second whether writing works again. Until then nobody knows what of
the failed group is on the disk, so the store takes it back before it goes on.
"""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from paddock.server.store import database
from paddock.server.store.contract import CommittedWrite, Damaged, StoreKey, StoreUnavailable
from paddock.server.store.database import Connect, Row, transaction
from paddock.server.store.history import History
from paddock.server.store.memory import MemoryStore
from paddock.server.store.watermark import Watermark

T = TypeVar("T")
HEAL_SECONDS = 1.0
_COMPACT_BATCH = 1000
_LOG = logging.getLogger(__name__)
# What SQLite says of a file that does not hold together, or whose tables are not the known ones; everything else it says is about
# the disk or about rights.
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


class SqliteStore(MemoryStore):
    """The store's contract on a file. Made by `open_store`."""

    def __init__(self, path: Path, mark: Watermark, connect: Connect, heal_seconds: float) -> None:
        self._path = path
        self._mark = mark
        self._connect = connect
        self._heal_seconds = heal_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        # Whoever holds it has the connection to themselves.
        self._turn = asyncio.Lock()
        self._connection: sqlite3.Connection | None = None
        self._history = History()
        self._healing: asyncio.Task[None] | None = None
        try:
            self._load()
        except BaseException:
            self._shut()
            raise
        # The newest revision that is on the disk; the thread knows it before the event loop does.
        self._stored = self._history.revision
        super().__init__(self._history)

    async def compact(self, revision: int) -> None:
        if self.unavailable:
            raise StoreUnavailable("cannot forget history", why=self.unavailable)
        # The newest row stays even when it is a deletion: it is what the next revision is counted from after a restart.
        forgotten = [change for change in self._history.after(self.compacted) if change.revision <= min(revision, self.revision - 1)]
        for start in range(0, len(forgotten), _COMPACT_BATCH):
            batch = forgotten[start : start + _COMPACT_BATCH]
            try:
                await self._in_thread(partial(self._forget, batch))
            except (sqlite3.Error, OSError) as error:
                raise self._failed(error) from error
            self._history.forget(batch[-1].revision)

    async def close(self) -> None:
        await self._writes.close()
        if self._healing is not None:
            self._healing.cancel()
            await asyncio.gather(self._healing, return_exceptions=True)
        await self._in_thread(self._shut)
        self._thread.shutdown()
        self._mark.close()

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        try:
            async with self._turn:
                prepared = self._insert(changes)
                await self._run(partial(self._finish, prepared, changes[-1].revision))
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> StoreUnavailable:
        """Turn read-only with the reason, and begin to look for the end of it."""
        reason = self._writes.unavailable = self._reason(error)
        _LOG.error("store is read-only", extra={"why": reason})
        if self._healing is None:
            self._healing = asyncio.create_task(self._heal())
        return StoreUnavailable("cannot write", why=reason, fix="free space or mend the disk; writing resumes by itself")

    def _reason(self, error: Exception) -> str:
        return f"the store cannot write to {self._path}: {error}"

    async def _heal(self) -> None:
        while self._writes.unavailable:
            await asyncio.sleep(self._heal_seconds)
            try:
                await self._in_thread(self._reopen)
            except Exception as error:
                # Whatever it is, the only way on is to try again.
                self._writes.unavailable = self._reason(error)
            else:
                self._writes.unavailable = ""
                _LOG.warning("store is writable again")
        self._healing = None

    def _insert(self, changes: tuple[CommittedWrite, ...]) -> transaction:
        """A transaction with a group of writes in it, ready to commit."""
        log: list[Row] = []
        # Only the last write of each key in the group decides what is current.
        current: dict[StoreKey, CommittedWrite] = {}
        for change in changes:
            log.append(database.row(change))
            current[change.key] = change
        kept = [(*key, change.revision) for key, change in current.items() if not change.deleted]
        gone = [key for key, change in current.items() if change.deleted]
        connection = self._ready()
        prepared = transaction(connection)
        prepared.begin()
        try:
            connection.executemany("INSERT INTO log VALUES (?,?,?,?,?,?,?,?)", log)
            connection.executemany("INSERT OR REPLACE INTO current VALUES (?,?,?,?)", kept)
            connection.executemany("DELETE FROM current WHERE collection=? AND namespace=? AND name=?", gone)
        except BaseException:
            prepared.roll_back()
            raise
        return prepared

    # --- in the thread --------------------------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], T]) -> T:
        # Shielded: whoever no longer waits has not ended the work, and nobody else may begin before it ends.
        return await asyncio.shield(self._alone(work))

    async def _alone(self, work: Callable[[], T]) -> T:
        async with self._turn:
            return await self._run(work)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _finish(self, prepared: transaction, revision: int) -> None:
        prepared.commit()
        self._stored = revision
        self._mark.write(revision)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect(self._path)
        return self._connection

    def _shut(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _identify(self) -> tuple[tuple[int, int], ...]:
        """The files that are open, as the file system numbers them."""
        found = []
        for name in (self._path.name, self._path.name + "-wal"):
            status = self._path.with_name(name).stat()
            found.append((status.st_dev, status.st_ino))
        return tuple(found)

    def _ready(self) -> sqlite3.Connection:
        """The connection, when what it writes to is still what the next start will read."""
        try:
            found = self._identify()
        except FileNotFoundError as error:
            raise _Moved(f"{error.filename} was removed while it was in use") from error
        if found != self._files:
            raise _Moved("the file was replaced while it was in use")
        return self._opened()

    def _forget(self, batch: list[CommittedWrite]) -> None:
        rows = [(change.previous.revision,) for change in batch if change.previous is not None]
        rows += [(change.revision,) for change in batch if change.deleted]
        connection = self._ready()
        with transaction(connection):
            connection.executemany("DELETE FROM log WHERE revision=?", rows)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('compacted', ?)", (batch[-1].revision,))

    def _reopen(self) -> None:
        """Prove that writing works again, on a new connection, and take back what a failed commit may have left."""
        self._shut()
        connection = self._opened()
        known = self._stored
        newest, floor = connection.execute(_NEWEST).fetchone()
        if max(newest, floor) < known:
            raise _Moved(f"the file ends at revision {max(newest, floor)}, but {known} was written; it is not the one that was in use")
        with transaction(connection):
            left = connection.execute(
                "SELECT collection, namespace, name, previous FROM log WHERE revision>? ORDER BY revision DESC", (known,)
            )
            for *key, previous in left.fetchall():
                connection.execute("DELETE FROM current WHERE collection=? AND namespace=? AND name=?", key)
                if 0 < previous <= known:
                    connection.execute("INSERT OR REPLACE INTO current VALUES (?,?,?,?)", (*key, previous))
            connection.execute("DELETE FROM log WHERE revision>?", (known,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('healed', ?)", (known,))
        # After a failed sync the system may take pages of the log for written that are not. Moving all of it into the database,
        # which is synchronised, and beginning a new log leaves nothing that rests on them.
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise sqlite3.OperationalError("somebody reads the store, so that its log cannot be begun anew")
        self._files = self._identify()

    # --- start ----------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        connection = self._opened()
        database.prepare(connection, self._path)
        records, changes, revision, compacted = database.load(connection, self._path)
        given = self._mark.read()
        if revision < given:
            why = f"it ends at revision {revision}, but {given} was written: its -wal file is missing or cut off, or this is an older copy"
            raise Damaged(f"{self._path} has lost its newest writes", why=why, fix=f"put the -wal file back, or {database.RESTORE}")
        self._history.load(records, changes, revision=revision, compacted=compacted)
        self._files = self._identify()


_NEWEST = "SELECT coalesce((SELECT max(revision) FROM log), 0), coalesce((SELECT value FROM meta WHERE key='floor'), 0)"


class _Moved(OSError):
    """The files that are open are not those at the place of the store."""


def open_store(path: Path, *, connect: Connect = database.connect, heal_seconds: float = HEAL_SECONDS) -> SqliteStore:
    """Open or make the store of a file; raises `InUse`, `Damaged`, or `StoreUnavailable` when the disk does not let it."""
    try:
        mark = Watermark(path)
    except OSError as error:
        raise _cannot_open(path, error) from error
    try:
        if mark.read() and not (path.exists() and path.stat().st_size):
            raise Damaged(f"{path} is gone", why="there was a store here, and now the file is missing or empty", fix=database.RESTORE)
        # Makes the file when there is none; its mode is set before anything is in it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        return SqliteStore(path, mark, connect, heal_seconds)
    except sqlite3.Error as error:
        mark.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise database.damaged(path, str(error)) from error
        raise _cannot_open(path, error) from error
    except OSError as error:
        mark.close()
        raise _cannot_open(path, error) from error
    except UnicodeDecodeError as error:
        # The definitions of the tables themselves.
        mark.close()
        raise database.damaged(path, str(error)) from error
    except BaseException:
        mark.close()
        raise


def _cannot_open(path: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} cannot be opened", why=str(error), fix="free space, mend the disk or its mount, or give the right to write"
    )

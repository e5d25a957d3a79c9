"""The records of simulated guests: one SQLite file, a row for each machine, card, volume and snapshot.

Written through at each change, without waiting for the disk: the end of the process loses nothing.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from paddock.base.errors import Terminal
from paddock.engine.machine.directory import decode_path, encode_path

T = TypeVar("T")
NAME = "simulated.db"
_FORMAT = 1


class RecordsUnreadable(Terminal):
    """The file with the records cannot be used."""


class Table(Generic[T]):
    """The records of one type, by key."""

    def __init__(self, connection: sqlite3.Connection, name: str, record_type: type[T]) -> None:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {name} (key TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID")
        self._connection = connection
        self._decoder = msgspec.msgpack.Decoder(record_type, dec_hook=decode_path)
        self._put = f"INSERT OR REPLACE INTO {name} VALUES (?, ?)"
        self._delete = f"DELETE FROM {name} WHERE key = ?"
        self._all = f"SELECT key, record FROM {name}"

    def __iter__(self) -> Iterator[tuple[str, T]]:
        for key, record in self._connection.execute(self._all):
            yield key, self._decoder.decode(record)

    def put(self, key: str, record: T) -> None:
        """Keep a record in place of an earlier one."""
        self._connection.execute(self._put, (key, _ENCODER.encode(record)))

    def delete(self, key: str) -> None:
        """Remove the record of a key."""
        self._connection.execute(self._delete, (key,))


class Records:
    """The file with all records of a server."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            os.chmod(self._path, 0o600)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=OFF")
            self._check_format()
        except sqlite3.Error as error:
            raise RecordsUnreadable(
                f"cannot read {self._path}", why=str(error), fix="put the file back from a backup, or use another directory: --dir"
            ) from error

    def table(self, name: str, record_type: type[T]) -> Table[T]:
        """Return the records of a type."""
        return Table(self._connection, name, record_type)

    def close(self) -> None:
        """Write what is not in the file, and let it go."""
        self._connection.close()

    def _check_format(self) -> None:
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, _FORMAT):
            why = f"it has format {found}, and this Paddock knows format {_FORMAT}"
            raise RecordsUnreadable(f"cannot read {self._path}", why=why, fix="use the newer Paddock, or another directory: --dir")
        self._connection.execute(f"PRAGMA user_version={_FORMAT}")


def count_guests(directory: Path) -> int:
    """Return the number of simulated machines in the records of a directory."""
    with _opened(directory) as connection:
        return int(connection.execute("SELECT count(*) FROM machines").fetchone()[0]) if connection is not None else 0


def end_guests(directory: Path) -> None:
    """End the simulated guests of a directory as a power cut would; their volumes and addresses stay. No server runs."""
    with _opened(directory) as connection:
        if connection is not None:
            connection.execute("DELETE FROM machines")


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[sqlite3.Connection | None]:
    """The records of a directory that is not in use; None where there are none, or none of machines."""
    if not (directory / NAME).exists():
        yield None
        return
    with contextlib.closing(sqlite3.connect(directory / NAME, isolation_level=None)) as connection:
        there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'machines'").fetchone()
        yield connection if there else None


_ENCODER = msgspec.msgpack.Encoder(enc_hook=encode_path)

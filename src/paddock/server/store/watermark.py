"""The lock of a store, and in it how far revisions have been given out.

The lock file holds the newest committed revision as text. It is written after every commit and never synchronised, so it costs
nothing and may lag behind after a power cut, but it is never ahead of the database. A database that ends before it has lost
acknowledged writes: its write-ahead log is missing or cut off, or an older copy was put in its place.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from paddock.base.errors import Terminal


class InUse(Terminal):
    """Another process has the store open."""


class Watermark:
    """The lock of one store, held until it is closed; raises `InUse`."""

    def __init__(self, store: Path) -> None:
        self._file = os.open(place(store), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise InUse(f"{store} is in use", why="another process has it open", fix="stop it first: paddock down") from None

    def read(self) -> int:
        """The newest revision that is known to be committed; 0 when nothing is known."""
        text = os.pread(self._file, 32, 0).strip()
        return int(text) if text.isdigit() else 0

    def write(self, revision: int) -> None:
        """Note a committed revision. What is committed stays so when this fails."""
        with contextlib.suppress(OSError):
            os.pwrite(self._file, b"%020d\n" % revision, 0)

    def close(self) -> None:
        os.close(self._file)


def place(store: Path) -> Path:
    """Return the path of a store's lock."""
    return store.with_name(store.name + ".lock")

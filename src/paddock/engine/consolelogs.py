"""The output of guests on their serial consoles, kept beyond the end of a run: that of the last run of each owner.

A run's own log is a file of the machine's directory, which goes with the run (`machine/directory.py`). A file here is at most half a MiB:
the end of the log.
"""

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

from paddock.engine.machine.directory import Directory, tame

LIMIT = 512 << 10


class ConsoleLogs:
    """Files by owner."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keep(self, owner: str, directory: Directory) -> None:
        """Keep the log of a run that is over. A run without output changes nothing; a full disk costs the log, and not the cleanup."""
        with contextlib.suppress(OSError):
            self._keep(owner, directory)

    def kept(self, owner: str) -> bytes | None:
        """Return the log of the last run that is over, or None."""
        try:
            return self._path(owner).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def keep_only(self, owners: Collection[str]) -> None:
        """Remove the logs of others."""
        for path in self._root.iterdir() if self._root.is_dir() else ():
            if path.name.removesuffix(_NEW) not in owners or path.name.endswith(_NEW):
                path.unlink(missing_ok=True)

    def _keep(self, owner: str, directory: Directory) -> None:
        data = directory.serial_tail(LIMIT)
        if not data or not tame(owner):
            return
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(owner)
        new = path.with_name(path.name + _NEW)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.rename(new, path)

    def _path(self, owner: str) -> Path:
        return self._root / owner


_NEW = ".new"

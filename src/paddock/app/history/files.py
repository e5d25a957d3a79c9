"""The files of usage histories: one for each owner, always of the same size, replaced by rename."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

from paddock.app.history.rings import BadRings, UsageRings
from paddock.engine.machine.directory import tame

_LOG = logging.getLogger(__name__)
_NEW = ".new"
P = ParamSpec("P")
T = TypeVar("T")


class HistoryFiles:
    """Files below one directory, by owner."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def read(self) -> dict[str, UsageRings]:
        """Return all histories. A file that cannot be read is removed: the history begins anew."""
        return await self.beside(self._read)

    async def write(self, packed: Mapping[str, bytes]) -> None:
        """Write histories. A loss of power may cost what was written last, which is why nothing waits for the disk."""
        await self.beside(self._write, packed)

    async def remove(self, owners: Collection[str]) -> None:
        """Remove the histories of machines that are gone."""
        await self.beside(self._remove, owners)

    async def beside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what blocks in a thread."""
        return await asyncio.to_thread(work, *args, **kwargs)

    def _read(self) -> dict[str, UsageRings]:
        found = {}
        for path in sorted(self._root.iterdir()) if self._root.is_dir() else ():
            try:
                found[path.name] = UsageRings.unpack(path.read_bytes())
            except (BadRings, OSError) as error:
                _LOG.warning("usage history unreadable; beginning anew", extra={"file": str(path), "error": str(error)})
                with contextlib.suppress(OSError):
                    path.unlink()
        return found

    def _write(self, packed: Mapping[str, bytes]) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for owner, data in packed.items():
            if not tame(owner):
                continue
            new = self._root / f"{owner}{_NEW}"
            new.write_bytes(data)
            new.replace(self._root / owner)

    def _remove(self, owners: Collection[str]) -> None:
        for owner in owners:
            if tame(owner):
                (self._root / owner).unlink(missing_ok=True)

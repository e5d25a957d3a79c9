"""Pools that are not what they were: a file system that is not mounted leaves an empty directory, in which all volumes seem to be gone.

A pool gets a marker file before its first volume, and the engine's directory a list of the pools that got one. A directory of the list
that has neither marker nor volumes is closed until the next start: nothing is made in it. If the list cannot be read, every pool may have
been on it; it is left as it is.
"""

import logging
from collections.abc import Collection
from pathlib import Path

import msgspec

from paddock.engine import versions
from paddock.engine.storage import errors, files
from paddock.engine.storage.errors import StoreFailed, VolumeBroken

_LOG = logging.getLogger(__name__)
MARKER = "paddock-pool"
LIST = "pools.json"
_VERSION = 1
_TEXT = b"Paddock keeps volumes of machines in this directory. Without this file it takes the file system for one that is not mounted.\n"
_RECORD = "[!.]*/volume.json"


class MarkedPools(msgspec.Struct, frozen=True):
    """`pools.json`."""

    # absolute paths of directories, sorted
    paths: tuple[str, ...] = ()
    version: int = _VERSION


_LISTS = msgspec.json.Decoder(MarkedPools)


class PoolMarkers:
    """Marks pools, and knows which had a mark. Blocking."""

    def __init__(self, root: Path) -> None:
        self._list = root / LIST
        self._marked: frozenset[str] = frozenset()
        self._closed: frozenset[Path] = frozenset()

    def load(self, pools: Collection[Path]) -> frozenset[Path]:
        """Read which pools were marked; return those that are to be closed."""
        try:
            self._marked = frozenset(self._read().paths)
        except VolumeBroken as error:
            _LOG.error("list of pools damaged; taking an empty pool for one that is not mounted", extra={"error": str(error)})
            self._marked = frozenset(str(pool.absolute()) for pool in pools)
        found = set()
        for pool in pools:
            with errors.spoken("cannot use the directory of volumes", pool):
                if self._is_marked(pool) and not (pool / MARKER).exists() and not any(pool.glob(_RECORD)):
                    found.add(pool)
        self._closed = frozenset(found)
        return self._closed

    def mark(self, pool: Path) -> None:
        """Mark a pool in which a volume is about to be, or is. Raises `StoreFailed` if it is closed, or has lost its mark since."""
        if pool in self._closed:
            raise not_mounted(pool)
        has_marker = (pool / MARKER).exists()
        if self._is_marked(pool) and has_marker:
            return
        if self._is_marked(pool) and not any(pool.glob(_RECORD)):
            raise not_mounted(pool)
        if not has_marker:
            files.write_whole(pool / MARKER, _TEXT)
        # Afterwards: a pool of the list that never got its marker would be closed for nothing.
        marked = self._marked | {str(pool.absolute())}
        if marked != self._marked:
            files.write_whole(self._list, msgspec.json.encode(MarkedPools(tuple(sorted(marked)))))
            self._marked = marked

    def _is_marked(self, pool: Path) -> bool:
        return str(pool.absolute()) in self._marked

    def _read(self) -> MarkedPools:
        try:
            raw = self._list.read_bytes()
            if why := versions.strange(raw, _VERSION):
                raise VolumeBroken(f"cannot read {self._list}", why=why, fix=versions.FIX)
            return _LISTS.decode(raw)
        except FileNotFoundError:
            return MarkedPools()
        except (OSError, ValueError) as error:
            fix = "remove it, when the file systems of all pools are mounted"
            raise VolumeBroken(f"cannot read {self._list}", why=str(error), fix=fix) from error


def not_mounted(pool: Path) -> StoreFailed:
    """The error about a closed pool."""
    why = f"it has neither volumes nor its file {MARKER}: if {LIST} is not damaged, its file system is not mounted"
    fix = f"mount it and restart the server; if the volumes are gone for good, create {pool / MARKER}, and restart"
    return StoreFailed(f"cannot use the pool {pool}", why=why, fix=fix)

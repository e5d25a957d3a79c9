"""The places of volumes: a directory each, in one of several pools (docs/reference/on-disk.md)."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from paddock.engine.storage import records
from paddock.engine.storage.errors import NotAllowed, VolumeBroken
from paddock.engine.storage.records import VolumeRecord

RECORD = "volume.json"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z", re.ASCII)


class VolumePaths(Struct, frozen=True):
    """Directories of volumes and snapshots below the engine's directory; pools may be elsewhere."""

    root: Path
    pools: Mapping[str, Path]
    # directories of pools that are not mounted: what is there does not count
    closed: frozenset[Path] = frozenset()

    def pool(self, name: str) -> Path:
        """The directory of a pool."""
        found = self.root / "volumes" if not name else self.pools.get(name)
        if found is None:
            raise NotAllowed(f"there is no place for volumes named {name}", fix="name one that is configured")
        return found

    @property
    def every_pool(self) -> tuple[Path, ...]:
        return tuple(each for each in self.configured if each not in self.closed)

    @property
    def configured(self) -> tuple[Path, ...]:
        """All directories for volumes, whether they are mounted or not."""
        return (self.root / "volumes", *self.pools.values())

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def scratch(self) -> Path:
        """The directory of files that end with their machine."""
        return self.root / "scratch"

    def find(self, id: str) -> Path | None:
        """The directory of a volume, wherever it is."""
        checked(id)
        return next((pool / id for pool in self.every_pool if (pool / id / RECORD).exists()), None)

    def snapshot(self, id: str) -> Path:
        """The record of a snapshot."""
        return self.snapshots / f"{checked(id)}.json"

    def volume_records(self) -> Iterator[Path]:
        """The records of all volumes."""
        for pool in self.every_pool:
            yield from sorted(pool.glob(f"[!.]*/{RECORD}"))

    def snapshot_records(self) -> Iterator[Path]:
        """The records of all snapshots."""
        yield from sorted(self.snapshots.glob("[!.]*.json"))

    def volumes(self) -> Iterator[tuple[Path, VolumeRecord]]:
        """All volumes that can be read."""
        for path in self.volume_records():
            with contextlib.suppress(VolumeBroken):
                if (record := records.read(path)) is not None:
                    yield path.parent, record


def checked(id: str) -> str:
    """An id that is safe as a name of a file."""
    if not _ID.match(id):
        raise NotAllowed(f"{id!r} cannot be an id of a volume", why="only letters, digits, dots, dashes and underscores can be in one")
    return id

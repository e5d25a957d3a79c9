"""Volumes at rest that become one raw file: of what they hold, or blank for a disk that is to move into it."""

import os
from abc import abstractmethod
from pathlib import Path

import msgspec

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import files, qemuimg
from paddock.engine.storage.errors import NotAllowed, StoreFull
from paddock.engine.storage.layerusers import LayerUsers
from paddock.engine.storage.namedlocks import NamedLocks
from paddock.engine.storage.records import LayerFile, VolumeRecord
from paddock.engine.storage.scratch import ScratchFiles
from paddock.engine.storage.threads import blocking
from paddock.engine.storage.volume import StoredVolume, busy, too_small

_BLANK = "moved.img"


class WholeFiles(ScratchFiles):
    """The part of `Volumes` that replaces all layers of a volume by one file."""

    _locks: NamedLocks
    _users: LayerUsers

    @abstractmethod
    def _there(self, id: str) -> StoredVolume: ...

    @abstractmethod
    def _record(self, directory: Path) -> VolumeRecord: ...

    @abstractmethod
    async def _write(self, directory: Path, record: VolumeRecord) -> None: ...

    @abstractmethod
    async def _sweep(self) -> None: ...

    async def flatten(self, id: str) -> StoredVolume:
        """Make a volume at rest one raw file, which several machines may write at the same time."""
        async with self._locks.hold(id):
            volume = self._there(id)
            record = self._record(volume.directory)
            if volume.layer.format == "raw":
                return volume
            if volume.busy:
                raise busy(id)
            if len(record.layers) > 1 or record.former:
                why = "it has snapshots, which lie below it"
                raise NotAllowed(f"cannot make volume {id} one file", why=why, fix="remove its snapshots, or copy it first")
            flat = LayerFile(record.top.name, "raw", "flat.img")
            await qemuimg.convert(volume.layer, volume.directory / flat.path, "raw")
            await self._write(volume.directory, msgspec.structs.replace(record, layers=(flat,), base=None))
            (volume.directory / record.top.path).unlink(missing_ok=True)
        return self._there(id)

    async def vacate(self, id: str, size: int, *, content: DiskLayer | None = None) -> StoredVolume:
        """Make a volume at rest one blank raw file of `size` bytes, which a disk of that size is to move into. What it held is gone.

        Its own size stays: the disk grows to it when it is there. `content` is what will be copied, for which there must be room.
        """
        async with self._locks.hold(id):
            volume = self._there(id)
            record = self._record(volume.directory)
            if volume.files is not None or len(record.layers) > 1 or record.former or self._users.layers(id):
                why = "it holds files, and no disk" if volume.files is not None else "snapshots or clones need what it holds"
                raise NotAllowed(f"cannot move a disk into volume {id}", why=why, fix="take a claim that was never used")
            if size > volume.size:
                raise too_small(size, volume.size)
            if volume.busy:
                raise busy(id)
            needed, free = min(size, _allocated(content)), os.statvfs(volume.directory)
            if needed > free.f_bavail * free.f_frsize:
                why = f"{needed} bytes are to be copied, and {volume.directory.parent} has {free.f_bavail * free.f_frsize} free"
                raise StoreFull(f"cannot move a disk into volume {id}", why=why, fix="make room, or take a claim in another pool")
            fresh = LayerFile(record.top.name, "raw", _BLANK if record.top.path != _BLANK else f"next-{_BLANK}")
            path = volume.directory / fresh.path
            path.unlink(missing_ok=True)
            await blocking(f"cannot empty volume {id}", volume.directory, files.make_blank, path, size, allocate=False)
            await self._write(volume.directory, msgspec.structs.replace(record, layers=(fresh,), base=None))
            (volume.directory / record.top.path).unlink(missing_ok=True)
        await self._sweep()
        return self._there(id)


def _allocated(layer: DiskLayer | None) -> int:
    """Return the bytes that a disk with all its layers takes."""
    found = 0
    while layer is not None:
        found += files.allocated(layer.path)
        layer = layer.backing
    return found

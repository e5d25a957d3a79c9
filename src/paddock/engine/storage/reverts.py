"""Volumes at rest that go back to what a snapshot holds, in one step: the rename of `volume.json`.

The volume goes on in an empty layer over the frozen one. Until the record is written, the disk is what it was; from then on it is what the
snapshot holds. Layers that it had meanwhile go, unless a snapshot or another volume has them below its own: those stay as former chains
(`records.FormerChain`) until nothing needs them.
"""

from abc import abstractmethod
from pathlib import Path

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import chains, files, headers, namedlocks, records
from paddock.engine.storage.errors import VolumeMissing
from paddock.engine.storage.paths import VolumePaths, checked
from paddock.engine.storage.records import FrozenBase, LayerFile, VolumeRecord
from paddock.engine.storage.threads import blocking
from paddock.engine.storage.volume import Snapshot, StoredVolume, busy, rounded
from paddock.engine.storage.wholefiles import WholeFiles


class RevertedVolumes(WholeFiles):
    """The part of `Volumes` that reverts a volume to a snapshot, and clears away what it was."""

    _places: VolumePaths

    @property
    @abstractmethod
    def is_whole(self) -> bool: ...

    @abstractmethod
    def get_snapshot(self, id: str) -> Snapshot | None: ...

    async def revert(self, id: str, snapshot: str, size: int, mark: str) -> StoredVolume:
        """Replace what a volume at rest holds by what a snapshot holds; its size becomes `size`, if the snapshot is not larger.

        `mark` names the attempt: one that is repeated before the volume was written again changes nothing.
        """
        async with self._locks.hold(id), self._locks.hold(namedlocks.of_snapshot(snapshot)):
            volume, name = self._there(id), f"reverted-{checked(mark)}.img"
            record = self._record(volume.directory)
            if record.top.name == name:
                return volume
            held, frozen = self.get_snapshot(snapshot), records.read_snapshot(self._places.snapshot(snapshot))
            if held is None or frozen is None:
                raise VolumeMissing(f"there is no snapshot {snapshot}")
            if volume.busy:
                raise busy(id)
            top, size = LayerFile(name, "qcow2"), rounded(max(size, held.size))
            fresh = chains.reverted(record, size, top, FrozenBase(frozen.volume, frozen.layer))
            await self._go_back(volume.directory, fresh, held.layer)
        await self._sweep()
        return self._there(id)

    async def _go_back(self, directory: Path, fresh: VolumeRecord, below: DiskLayer) -> None:
        """Make the empty layer, write the record, and remove what the volume was."""
        path, what = directory / fresh.top.path, f"cannot revert volume {directory.name}"
        try:
            await blocking(what, directory, files.make_layer, path, below, fresh.size)
            await self._write(directory, fresh)
        finally:
            # It may be the fresh one although the last step failed, and then the volume keeps what lies below it.
            stands = self._record(directory)
            self._users.put(directory, stands)
            if stands.top != fresh.top:
                path.unlink(missing_ok=True)
        # What it names was merged meanwhile; from here on a merged file waits for this volume.
        await headers.correct_layer(chains.top(self._places, directory, fresh))
        await self._prune(directory.name)

    async def _prune(self, id: str) -> None:
        """Remove the former layers of a volume that nothing needs. Whoever holds its lock calls it."""
        directory = self._there(id).directory
        record = self._record(directory)
        if not record.former or not self.is_whole:
            return
        fresh = chains.pruned(id, record, self._users.layers_of_others(id))
        if fresh == record:
            return
        await self._write(directory, fresh)
        for name in record.files - fresh.files:
            await blocking(f"cannot remove a layer of volume {id}", directory, (directory / name).unlink, True)

"""The volumes of a host. A volume exists when its `volume.json` does, and what it says is true at every moment.

A machine that runs owns its disks; everything here that touches what a disk holds is for volumes at rest, and refuses one that a QEMU has
open (`VolumeBusy`). For machines that run there are `next_layer` and `frozen`, between which the machine itself goes on in a new layer,
and `grown`, after the machine itself made its disk larger.

Freezing: the layer that was written becomes read-only by being covered with a new one. Frozen layers may have several volumes above
them, so a directory stays, marked as deleted, until nothing needs a layer of it. Writing down a new layer is safe before it is used:
an empty layer changes nothing.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import msgspec

from paddock.engine import versions
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import chains, errors, exports, files, headers, namedlocks, overlays, preparation, qemuimg, records
from paddock.engine.storage.errors import NotAllowed, VolumeBroken, VolumeBusy, VolumeMissing
from paddock.engine.storage.layerusers import LayerUsers
from paddock.engine.storage.namedlocks import NamedLocks
from paddock.engine.storage.paths import RECORD, VolumePaths, checked
from paddock.engine.storage.pools import PoolMarkers
from paddock.engine.storage.records import FrozenBase, ImageBase, LayerFile, SnapshotRecord, VolumeRecord
from paddock.engine.storage.reverts import RevertedVolumes
from paddock.engine.storage.threads import blocking
from paddock.engine.storage.volume import BaseImage, FilesystemCapacity, Snapshot, StoredVolume, busy, rounded, too_small

_DISK = "disk.img"
_FILES = "files"
Tell = Callable[[int, int], None]


class Volumes(RevertedVolumes):
    """Makes, copies, grows and removes volumes. Every operation may be repeated."""

    # by `prepare`
    _users: LayerUsers

    def __init__(self, root: Path, pools: Mapping[str, Path] | None = None) -> None:
        self._places = VolumePaths(root, dict(pools or {}))
        self._markers = PoolMarkers(root)
        self._locks = NamedLocks()
        self._shares: dict[Path, bool] = {}
        # the disk in this layer belongs to a suspended machine, or to one that is about to start
        self.is_held: Callable[[Path], bool] = lambda layer: False

    def place(self, id: str, pool: str = "") -> Path:
        """Return the present or future directory of a volume."""
        return self._places.find(id) or self._places.pool(pool) / id

    def spool(self, id: str) -> Path:
        """Return the place of a file while it arrives; it is gone after a sudden end."""
        return self._places.scratch / f".arriving-{checked(id)}"

    def prepare(self) -> None:
        """Once, at the start: directories are there, and what a sudden end left half made is gone. Blocking."""
        self._places = preparation.opened(self._places, self._markers)
        self._users = preparation.cleared(self._places)

    # --- looking ----------------------------------------------------------------------------------------------------------

    def get(self, id: str) -> StoredVolume | None:
        """A volume, if it is there."""
        directory = self._places.find(id)
        record = records.read(directory / RECORD) if directory is not None else None
        return None if directory is None or record is None or record.deleted else self._stored(id, directory, record)

    def _stored(self, id: str, directory: Path, record: VolumeRecord) -> StoredVolume:
        layer = chains.top(self._places, directory, record)
        allocated = sum(files.allocated(directory / each.path) for each in record.layers)
        unpacked = directory / _FILES if record.is_files else None
        image, held = chains.image_of(self._places, record), self.is_held(layer.path)
        return StoredVolume(id, layer, record.size, allocated, directory, image, unpacked, held)

    def _own(self, id: str, directory: Path, record: VolumeRecord) -> StoredVolume:
        """The volume without what lies below its own layers, which may be damaged."""
        return self._stored(id, directory, msgspec.structs.replace(record, base=None))

    def get_snapshot(self, id: str) -> Snapshot | None:
        """A snapshot, if it is there."""
        record = records.read_snapshot(self._places.snapshot(id))
        if record is None or record.pending:
            return None
        layer = chains.resolved(self._places, FrozenBase(record.volume, record.layer))
        return Snapshot(id, record.volume, record.size, layer)

    @contextlib.asynccontextmanager
    async def opening(self, layer: DiskLayer | None) -> AsyncIterator[None]:
        """Keep merges off a disk that a machine is about to open. Raises `VolumeBusy` if one has taken its layers meanwhile."""
        while layer is not None and not (layer.path.parent / RECORD).exists():
            layer = layer.backing
        if layer is None:
            yield
            return
        volume = layer.path.parent.name
        async with self._locks.hold(volume):
            found = self.get(volume)
            if found is not None and found.layer != layer:
                raise VolumeBusy(f"cannot open volume {volume}", why="its layers were merged meanwhile", fix="wait for the next attempt")
            yield

    def is_unwritten(self, layer: DiskLayer) -> bool:
        """Return whether a disk holds what lies below its layer, and nothing else."""
        return layer.format == "qcow2" and overlays.is_empty(layer.path)

    @property
    def is_whole(self) -> bool:
        """Return whether all pools are there and all records can be read, so that what no volume uses is not used."""
        return not self._places.closed and not self._users.has_damage()

    def ids(self) -> set[str]:
        return {directory.name for directory, record in self._places.volumes() if not record.deleted}

    def capacity(self, pool: str = "") -> FilesystemCapacity:
        """Return the capacity of a pool."""
        place = self._places.pool(pool)
        with errors.spoken("cannot tell how much space there is", place):
            found = os.statvfs(place)
        return FilesystemCapacity(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    # --- making -----------------------------------------------------------------------------------------------------------

    async def create(self, id: str, size: int, *, base: BaseImage | None = None, preallocate: bool = False, pool: str = "") -> StoredVolume:
        """A blank volume, or one that begins with what an image holds. One that is there already is left as it is."""
        if base is not None and base.virtual_size > size:
            raise too_small(base.virtual_size, size)
        async with self._locks.hold(id):
            if (found := self.get(id)) is not None:
                return found
            size, what = rounded(size), f"cannot make volume {id}"
            async with self._making(id, pool, what) as fresh:
                if base is None:
                    await blocking(what, fresh, files.make_blank, fresh / _DISK, size, allocate=preallocate)
                    record = VolumeRecord(size, (LayerFile(_DISK, "raw"),))
                else:
                    record = await self._over_image(fresh, size, base, preallocate=preallocate)
                await self._publish(id, fresh, record)
        return self._there(id)

    async def _over_image(self, fresh: Path, size: int, base: BaseImage, *, preallocate: bool) -> VolumeRecord:
        disk, below = fresh / _DISK, DiskLayer(base.path, base.format)
        if preallocate:
            await qemuimg.convert(below, disk, "raw")
            await qemuimg.resize(DiskLayer(disk, "raw"), size)
            await blocking("cannot take the space of a volume", fresh, files.allocate_all, disk, size)
            return VolumeRecord(size, (LayerFile(_DISK, "raw"),))
        what = "cannot copy an image"
        if base.format == "raw" and await self._can_share(fresh) and await blocking(what, fresh, files.copy, base.path, disk):
            await qemuimg.resize(DiskLayer(disk, "raw"), size)
            return VolumeRecord(size, (LayerFile(_DISK, "raw"),))
        disk.unlink(missing_ok=True)
        await blocking("cannot make a layer", disk.parent, files.make_layer, disk, below, size)
        place = os.path.relpath(base.path, self._places.root)
        return VolumeRecord(size, (LayerFile(_DISK, "qcow2"),), ImageBase(base.digest, place, base.format))

    async def create_files(self, id: str, size: int, fill: Callable[[Path], None], pool: str = "") -> StoredVolume:
        """A volume of files instead of a disk. `fill` puts them into a directory; it runs in a thread."""
        async with self._locks.hold(id):
            if (found := self.get(id)) is not None:
                return found
            what = f"cannot make volume {id}"
            async with self._making(id, pool, what) as fresh:
                (fresh / _FILES).mkdir(mode=0o700)
                await blocking(what, fresh, fill, fresh / _FILES)
                await blocking(what, fresh, files.make_blank, fresh / _DISK, 0, allocate=False)
                await self._publish(id, fresh, VolumeRecord(rounded(size), (LayerFile(_DISK, "raw"),), is_files=True))
        return self._there(id)

    async def clone(self, source: str, id: str, size: int, *, tell: Tell | None = None, pool: str = "") -> StoredVolume:
        """A volume that begins with what another holds, which must be at rest. Only what the other wrote itself is copied."""
        async with self._locks.hold(id):
            if (found := self.get(id)) is not None:
                return found
            async with self._locks.hold(source):
                from_ = self._there(source)
                if from_.is_behind:
                    raise busy(source)
                if from_.size > size:
                    raise too_small(from_.size, size)
                what = f"cannot copy volume {source}"
                async with self._making(id, pool, what) as fresh:
                    record = await self._copied(from_, fresh, rounded(size), tell)
                    await self._publish(id, fresh, record)
        return self._there(id)

    async def _copied(self, source: StoredVolume, fresh: Path, size: int, tell: Tell | None) -> VolumeRecord:
        record = self._record(source.directory)
        disk, what = fresh / _DISK, f"cannot copy volume {source.id}"
        if source.files is not None:
            (fresh / _FILES).mkdir(mode=0o700)
            await blocking(what, fresh, files.copy_tree, source.files, fresh / _FILES)
        try:
            await blocking(what, fresh, files.copy, source.layer.path, disk, tell)
        except errors.StoreFailed as error:
            if isinstance(error.__cause__, BlockingIOError):
                raise busy(source.id) from error
            raise
        base = record.base if len(record.layers) == 1 else FrozenBase(source.id, record.layers[-2].name)
        if size > source.size and source.files is None:
            await qemuimg.resize(DiskLayer(disk, record.top.format, source.layer.backing), size)
        return VolumeRecord(size, (LayerFile(_DISK, record.top.format),), base, is_files=record.is_files)

    # --- changing ---------------------------------------------------------------------------------------------------------

    async def grow(self, id: str, size: int) -> StoredVolume:
        """Make a volume at rest larger; a smaller size changes nothing."""
        async with self._locks.hold(id):
            volume, size = self._there(id), rounded(size)
            if size > volume.size:
                if volume.files is None:
                    if volume.busy:
                        raise busy(id)
                    await qemuimg.resize(volume.layer, size)
                await self._write(volume.directory, msgspec.structs.replace(self._record(volume.directory), size=size))
        return self._there(id)

    async def as_files(self, id: str) -> Path:
        """The directory of a volume that holds files. One whose disk was never written becomes such a volume."""
        async with self._locks.hold(id):
            volume = self._there(id)
            if volume.files is None:
                if volume.busy:
                    raise busy(id)
                record = self._record(volume.directory)
                if volume.allocated or record.base is not None:
                    raise NotAllowed(f"cannot keep files in volume {id}", why="it holds a disk", fix="take a claim that was never used")
                (volume.directory / _FILES).mkdir(mode=0o700, exist_ok=True)
                await self._write(volume.directory, msgspec.structs.replace(record, is_files=True))
            return volume.directory / _FILES

    async def grown(self, id: str, size: int) -> StoredVolume:
        """The machine that has this volume made it larger; write that down."""
        async with self._locks.hold(id):
            volume = self._there(id)
            if rounded(size) > volume.size:
                await self._write(volume.directory, msgspec.structs.replace(self._record(volume.directory), size=rounded(size)))
        return self._there(id)

    async def delete(self, id: str) -> None:
        """Remove a volume. Layers that others have below theirs go with the last of them."""
        async with self._locks.hold(id):
            if (directory := self._places.find(id)) is not None:
                try:
                    record = self._record(directory)
                except VolumeBroken as error:
                    # One of another Paddock is whole.
                    if error.fix == versions.FIX:
                        raise
                    await self._delete_damaged(id, directory)
                else:
                    # An earlier attempt may have been cancelled when it had written the record.
                    if not record.deleted and self._own(id, directory, record).busy:
                        raise busy(id)
                    await self._write(directory, msgspec.structs.replace(record, deleted=True))
        await self._sweep()

    async def _delete_damaged(self, id: str, directory: Path) -> None:
        """Remove a volume whose record cannot be read. Called while that is being handled; raises it if others may need a layer."""
        layers = [path for path in directory.iterdir() if path.is_file()]
        if any(self.is_held(path) or files.in_use(path) for path in layers):
            raise busy(id)
        if self._places.closed or self._users.layers(id) or self._users.has_damage(apart_from=directory / RECORD):
            raise  # noqa: PLE0704 - the error that is being handled
        await blocking(f"cannot remove volume {id}", directory.parent, files.remove, directory)
        self._users.forget(id)

    # --- snapshots --------------------------------------------------------------------------------------------------------

    async def snapshot(self, id: str, snapshot: str) -> None:
        """Freeze what a volume at rest holds."""
        if self.get_snapshot(snapshot) is None:
            volume = self._there(id)
            if volume.busy and not self._has_next(volume, snapshot):
                raise busy(id)
            await self.next_layer(id, snapshot)
            await self.frozen(id, snapshot)

    async def next_layer(self, id: str, snapshot: str) -> DiskLayer:
        """The layer in which a volume goes on so that what is below it is the snapshot. A machine that runs is to go on in it now.

        Repeated, the same layer. Between this and `frozen` there is no snapshot yet.
        """
        async with self._locks.hold(id):
            volume, name = self._there(id), chains.next_name(snapshot)
            if volume.files is not None:
                raise NotAllowed(f"cannot take a snapshot of volume {id}", why="it holds files, and no disk")
            record = self._record(volume.directory)
            async with self._locks.hold(namedlocks.of_snapshot(snapshot)):
                held = records.read_snapshot(self._places.snapshot(snapshot))
                if held is not None and (not held.pending or chains.is_covered(record, held.layer)):
                    return volume.layer
                # First: from here on nothing merges the new layer into the one below, whoever ends in between.
                below = chains.below(id, record, snapshot)
                await self._write_snapshot(snapshot, SnapshotRecord(id, below, volume.size, pending=True))
            if not chains.is_covered(record, below):
                await self._cover(volume, record, name)
        return self._there(id).layer

    async def _cover(self, volume: StoredVolume, record: VolumeRecord, name: str) -> None:
        path, fresh = volume.directory / name, volume.directory / f".{name}"
        if name in record.files:
            raise NotAllowed(f"cannot make a layer of volume {volume.id}", why=f"{name} holds another layer", fix="take another snapshot")
        await blocking("cannot make a layer", fresh.parent, files.make_layer, fresh, volume.layer, volume.size)
        await blocking("cannot make a layer", fresh.parent, os.replace, fresh, path)
        await self._write(volume.directory, msgspec.structs.replace(record, layers=(*record.layers, LayerFile(name, "qcow2"))))

    async def frozen(self, id: str, snapshot: str) -> None:
        """The volume has gone on in the layer that `next_layer` gave: what lies below it is the snapshot from now on."""
        if self.get_snapshot(snapshot) is not None:
            return
        async with self._locks.hold(id), self._locks.hold(namedlocks.of_snapshot(snapshot)):
            volume = self._there(id)
            held = records.read_snapshot(self._places.snapshot(snapshot))
            if held is None or not chains.is_covered(self._record(volume.directory), held.layer):
                raise VolumeMissing(f"volume {id} has not gone on for snapshot {snapshot}")
            await self._write_snapshot(snapshot, SnapshotRecord(id, held.layer, volume.size))

    async def restore(self, snapshot: str, id: str, size: int, *, pool: str = "") -> StoredVolume:
        """A volume that begins with what a snapshot holds."""
        async with self._locks.hold(id):
            if (found := self.get(id)) is not None:
                return found
            held = self.get_snapshot(snapshot)
            if held is None:
                raise VolumeMissing(f"there is no snapshot {snapshot}")
            if held.size > size:
                raise too_small(held.size, size)
            async with self._making(id, pool, f"cannot restore snapshot {snapshot}") as fresh:
                await blocking("cannot make a layer", fresh, files.make_layer, fresh / _DISK, held.layer, rounded(size))
                if (frozen := records.read_snapshot(self._places.snapshot(snapshot))) is None:
                    raise VolumeMissing(f"snapshot {snapshot} was deleted while it was restored")
                # From here on the volume itself keeps the layer, also when the snapshot goes.
                record = VolumeRecord(rounded(size), (LayerFile(_DISK, "qcow2"),), FrozenBase(frozen.volume, frozen.layer))
                await self._publish(id, fresh, record)
        return self._there(id)

    async def delete_snapshot(self, snapshot: str) -> None:
        """Remove a snapshot. What it froze is merged into what lies above it when the volume is at rest (`collapse`)."""
        async with self._locks.hold(namedlocks.of_snapshot(snapshot)):
            record, path = None, self._places.snapshot(snapshot)
            # Whoever deletes it needs no record of it.
            with contextlib.suppress(VolumeBroken):
                record = records.read_snapshot(path)
            await blocking("cannot remove a snapshot", self._places.snapshots, files.remove, path)
            self._users.forget_snapshot(snapshot)
        if record is not None:
            with contextlib.suppress(VolumeBusy, VolumeMissing, VolumeBroken):
                await self.collapse(record.volume)
        await self._sweep()

    async def collapse(self, id: str) -> None:
        """Merge layers of a volume at rest that nothing else needs."""
        async with self._locks.hold(id):
            await self._prune(id)
            while await self._merge(id):
                pass
            merged = self._record(self._there(id).directory)
        # A list: whoever cannot be corrected keeps no other from it.
        if all([await self._is_corrected(each) for each in (id, *self._users.volumes(id))]):
            await self._remove_merged(id, merged)

    async def _is_corrected(self, id: str) -> bool:
        """Correct the headers of a volume. One that is being copied, changed or kept as it is keeps its old names until the next merge."""
        if id in self._locks:
            return False
        async with self._locks.hold(id):
            return await headers.correct(self._places, id, self.is_held)

    async def _remove_merged(self, id: str, corrected: VolumeRecord) -> None:
        """Remove what a merge left, last: whenever this ends early, each header names a file that is there, and the next time goes on from
        there. Who merged more meanwhile corrects the headers for that."""
        async with self._locks.hold(id):
            directory = self._there(id).directory
            if self._record(directory) == corrected:
                await blocking("cannot remove a merged layer", directory, files.remove_others, directory, corrected.files)

    async def _merge(self, id: str) -> bool:
        """Merge two layers; False when each of them is needed."""
        volume = self._there(id)
        record = self._record(volume.directory)
        # A volume in a pool that is not mounted may have any of them below its own.
        place = chains.superfluous(record, self._users.layers(id)) if self.is_whole else None
        if place is None:
            return False
        if volume.busy:
            raise busy(id)
        below, above = record.layers[place : place + 2]
        (volume.directory / below.path).chmod(0o600)
        await qemuimg.commit(chains.layer_of(self._places, volume.directory, record, above))
        # All of it is in the lower file now, and until the record is written the upper one says the same.
        merged = LayerFile(above.name, below.format, below.path)
        layers = (*record.layers[:place], merged, *record.layers[place + 2 :])
        await self._write(volume.directory, msgspec.structs.replace(record, layers=layers))
        return True

    # --- exporting --------------------------------------------------------------------------------------------------------

    async def export(self, id: str, format: str) -> AsyncIterator[bytes]:
        """Yield the content of a volume at rest, flat: raw, gzip (of raw) or qcow2; files as tar.gz."""
        volume, scratch = self._there(id), self._places.scratch
        if volume.busy:
            raise busy(id)
        layer, files_ = volume.layer, volume.files
        async for piece in exports.archive(files_, format, scratch) if files_ else exports.stream(layer, format, scratch):
            yield piece

    async def export_snapshot(self, snapshot: str, format: str) -> AsyncIterator[bytes]:
        """Yield the content of a snapshot, flat."""
        held = self.get_snapshot(snapshot)
        if held is None:
            raise VolumeMissing(f"there is no snapshot {snapshot}")
        async for piece in exports.stream(held.layer, format, self._places.scratch):
            yield piece

    # --- inside -----------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _making(self, id: str, pool: str, what: str) -> AsyncIterator[Path]:
        """A directory to make a volume in, which is gone if it did not become one."""
        place = self._places.pool(pool)
        fresh = place / f".new-{checked(id)}"
        async with self._locks.hold("/pools"):
            await blocking(what, place, self._markers.mark, place)
        with errors.spoken(what, place):
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            # Whatever the umask: a machine's own user passes through.
            fresh.chmod(0o711)
        try:
            yield fresh
        finally:
            if self._places.find(id) is None:
                self._users.forget(id)
            await asyncio.to_thread(shutil.rmtree, fresh, True)

    async def _publish(self, id: str, fresh: Path, record: VolumeRecord) -> None:
        target = fresh.with_name(id)
        if self._users.layers(id):
            raise NotAllowed(f"cannot make volume {id}", why="others have layers of a deleted volume of this id below theirs")

        self._users.put(target, record)
        # The header was copied, or what it names was merged meanwhile. From here on a merged file waits for this volume.
        await headers.correct_layer(chains.top(self._places, fresh, record))
        await blocking(f"cannot make volume {id}", fresh.parent, records.write, fresh / RECORD, record)
        await blocking(f"cannot make volume {id}", fresh.parent, files.publish, fresh, target)

    async def _write(self, directory: Path, record: VolumeRecord) -> None:
        await blocking("cannot write a volume down", directory, records.write, directory / RECORD, record)
        self._users.put(directory, record)

    async def _write_snapshot(self, id: str, record: SnapshotRecord) -> None:
        self._users.put_snapshot(id, FrozenBase(record.volume, record.layer))
        await blocking("cannot write a snapshot down", self._places.snapshots, records.write, self._places.snapshot(id), record)

    def _record(self, directory: Path) -> VolumeRecord:
        record = records.read(directory / RECORD)
        if record is None:
            raise VolumeMissing(f"volume {directory.name} has gone")
        return record

    def _there(self, id: str) -> StoredVolume:
        volume = self.get(id)
        if volume is None:
            raise VolumeMissing(f"there is no volume {id}", fix="make it first")
        return volume

    def _has_next(self, volume: StoredVolume, snapshot: str) -> bool:
        return any(each.name == chains.next_name(snapshot) for each in self._record(volume.directory).layers)

    async def _sweep(self) -> None:
        """Remove deleted volumes that nothing needs. Each may have held another, so again until nothing goes."""
        # No volume has this id.
        async with self._locks.hold("/sweep"):
            while self.is_whole and (directory := self._users.unneeded()) is not None:
                async with self._locks.hold(directory.name):
                    if self._users.is_unneeded(directory.name):
                        await blocking(f"cannot remove volume {directory.name}", directory.parent, files.remove, directory)
                        self._users.forget(directory.name)

    async def _can_share(self, directory: Path) -> bool:
        pool = directory.parent
        if pool not in self._shares:
            self._shares[pool] = await blocking("cannot use the directory of volumes", pool, files.can_share, directory)
        return self._shares[pool]

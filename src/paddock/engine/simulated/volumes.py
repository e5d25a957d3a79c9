"""The volumes of simulated guests: their records, and no bytes."""

import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paddock.base.images.errors import ImageUnavailable
from paddock.engine.machine.config import DiskLayer
from paddock.engine.simulated import refusals
from paddock.engine.simulated.records import Records
from paddock.engine.storage.errors import NotAllowed, VolumeMissing
from paddock.engine.storage.paths import checked
from paddock.engine.storage.volume import BaseImage, FilesystemCapacity, Snapshot, StoredVolume, busy, rounded, too_small

CAPACITY = FilesystemCapacity(1 << 50, 1 << 50)


class SimulatedVolumeRecord(Struct, frozen=True):
    """A volume, as it is kept over restarts."""

    size: int
    layer: DiskLayer
    directory: Path
    image: str = ""
    is_files: bool = False


class SimulatedVolume(StoredVolume, frozen=True):
    """A volume as it is now. Machines say who uses it; there is no file that could be open."""

    in_use: bool = False

    @property
    def busy(self) -> bool:
        """True when a machine has it."""
        return self.in_use

    @property
    def is_behind(self) -> bool:
        """False: a machine goes on in a new layer at once."""
        return False


class SimulatedVolumes:
    """The calls of the engine's volumes."""

    def __init__(self, root: Path, pools: dict[str, Path], records: Records) -> None:
        self._root = root
        self._pools = pools
        self._table = records.table("volumes", SimulatedVolumeRecord)
        self._snapshot_table = records.table("snapshots", Snapshot)
        self._volumes = dict(self._table)
        self._snapshots = dict(self._snapshot_table)
        # what a guest sees of layers that end with their machine
        self._scratch_sizes: dict[Path, int] = {}
        # whether a machine has a disk in a directory, and whether a suspended one goes on with a layer; set by the engine
        self.uses: Callable[[Path], bool] = lambda directory: False
        self.is_held: Callable[[Path], bool] = lambda layer: False
        # why nothing is imported into the volume with an id; set by whoever knows the annotations of claims
        self.import_failure: Callable[[str], str] = lambda id: ""

    def prepare(self) -> None:
        """Make the directory of files that end with their machine."""
        (self._root / "scratch").mkdir(mode=0o711, parents=True, exist_ok=True)

    # --- looking ----------------------------------------------------------------------------------------------------------

    def get(self, id: str) -> StoredVolume | None:
        """A volume, if it is there."""
        record = self._volumes.get(id)
        if record is None:
            return None
        files = record.directory / "files" if record.is_files else None
        held = self.is_held(record.layer.path)
        in_use = files is None and self.uses(record.directory)
        return SimulatedVolume(id, record.layer, record.size, 0, record.directory, record.image, files, held, in_use=in_use)

    def get_snapshot(self, id: str) -> Snapshot | None:
        """A snapshot, if it is there."""
        return self._snapshots.get(id)

    @property
    def is_whole(self) -> bool:
        """True: all records can be read."""
        return True

    def ids(self) -> set[str]:
        """Return the ids of all volumes."""
        return set(self._volumes)

    def capacity(self, pool: str = "") -> FilesystemCapacity:
        """Return the capacity of a pool: more than anybody asks for."""
        self._pool(pool)
        return CAPACITY

    def place(self, id: str, pool: str = "") -> Path:
        """Return the directory that a volume would have."""
        record = self._volumes.get(id)
        return record.directory if record is not None else self._pool(pool) / checked(id)

    def spool(self, id: str) -> Path:
        """Return the place of a file while it arrives."""
        return self._root / "scratch" / f".arriving-{checked(id)}"

    def size_of(self, layer: DiskLayer) -> int:
        """Return what a guest sees of a layer, in bytes."""
        known = self._volumes.get(layer.path.parent.name)
        if known is not None:
            return known.size
        if layer.path in self._scratch_sizes:
            return self._scratch_sizes[layer.path]
        return layer.path.stat().st_size if layer.path.is_file() else 1 << 20

    # --- making -----------------------------------------------------------------------------------------------------------

    async def create(self, id: str, size: int, *, base: BaseImage | None = None, preallocate: bool = False, pool: str = "") -> StoredVolume:
        """A blank volume, or one that begins with an image. One that is there already is left as it is."""
        if base is not None and base.virtual_size > size:
            raise too_small(base.virtual_size, size)
        if base is not None and (why := self.import_failure(id)):
            raise ImageUnavailable("Unreachable", "cannot import the image", why=why)
        return self._make(id, size, pool, image=base.digest if base is not None else "")

    async def create_files(self, id: str, size: int, fill: Callable[[Path], None], pool: str = "") -> StoredVolume:
        """A volume of files, none of which is there: nothing is unpacked."""
        return self._make(id, size, pool, is_files=True)

    async def clone(
        self, source: str, id: str, size: int, *, tell: Callable[[int, int], None] | None = None, pool: str = ""
    ) -> StoredVolume:
        """A volume that begins with what another holds, which must be at rest."""
        from_ = self._at_rest(source)
        if from_.size > size:
            raise too_small(from_.size, size)
        return self._make(id, size, pool, image=from_.image, is_files=from_.files is not None)

    async def restore(self, snapshot: str, id: str, size: int, *, pool: str = "") -> StoredVolume:
        """A volume that begins with what a snapshot holds."""
        held = self._snapshots.get(snapshot)
        if held is None:
            raise VolumeMissing(f"there is no snapshot {snapshot}")
        if held.size > size:
            raise too_small(held.size, size)
        return self._make(id, size, pool)

    async def revert(self, id: str, snapshot: str, size: int, mark: str) -> StoredVolume:
        """Replace what a volume at rest holds by what a snapshot holds."""
        held = self._snapshots.get(snapshot)
        if held is None:
            raise VolumeMissing(f"there is no snapshot {snapshot}")
        found = self._at_rest(id)
        layer = DiskLayer(found.directory / f"reverted-{checked(mark)}.qcow2", "qcow2", DiskLayer(held.layer.path, held.layer.format))
        self._put(id, replace(self._volumes[id], layer=layer, size=max(rounded(size), held.size)))
        return self._there(id)

    # --- changing ---------------------------------------------------------------------------------------------------------

    async def grow(self, id: str, size: int) -> StoredVolume:
        """Make a volume at rest larger; a smaller size changes nothing."""
        if rounded(size) > self._there(id).size:
            self._at_rest(id)
        return await self.grown(id, size)

    async def grown(self, id: str, size: int) -> StoredVolume:
        """The machine that has this volume made it larger; write that down."""
        if rounded(size) > self._there(id).size:
            self._put(id, replace(self._volumes[id], size=rounded(size)))
        return self._there(id)

    async def as_files(self, id: str) -> Path:
        """The directory of a volume that holds files. One whose disk was never written becomes such a volume."""
        found = self._there(id)
        if found.files is None:
            if found.image:
                raise NotAllowed(f"cannot keep files in volume {id}", why="it holds a disk", fix="take a claim that was never used")
            self._at_rest(id)
            self._put(id, replace(self._volumes[id], is_files=True))
        return self._volumes[id].directory / "files"

    async def delete(self, id: str) -> None:
        """Remove a volume that is at rest."""
        if id in self._volumes:
            self._at_rest(id)
            del self._volumes[id]
            self._table.delete(id)

    async def collapse(self, id: str) -> None:
        """There is nothing to merge."""

    async def flatten(self, id: str) -> StoredVolume:
        """Make a volume at rest one raw disk, which several machines may write at the same time."""
        if self._there(id).layer.format != "raw":
            self._at_rest(id)
            record = self._volumes[id]
            self._put(id, replace(record, layer=DiskLayer(record.directory / "flat.img", "raw")))
        return self._there(id)

    async def vacate(self, id: str, size: int, *, content: DiskLayer | None = None) -> StoredVolume:
        """Make a volume at rest a blank raw disk, which a disk of `size` bytes is to move into."""
        volume = self._at_rest(id)
        if size > volume.size:
            raise too_small(size, volume.size)
        record = self._volumes[id]
        self._put(id, replace(record, image="", layer=DiskLayer(record.directory / "moved.img", "raw")))
        return self._there(id)

    @contextlib.asynccontextmanager
    async def opening(self, layer: DiskLayer | None) -> AsyncIterator[None]:
        """Do nothing: nothing is merged."""
        yield

    def is_unwritten(self, layer: DiskLayer) -> bool:
        """False: nobody knows what a simulated guest would have written."""
        return False

    # --- snapshots --------------------------------------------------------------------------------------------------------

    async def snapshot(self, id: str, snapshot: str) -> None:
        """Freeze what a volume at rest holds."""
        if snapshot not in self._snapshots:
            self._at_rest(id)
            await self.frozen(id, snapshot)

    async def next_layer(self, id: str, snapshot: str) -> DiskLayer:
        """The layer in which a volume goes on so that what is below it is the snapshot."""
        found = self._there(id)
        if found.files is not None:
            raise NotAllowed(f"cannot take a snapshot of volume {id}", why="it holds files, and no disk")
        path = found.directory / f"after-{snapshot}.qcow2"
        if found.layer.path != path:
            # The layers below are not named: nothing is in them, and there may be many.
            self._put(id, replace(self._volumes[id], layer=DiskLayer(path, "qcow2", DiskLayer(found.layer.path, found.layer.format))))
        return self._volumes[id].layer

    async def frozen(self, id: str, snapshot: str) -> None:
        """The volume has gone on: what lies below is the snapshot from now on."""
        if snapshot not in self._snapshots:
            found = self._there(id)
            if found.files is not None:
                raise NotAllowed(f"cannot take a snapshot of volume {id}", why="it holds files, and no disk")
            held = self._snapshots[snapshot] = Snapshot(snapshot, id, found.size, found.layer.backing or found.layer)
            self._snapshot_table.put(snapshot, held)

    async def delete_snapshot(self, snapshot: str) -> None:
        """Remove a snapshot; its volume stays as it is."""
        if self._snapshots.pop(snapshot, None) is not None:
            self._snapshot_table.delete(snapshot)

    # --- exporting --------------------------------------------------------------------------------------------------------

    async def export(self, id: str, format: str) -> AsyncIterator[bytes]:
        """Refuse: there are no bytes."""
        self._at_rest(id)
        async for piece in _refused(refusals.volume(f"cannot export volume {id}")):
            yield piece

    async def export_snapshot(self, snapshot: str, format: str) -> AsyncIterator[bytes]:
        """Refuse: there are no bytes."""
        async for piece in _refused(refusals.volume(f"cannot export snapshot {snapshot}")):
            yield piece

    # --- what ends with a machine -----------------------------------------------------------------------------------------

    def scratch(self, machine: str, name: str) -> Path:
        """Return the place of a disk that ends with a machine."""
        directory = self._root / "scratch" / checked(machine)
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{checked(name)}.img"

    def scratch_owners(self) -> set[str]:
        """Machines that have something that ends with them."""
        return {each.name for each in (self._root / "scratch").iterdir() if not each.name.startswith(".")}

    async def drop_scratch(self, machine: str) -> None:
        """Remove everything that ends with a machine."""
        directory = self._root / "scratch" / checked(machine)
        for path in [path for path in self._scratch_sizes if path.parent == directory]:
            del self._scratch_sizes[path]
        shutil.rmtree(directory, ignore_errors=True)

    async def overlay(self, path: Path, below: DiskLayer, size: int) -> DiskLayer:
        """An empty layer over others."""
        self._scratch_sizes.setdefault(path, rounded(size))
        return DiskLayer(path, "qcow2", below)

    async def blank(self, path: Path, size: int) -> DiskLayer:
        """Return an empty disk of a size."""
        self._scratch_sizes.setdefault(path, rounded(size))
        return DiskLayer(path, "raw")

    # --- records ----------------------------------------------------------------------------------------------------------

    def _make(self, id: str, size: int, pool: str, *, image: str = "", is_files: bool = False) -> StoredVolume:
        if id not in self._volumes:
            directory = self._pool(pool) / checked(id)
            layer = DiskLayer(directory / "disk.img", "qcow2" if image else "raw")
            self._put(id, SimulatedVolumeRecord(rounded(size), layer, directory, image, is_files))
        return self._there(id)

    def _put(self, id: str, record: SimulatedVolumeRecord) -> None:
        self._volumes[id] = record
        self._table.put(id, record)

    def _there(self, id: str) -> StoredVolume:
        found = self.get(id)
        if found is None:
            raise VolumeMissing(f"there is no volume {id}")
        return found

    def _at_rest(self, id: str) -> StoredVolume:
        found = self._there(id)
        if found.busy:
            raise busy(id)
        return found

    def _pool(self, pool: str) -> Path:
        if pool and pool not in self._pools:
            names = ", ".join(sorted(self._pools)) or "none"
            raise NotAllowed(f"there is no pool {pool}", why=f"this server has: {names}", fix="start it with --pool")
        return self._pools[pool] if pool else self._root / "volumes"


async def _refused(error: NotAllowed, pieces: Sequence[bytes] = ()) -> AsyncIterator[bytes]:
    """No pieces, and then the reason."""
    for piece in pieces:
        yield piece
    raise error

"""Volumes and images in memory, with the contracts of `paddock.engine.storage` and `paddock.base.images` and no files.

images = FakeImages()
images.offer("http://host/a.img", virtual_size=1 << 30)      # what is there; anything else fails like a server that says 404
images.script("http://host/a.img", [error, None])            # what each fetch ends with: an error is raised, None is success
images.hold("http://host/a.img")                             # fetches stay at a fraction until `release`
volumes = FakeVolumes()
volumes.open.add("uid")                                      # a machine has it open
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from paddock.base.images.errors import ImageRefused
from paddock.base.images.job import too_large
from paddock.base.images.progress import Progress
from paddock.base.images.sources import Http, RegistryImage, Source, Upload
from paddock.engine.machine.config import DiskLayer, Format
from paddock.engine.storage.errors import VolumeBroken, VolumeMissing
from paddock.engine.storage.volume import BaseImage, FilesystemCapacity, Snapshot, StoredVolume, busy, too_small


@dataclass(frozen=True)
class FakeImage:
    """An image of the library."""

    digest: str
    path: Path
    format: Format = "qcow2"
    virtual_size: int = 1 << 20


class FakeImages:
    """A library that knows what it was offered. `fetched` counts downloads by address; who asks meanwhile shares one."""

    def __init__(self) -> None:
        self.fetched: Counter[str] = Counter()
        self.sources: list[Source] = []
        self.uploads: list[bytes] = []
        # what registries say of their tags
        self.digests: dict[str, str] = {}
        self._offers: dict[str, FakeImage] = {}
        self._scripts: dict[str, list[BaseException | None]] = {}
        self._held: dict[str, asyncio.Event] = {}
        self._fractions: dict[str, list[float]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def offer(self, address: str, virtual_size: int = 1 << 20) -> FakeImage:
        """There is an image at this address."""
        digest = f"sha256:{address}"
        self._offers[address] = FakeImage(digest, Path(f"/images/{len(self._offers)}"), virtual_size=virtual_size)
        return self._offers[address]

    def script(self, address: str, ends: list[BaseException | None]) -> None:
        """Set the ends of the next fetches, in order; afterwards they succeed."""
        self._scripts[address] = list(ends)

    def hold(self, address: str, *fractions: float) -> None:
        """Fetches tell these fractions, a second apart, and then wait for `release`."""
        self._held[address] = asyncio.Event()
        self._fractions[address] = list(fractions)

    def release(self, address: str) -> None:
        """Held fetches go on."""
        self._held.pop(address).set()

    async def resolve(self, source: RegistryImage, *, owner: str = "") -> str:
        if source.reference not in self.digests:
            raise ImageRefused("NotFound", f"{source.reference} is not there")
        return self.digests[source.reference]

    async def fetch(
        self, source: Source, tell: Callable[[Progress], None] = lambda _: None, *, limit: int | None = None, owner: str = ""
    ) -> FakeImage:
        self.sources.append(source)
        if isinstance(source, Upload):
            return await self._receive(source, limit)
        address = source.url if isinstance(source, Http) else source.reference if isinstance(source, RegistryImage) else str(source.path)
        task = self._running.get(address)
        if task is None:
            task = self._running[address] = asyncio.create_task(self._download(address, tell))
            task.add_done_callback(lambda _: self._running.pop(address, None))
        await asyncio.shield(task)
        image = self._offers[address]
        if limit is not None and image.virtual_size > limit:
            raise too_large(image.virtual_size, limit)
        return image

    async def _download(self, address: str, tell: Callable[[Progress], None]) -> None:
        self.fetched[address] += 1
        if address not in self._offers:
            raise ImageRefused("NotFound", f"{address} is not there", why="the server said 404")
        for fraction in self._fractions.pop(address, []):
            tell(Progress("downloading", fraction))
            await asyncio.sleep(1)
        if address in self._held:
            await self._held[address].wait()
        ends = self._scripts.get(address)
        end = ends.pop(0) if ends else None
        if end is not None:
            raise end

    async def _receive(self, source: Upload, limit: int | None) -> FakeImage:
        content = b"".join([piece async for piece in source.chunks])
        if content.startswith(b"bad"):
            raise ImageRefused("Unsafe", "the image names other files")
        self.uploads.append(content)
        return FakeImage(f"sha256:upload-{len(self.uploads)}", Path("/images/upload"), virtual_size=len(content))


class FakeVolumes:
    """Volumes by id. `content` says what each began with."""

    def __init__(self) -> None:
        self.volumes: dict[str, StoredVolume] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.content: dict[str, str] = {}
        self.open: set[str] = set()
        self.failures: list[BaseException] = []
        self.preallocated: set[str] = set()
        self.collapsed: list[str] = []
        # layers that a guest has written to
        self.written: set[Path] = set()
        # volumes and snapshots whose records cannot be read
        self.damaged: set[str] = set()

    def get(self, id: str) -> StoredVolume | None:
        self._check(id, "the claim")
        return self.volumes.get(id)

    def get_snapshot(self, id: str) -> Snapshot | None:
        self._check(id, "the snapshot")
        return self.snapshots.get(id)

    def _check(self, id: str, what: str) -> None:
        if id in self.damaged:
            raise VolumeBroken(f"cannot read {id}.json", why="it is damaged", fix=f"restore the file from a backup, or delete {what}")

    @contextlib.asynccontextmanager
    async def opening(self, layer: DiskLayer | None) -> AsyncIterator[None]:
        yield

    def is_unwritten(self, layer: DiskLayer) -> bool:
        return layer.path not in self.written

    def capacity(self, pool: str = "") -> FilesystemCapacity:
        return FilesystemCapacity(1 << 40, 1 << 39)

    def place(self, id: str, pool: str = "") -> Path:
        return Path("/volumes") / pool / id

    def spool(self, id: str) -> Path:
        return Path("/dev/null")

    async def create(self, id: str, size: int, *, base: BaseImage | None = None, preallocate: bool = False, pool: str = "") -> StoredVolume:
        if base is not None and base.virtual_size > size:
            raise too_small(base.virtual_size, size)
        if preallocate:
            self.preallocated.add(id)
        return self._make(id, size, base.digest if base is not None else "blank")

    async def create_files(self, id: str, size: int, fill: Callable[[Path], None], pool: str = "") -> StoredVolume:
        return self._make(id, size, "files")

    async def clone(
        self, source: str, id: str, size: int, *, tell: Callable[[int, int], None] | None = None, pool: str = ""
    ) -> StoredVolume:
        self._at_rest(source)
        if self._there(source).size > size:
            raise too_small(self._there(source).size, size)
        if tell is not None:
            tell(1, 2)
        return self._make(id, size, f"copy of {source}")

    async def restore(self, snapshot: str, id: str, size: int, *, pool: str = "") -> StoredVolume:
        if snapshot not in self.snapshots:
            raise VolumeMissing(f"there is no snapshot {snapshot}")
        return self._make(id, size, f"snapshot {snapshot}")

    async def revert(self, id: str, snapshot: str, size: int, mark: str) -> StoredVolume:
        path = self._there(id).directory / f"reverted-{mark}.img"
        if snapshot not in self.snapshots:
            raise VolumeMissing(f"there is no snapshot {snapshot}")
        self._at_rest(id)
        if self.failures:
            raise self.failures.pop(0)
        layer = DiskLayer(path, "qcow2", self.snapshots[snapshot].layer)
        self.volumes[id] = replace(self._there(id), layer=layer, size=max(size, self.snapshots[snapshot].size))
        self.content[id] = f"snapshot {snapshot}"
        return self.volumes[id]

    @property
    def is_whole(self) -> bool:
        return not self.damaged

    async def grow(self, id: str, size: int) -> StoredVolume:
        if size > self._there(id).size:
            self._at_rest(id)
            await self.grown(id, size)
        return self._there(id)

    async def grown(self, id: str, size: int) -> StoredVolume:
        self.volumes[id] = replace(self._there(id), size=max(size, self._there(id).size))
        return self.volumes[id]

    async def delete(self, id: str) -> None:
        self._at_rest(id)
        self.volumes.pop(id, None)

    async def collapse(self, id: str) -> None:
        self._at_rest(id)
        self.collapsed.append(id)

    async def flatten(self, id: str) -> StoredVolume:
        if self._there(id).layer.format != "raw":
            self._at_rest(id)
            self.volumes[id] = replace(self._there(id), layer=DiskLayer(self._there(id).directory / "flat.img", "raw"))
        return self.volumes[id]

    async def vacate(self, id: str, size: int, *, content: DiskLayer | None = None) -> StoredVolume:
        self._at_rest(id)
        self.volumes[id] = replace(self._there(id), layer=DiskLayer(self._there(id).directory / "moved.img", "raw"))
        self.content[id] = "blank"
        return self.volumes[id]

    async def snapshot(self, id: str, snapshot: str) -> None:
        self._at_rest(id)
        volume = self._there(id)
        self.snapshots.setdefault(snapshot, Snapshot(snapshot, id, volume.size, volume.layer))

    async def next_layer(self, id: str, snapshot: str) -> DiskLayer:
        volume = self._there(id)
        path = volume.directory / f"after-{snapshot}.img"
        if volume.layer.path != path:
            self.volumes[id] = replace(volume, layer=DiskLayer(path, "qcow2", volume.layer))
        return self.volumes[id].layer

    async def frozen(self, id: str, snapshot: str) -> None:
        volume = self._there(id)
        below = volume.layer.backing or volume.layer
        self.snapshots.setdefault(snapshot, Snapshot(snapshot, id, volume.size, below))

    async def delete_snapshot(self, snapshot: str) -> None:
        self.snapshots.pop(snapshot, None)

    def scratch(self, machine: str, name: str) -> Path:
        return Path("/scratch") / machine / f"{name}.img"

    async def overlay(self, path: Path, below: DiskLayer, size: int) -> DiskLayer:
        return DiskLayer(path, "qcow2", below)

    async def blank(self, path: Path, size: int) -> DiskLayer:
        return DiskLayer(path, "raw")

    async def drop_scratch(self, machine: str) -> None:
        return

    async def export(self, id: str, format: str) -> AsyncIterator[bytes]:
        self._at_rest(id)
        yield f"{format} of {id}".encode()

    async def export_snapshot(self, snapshot: str, format: str) -> AsyncIterator[bytes]:
        if snapshot not in self.snapshots:
            raise VolumeMissing(f"there is no snapshot {snapshot}")
        yield f"{format} of snapshot {snapshot}".encode()

    def _make(self, id: str, size: int, content: str) -> StoredVolume:
        if self.failures:
            raise self.failures.pop(0)
        if id not in self.volumes:
            directory = Path("/volumes") / id
            self.volumes[id] = StoredVolume(id, DiskLayer(directory / "disk.img", "raw"), size, 0, directory)
            self.content[id] = content
        return self.volumes[id]

    def _there(self, id: str) -> StoredVolume:
        if id not in self.volumes:
            raise VolumeMissing(f"there is no volume {id}")
        return self.volumes[id]

    def _at_rest(self, id: str) -> None:
        if id in self.open:
            raise busy(id)

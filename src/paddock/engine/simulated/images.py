"""The image library of simulated guests: nothing is downloaded. Every image is there, and as large as its volume allows."""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from paddock.base.images.errors import ImageRefused
from paddock.base.images.job import too_large
from paddock.base.images.progress import Progress
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import Http, RegistryImage, Source, Upload
from paddock.base.images.store import Image, ImageRecord
from paddock.engine.simulated import refusals

# the size of a cloud image, where the volume has room for it
SIZE = 2 << 30
# seconds that an import takes
IMPORT_SECONDS = 0.005
_QCOW2 = b"QFI\xfb"
_HEAD = 32


class SimulatedImages:
    """The calls of the engine's library."""

    def __init__(self, root: Path, settings: ImageSettings) -> None:
        self.settings = settings
        self._root = root

    def get(self, digest: str) -> Image | None:
        """None: no image is kept."""
        return None

    def __iter__(self) -> Iterator[Image]:
        return iter(())

    def records(self) -> list[ImageRecord]:
        """Return no images: none is kept."""
        return []

    async def collect(self, used: Collection[str], keep_seconds: float) -> list[str]:
        """Do nothing: no image is kept."""
        return []

    def remove(self, digest: str) -> bool:
        """Do nothing: no image is kept."""
        return False

    def name(self, name: str, image: Image) -> None:
        """Refuse: no image is kept that could have a name."""
        raise _refused(f"cannot give an image the name {name}")

    def named(self, name: str) -> Image | None:
        """None: no image is kept."""
        return None

    async def fetch(
        self, source: Source, tell: Callable[[Progress], None] = lambda _: None, *, limit: int | None = None, owner: str = ""
    ) -> Image:
        """The image of a source. An upload is read to its end, and is as large as it says."""
        if isinstance(source, Upload):
            size = await _received(source)
            if limit is not None and size > limit:
                raise too_large(size, limit)
        else:
            tell(Progress("downloading", 0.0))
            await asyncio.sleep(IMPORT_SECONDS)
            size = min(SIZE, limit or SIZE)
        tell(Progress("done", 1.0))
        return self._image(_name(source), size)

    async def fetch_files(
        self, source: RegistryImage, paths: tuple[str, ...], tell: Callable[[Progress], None] = lambda _: None, *, owner: str = ""
    ) -> list[Image]:
        """Files of a container image: a kernel, an initial file system."""
        await asyncio.sleep(IMPORT_SECONDS)
        return [self._image(f"{source.reference}\0{path}", 1 << 20) for path in paths]

    async def resolve(self, source: RegistryImage, *, owner: str = "") -> str:
        """The digest that a reference names: always the same."""
        return f"sha256:{_digest(source.reference)}"

    async def push(self, image: Image, target: RegistryImage, tell: Callable[[Progress], None] = lambda _: None) -> str:
        """Refuse: there is nothing to upload."""
        raise _refused(f"cannot push an image to {target.reference}")

    async def close(self) -> None:
        """Do nothing: no import is under way for long."""

    def _image(self, name: str, size: int) -> Image:
        digest = _digest(name)
        return Image(digest, self._root / digest, "qcow2", size, 0)


def _refused(what: str) -> ImageRefused:
    return ImageRefused("Refused", what, why="guests are simulated, and no image is kept", fix=refusals.FIX)


def _name(source: Source) -> str:
    if isinstance(source, Http):
        return source.name
    if isinstance(source, RegistryImage):
        return f"{source.reference}\0{source.path}"
    return "upload" if isinstance(source, Upload) else str(source.path)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


async def _received(source: Upload) -> int:
    """Read an upload; return the size of its disk, which a qcow2 file names in its header."""
    head, count = b"", 0
    async for chunk in source.chunks:
        head = (head + chunk[:_HEAD])[:_HEAD]
        count += len(chunk)
    if not count:
        raise ImageRefused("Unsupported", "the upload is empty", fix="send the bytes of a disk image")
    if head.startswith(_QCOW2) and len(head) == _HEAD:
        return int.from_bytes(head[24:32], "big")
    return count

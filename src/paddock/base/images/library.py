"""The library: who asks for a source gets an image, and a source that many ask for is fetched once.

A source that did not change is not fetched again: the server is asked, with the asker's own credentials, whether it still has the version
that is known here, so that nobody gets what he may not have. A source that changed is a new image; the old one stays until
nobody uses it. All work is done in threads; cancelling the last asker ends it, and what was downloaded by then is kept for the next.
"""

import asyncio
import importlib
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from paddock.base.fairslots import FairSlots
from paddock.base.images.errors import ImageError
from paddock.base.images.job import ImportJob, Tell, too_large
from paddock.base.images.progress import Meter, Progress
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import RegistryImage, Source, Upload, library_url
from paddock.base.images.store import Image, ImageRecord, ImageStore

if TYPE_CHECKING:
    from paddock.base.images.importer import Importer

T = TypeVar("T")

__all__ = ["Image", "ImageError", "ImageLibrary", "ImageRecord", "ImageSettings", "Progress"]


class SharedImport(NamedTuple):
    """An import that several may wait for, and the image that comes of it."""

    job: ImportJob
    image: "asyncio.Future[Image]"


class ImageLibrary:
    """All images below one directory."""

    def __init__(self, root: Path, settings: ImageSettings = ImageSettings()) -> None:  # noqa: B008 - frozen
        self.settings = settings
        self._store = ImageStore(root)
        self._store.prepare()
        self._jobs: dict[Source, SharedImport] = {}
        # whatever has a thread, or waits for one
        self._running: set[ImportJob] = set()
        self._turns = FairSlots(settings.workers)
        self._pool: ThreadPoolExecutor | None = None
        self._importer_made: Importer | None = None

    # --- what there is ----------------------------------------------------------------------------------------------------

    def get(self, digest: str) -> Image | None:
        """The image of this digest, with or without `sha256:` before it."""
        return self._store.get(digest.removeprefix("sha256:"))

    def __iter__(self) -> Iterator[Image]:
        return iter(self._store)

    def records(self) -> list[ImageRecord]:
        """All images with their sources and times."""
        return self._store.records()

    async def collect(self, used: Collection[str], keep_seconds: float) -> list[str]:
        """Remove images that are not among `used` and that nobody asked for in this time; returns their digests."""
        plain = {digest.removeprefix("sha256:") for digest in used}
        return await asyncio.to_thread(self._store.collect, plain, keep_seconds)

    def remove(self, digest: str) -> bool:
        """Remove an image that the caller knows to be unused; whether it was here."""
        return self._store.remove(digest.removeprefix("sha256:"))

    def name(self, name: str, image: Image) -> None:
        """Give an image a name. Everybody who may create disks may use images that have one."""
        library_url(name)
        self._store.name(name, image.digest)

    def named(self, name: str) -> Image | None:
        """Return the image of a name, if it is here."""
        return self._store.get(self._store.named(name))

    # --- what there is to be ----------------------------------------------------------------------------------------------

    async def fetch(self, source: Source, tell: Tell = lambda _: None, *, limit: int | None = None, owner: str = "") -> Image:
        """The image of a source. Raises `ImageError`. `limit`: the largest virtual size that is of use to the asker. Imports of one
        `owner` leave slots for those of others."""
        largest = min(limit or self.settings.max_bytes, self.settings.max_bytes)
        shared = self._jobs.get(source)
        if shared is None or shared.job.stop.asked:
            shared = self._start(source, owner)
        job = shared.job
        job.listeners.append(tell)
        job.limits.append(largest)
        if job.progress != Progress():
            tell(job.progress)
        try:
            image = await asyncio.shield(shared.image)
        except asyncio.CancelledError:
            if len(job.listeners) == 1:
                job.stop.set()
            raise
        finally:
            job.listeners.remove(tell)
            job.limits.remove(largest)
        if image.virtual_size > largest:
            raise too_large(image.virtual_size, largest)
        return image

    async def fetch_files(
        self, source: RegistryImage, paths: tuple[str, ...], tell: Tell = lambda _: None, *, owner: str = ""
    ) -> list[Image]:
        """Files of a container image as they are, in the order of the paths: a kernel, an initial file system. No disk is made of them."""
        job = ImportJob(self.settings.max_bytes, owner)
        loop = asyncio.get_running_loop()

        def say(progress: Progress) -> None:
            loop.call_soon_threadsafe(tell, progress)

        return await self._in_thread(job, (await self._importer()).files, source, paths, job, Meter(say))

    async def resolve(self, source: RegistryImage, *, owner: str = "") -> str:
        """The digest that a reference names now, without pulling anything."""
        job = ImportJob(self.settings.max_bytes, owner)
        return await self._in_thread(job, (await self._importer()).digest, source, job.stop)

    async def push(self, image: Image, target: RegistryImage, tell: Tell = lambda _: None) -> str:
        """Upload an image as a container disk; returns the digest of what the reference names then."""
        job = ImportJob(self.settings.max_bytes)
        loop = asyncio.get_running_loop()

        def say(progress: Progress) -> None:
            loop.call_soon_threadsafe(tell, progress)

        return await self._in_thread(job, (await self._importer()).push, image, target, job, Meter(say))

    async def _in_thread(self, job: ImportJob, work: Callable[..., T], *arguments: object) -> T:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._turns.most, "image")
        self._running.add(job)
        try:
            async with self._turns.turn(job.owner):
                return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except asyncio.CancelledError:
            job.stop.set()
            raise
        finally:
            self._running.discard(job)

    def _start(self, source: Source, owner: str) -> SharedImport:
        job = ImportJob(self.settings.max_bytes, owner)
        loop = asyncio.get_running_loop()

        def tell(progress: Progress) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(job.tell, progress)

        meter = Meter(tell)
        image = asyncio.ensure_future(self._run(source, job, meter))
        # Nobody may be left to look at a failure.
        image.add_done_callback(lambda future: future.cancelled() or future.exception())
        shared = self._jobs[source] = SharedImport(job, image)
        return shared

    async def _run(self, source: Source, job: ImportJob, meter: Meter) -> Image:
        try:
            importer = await self._importer()
            if isinstance(source, Upload):
                return await importer.receive(source, job, meter)
            return await self._in_thread(job, importer.fetch, source, job, meter)
        finally:
            shared = self._jobs.get(source)
            if shared is not None and shared.job is job:
                del self._jobs[source]

    async def _importer(self) -> "Importer":
        """The importer. A server that imports nothing does without HTTP and TLS; loading them takes a fifth of a second, in a thread."""
        made = self._importer_made
        if made is None:
            module = await asyncio.to_thread(importlib.import_module, "paddock.base.images.importer")
            # Another import may have been quicker.
            made = self._importer_made = self._importer_made or module.Importer(self._store, self.settings)
        return made

    async def close(self) -> None:
        """End all imports; what was downloaded is kept."""
        imports = list(self._jobs.values())
        for job in (*(each.job for each in imports), *self._running):
            job.stop.set()
        await asyncio.gather(*(each.image for each in imports), return_exceptions=True)
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await asyncio.to_thread(pool.shutdown)

"""One import from its beginning to its end, in a thread: get the file, check it, and make it an image."""

import asyncio
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paddock.base.images import headers, vmdkgrains
from paddock.base.images.convert import ConversionLimits, Tool
from paddock.base.images.download import BUFFER, Download, DownloadResult, DownloadRules, Validator
from paddock.base.images.errors import ImageRefused, ImageUnavailable
from paddock.base.images.facts import ImageFacts, oversized
from paddock.base.images.formats import disk_of, stays
from paddock.base.images.http import DownloadRequest, DownloadResponse, WebClient, basic
from paddock.base.images.job import ImportJob, Task, too_large
from paddock.base.images.progress import Meter
from paddock.base.images.pull import Puller, wish
from paddock.base.images.push import push
from paddock.base.images.reachpolicy import ReachPolicy
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import File, Http, RegistryImage, Source, Upload, checksum_of, key_of, library_name, mirrored
from paddock.base.images.sparse import SparseWriter, disk_trouble
from paddock.base.images.stopflag import StopFlag
from paddock.base.images.store import Image, ImageStore, SourceRecord
from paddock.base.images.streamunpacker import StreamingUnpacker
from paddock.base.images.unpack import unpack


class Importer:
    def __init__(self, store: ImageStore, settings: ImageSettings) -> None:
        self._store = store
        self._settings = settings
        self.web = WebClient(
            ReachPolicy(settings.allow),
            connect_seconds=settings.connect_seconds,
            stall_seconds=settings.stall_seconds,
            proxies=settings.proxies,
        )
        self.rules = DownloadRules(
            attempts=settings.attempts,
            backoff=settings.backoff,
            stall_seconds=settings.stall_seconds,
            max_bytes=settings.max_bytes,
            reserve_bytes=settings.reserve_bytes,
            ranges=settings.ranges,
        )
        self._converting = threading.BoundedSemaphore(settings.converters)
        # Of their own: who unpacks what a slow server sends keeps nobody from converting.
        self._streaming = threading.BoundedSemaphore(settings.converters)
        self._puller = Puller(store, settings, self.web, self.rules)
        self._tool = Tool(user=settings.user, reserve_bytes=settings.reserve_bytes)

    def fetch(self, source: Source, job: ImportJob, meter: Meter) -> Image:
        """Get a source. Only `ImageError` leaves this."""
        task = Task(job, meter)
        with _typed_errors():
            match source:
                case Http():
                    image = self._http(source, task)
                case RegistryImage():
                    image = self._registry(source, task)
                case File():
                    image = self._file(source, task)
                case Upload():
                    raise TypeError("an upload is received, not fetched")
        meter.finish()
        return image

    # --- http -------------------------------------------------------------------------------------------------------------

    def _named(self, name: str, checksum: tuple[str, str] | None) -> Image:
        """Return what the library has under a name."""
        known = self._store.named(name)
        image = self._store.use(known) if known else None
        if image is None:
            fix = f"on the host, run `paddock image build {name}`, `paddock image pull {name}` or `paddock run {name}`"
            raise ImageRefused("NotFound", f'the library of this host has no image called "{name}"', fix=fix)
        if checksum and checksum[0] == "sha256" and checksum[1] != image.digest:
            raise ImageRefused("Checksum", f'the image "{name}" of the library has the digest {image.digest}, not {checksum[1]}')
        return image

    def _http(self, source: Http, task: Task) -> Image:
        url = source.name
        checksum = checksum_of(source.checksum)
        if name := library_name(source.url):
            return self._named(name, checksum)
        with self._store.partial(key_of(url), task.stop) as directory, self._unpacker(task) as unpacker:
            known = self._known(source, url, checksum)
            # With the checksum given, what is here is what is asked for; a public file needs nobody's leave.
            if known is not None and checksum and not known.private and not source.private and (image := self._store.use(known.digest)):
                return image

            def download(known: Validator) -> DownloadResult:
                one = Download(directory, self._opener(source, task), task.stop, task.meter, self.rules)
                return one.run(
                    checksum=checksum, known=known, inspect=lambda head, length: self._inspect(head, length, task), follower=unpacker
                )

            found = download(Validator(known.etag, known.modified) if known else Validator())
            if found.path is None and known is not None:
                if image := self._store.use(known.digest):
                    return image
                # Collected a moment ago.
                found = download(Validator())
            if found.path is None:
                raise ImageUnavailable("Unreachable", "the server says that the file is unchanged, but it was not here")
            image = self._keep(found.path, found.sha256, task, unpacker)
            text = ":".join(checksum) if checksum else ""
            entry = SourceRecord(found.sha256, found.validator.etag, found.validator.modified, text, source.private)
            self._store.remember("http", url, entry)
            self._store.finished(directory)
        return image

    def _known(self, source: Http, url: str, checksum: tuple[str, str] | None) -> SourceRecord | None:
        known = self._store.known("http", url)
        if known is None or checksum is None:
            return known
        same = known.checksum == ":".join(checksum) or checksum == ("sha256", known.digest)
        return known if same else None

    def _opener(self, source: Http, task: Task) -> Callable[..., DownloadResponse]:
        private = list(source.secret_headers)
        if source.username or source.password:
            private.append(("Authorization", basic(source.username, source.password)))
        mirror = mirrored(source.url, self._settings.url_mirrors)

        def open_(headers: dict[str, str]) -> DownloadResponse:
            if mirror:
                # The credentials, the authority and the client certificate are the origin's, and stay away from its mirror.
                return self.web.open(DownloadRequest(mirror, headers=(*source.headers, *headers.items())), task.stop)
            request = DownloadRequest(source.url, headers=(*source.headers, *headers.items()), private=tuple(private), trust=source.trust)
            return self.web.open(request, task.stop)

        return open_

    # --- registry ---------------------------------------------------------------------------------------------------------

    def _registry(self, source: RegistryImage, task: Task) -> Image:
        return self._puller.pull(source, wish(source, ()), task, lambda path, digest: self._keep(path, digest, task))[0]

    def files(self, source: RegistryImage, paths: tuple[str, ...], job: ImportJob, meter: Meter) -> list[Image]:
        """Files of a container image as they are: a kernel is no disk, and an initial file system stays packed."""

        def keep(path: Path, digest: str) -> Image:
            with self._store.work() as work:
                path.rename(work / "disk.img")
                return self._store.use(digest) or self._store.add(work, digest, "raw", inner_size(work / "disk.img"))

        task = Task(job, meter)
        with _typed_errors():
            found = self._puller.pull(source, wish(source, paths), task, keep)
        meter.finish()
        return found

    def digest(self, source: RegistryImage, stop: StopFlag) -> str:
        """Return the digest that a reference names now."""
        with _typed_errors():
            return self._puller.digest(source, stop)

    def push(self, image: Image, target: RegistryImage, job: ImportJob, meter: Meter) -> str:
        with _typed_errors():
            digest = push(image, target, self._store, self.web, (self._settings, meter, job.stop))
        meter.finish()
        return digest

    # --- files and uploads ------------------------------------------------------------------------------------------------

    def _file(self, source: File, task: Task) -> Image:
        checksum = checksum_of(source.checksum)
        try:
            handle = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise ImageRefused("NotFound", f"cannot read {source.path}", why=error.strerror or "") from error
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise ImageRefused("NotAnImage", f"{source.path} is not a regular file")
        with open(handle, "rb", buffering=0) as file, self._store.work() as work:
            text = ":".join(checksum) if checksum else ""
            version = f"{status.st_dev}.{status.st_ino}.{status.st_size}.{status.st_mtime_ns}"
            known = self._store.known("file", str(source.path))
            if known and known.etag == version and known.checksum == text and (image := self._store.use(known.digest)):
                return image
            task.meter.begin("downloading", status.st_size)
            hashes = _Hashes(checksum)
            with SparseWriter(work / "body") as target:
                buffer = bytearray(BUFFER)
                while count := file.readinto(buffer):
                    task.stop.check()
                    part = memoryview(buffer)[:count]
                    target.write(part)
                    hashes.update(part)
                    task.meter.at(target.offset)
            hashes.check()
            image = self._keep(work / "body", hashes.sha256, task)
            self._store.remember("file", str(source.path), SourceRecord(hashes.sha256, version, "", text))
            return image

    async def receive(self, source: Upload, job: ImportJob, meter: Meter) -> Image:
        """Take an upload in. A broken one leaves nothing."""
        task = Task(job, meter)
        with _typed_errors(), self._store.work() as work:
            hashes = await self._receive(source, work / "body", task)
            image = await asyncio.to_thread(self._keep, work / "body", hashes.sha256, task)
        meter.finish()
        return image

    async def _receive(self, source: Upload, path: Path, task: Task) -> "_Hashes":
        hashes = _Hashes(checksum_of(source.checksum))
        task.meter.begin("downloading", source.size)
        with SparseWriter(path) as target:

            def write(data: bytes) -> None:
                target.write(data)
                hashes.update(memoryview(data))

            parts: list[bytes] = []
            size = 0
            async for chunk in source.chunks:
                task.stop.check()
                parts.append(chunk)
                size += len(chunk)
                if size >= BUFFER:
                    await asyncio.to_thread(write, b"".join(parts))
                    task.meter.at(target.offset)
                    parts, size = [], 0
                if target.offset > self._settings.max_bytes:
                    text = f"the upload has more than {self._settings.max_bytes} bytes"
                    raise oversized(text)
            await asyncio.to_thread(write, b"".join(parts))
            if source.size is not None and target.offset != source.size:
                raise ImageUnavailable("Truncated", f"the upload ended after {target.offset} of {source.size} bytes")
        hashes.check()
        return hashes

    # --- a complete file --------------------------------------------------------------------------------------------------

    @contextmanager
    def _unpacker(self, task: Task) -> Iterator[StreamingUnpacker]:
        with self._store.work() as work, StreamingUnpacker(work / "streamed", task, self._streaming) as unpacker:
            yield unpacker

    def _keep(self, path: Path, digest: str, task: Task, unpacker: StreamingUnpacker | None = None) -> Image:
        """Make a complete file an image."""
        if image := self._store.use(digest):
            return image
        outer = unpacker.finish() if unpacker is not None else None
        with self._turn(task), self._store.work() as work:
            body = work / "body"
            # The download stays until its image is there: a second name, not a copy.
            os.link(path, body)
            if outer is not None:
                outer = outer.rename(work / "streamed")
            inner = unpack(body, task.limit, (task.meter, task.stop), outer)
            return self._make(inner, digest, work, task)

    @contextmanager
    def _turn(self, task: Task) -> Iterator[None]:
        """Wait until few others unpack or convert."""
        while not self._converting.acquire(timeout=0.1):
            task.stop.check()
        try:
            yield
        finally:
            self._converting.release()

    def _make(self, inner: Path, digest: str, work: Path, task: Task) -> Image:
        kind = disk_of(inner)
        facts = headers.inspect(inner, kind, task.stop.check)
        self._fits(facts.virtual_size, task)
        if kind != "raw" and not _is_ours(facts):
            facts = self._tool.check(inner, facts, ConversionLimits(), task.stop)
            self._fits(facts.virtual_size, task)
        disk = work / "disk.img"
        if facts.layerable:
            inner.rename(disk)
            if kind == "raw" and inner_size(disk) != facts.virtual_size:
                os.truncate(disk, facts.virtual_size)
            task.meter.begin("storing", None)
            return self._store.add(work, digest, "qcow2" if kind == "qcow2" else "raw", facts.virtual_size)
        if _is_ours(facts):
            vmdkgrains.unpack(inner, disk, self._settings.reserve_bytes, (task.meter, task.stop))
        else:
            self._tool.to_raw(inner, facts, disk, (task.meter, task.stop))
        if facts.virtual_size % 512:
            os.truncate(disk, -(-facts.virtual_size // 512) * 512)
        task.meter.begin("storing", None)
        return self._store.add(work, digest, "raw", -(-facts.virtual_size // 512) * 512)

    def _inspect(self, head: bytes, length: int | None, task: Task) -> None:
        """The beginning of a download: a disk that is too large is not downloaded first. Nothing else is believed of it yet."""
        if not stays(head):
            return
        size = int.from_bytes(head[24:32], "big") if head.startswith(b"QFI\xfb") and len(head) >= 32 else length
        if size is not None and size > task.limit():
            raise too_large(size, task.limit())

    def _fits(self, size: int, task: Task) -> None:
        if not size:
            raise ImageRefused("NotAnImage", "the image holds a disk of no size")
        if size > task.limit():
            raise too_large(size, task.limit())


@contextmanager
def _typed_errors() -> Iterator[None]:
    """Turn the errors of our disk, and of values that a source sends and nobody checked, into `ImageError`."""
    try:
        yield
    except OSError as error:
        raise disk_trouble(error) from error
    except ValueError as error:
        text = "the source sent a value that cannot be read"
        raise ImageUnavailable("Unreachable", text, why=f"{type(error).__name__}: {error}"[:200]) from error


def _is_ours(facts: ImageFacts) -> bool:
    """Return whether no other program is needed to read it."""
    return facts.format == "vmdk" and facts.compressed


def inner_size(path: Path) -> int:
    """Bytes of a file."""
    return path.stat().st_size


class _Hashes:
    """The digest that names an image, and the one that its source promised."""

    def __init__(self, checksum: tuple[str, str] | None) -> None:
        self._checksum = checksum
        self._sha256 = hashlib.sha256()
        self._other = hashlib.new(checksum[0], usedforsecurity=False) if checksum and checksum[0] != "sha256" else None

    def update(self, data: memoryview) -> None:
        self._sha256.update(data)
        if self._other is not None:
            self._other.update(data)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def check(self) -> None:
        if self._checksum is None:
            return
        found = self._other.hexdigest() if self._other is not None else self.sha256
        if found != self._checksum[1]:
            name, wanted = self._checksum
            raise ImageRefused("Checksum", f"the checksum does not match: expected {name}:{wanted}, got {name}:{found}")

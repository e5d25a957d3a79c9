"""The files of the library: images, the index of sources, unfinished downloads. Everything appears by rename, or not at all."""

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from paddock.base.images.errors import ImageError, ImageUnavailable
from paddock.base.images.formats import Format
from paddock.base.images.sources import key_of, safe_url
from paddock.base.images.stopflag import StopFlag

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PARTIAL_SECONDS = 7 * 86400.0


# The kind of index entries that are names.
_NAMED = "name"


class Image(msgspec.Struct, frozen=True):
    """A read-only disk. `digest` is the SHA-256 of the file as its source gave it."""

    digest: str
    path: Path
    format: Format
    virtual_size: int
    # bytes that it takes on the host's disk
    stored_size: int


class SourceRecord(msgspec.Struct, frozen=True):
    """The index entry of a source."""

    digest: str
    etag: str = ""
    modified: str = ""
    checksum: str = ""
    # secrets were shown to get it
    private: bool = False


class ImageRecord(msgspec.Struct, frozen=True):
    """An image and where it was from, for people."""

    image: Image
    sources: tuple[str, ...]
    created: float
    used: float


class ImageStore:
    """One directory. Several processes may use it at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._images = root / "sha256"
        self._index = root / "index"
        self._partial = root / "partial"
        self._work = root / "work"

    def prepare(self) -> None:
        """Make the directories, and clear away what dead processes left of their work."""
        for directory in (self.root, self._images):
            directory.mkdir(parents=True, exist_ok=True)
            # QEMU's users come through here to their base images.
            directory.chmod(0o711)
        for directory in (self._index, self._partial, self._work):
            directory.mkdir(exist_ok=True, mode=0o700)
        for left in self._work.iterdir():
            with _try_lock(left) as ours:
                if ours:
                    shutil.rmtree(left, ignore_errors=True)

    # --- images -----------------------------------------------------------------------------------------------------------

    def get(self, digest: str) -> Image | None:
        """The image, if it is here."""
        if not _DIGEST.fullmatch(digest):
            return None
        directory = self._images / digest
        try:
            document = json.loads((directory / "image.json").read_bytes())
            return Image(digest, directory / "disk.img", document["format"], document["virtualSize"], document["storedSize"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def __iter__(self) -> Iterator[Image]:
        for name in sorted(os.listdir(self._images)) if self._images.exists() else ():
            image = self.get(name)
            if image is not None:
                yield image

    def records(self) -> list[ImageRecord]:
        """All images with their sources."""
        sources: dict[str, list[str]] = {}
        for _, record in self._entries():
            sources.setdefault(str(record.get("digest")), []).append(str(record.get("source")))
        found = []
        for image in self:
            status = (image.path.parent / "image.json").stat()
            created = image.path.stat().st_ctime
            found.append(ImageRecord(image, tuple(sorted(sources.get(image.digest, ()))), created, status.st_mtime))
        return found

    def use(self, digest: str) -> Image | None:
        """The image, kept from `collect` for another while."""
        with self._locked():
            image = self.get(digest)
            if image is not None:
                os.utime(image.path.parent / "image.json")
            return image

    def add(self, work: Path, digest: str, format: Format, virtual_size: int) -> Image:
        """Make the file `disk.img` in `work` an image. The disk has it when this returns."""
        disk = work / "disk.img"
        with open(disk, "rb") as file:
            os.fchmod(file.fileno(), 0o444)
            os.fsync(file.fileno())
        stored = disk.stat().st_blocks * 512
        record = {"format": format, "virtualSize": virtual_size, "storedSize": stored, "digest": f"sha256:{digest}"}
        _write(work / "image.json", record)
        # Only these two become the image.
        ready = work / "image"
        ready.mkdir(mode=0o755)
        disk.rename(ready / "disk.img")
        (work / "image.json").rename(ready / "image.json")
        ready.chmod(0o755)
        _sync_directory(ready)
        with self._locked():
            try:
                ready.rename(self._images / digest)
            except OSError:
                # Somebody else had the same bytes; or a broken directory stands in the way.
                if self.get(digest) is None:
                    shutil.rmtree(self._images / digest, ignore_errors=True)
                    ready.rename(self._images / digest)
            _sync_directory(self._images)
        image = self.use(digest)
        if image is None:
            raise ImageUnavailable("Storage", "the image was removed while it was stored")
        return image

    def remove(self, digest: str) -> bool:
        """Remove an image; whether it was here."""
        with self._locked():
            return self._remove(digest)

    def _remove(self, digest: str) -> bool:
        grave = self._work / f"removed-{secrets.token_hex(8)}"
        try:
            (self._images / digest).rename(grave)
        except FileNotFoundError:
            return False
        shutil.rmtree(grave, ignore_errors=True)
        return True

    def collect(self, used: Collection[str], keep_seconds: float, now: float | None = None) -> list[str]:
        """Remove what is not used and was not asked for in this time; also index entries and downloads that lead nowhere."""
        now = time.time() if now is None else now
        removed = []
        with self._locked():
            for image in list(self):
                idle = now - (image.path.parent / "image.json").stat().st_mtime
                if image.digest not in used and idle >= keep_seconds and self._remove(image.digest):
                    removed.append(image.digest)
        for path, record in self._entries():
            if self.get(str(record.get("digest"))) is None:
                path.unlink(missing_ok=True)
        for left in self._partial.iterdir():
            if now - left.stat().st_mtime > _PARTIAL_SECONDS:
                with _try_lock(left) as ours:
                    if ours:
                        shutil.rmtree(left, ignore_errors=True)
        return removed

    # --- index ------------------------------------------------------------------------------------------------------------

    def known(self, kind: str, source: str) -> SourceRecord | None:
        """Return the index entry of a source, if its image is still here."""
        try:
            record = json.loads(self._entry(kind, source).read_bytes())
            known = SourceRecord(**record["known"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return known if self.get(known.digest) is not None else None

    def remember(self, kind: str, source: str, known: SourceRecord) -> None:
        """Store the index entry of a source."""
        path = self._entry(kind, source)
        fresh = path.with_name(f".{secrets.token_hex(8)}")
        # For people: what may be secret in a URL is not kept; the name of the file is made of all of it.
        _write(fresh, {"source": safe_url(source), "digest": known.digest, "known": msgspec.structs.asdict(known)})
        fresh.rename(path)

    def name(self, name: str, digest: str) -> None:
        """Give an image a name, which another one may have had before."""
        self.remember(_NAMED, name, SourceRecord(digest))

    def named(self, name: str) -> str:
        """Return the digest of the image of a name; empty if no image that is here has it."""
        known = self.known(_NAMED, name)
        return known.digest if known is not None else ""

    def _entry(self, kind: str, source: str) -> Path:
        return self._index / f"{kind}-{key_of(source)}.json"

    def _entries(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self._index.glob("*.json")):
            try:
                record = json.loads(path.read_bytes())
            except (OSError, ValueError):
                record = {}
            yield path, record if isinstance(record, dict) else {}

    # --- places to work ---------------------------------------------------------------------------------------------------

    @contextmanager
    def work(self) -> Iterator[Path]:
        """A directory of one's own, gone afterwards."""
        while True:
            directory = self._work / secrets.token_hex(8)
            directory.mkdir(mode=0o700)
            with _try_lock(directory) as ours:
                # Between the two lines above another process may have taken it for a dead one's.
                if not ours or not _same(ours, directory):
                    continue
                try:
                    yield directory
                finally:
                    shutil.rmtree(directory, ignore_errors=True)
                return

    @contextmanager
    def partial(self, key: str, stop: StopFlag) -> Iterator[Path]:
        """The directory of an unfinished download, for one at a time. It stays while it holds something to go on with."""
        directory = self._partial / key
        while True:
            directory.mkdir(exist_ok=True, mode=0o700)
            with _try_lock(directory) as ours:
                # It may have been removed by its owner between the two lines above.
                if ours and directory.exists() and _same(ours, directory):
                    try:
                        yield directory
                    except (ImageError, OSError) as error:
                        if _is_full(error):
                            self.finished(directory)
                        raise
                    finally:
                        if next(directory.rglob("state.json"), None) is None:
                            shutil.rmtree(directory, ignore_errors=True)
                    return
            stop.wait(0.05)

    def finished(self, directory: Path) -> None:
        """A download is no longer needed."""
        # First what makes it one, so that nothing half removed is gone on with.
        for state in directory.rglob("state.json"):
            state.unlink(missing_ok=True)
        shutil.rmtree(directory, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _is_full(error: ImageError | OSError) -> bool:
    """Return whether the disk is full: then the room is worth more than the time of a download."""
    return error.code == "NoSpace" if isinstance(error, ImageError) else error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def _try_lock(directory: Path) -> Iterator[int]:
    """Hold the lock of a directory: its descriptor, or 0 when somebody else holds it or it is gone. A dead process holds none."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield 0
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield 0
            return
        yield handle
    finally:
        os.close(handle)


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _write(path: Path, record: dict[str, Any]) -> None:
    with open(path, "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

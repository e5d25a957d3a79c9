"""Files without the zeros, and how much room there is."""

import contextlib
import errno
import os
import threading
from pathlib import Path
from types import TracebackType

from paddock.base import reasons
from paddock.base.images.errors import ImageError, ImageUnavailable

_GRAIN = 64 * 1024
_ZEROS = bytes(_GRAIN)
_FLUSH_SECONDS = 0.3


def free_bytes(directory: Path) -> int:
    """Bytes that may still be written below this directory."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def check_room(directory: Path, reserve: int) -> None:
    """Raise when less than half of the reserve is left."""
    if free_bytes(directory) < reserve // 2:
        raise _no_space()


def _no_space() -> ImageError:
    return ImageUnavailable("NoSpace", "the image does not fit on the host's disk", fix="make room in the image directory")


def disk_trouble(error: OSError) -> ImageError:
    """Return the error for a failure of our own disk."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _no_space()
    if error.errno == errno.EROFS:
        return ImageUnavailable(
            "Storage", "the image directory is read-only", fix="look at the host's disk", reason=reasons.HOST_DISK_READ_ONLY
        )
    return ImageUnavailable("Storage", "the image cannot be written", why=error.strerror or str(error))


class Flusher:
    """Brings a file to the disk while it is still written, so that the end has little to wait for."""

    def __init__(self, handle: int) -> None:
        self._handle = os.dup(handle)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="image flusher", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(_FLUSH_SECONDS):
            # What goes wrong here goes wrong again, and is reported, when the file is synchronised at its end.
            with contextlib.suppress(OSError):
                os.fdatasync(self._handle)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        os.close(self._handle)

    def __enter__(self) -> "Flusher":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SparseWriter:
    """Writes at the end of a file and leaves holes for grains of zeros. After `close` the file has its full length.

    The length of a file that was not closed is never more than what was written to it. `inside`: the file is longer,
    and empty behind the offset.
    """

    def __init__(self, path: Path, offset: int = 0, *, inside: bool = False) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self.offset = offset
        self._flusher: Flusher | None = None
        if not inside and os.fstat(self._file).st_size > offset:
            os.ftruncate(self._file, offset)

    def flush_along(self) -> None:
        """This file is one that stays: bring it to the disk from now on."""
        if self._flusher is None:
            self._flusher = Flusher(self._file)

    def write(self, data: memoryview | bytes) -> None:
        view = memoryview(data)
        try:
            start = at = 0
            while at < len(view):
                end = min(len(view), at + _GRAIN - (self.offset + at) % _GRAIN)
                # A decompressor's output seldom begins at a grain, so a part of a grain counts as a hole, too.
                if not view[at] and not view[end - 1] and view[at:end].tobytes() == _ZEROS[: end - at]:
                    self._put(view[start:at], self.offset + start)
                    start = end
                at = end
            self._put(view[start:], self.offset + start)
        except OSError as error:
            raise disk_trouble(error) from error
        self.offset += len(view)

    def skip(self, count: int) -> None:
        self.offset += count

    def _put(self, view: memoryview, offset: int) -> None:
        while view:
            count = os.pwrite(self._file, view, offset)
            view, offset = view[count:], offset + count

    def close(self, *, sync: bool = False) -> None:
        """The end; `sync` returns when the disk has it."""
        if self._file < 0:
            return
        if self._flusher is not None:
            self._flusher.close()
            self._flusher = None
        try:
            if os.fstat(self._file).st_size < self.offset:
                os.ftruncate(self._file, self.offset)
            if sync:
                os.fsync(self._file)
        except OSError as error:
            raise disk_trouble(error) from error
        finally:
            handle, self._file = self._file, -1
            os.close(handle)

    def __enter__(self) -> "SparseWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

"""Files without the zeros, and how much room there is."""

import errno
import os
from pathlib import Path
from types import TracebackType

from paddock.engine.images.errors import ImageError, ImageUnavailable

_GRAIN = 64 * 1024
_ZEROS = bytes(_GRAIN)


def free_bytes(directory: Path) -> int:
    """Bytes that may still be written below this directory."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def disk_trouble(error: OSError) -> ImageError:
    """What a failure of our own disk means."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ImageUnavailable("NoSpace", "the image does not fit on the host's disk", fix="make room in the image directory")
    if error.errno == errno.EROFS:
        return ImageUnavailable("Storage", "the image directory is read-only", fix="look at the host's disk")
    return ImageUnavailable("Storage", "the image cannot be written", why=error.strerror or str(error))


class SparseWriter:
    """Writes at the end of a file and leaves holes for grains of zeros. After `close` the file has its full length.

    The length of a file that was not closed is never more than what was written to it.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self.offset = offset
        if os.fstat(self._file).st_size > offset:
            os.ftruncate(self._file, offset)

    def write(self, data: memoryview | bytes) -> None:
        """Append."""
        view = memoryview(data)
        try:
            start = at = 0
            while at < len(view):
                end = min(len(view), at + _GRAIN - (self.offset + at) % _GRAIN)
                if not view[at] and not view[end - 1] and end - at == _GRAIN and view[at:end].tobytes() == _ZEROS:
                    self._put(view[start:at], self.offset + start)
                    start = end
                at = end
            self._put(view[start:], self.offset + start)
        except OSError as error:
            raise disk_trouble(error) from error
        self.offset += len(view)

    def _put(self, view: memoryview, offset: int) -> None:
        while view:
            count = os.pwrite(self._file, view, offset)
            view, offset = view[count:], offset + count

    def close(self, *, sync: bool = False) -> None:
        """The end; `sync` returns when the disk has it."""
        if self._file < 0:
            return
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

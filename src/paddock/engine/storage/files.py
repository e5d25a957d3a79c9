"""Files of volumes: written whole or not at all, copied without their holes, and looked at for who uses them. Blocking; for threads."""

import contextlib
import errno
import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Collection
from pathlib import Path

from paddock.base.descriptors import write_all
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import overlays
from paddock.engine.storage.errors import NotAllowed

# The ioctl by which btrfs, xfs and others let two files share their blocks.
_FICLONE = 0x40049409
_CHUNK = 4 * 1024 * 1024
# QEMU's image locks: a byte for each permission that is held (100 on) and for each that is not shared (200 on).
_LOCKS, _LOCKS_LENGTH = 100, 200
_WRITING = 101
_NOT_SHARING_WRITE = 201
_FLOCK = struct.Struct("hhqqi4x")
_NO_CLONE = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ETXTBSY, errno.ENOSYS, errno.EPERM)

Tell = Callable[[int, int], None]


def sync_directory(path: Path) -> None:
    """Names in a directory survive a loss of power."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_whole(path: Path, data: bytes) -> None:
    """A small file, replaced as a whole."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            write_all(number, data)
            os.fsync(number)
        finally:
            os.close(number)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_blank(path: Path, size: int, *, allocate: bool) -> None:
    """A disk of zeros; `allocate` takes its space at once."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(number, size)
        if allocate:
            os.posix_fallocate(number, 0, size)
        os.fsync(number)
    finally:
        os.close(number)


def make_layer(path: Path, below: DiskLayer, size: int) -> None:
    """An empty layer over others, of which nothing is opened; what an earlier try left is overwritten. Raises `NotAllowed` or `OSError`."""
    try:
        layer = overlays.empty(size, overlays.name_of(below.path, path.parent), below.format)
    except ValueError as error:
        raise NotAllowed(f"cannot make a layer over {below.path}", why=str(error)) from error
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(number, "wb") as file:
        os.fchmod(number, 0o600)
        file.write(layer.head)
        file.truncate(layer.length)
        file.flush()
        os.fsync(number)


def allocate_all(path: Path, size: int) -> None:
    """Take the space of a file's holes."""
    number = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(number, 0, size)
        os.fsync(number)
    finally:
        os.close(number)


def copy(source: Path, target: Path, tell: Tell | None = None) -> bool:
    """A copy that takes no more space than the source has data; True when the file system shares the blocks.

    Raises `BlockingIOError` when a machine writes the source. While it is copied none can begin to.
    """
    from_ = os.open(source, os.O_RDONLY)
    try:
        if is_locked(from_):
            raise BlockingIOError(errno.EAGAIN, "a machine uses it", str(source))
        fcntl.fcntl(from_, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, _NOT_SHARING_WRITE, 1, 0))
        to = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            shared = _share(from_, to)
            if not shared:
                _copy_data(from_, to, tell)
            os.fsync(to)
        finally:
            os.close(to)
    finally:
        os.close(from_)
    return shared


def _share(from_: int, to: int) -> bool:
    try:
        fcntl.ioctl(to, _FICLONE, from_)
    except OSError as error:
        if error.errno in _NO_CLONE:
            return False
        raise
    return True


def can_share(directory: Path) -> bool:
    """Return whether files in a directory can share their blocks."""
    one, other = directory / ".share-one", directory / ".share-other"
    try:
        one.write_bytes(b"x" * 4096)
        with open(one, "rb") as source, open(other, "wb") as target:
            return _share(source.fileno(), target.fileno())
    finally:
        one.unlink(missing_ok=True)
        other.unlink(missing_ok=True)


def _copy_data(from_: int, to: int, tell: Tell | None) -> None:
    size = os.fstat(from_).st_size
    os.ftruncate(to, size)
    total, done, place = os.fstat(from_).st_blocks * 512, 0, 0
    while True:
        try:
            start = os.lseek(from_, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(from_, start, os.SEEK_HOLE)
        for offset in range(start, end, _CHUNK):
            _copy_range(from_, to, offset, min(_CHUNK, end - offset))
            done += min(_CHUNK, end - offset)
            if tell is not None:
                tell(done, max(total, done))
        place = end


def _copy_range(from_: int, to: int, offset: int, count: int) -> None:
    while count:
        try:
            copied = os.copy_file_range(from_, to, count, offset, offset)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            copied = os.pwrite(to, os.pread(from_, min(count, _CHUNK), offset), offset)
        if copied == 0:
            raise OSError(errno.EIO, "the source became shorter while it was copied")
        offset, count = offset + copied, count - copied


def is_locked(number: int, first: int = _LOCKS, count: int = _LOCKS_LENGTH) -> bool:
    """Return whether a QEMU, or `copy`, has the file open in a way that matters to others."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
    kind = _FLOCK.unpack(fcntl.fcntl(number, fcntl.F_OFD_GETLK, asked))[0]
    return bool(kind != fcntl.F_UNLCK)


def in_use(path: Path) -> bool:
    """Return whether a QEMU has the file open."""
    return _locked_at(path, _LOCKS, _LOCKS_LENGTH)


def is_written(path: Path) -> bool:
    """Return whether a QEMU has the file open to write."""
    return _locked_at(path, _WRITING, 1)


def _locked_at(path: Path, first: int, count: int) -> bool:
    try:
        number = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return is_locked(number, first, count)
    finally:
        os.close(number)


def remove_others(directory: Path, kept: Collection[str]) -> None:
    """Remove the disk images of a directory that are not among these."""
    for image in directory.glob("[!.]*.img"):
        if image.name not in kept:
            image.unlink(missing_ok=True)


def allocated(path: Path) -> int:
    """Bytes that a file takes on its disk; 0 when it is not there."""
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory with all that is in it."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def publish(fresh: Path, target: Path) -> None:
    """Give a volume's directory its name; what has the name by now is left over."""
    if target.exists():
        shutil.rmtree(target)
    fresh.rename(target)
    sync_directory(target.parent)


def remove(path: Path) -> None:
    """Remove the directory of a volume, or a record; an earlier attempt may have renamed it."""
    doomed = path.with_name(f".gone-{path.name}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(doomed)
    if doomed.is_dir():
        shutil.rmtree(doomed)
    else:
        doomed.unlink(missing_ok=True)

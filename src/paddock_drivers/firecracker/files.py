"""Files of the driver: records that are there in whole or not at all, and disks that take no more room than their data.

A full disk is `QuotaExceeded`, and what was half written is gone.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from paddock.base import reasons
from paddock.base.descriptors import write_all
from paddock.contract.errors import ErrorKind, ProviderError

T = TypeVar("T")
# The beginning of the names of directories that are being deleted.
GONE = ".gone-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# From linux/fs.h.
_FICLONE = 0x40049409
_PIECE, _CHUNK = 64 << 20, 1 << 20
_APART = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


@contextlib.contextmanager
def failures(what: str) -> Iterator[None]:
    """Raise an error of files as a provider's. `what` says what cannot be done; no name of a file is repeated."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise ProviderError(
                ErrorKind.QUOTA_EXCEEDED, f"cannot {what}: the disk of the host is full", fix="make room", reason=reasons.PROVIDER_FULL
            ) from error
        why = error.strerror or type(error).__name__
        raise ProviderError(ErrorKind.UNAVAILABLE, f"cannot {what}", why=why, fix="look at the provider's directory") from error


def read(path: Path, kind: type[T]) -> T | None:
    """Return a record; None when there is none. One that cannot be read is an error: it is not missing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ProviderError(ErrorKind.UNAVAILABLE, f"cannot read {path.name}", why=error.strerror or "") from error
    except ValueError:
        why = f"{path} is damaged or of another version"
        raise ProviderError(ErrorKind.INTERNAL, "cannot read a record of the driver", why=why) from None


def write(path: Path, record: msgspec.Struct) -> None:
    """Write a record: after a crash there is the old one or the new one."""
    new = path.with_name(f".{path.name}.new")
    with failures(f"write {path.name}"):
        try:
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(record))
                file.flush()
                os.fsync(handle)
            os.rename(new, path)
        except OSError:
            new.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def fresh(path: Path, mode: int = 0o600) -> Iterator[int]:
    """Open a new file, which has its name when the block ends well and is gone otherwise."""
    part = path.with_name(f".{path.name}.part")
    with failures("write a disk"):
        part.unlink(missing_ok=True)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            yield handle
            os.fsync(handle)
            os.rename(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)


def put(path: Path, content: bytes) -> None:
    """Write a small file at once."""
    with fresh(path) as handle:
        write_all(handle, content)


def copy(source: Path, target: Path) -> None:
    """Copy a disk: as a reflink where the file system can, else without its holes."""
    with open(source, "rb", buffering=0) as file, fresh(target) as handle:
        size = os.fstat(file.fileno()).st_size
        try:
            fcntl.ioctl(handle, _FICLONE, file.fileno())
        except OSError:
            _copy_data(file.fileno(), handle, size)
        os.ftruncate(handle, size)


def _copy_data(source: int, target: int, size: int) -> None:
    at = 0
    while at < size:
        try:
            start = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        end = os.lseek(source, start, os.SEEK_HOLE)
        while start < end:
            count = _copy_piece(source, target, start, end - start)
            if not count:
                return
            start += count
        at = end


def _copy_piece(source: int, target: int, at: int, most: int) -> int:
    try:
        return os.copy_file_range(source, target, min(_PIECE, most), at, at)
    except OSError as error:
        if error.errno not in _APART:
            raise
    # Two file systems that do not copy for each other.
    return os.pwrite(target, os.pread(source, min(_CHUNK, most), at), at)


def move(source: Path, target: Path) -> None:
    """Give a file another place, also on another file system. Raises `FileNotFoundError` when it is gone."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(source, target)
        source.unlink()


def discarded(path: Path, file: Path | None = None) -> None:
    """Delete a directory: its name is free at once, and what is in it goes then. `file` is of the same file system."""
    gone = (file or path.parent) / f"{GONE}{secrets.token_hex(8)}"
    with failures("delete files"):
        try:
            os.rename(path, gone)
        except FileNotFoundError:
            return
    discard(gone)


def create_disk(path: Path, size: int, *, thick: bool = False) -> None:
    with fresh(path) as handle:
        os.ftruncate(handle, size)
        if thick:
            os.posix_fallocate(handle, 0, size)


def grow(path: Path, size: int) -> None:
    """Make a disk larger. One that is as large already stays."""
    with failures("grow a disk"):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(handle).st_size < size:
                os.ftruncate(handle, size)
        finally:
            os.close(handle)


def link(source: Path, target: Path) -> None:
    """Give a file that everybody may read a second name. One that others may not read, or of another file system, is copied."""
    target.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        if source.stat().st_mode & 0o004:
            os.link(source, target)
            return
    copy(source, target)
    target.chmod(0o644)


def sizes(path: Path) -> tuple[int, int]:
    """Return a disk's size and the bytes that it takes; zeros when it is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_blocks * 512


def discard(path: Path) -> None:
    """Delete a directory with all that is in it."""
    with failures("delete files"):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return


def free(path: Path) -> tuple[int, int]:
    """Return the free bytes and all bytes of a file system."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

"""The errors of storage, and whether the operation may succeed later."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddock.base import reasons
from paddock.base.errors import PaddockError, Terminal, Transient


class StorageError(PaddockError):
    """Something the store of volumes could not do."""


class StoreFull(StorageError, Transient):
    """No space is left where volumes are."""

    reason_code = reasons.HOST_DISK_FULL


class StoreReadOnly(StorageError, Transient):
    """Nothing can be written where volumes are."""

    reason_code = reasons.HOST_DISK_READ_ONLY


class StoreFailed(StorageError, Transient):
    """The file system, or the program that works on disks, failed."""

    reason_code = reasons.HOST_DISK_FAILED


class VolumeBusy(StorageError, Transient):
    """A machine, or somebody else, uses the volume."""


class VolumeMissing(StorageError, Terminal):
    """There is no such volume or snapshot."""


class VolumeBroken(StorageError, Terminal):
    """A file of a volume is not what was written."""

    reason_code = reasons.VOLUME_DAMAGED


class TooSmall(StorageError, Terminal):
    """The content is larger than the volume."""

    reason_code = reasons.VOLUME_TOO_SMALL


class SizeTooLarge(StorageError, Terminal):
    """No file can be as large as what was asked for."""

    reason_code = reasons.VOLUME_TOO_LARGE


class NotAllowed(StorageError, Terminal):
    """This cannot be done with this volume at all."""


_FULL = (errno.ENOSPC, errno.EDQUOT)


def of(error: OSError, what: str, path: Path) -> StorageError:
    """The error that stands for one of the file system."""
    why = error.strerror or str(error)
    if error.errno in _FULL:
        return StoreFull(what, why=f"no space is left below {path} ({why})", fix="free space there; it is tried again")
    if error.errno == errno.EFBIG:
        return SizeTooLarge(what, why=f"no file below {path} can be that large", fix="ask for less, or use another file system there")
    if error.errno == errno.EROFS:
        return StoreReadOnly(what, why=f"{path} is read-only", fix="mount it writable; it is tried again")
    if error.errno in (errno.EACCES, errno.EPERM):
        return StoreReadOnly(what, why=f"{path} may not be written ({why})", fix="give the server's user the right; it is tried again")
    return StoreFailed(what, why=f"{path}: {why}", fix="look at the disk of the host; it is tried again")


@contextmanager
def spoken(what: str, path: Path) -> Iterator[None]:
    """Errors of the file system inside become ours."""
    try:
        yield
    except OSError as error:
        raise of(error, what, path) from error

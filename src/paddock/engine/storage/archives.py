"""Unpacking a tar archive that somebody sent into a directory, trusting nothing in it. Blocking; for threads.

Names that leave the directory, links that lead out of it, and devices are refused, and so is what unpacks to more than there is room
for. Archives may be packed with gzip, bzip2, xz or zstd. Python's tarfile is not used: it reads a header of any size into memory, and
searches it in quadratic time, with the interpreter held.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from paddock.base.images.errors import ImageRefused
from paddock.base.images.formats import head_of, wrapper_of
from paddock.base.images.tar import Tar, TarEntry
from paddock.base.images.unpack import PackedFile
from paddock.engine.storage import members
from paddock.engine.storage.errors import NotAllowed, TooSmall

_MOST_ENTRIES = 1_000_000
_CHUNK = 1 << 20


def unpack(archive: Path, directory: Path, largest: int) -> None:
    """Unpack an archive of at most so many bytes of content."""
    size = 0
    try:
        with _opened(archive) as read:
            tar = Tar(read, sparse=True)
            for count, member in enumerate(tar):
                size += member.size
                if size > largest or count >= _MOST_ENTRIES:
                    raise TooSmall("the archive does not fit into the volume", why=f"it unpacks to more than {largest} bytes", fix=_LARGER)
                _extract(tar, member, directory)
            if not tar.position:
                raise EOFError("it is empty")
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise NotAllowed("cannot unpack the archive", why="one of its members lies in the place of another", fix=_REPACK) from error
    except (ImageRefused, EOFError) as error:
        raise NotAllowed("cannot unpack the archive", why=f"it is no tar archive, or damaged ({error})", fix=_REPACK) from error


@contextmanager
def _opened(archive: Path) -> Iterator[Callable[[int], bytes]]:
    head = head_of(archive)
    if head.startswith(b"BZh"):
        import bz2  # noqa: PLC0415 - few archives need it

        with bz2.open(archive) as file:
            yield lambda limit: _bunzipped(file.read, limit)
        return
    wrapper = wrapper_of(head)
    with PackedFile(FileIO(archive), None if wrapper == "tar" else wrapper) as packed:
        yield packed.read


def _bunzipped(read: Callable[[int], bytes], limit: int) -> bytes:
    try:
        return read(limit)
    except OSError as error:
        # The library has no error of its own for data that is not its own.
        if error.errno is not None:
            raise
        raise EOFError(str(error)) from error


def _extract(tar: Tar, member: TarEntry, directory: Path) -> None:
    try:
        place = members.place_of(member, directory)
    except members.UnsafeMember as error:
        raise NotAllowed("cannot unpack the archive", why=f"{member.name!r} {error}", fix=_REPACK) from error
    place.parent.mkdir(parents=True, exist_ok=True)
    match member.kind:
        case "directory":
            place.mkdir(exist_ok=True)
            place.chmod(members.mode_of(member))
        case "symlink":
            if place.is_symlink() or place.is_file():
                place.unlink()
            place.symlink_to(member.link)
        case "hardlink":
            place.hardlink_to(directory.joinpath(member.link))
            return
        case _:
            _write(tar, member, place)
    os.utime(place, (member.modified, member.modified), follow_symlinks=False)


def _write(tar: Tar, member: TarEntry, path: Path) -> None:
    """Write a file; what is behind and between the pieces of a sparse one stays a hole."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb", buffering=0) as file:
        for offset, size in ((0, member.size),) if member.pieces is None else member.pieces:
            file.seek(offset)
            left = size
            while left:
                data = memoryview(tar.read(min(left, _CHUNK)))
                left -= len(data)
                while data:
                    data = data[file.write(data) :]
        file.truncate(member.size)
        os.fchmod(handle, members.mode_of(member))


_LARGER = "A larger PVC is required"
_REPACK = "pack files, directories and links that stay inside"

"""Unpacking a tar archive that somebody sent into a directory, trusting nothing in it. Blocking; for threads.

Names that leave the directory, links that lead out of it, and devices are refused, and so is what unpacks to more than there is room
for. Archives may be packed with gzip, bzip2 or xz.
"""

import tarfile
from pathlib import Path

from paddock.engine.storage import members
from paddock.engine.storage.errors import NotAllowed, TooSmall

_MOST_ENTRIES = 1_000_000


def unpack(archive: Path, directory: Path, largest: int) -> None:
    """Unpack an archive of at most so many bytes of content."""
    size = 0
    try:
        with tarfile.open(archive, "r:*") as tar:
            for count, member in enumerate(tar):
                size += member.size
                if size > largest or count >= _MOST_ENTRIES:
                    raise TooSmall("the archive does not fit into the volume", why=f"it unpacks to more than {largest} bytes", fix=_LARGER)
                if member.isdev():
                    raise NotAllowed("cannot unpack the archive", why=f"{member.name!r} is a device", fix=_REPACK)
                _extract(tar, member, directory)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise NotAllowed("cannot unpack the archive", why="one of its members lies in the place of another", fix=_REPACK) from error
    except (tarfile.TarError, EOFError) as error:
        raise NotAllowed("cannot unpack the archive", why=f"it is no tar archive, or damaged ({error})", fix=_REPACK) from error


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    if not HAS_FILTER:
        # A Python that has filters warns unless one is named.
        tar.extraction_filter = _unfiltered
        try:
            tar.extract(members.checked(member, directory), directory, set_attrs=True)
        except members.UnsafeMember as error:
            raise NotAllowed("cannot unpack the archive", why=f"{member.name!r} {error}", fix=_REPACK) from error
        return
    try:
        tar.extract(member, directory, set_attrs=True, filter="data")
    except tarfile.FilterError as error:
        # What the library says names the place on this host.
        why = f"{error.tarinfo.name!r} {_REFUSED.get(type(error).__name__, 'is refused')}"
        raise NotAllowed("cannot unpack the archive", why=why, fix=_REPACK) from error


def _unfiltered(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    return member


# Debian 12's Python has no filters.
HAS_FILTER = hasattr(tarfile, "data_filter")
_REFUSED = {
    "AbsolutePathError": "is an absolute name",
    "OutsideDestinationError": "leads out of the volume",
    "AbsoluteLinkError": "is a link to an absolute name",
    "LinkOutsideDestinationError": "is a link that leads out of the volume",
    "SpecialFileError": "is a special file",
}
_LARGER = "A larger PVC is required"
_REPACK = "pack files, directories and links that stay inside"

"""Unpacking a tar archive that somebody sent into a directory, trusting nothing in it. Blocking; for threads.

Names that leave the directory, links that lead out of it, and devices are refused, and so is what unpacks to more than there is room
for. Archives may be packed with gzip, bzip2 or xz.
"""

import tarfile
from pathlib import Path

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
                tar.extract(member, directory, set_attrs=True, filter="data")
    except tarfile.FilterError as error:
        # What the library says names the place on this host.
        why = f"{error.tarinfo.name!r} {_REFUSED.get(type(error), 'is refused')}"
        raise NotAllowed("cannot unpack the archive", why=why, fix=_REPACK) from error
    except (tarfile.TarError, EOFError) as error:
        raise NotAllowed("cannot unpack the archive", why=f"it is no tar archive, or damaged ({error})", fix=_REPACK) from error


_REFUSED: dict[type[tarfile.FilterError], str] = {
    tarfile.AbsolutePathError: "is an absolute name",
    tarfile.OutsideDestinationError: "leads out of the volume",
    tarfile.AbsoluteLinkError: "is a link to an absolute name",
    tarfile.LinkOutsideDestinationError: "is a link that leads out of the volume",
    tarfile.SpecialFileError: "is a special file",
}
_LARGER = "A larger PVC is required"
_REPACK = "pack files, directories and links that stay inside"

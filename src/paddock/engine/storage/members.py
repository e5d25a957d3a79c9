"""The check of one member of a tar archive that somebody sent.

Nothing is unpacked through a link, and a link may go up only at its beginning. So whatever a link leads to was itself checked, and lies
inside. The check of Python's tarfile follows links to see where they end; versions of it could be led out (CVE-2025-4517).
"""

import os
from pathlib import Path

from paddock.base.images.tar import TarEntry

_LONGEST = 4096
_LONGEST_PART = 255
# Nobody else may write what somebody sent, and nothing of it runs as somebody else.
_MODE = 0o755


class UnsafeMember(Exception):
    """A member that may not be unpacked; the message says why, without a word about this host."""


def place_of(member: TarEntry, directory: Path) -> Path:
    """Return where the member is unpacked to. Raises `UnsafeMember`."""
    parts = _parts(member.name)
    if ".." in parts or len(member.name) > _LONGEST:
        raise UnsafeMember("leads out of the volume")
    if any(len(os.fsencode(part)) > _LONGEST_PART or "\0" in part for part in parts):
        raise UnsafeMember("has a name that no file can have")
    _check_way(directory, parts[:-1])
    match member.kind:
        case "symlink":
            _check_link(member.link, len(parts) - 1)
        case "hardlink":
            _check_hard_link(member.link, directory)
        case "file" | "sparse file" | "directory":
            if parts and directory.joinpath(*parts).is_symlink():
                raise UnsafeMember("lies in the place of a link")
        case "device" | "fifo":
            raise UnsafeMember("is a device")
        case _:
            raise UnsafeMember("is a special file")
    return directory.joinpath(*parts)


def mode_of(member: TarEntry) -> int:
    """Return the rights that the member gets."""
    return (member.mode & _MODE) | (0o700 if member.kind == "directory" else 0o600)


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _check_way(directory: Path, parts: list[str]) -> None:
    place = directory
    for part in parts:
        place /= part
        if place.is_symlink():
            raise UnsafeMember("lies behind a link")


def _check_link(target: str, depth: int) -> None:
    if target.startswith("/"):
        raise UnsafeMember("is a link to an absolute name")
    if not target or "\0" in target:
        raise UnsafeMember("is a link to a name that no file can have")
    parts = _parts(target)
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    if up > depth or ".." in parts[up:] or len(target) > _LONGEST:
        raise UnsafeMember("is a link that leads out of the volume")


def _check_hard_link(target: str, directory: Path) -> None:
    parts = _parts(target)
    if target.startswith("/") or ".." in parts or len(target) > _LONGEST:
        raise UnsafeMember("is a link that leads out of the volume")
    _check_way(directory, parts)
    if "\0" in target or not parts or not directory.joinpath(*parts).is_file():
        raise UnsafeMember("is a link to no file that was unpacked before it")

"""The check of one member of a tar archive, for Pythons whose tarfile has none: those before 3.11.4, which Debian 12 has.

It is stricter than the library's: nothing is unpacked through a link, and a link may go up only at its beginning. So whatever a link
leads to was itself checked, and lies inside.
"""

import copy
import os
import tarfile
from pathlib import Path

_LONGEST = 4096
# Nobody else may write what somebody sent, and nothing of it runs as somebody else.
_MODE = 0o755


class UnsafeMember(Exception):
    """A member that may not be unpacked; the message says why, without a word about this host."""


def checked(member: tarfile.TarInfo, directory: Path) -> tarfile.TarInfo:
    """Return the member as it may be unpacked into the directory. Raises `UnsafeMember`."""
    name = member.name.lstrip("/")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or len(name) > _LONGEST:
        raise UnsafeMember("leads out of the volume")
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise UnsafeMember("is a special file")
    _check_way(directory, parts[:-1])
    if member.issym():
        _check_link(member.linkname, len(parts) - 1)
    elif member.islnk():
        _check_hard_link(member.linkname, directory)
    elif parts and (directory / "/".join(parts)).is_symlink():
        raise UnsafeMember("lies in the place of a link")
    found = copy.copy(member)
    found.name = name
    found.uid, found.gid, found.uname, found.gname = os.geteuid(), os.getegid(), "", ""
    found.mode = (member.mode & _MODE) | (0o700 if member.isdir() else 0o600)
    return found


def _check_way(directory: Path, parts: list[str]) -> None:
    place = directory
    for part in parts:
        place /= part
        if place.is_symlink():
            raise UnsafeMember("lies behind a link")


def _check_link(target: str, depth: int) -> None:
    if target.startswith("/"):
        raise UnsafeMember("is a link to an absolute name")
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    if up > depth or ".." in parts[up:] or len(target) > _LONGEST:
        raise UnsafeMember("is a link that leads out of the volume")


def _check_hard_link(target: str, directory: Path) -> None:
    parts = [part for part in target.split("/") if part not in ("", ".")]
    if target.startswith("/") or ".." in parts or len(target) > _LONGEST:
        raise UnsafeMember("is a link that leads out of the volume")
    _check_way(directory, parts)
    # The library would put a copy of a link in its place, which leads elsewhere from there.
    if not parts or not directory.joinpath(*parts).is_file():
        raise UnsafeMember("is a link to no file that was unpacked before it")

"""An initial RAM file system: the "newc" form of cpio, which every Linux kernel reads. Pure: the same entries give the same bytes."""

import stat
from collections.abc import Mapping
from pathlib import PurePosixPath

from paddock.base.images.build.packages import PackageMember

_BLOCK = 512
_TRAILER = "TRAILER!!!"
_CONSOLE = "dev/console"
_CONSOLE_DEVICE = (5, 1)


def archive(files: Mapping[str, PackageMember], directories: tuple[str, ...] = ()) -> bytes:
    """Files and links by name, in directories that are made as needed; all of it owned by root, of no time."""
    named = (*files, *(f"{name}/." for name in directories), _CONSOLE)
    folders = {str(folder) for name in named for folder in PurePosixPath(name).parents if str(folder) != "."} | set(directories)
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in folders]
    entries += [_file(name, member) for name, member in files.items()]
    # The kernel needs the console before anything runs that could make it.
    entries.append((_CONSOLE, stat.S_IFCHR | 0o600, b""))
    parts = [_entry(number, *entry) for number, entry in enumerate(sorted(entries), start=1)]
    whole = b"".join([*parts, _entry(0, _TRAILER, 0, b"")])
    return whole + bytes(-len(whole) % _BLOCK)


def _file(name: str, member: PackageMember) -> tuple[str, int, bytes]:
    if member.target:
        return name, stat.S_IFLNK | 0o777, member.target.encode()
    return name, stat.S_IFREG | (member.mode & 0o7777), member.data


def _entry(number: int, name: str, mode: int, data: bytes) -> bytes:
    links = 2 if stat.S_ISDIR(mode) else 1
    device = _CONSOLE_DEVICE if stat.S_ISCHR(mode) else (0, 0)
    path = name.encode()
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(path) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + path + b"\0"
    return header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4)

"""The host's access to the files that hold disks. Read-only."""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from paddock.engine.machine.argv.view import FileView
from paddock.engine.machine.config import DiskConfig, DiskLayer


def view(path: Path) -> FileView:
    """Return the facts about a file. One that is missing or unreadable counts as an ordinary one: QEMU will say more."""
    try:
        found = path.stat()
    except OSError:
        return FileView()
    device = stat.S_ISBLK(found.st_mode)
    solid = device or found.st_blocks * 512 >= found.st_size > 0
    return FileView(direct=_direct(path), solid=solid, device=device)


def _direct(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC))
    except OSError as error:
        # EINVAL is how a file system says that it has no O_DIRECT; the rest is no answer.
        return error.errno != errno.EINVAL
    return True


def look_at_all(disks: Iterable[DiskConfig]) -> dict[Path, FileView]:
    """The same for every layer of some disks."""
    found: dict[Path, FileView] = {}
    for disk in disks:
        layer: DiskLayer | None = disk.layer
        while layer is not None:
            found.setdefault(layer.path, view(layer.path))
            layer = layer.backing
    return found

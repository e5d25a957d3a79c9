"""The entries that Paddock makes in a directory (docs/reference/on-disk.md): the marks that prove one, and what a deletion takes.

A person may have named a home directory by mistake, or keep files of their own beside those of a server. So nothing is deleted that is not
on the list, and nothing at all where no mark is.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from paddock.base.errors import Terminal

_FOLDERS = ("engine", "pki")
# In the order of their deletion. The marks are the last of each folder, so that a deletion that failed can be repeated.
_ENTRIES = (
    *("kubeconfig", "kubeconfig.new", "server.json", "server.json.new", "server.log", "stacks.log", "audit.log", "audit-[0-9]*.log"),
    *(f"engine/{name}" for name in ("machines", "scratch", "snapshots", "memory", "volumes", "networks", "states", "consoles", "usage")),
    *(f"engine/{name}" for name in ("providers", "staging", "cache", "layer-group", "pools.json", ".pools.json.new", "migrations")),
    *(f"engine/{name}" for name in ("simulated.db", "simulated.db-wal", "simulated.db-shm", "cluster.new", "images", "cluster")),
    *(f"pki/{name}" for name in ("admin.*", "server.*", "ca.*", "service-accounts-*", "service-accounts.key.new", "service-accounts.key")),
    *(
        "store.db",
        "store.db-wal",
        "store.db-shm",
        "store.db.restoring*",
        "store.db.before-*",
        "guests.json.new",
        "guests.json",
        "format.json.new",
        "format.json",
        "store.db.lock",
    ),
)
# One of them is there from the first moments of a server, of `paddock image pull` and of `paddock backup restore`.
_MARKS = ("store.db.lock", "pki/service-accounts.key", "engine/cluster", "engine/images/sha256")
_MOST_NAMED = 10


class ForeignDirectory(Terminal):
    """The directory is not known to be Paddock's, so nothing in it is deleted."""


class DeletionFailed(Terminal):
    """Something in the directory could not be deleted."""


def check(root: Path) -> None:
    """Raise `ForeignDirectory` unless the directory has a mark of Paddock, is empty, or does not exist."""
    why = f"it is no server's directory: it has none of {', '.join(_MARKS)}"
    try:
        if not os.path.lexists(root):
            return
        if root.is_dir() and (any((root / mark).exists() for mark in _MARKS) or not any(root.iterdir())):
            # What may not be read is found now, and not in the middle of a purge.
            others(root)
            return
    except OSError as error:
        why = error.strerror or str(error)
    raise ForeignDirectory(f"cannot delete {root}", why=why, fix="name the server's directory with --dir; nothing was changed")


def others(root: Path) -> list[str]:
    """Return what Paddock did not make in the directory, links included, by names relative to it."""
    place = root.resolve()
    ours, folders = set(_entries(place)), [place, *_folders(place)]
    found = (each for folder in folders if folder.is_dir() for each in folder.iterdir() if each not in ours and each not in folders)
    return sorted(str(each.relative_to(place)) for each in found)


def delete(root: Path) -> None:
    """Delete what Paddock made, and the directory if it is empty then. If a link leads to it, both stay."""
    place = root.resolve()
    try:
        for each in _entries(place):
            shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)
        for folder in [*_folders(place), *([] if root.is_symlink() else [place])]:
            if not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        why = error.strerror or str(error)
        raise DeletionFailed(f"cannot delete {error.filename or root}", why=why, fix="correct that, and repeat the command") from error


def listed(names: list[str]) -> str:
    """Return the names on one line, the first of many."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _folders(path: Path) -> list[Path]:
    return [folder for name in _FOLDERS if (folder := path / name).is_dir() and not folder.is_symlink()]


def _entries(path: Path) -> Iterator[Path]:
    """Yield what Paddock made. It makes no links there: what one leads to is not its own."""
    folders = [path, *_folders(path)]
    for pattern in _ENTRIES:
        yield from (each for each in path.glob(pattern) if each.parent in folders and not each.is_symlink())

"""The format of a server's directory: a number that rises when what lies there changes its meaning (docs/reference/on-disk.md).

`format.json` holds it. Whoever works in a directory looks at it first, and leaves a directory of a newer format alone: its files, and the
guests that run on them. The store has a format of its own, because a backup leads from a newer one back to an older one.
"""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import orjson

import paddock
from paddock.base.errors import Terminal
from paddock.engine import versions
from paddock.kubernetes import releases
from paddock.kubevirt.kinds import gates
from paddock.server.store.contract import Store, StoreKey

NAME = "format.json"
_KUBEVIRT = StoreKey("kubevirts.kubevirt.io", "kubevirt", "kubevirt")
# Raise it with a row of `FORMATS` in tests/unit/app/test_diskformat.py.
FORMAT = 1
# The format of what `paddock down --guests --purge` leaves: no machine, nothing on the host.
AFTER_PURGE = 1

_Number = Annotated[int, msgspec.Meta(ge=1)]


class DirectoryFormat(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the file. All versions read these members, so they keep their names and types; others may come."""

    version: _Number
    # of the directory after a purge by the program that wrote this
    after_purge: _Number
    program: str = ""


class NewerDirectory(Terminal):
    """A newer Paddock wrote the directory, in a format that this one does not read."""


class NewerRelease(Terminal):
    """A server of a newer release of KubeVirt used the directory. Objects may have fields that the older one does not know."""


class FormatUnreadable(Terminal):
    """The file with the format cannot be read or written."""


def check(root: Path) -> DirectoryFormat | None:
    """Return what the file says. Raise `NewerDirectory` if this Paddock does not know that format. Nothing is changed."""
    written = read(root)
    if written is None or written.version <= FORMAT:
        return written
    why = (
        f"Paddock {written.program or 'of a newer version'} wrote it in format {written.version}, and Paddock {paddock.__version__} knows"
        f" formats up to {FORMAT} (nothing was changed, guests run on)"
    )
    fix = versions.FIX
    if written.after_purge <= FORMAT:
        fix += "; to go back to this one, let the other shut the guests down first: `paddock down --guests --purge`"
    raise NewerDirectory(f"cannot use {root}", why=why, fix=fix)


def note(root: Path) -> None:
    """Write down that this Paddock works in the directory. Raises as `check` does."""
    own = DirectoryFormat(FORMAT, AFTER_PURGE, paddock.__version__)
    if check(root) != own:
        _write(root, own)


def note_purge(root: Path) -> None:
    """Write down that the directory has only what a purge leaves."""
    written = read(root)
    if written is not None and written.version > AFTER_PURGE:
        _write(root, msgspec.structs.replace(written, version=AFTER_PURGE))


def read(root: Path) -> DirectoryFormat | None:
    """Return what the file says; None for a directory that is new, or of a version without the file."""
    path = root / NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=DirectoryFormat)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        fix = "run the command as the user of the server, or name another directory: --dir"
        raise FormatUnreadable(f"cannot use {root}", why=f"this user may not read {NAME} in it", fix=fix) from error
    except (OSError, ValueError) as error:
        fix = "put the file back, or remove it if no newer Paddock used the directory"
        raise FormatUnreadable(
            f"cannot read {path}, which says whether this Paddock may use the directory", why=str(error), fix=fix
        ) from error


def _write(root: Path, directory_format: DirectoryFormat) -> None:
    path = root / NAME
    fresh = path.with_name(f"{NAME}.new")
    try:
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(directory_format) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        # The name survives a power cut before anything in this format does.
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        fix = "make room there, or name another directory: --dir"
        raise FormatUnreadable(f"cannot write {path}", why=error.strerror or str(error), fix=fix) from error


def check_release(store: Store, release: int) -> None:
    """Raise `NewerRelease` if a server of a newer release has written into the store. Nothing is changed."""
    stored = store.get(_KUBEVIRT)
    if stored is None or not release:
        return
    installation = orjson.loads(stored.value)
    used = gates.of_installation(installation).release
    if (installation.get("status") or {}).get("observedKubeVirtVersion") and used > release:
        raise NewerRelease(
            f"cannot serve this directory as KubeVirt {releases.name_of(release)}",
            why=f"it was used as KubeVirt {releases.name_of(used)}, which KubeVirt cannot go back from either (nothing was changed)",
            fix="name another directory: --dir",
        )

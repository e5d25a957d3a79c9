"""The machines of a directory. A machine's name is that of its directory, so no two have the same.

DIRECTORY/lock             taken by the one driver that serves the directory
DIRECTORY/machines/NAME/   a machine (see `records.MicroVmFolder`)
DIRECTORY/images/NAME/     an image: image.json, disk.raw, and for some kernel and initrd
DIRECTORY/disks/NAME.raw   an imported disk, beside NAME.json
DIRECTORY/kernels/NAME     kernels and initial file systems that machines name
DIRECTORY/scratch/         files that are needed for a moment

Names that begin with a dot are of what is being made or deleted.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import secrets
import weakref
from collections.abc import Iterator
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.contract.errors import ProviderError
from paddock_drivers.firecracker import files
from paddock_drivers.firecracker.records import MicroVmFolder, MicroVmRecord
from paddock_drivers.kit import refusals

_ID = re.compile(r"(?P<name>[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?)/(?P<token>[0-9a-f]{12})\Z", re.ASCII)
_PLACES = ("machines", "images", "disks", "kernels", "scratch")
_HIDDEN = "."


class DirectoryTaken(Terminal):
    """Another driver serves the directory."""


class MicroVmStore:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.machines, self.images, self.disks, self.kernels, self.scratch = (directory / each for each in _PLACES)
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        # Held while it is decided whose name is whose.
        self.naming = asyncio.Lock()
        self._lock = -1

    def open(self) -> None:
        """Make the directories, and take the lock. Raises `DirectoryTaken`."""
        try:
            self.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
            for place in _PLACES:
                # VMMs with users of their own come through to their machine's directory.
                (self.directory / place).mkdir(mode=0o711 if place in ("machines", "kernels", "images") else 0o700, exist_ok=True)
            self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise DirectoryTaken(f"another driver serves {self.directory}", fix="end it, or name another directory") from None
        except OSError as error:
            self.close()
            raise Terminal(f"cannot use the directory {self.directory}", why=error.strerror or "") from error

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def lock(self, name: str) -> asyncio.Lock:
        """Return the lock of a machine: whoever changes it has it."""
        found = self._locks.get(name)
        if found is None:
            found = self._locks[name] = asyncio.Lock()
        return found

    def folder(self, name: str) -> MicroVmFolder:
        """Return the directory of a machine."""
        return MicroVmFolder(self.machines / name)

    def find(self, id: str) -> tuple[MicroVmFolder, MicroVmRecord] | None:
        """Return a machine by its id; None when it is not there. Trouble is an error."""
        match = _ID.match(id)
        if match is None:
            return None
        folder = self.folder(match["name"])
        record = folder.read()
        return (folder, record) if record is not None and record.token == match["token"] else None

    def get(self, id: str) -> tuple[MicroVmFolder, MicroVmRecord]:
        """Return a machine by its id; raises NotFound."""
        found = self.find(id)
        if found is None:
            raise refusals.not_found("the machine does not exist")
        return found

    def every(self) -> Iterator[tuple[MicroVmFolder, MicroVmRecord]]:
        """Return all machines by their names. One whose record is damaged is left out of the list, and only there."""
        for name in sorted(os.listdir(self.machines)):
            if name.startswith(_HIDDEN):
                continue
            folder = self.folder(name)
            with contextlib.suppress(ProviderError):
                if (record := folder.read()) is not None:
                    yield folder, record

    def owned(self, uid: str) -> tuple[MicroVmFolder, MicroVmRecord] | None:
        """Return the machine of an owner."""
        return next((each for each in self.every() if each[1].owner == uid), None)

    def claim(self, record: MicroVmRecord) -> MicroVmFolder:
        """Give a new machine its directory, with its record in it. Raises Conflict for a name that is taken."""
        new = self.machines / f"{_HIDDEN}new-{secrets.token_hex(6)}"
        with files.failures("make a machine"):
            new.mkdir(mode=0o711)
            try:
                MicroVmFolder(new).write(record)
                os.rename(new, self.machines / record.name)
            except OSError as error:
                files.discard(new)
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise refusals.conflict(f"machine {record.name} exists", fix="choose another name") from None
                raise
            except ProviderError:
                files.discard(new)
                raise
        return self.folder(record.name)

    def remove(self, folder: MicroVmFolder) -> None:
        """Delete a machine's directory: its name is free at once, and what is in it goes then."""
        files.discarded(folder.path)

    def sweep(self) -> None:
        """Delete what a driver before this one left in the middle of its work."""
        hidden = [each for place in (self.machines, self.images, self.disks) for each in place.glob(f"{_HIDDEN}*")]
        for each in (*self.scratch.iterdir(), *hidden, *self.machines.glob(f"*/{files.GONE}*")):
            if each.is_dir() and not each.is_symlink():
                files.discard(each)
            else:
                each.unlink(missing_ok=True)

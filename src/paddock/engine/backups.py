"""Backups of machines in claims: the files of a backup, their place, and the moment from which they count.

    volumes/CLAIM/backup-ID/                   while QEMU writes them: nobody sees it
    volumes/CLAIM/files/MACHINE/BACKUP/        afterwards: DISK.qcow2 for each disk, and `backup.json`, which says what they are

The change is one rename. A backup that is repeated finds what is there.
"""

import asyncio
import contextlib
import errno
import os
import shutil
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from paddock.base.descriptors import write_all
from paddock.engine.machine.backupstate import BackupRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.storage import errors
from paddock.engine.storage.errors import NotAllowed
from paddock.engine.storage.volumes import Volumes

_NOTE = "backup.json"
_LONGEST = 1 << 20
# Of qcow2: magic, version, where the name of a backing file is, incompatible features (docs/interop/qcow2.txt of QEMU).
_HEADER = struct.Struct(">4sIQ56xQ")
_EXTERNAL_DATA = 1 << 2


class BackedUpDisk(msgspec.Struct, frozen=True):
    """A disk in a backup."""

    name: str
    file: str
    # the checkpoint since which the file has the changes; "": it has all of the disk
    since: str = ""


class BackupNote(msgspec.Struct, frozen=True):
    """What `backup.json` says of a backup."""

    id: str
    machine: str
    # seconds since the epoch
    taken: float
    disks: tuple[BackedUpDisk, ...]
    checkpoint: str = ""
    quiesced: bool = False
    version: int = 1


class WantedBackup(msgspec.Struct, frozen=True):
    """A backup of a machine."""

    # unique for ever
    id: str
    # the volume of the claim
    claim: str
    # names of directories in it: of the machine, and of the backup
    machine: str
    folder: str
    disks: tuple[BackedUpDisk, ...]
    checkpoint: str = ""
    quiesce: bool = True

    @property
    def since(self) -> Mapping[str, str]:
        return {each.name: each.since for each in self.disks if each.since}


class Backups:
    """Takes backups of machines into claims."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    async def demand(self, claim: str) -> None:
        """Raise if a claim cannot have backups: it holds a disk, or a machine uses it."""
        await self._volumes.as_files(claim)

    async def begin(self, machine: QemuMachine, wanted: WantedBackup) -> None:
        """Begin a backup; `machine.backup` tells how it goes. Repeated, it goes on."""
        files = await self._volumes.as_files(wanted.claim)
        place = _place(files, wanted.id)
        if machine.backup is None or machine.backup.name != wanted.id:
            with errors.spoken("cannot begin a backup", files):
                await asyncio.to_thread(_fresh, place)
        targets = {each.name: place / each.file for each in wanted.disks}
        await machine.take_backup(BackupRequest(wanted.id, targets, wanted.since, wanted.checkpoint, wanted.quiesce))

    async def publish(self, wanted: WantedBackup, note: BackupNote) -> None:
        """The files of a backup that is done are in the claim from now on."""
        files = await self._volumes.as_files(wanted.claim)
        with errors.spoken("cannot end a backup", files):
            await asyncio.to_thread(_publish, files, wanted, note)

    async def find(self, wanted: WantedBackup) -> BackupNote | None:
        """Return what is in the claim of a backup; None: it is not there."""
        volume = self._volumes.get(wanted.claim)
        if volume is None or volume.files is None:
            return None
        return await asyncio.to_thread(_find, volume.files, wanted)

    async def discard(self, claim: str, id: str) -> None:
        """Remove the files of a backup that will not be one."""
        volume = self._volumes.get(claim)
        if volume is not None and volume.files is not None:
            await asyncio.to_thread(shutil.rmtree, _place(volume.files, id), True)


def _place(files: Path, id: str) -> Path:
    """A directory beside what the claim holds: whoever shares the claim with a machine shares nothing of it."""
    return files.parent / f"backup-{id}"


def _fresh(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)


def _publish(files: Path, wanted: WantedBackup, note: BackupNote) -> None:
    if _find(files, wanted) is not None:
        return
    place = _place(files, wanted.id)
    for each in wanted.disks:
        _check(place / each.file)
    handle = os.open(place / _NOTE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        write_all(handle, msgspec.json.format(msgspec.json.encode(note)))
        os.fsync(handle)
    finally:
        os.close(handle)
    _synchronise(place)
    # A machine may share the claim, and put links there.
    with _directory(files) as top:
        with contextlib.suppress(FileExistsError):
            os.mkdir(wanted.machine, 0o700, dir_fd=top)
        with _directory(wanted.machine, top) as folder:
            try:
                os.rename(place, wanted.folder, dst_dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    why = "something else has its name"
                    raise NotAllowed(f"cannot keep backup {wanted.machine}/{wanted.folder}", why=why, fix="use another claim") from error
                raise
            os.fsync(folder)
        os.fsync(top)


def _find(files: Path, wanted: WantedBackup) -> BackupNote | None:
    try:
        with _directory(files) as top, _directory(wanted.machine, top) as folder, _directory(wanted.folder, folder) as place:
            handle = os.open(_NOTE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
            with os.fdopen(handle, "rb") as file:
                note = msgspec.json.decode(file.read(_LONGEST), type=BackupNote)
    except (OSError, ValueError):
        return None
    return note if note.id == wanted.id else None


def _check(path: Path) -> None:
    """Raise unless a file is a qcow2 that names no other one. A guest may have taken its QEMU over, and people open what that wrote."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        head = file.read(_HEADER.size)
    magic, version, backing, features = _HEADER.unpack(head) if len(head) == _HEADER.size else (b"", 0, 0, 0)
    if magic != b"QFI\xfb" or version != 3 or backing or features & _EXTERNAL_DATA:
        raise NotAllowed(f"cannot keep {path.name}", why="QEMU wrote no plain qcow2 file", fix="look into the guest, and restart it")


@contextlib.contextmanager
def _directory(path: Path | str, parent: int | None = None) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def _synchronise(place: Path) -> None:
    with _directory(place) as handle:
        os.fsync(handle)

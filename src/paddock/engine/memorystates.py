"""The memory of guests, kept with snapshots of their machines.

    memory/ID/state         what QEMU wrote
    memory/ID/state.zst     the same, packed; the other one goes when this is whole
    memory/ID/memory.json   written last: without it there is no memory, and the directory goes at the next start

ID is the UID of the VirtualMachineSnapshotContent. A state is never written again, so a machine that goes on from it has it as a second
name of the same file.
"""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from paddock.base.images import zstd
from paddock.base.threads import undisturbed
from paddock.engine import versions
from paddock.engine.machine.directory import SavedMachine, UnreadableState, decode_path, encode_path
from paddock.engine.machine.memorysnapshots import TakenMemory
from paddock.engine.storage import files
from paddock.engine.storage.paths import checked

_VERSION = 1
_CHUNK = 1 << 20
_RECORD, _STATE, _PACKED = "memory.json", "state", "state.zst"
_LEVEL = 3


class MemoryRecord(msgspec.Struct, frozen=True):
    """The memory of a guest at one moment."""

    saved: SavedMachine
    # seconds for which the guest stood still
    pause: float
    qemu: str
    version: int = _VERSION


class MemoryState(msgspec.Struct, frozen=True):
    """A memory that is kept, and the room it takes."""

    record: MemoryRecord
    stored: int
    packed: bool

    @property
    def size(self) -> int:
        """Bytes as QEMU reads it."""
        return self.record.saved.size


class MemoryStates:
    """All memories that are kept. Whatever is half made is found and removed by the next `prepare`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def prepare(self) -> None:
        """Once, at the start: remove what is not whole. Blocking."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in self.root.iterdir():
            if not (folder / _RECORD).exists():
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for name in (f"{_PACKED}.new", *([_STATE] if (folder / _PACKED).exists() else [])):
                (folder / name).unlink(missing_ok=True)

    def get(self, id: str) -> MemoryState | None:
        """A memory; None: there is none. Raises `UnreadableState`."""
        record = read(self._folder(id) / _RECORD)
        try:
            return self._state(id, record) if record is not None else None
        except OSError:
            return None

    def _state(self, id: str, record: MemoryRecord) -> MemoryState:
        folder = self._folder(id)
        packed = (folder / _PACKED).exists()
        status = (folder / (_PACKED if packed else _STATE)).stat()
        return MemoryState(record, status.st_blocks * 512, packed)

    def age(self, id: str, now: float) -> float:
        """Return the seconds since a memory was written or used."""
        with contextlib.suppress(OSError):
            return now - (self._folder(id) / _STATE).stat().st_mtime
        return 0.0

    def draft(self, id: str) -> Path:
        """Return the file that a memory is to be written to."""
        folder = self._folder(id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / _STATE

    def keep(self, id: str, taken: TakenMemory) -> MemoryState:
        """The file that was written is a memory from now on, also after a loss of power."""
        record = MemoryRecord(taken.saved, taken.pause, taken.qemu)
        data = msgspec.json.encode(record, enc_hook=encode_path)
        files.write_whole(self._folder(id) / _RECORD, data)
        return self._state(id, record)

    def delete(self, id: str) -> None:
        """Remove a memory. The record goes first: what is left is no memory."""
        folder = self._folder(id)
        (folder / _RECORD).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)

    def filler(self, id: str) -> Callable[[Path], None]:
        """Return the function that makes the file of a machine's saved state from a memory. It blocks."""
        folder = self._folder(id)

        def fill(path: Path) -> None:
            path.unlink(missing_ok=True)
            if (folder / _PACKED).exists():
                _unpack(folder / _PACKED, path)
                return
            os.utime(folder / _STATE)
            try:
                os.link(folder / _STATE, path)
            except OSError:
                shutil.copyfile(folder / _STATE, path)
                _synchronise(path)

        return fill

    async def pack(self, id: str) -> None:
        """Pack a memory. Repeated, it is packed."""
        folder = self._folder(id)
        if self.get(id) is not None and (folder / _STATE).exists():
            await undisturbed(_pack, folder)

    def _folder(self, id: str) -> Path:
        return self.root / checked(id)


def read(path: Path) -> MemoryRecord | None:
    """Return a record; None: there is none. Raises `UnreadableState`, also for one of another version."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    what, why = f"cannot read the memory of a snapshot in {path}", versions.strange(raw, _VERSION)
    if why:
        raise UnreadableState(what, why=why, fix=versions.FIX)
    try:
        return msgspec.json.decode(raw, type=MemoryRecord, dec_hook=decode_path)
    except ValueError as error:
        raise UnreadableState(what, why="it is damaged", fix="restore the disks of the snapshot alone") from error


def _pack(folder: Path) -> None:
    fresh, compressor = folder / f"{_PACKED}.new", zstd.ZstdCompressor(_LEVEL)
    with open(folder / _STATE, "rb") as source, open(fresh, "wb") as target:
        while data := source.read(_CHUNK):
            target.write(compressor.compress(data))
        target.write(compressor.flush())
    _synchronise(fresh)
    fresh.replace(folder / _PACKED)
    files.sync_directory(folder)
    (folder / _STATE).unlink()


def _unpack(source: Path, path: Path) -> None:
    unpacker = zstd.ZstdDecompressor()
    with open(source, "rb") as packed, open(path, "wb") as target:
        os.fchmod(target.fileno(), 0o600)
        while data := packed.read(_CHUNK):
            target.write(unpacker.decompress(data))
    _synchronise(path)


def _synchronise(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

"""A disk that fails when a test says so: a layer between SQLite and the file system, made with ctypes.

Every operation that SQLite asks of its files (open, write, sync, truncate, size, delete, access, shared memory) passes a `Disk`,
which counts it and may refuse it, as the kernel would with EIO, ENOSPC, EROFS or EACCES, write only a part, or cut the power: then
nothing works any more, and `Disk.image` is what a disk may hold after it: what was synchronised, and any part of what was not.

Needs an `_sqlite3` that is linked to a shared library; `usable` tells.
"""

import _sqlite3
import ctypes
import random
import sqlite3
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

from paddock.server.store import database

OPERATIONS = ("open", "write", "sync", "truncate", "size", "delete", "access", "shm")
ERRORS = ("EIO", "ENOSPC", "EROFS", "EACCES", "torn")
# What SQLite's own layer over Unix makes of an error.
_IOERR, _FULL, _CANTOPEN = 10, 13, 14
_CODES = {
    "open": _CANTOPEN,
    "write": _IOERR | 3 << 8,
    "sync": _IOERR | 4 << 8,
    "truncate": _IOERR | 6 << 8,
    "size": _IOERR | 7 << 8,
    "delete": _IOERR | 10 << 8,
    "access": _IOERR | 13 << 8,
    "shm": _IOERR | 19 << 8,
}
_READ_ONLY, _READ_WRITE, _CREATE = 1, 2, 4
_NAME = b"faulty"
_SECTOR = 512


class _Methods(Structure):
    _fields_ = [("version", c_int), *((f"f{number}", c_void_p) for number in range(18))]


class _File(Structure):
    _fields_ = [("methods", POINTER(_Methods))]


class _Vfs(Structure):
    _fields_ = [
        ("version", c_int),
        ("size", c_int),
        ("longest", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        *((f"f{number}", c_void_p) for number in range(14)),
    ]


# The name is a bare address, because SQLite's layer keeps it beyond the call.
_Open = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(_File), c_int, POINTER(c_int))
_Delete = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_Access = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, POINTER(c_int))
_Write = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = ctypes.CFUNCTYPE(c_int, c_void_p, c_int)
_Size = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
_Shm = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_int, c_void_p)
# places of the functions in the two tables of SQLite's C interface
_OPEN, _DELETE, _ACCESS = 0, 1, 2
_WRITE, _TRUNCATE, _SYNC, _SIZE, _SHM = 2, 3, 4, 5, 12


class Disk:
    """The operations of one test, and their failures."""

    def __init__(self) -> None:
        self.count = 0
        self.log: list[str] = []
        # the operation that fails, how, and whether it and all later ones of its kind go on failing
        self.fails: tuple[int, str] | None = None
        self.lasting = False
        self.cut_at = -1
        self.dead = False
        self.failed = ""
        self._synced: dict[Path, bytes] = {}
        self._pending: dict[Path, list[tuple[int, bytes | None]]] = {}

    def verdict(self, operation: str) -> str:
        """The error an operation meets; empty when it is let through."""
        number, self.count = self.count, self.count + 1
        self.log.append(operation)
        if number == self.cut_at:
            self.dead = True
        if self.dead:
            return "EIO"
        if self.lasting and operation == self.failed and self.fails is not None:
            return self.fails[1]
        if self.fails is not None and number == self.fails[0]:
            self.failed = operation
            return self.fails[1]
        return ""

    def mend(self) -> None:
        """The cause is gone."""
        self.fails = None

    # --- what the power takes ---------------------------------------------------------------------------------------------

    def wrote(self, path: Path, offset: int, data: bytes | None) -> None:
        """Bytes were written, or with None the file was cut, and neither is synchronised."""
        self._pending.setdefault(path, []).append((offset, data))

    def synced(self, path: Path) -> None:
        """Keep the present content of the file."""
        self._synced[path] = path.read_bytes()
        self._pending[path] = []

    def forget(self, path: Path) -> None:
        """The file is gone."""
        self._synced.pop(path, None)
        self._pending.pop(path, None)

    def image(self, folder: Path, chance: random.Random) -> None:
        """Write the files as a power cut may leave them."""
        for path in {*self._synced, *self._pending}:
            content = bytearray(self._synced.get(path, b""))
            waiting = self._pending.get(path, [])
            # In order up to somewhere, or any of them: disks do both.
            kept = (
                waiting[: chance.randint(0, len(waiting))] if chance.random() < 0.5 else [each for each in waiting if chance.random() < 0.5]
            )
            for offset, data in kept:
                if data is None:
                    del content[offset:]
                    continue
                if chance.random() < 0.2:
                    data = data[: chance.randrange(0, len(data) + 1, _SECTOR)]
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
            (folder / path.name).write_bytes(content)


class _Layer:
    """The functions that SQLite calls; one for the process, because SQLite cannot be told to forget it safely."""

    def __init__(self, library: Any) -> None:
        self.disk = Disk()
        self._paths: dict[int, Path] = {}
        self._tables: dict[int, Any] = {}
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        library.sqlite3_vfs_find.argtypes = [c_char_p]
        library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
        self._unix = library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._unix.contents)
        self._vfs.name = _NAME
        # Callbacks live as long as this object, which is for ever.
        self._callbacks = [_Open(self._open), _Delete(self._delete), _Access(self._access)]
        for place, callback in zip((_OPEN, _DELETE, _ACCESS), self._callbacks, strict=True):
            setattr(self._vfs, f"f{place}", ctypes.cast(callback, c_void_p))
        library.sqlite3_vfs_register(ctypes.addressof(self._vfs), 0)

    def _unix_function(self, place: int, kind: Callable[[Any], Any]) -> Any:
        return kind(getattr(self._unix.contents, f"f{place}"))

    def _open(self, _: int, name: int | None, file: Any, flags: int, got: Any) -> int:
        error = self.disk.verdict("open")
        if error in ("EROFS", "EACCES"):
            # A database that may not be written is opened for reading, and writing it is refused later.
            flags = flags & ~(_READ_WRITE | _CREATE) | _READ_ONLY
        elif error:
            return _CODES["open"]
        code: int = self._unix_function(_OPEN, _Open)(ctypes.addressof(self._unix.contents), name, file, flags, got)
        if code == 0 and name:
            self._paths[ctypes.addressof(file.contents)] = Path(ctypes.string_at(name).decode())
            file.contents.methods = ctypes.pointer(self._table(file.contents.methods))
        return code

    def _delete(self, _: int, name: bytes, synchronise: int) -> int:
        if self.disk.verdict("delete"):
            return _CODES["delete"]
        self.disk.forget(Path(name.decode()))
        code: int = self._unix_function(_DELETE, _Delete)(ctypes.addressof(self._unix.contents), name, synchronise)
        return code

    def _access(self, _: int, name: bytes, flags: int, result: Any) -> int:
        if self.disk.verdict("access"):
            return _CODES["access"]
        code: int = self._unix_function(_ACCESS, _Access)(ctypes.addressof(self._unix.contents), name, flags, result)
        return code

    def _table(self, methods: Any) -> Any:
        """The functions of an open file, with ours in the place of some."""
        address = ctypes.addressof(methods.contents)
        if address not in self._tables:
            table = _Methods.from_buffer_copy(methods.contents)
            callbacks = []
            makers = ((_WRITE, _Write), (_TRUNCATE, _Truncate), (_SYNC, _Sync), (_SIZE, _Size), (_SHM, _Shm))
            for place, kind in makers:
                if not getattr(table, f"f{place}"):
                    continue
                callback = kind(self._hook(place, kind(getattr(table, f"f{place}"))))
                setattr(table, f"f{place}", ctypes.cast(callback, c_void_p))
                callbacks.append(callback)
            self._tables[address] = (table, callbacks)
        return self._tables[address][0]

    def _hook(self, place: int, unix: Any) -> Callable[..., int]:
        operation = {_WRITE: "write", _TRUNCATE: "truncate", _SYNC: "sync", _SIZE: "size", _SHM: "shm"}[place]

        def call(file: int, *given: Any) -> int:
            error = self.disk.verdict(operation)
            if error == "torn" and operation == "write":
                unix(file, given[0], given[1] // 2, given[2])
            if error:
                return _FULL if error == "ENOSPC" and operation == "write" else _CODES[operation]
            code: int = unix(file, *given)
            if code == 0:
                self._note(operation, self._paths[file], given)
            return code

        return call

    def _note(self, operation: str, path: Path, given: tuple[Any, ...]) -> None:
        if operation == "write":
            self.disk.wrote(path, given[2], ctypes.string_at(given[0], given[1]))
        elif operation == "truncate":
            self.disk.wrote(path, given[0], None)
        elif operation == "sync":
            self.disk.synced(path)


def _load() -> _Layer | None:
    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        return _Layer(library)
    except (AttributeError, OSError):
        return None


_layer = _load()
usable = _layer is not None


def insert(disk: Disk) -> None:
    """Put a disk below all connections of `connect`."""
    assert _layer is not None
    _layer.disk = disk


def connect(path: Path) -> sqlite3.Connection:
    """A store's connection on the faulty disk, which moves its log into the database often."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw&vfs={_NAME.decode()}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        database.settled(connection)
        connection.execute("PRAGMA wal_autocheckpoint=12")
    except BaseException:
        connection.close()
        raise
    return connection

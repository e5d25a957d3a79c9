"""The files of a machine, and nothing of what they mean for QEMU.

    ID/config.json      the machine as it is defined (`MachineConfig`)
    ID/started.json     the same, as the present run was started
    ID/process.json     the run: which process, since when, how it ended (`RunRecord`)
    ID/lock             locked by QEMU as long as it lives; whoever gets the lock knows that no QEMU runs
    ID/qemu.log         what QEMU said
    ID/run/             QEMU's working directory, the only one of these that QEMU may write: sockets, serial.log, fresh firmware variables
    ID/saved.json       a suspended machine (`SavedMachine`), written last: while it is there, no process may run the guest
    ID/saved.state      the guest's memory and devices, as QEMU wrote them
    ID/next/, next.lock  the same of a second QEMU, while the guest moves into it (`renewal`)
    ID/handed.json, arrival.json  the guest goes to another host, or comes from one (`livefiles`)

A file is replaced as a whole, by rename: after a kill at any moment there is the old one or the new one. `config.json` is written
first and a directory without it is nothing, so it is removed.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from paddock.base.descriptors import write_all
from paddock.base.errors import Terminal
from paddock.engine import versions
from paddock.engine.machine.backupstate import BackupState
from paddock.engine.machine.config import DiskLayer, MachineConfig
from paddock.engine.machine.forks import GuestIdentity
from paddock.engine.machine.observation import RunEnd

_VERSION = 1
_NEXT = "next"
ARRIVAL = "arrival.json"
_RESTORE = "restore the file from a backup, or end its QEMU: the machine is started anew then"
LOG_LIMIT = 1 << 20
# As KubeVirt has it.
GRACE_SECONDS = 30.0
SERIAL_LIMIT = 2 << 20
_TAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Stopping(msgspec.Struct, frozen=True):
    """A stop that is under way. Seconds since the epoch."""

    asked: float
    deadline: float


class QemuProgram(msgspec.Struct, frozen=True):
    """A QEMU as it was when it was started: another size or time of the file is another QEMU."""

    path: str
    size: int
    time: int


class Renewal(msgspec.Struct, frozen=True):
    """A second process, while the guest moves into a new QEMU. `pid` 0: it was not noted yet."""

    pid: int = 0
    # its start, as in `RunRecord`
    ticks: int = 0
    helpers: dict[str, tuple[int, int]] = {}
    # False: this one is to be the machine's, and never ran the guest. True: it was, and must not run it again
    moved: bool = False


class MovingDisks(msgspec.Struct, frozen=True):
    """Disks that move into other files while the guest runs."""

    targets: dict[str, DiskLayer]
    # the files that they are in until then
    sources: dict[str, Path]
    # the disks change over, and the guest stands still for it, unless it stood still before
    changes_over: bool = False
    still: bool = False


class RunRecord(msgspec.Struct, frozen=True):
    """One run of a machine, from the moment it is queued. Written before and after whatever cannot be found out otherwise."""

    version: int = _VERSION
    run: int = 0
    # the host's boot in which it was written
    boot: str = ""
    active: bool = False
    pid: int = 0
    # the process's start, in the kernel's ticks: a pid alone may be somebody else's by now
    ticks: int = 0
    # the guest has its command to run, or to wait for a resume (`start_paused`), which is then done
    begun: bool = False
    start_paused: bool = False
    # paused by a user: QEMU does not tell one pause from another
    paused: bool = False
    accelerator: str = ""
    # what QEMU runs as; kept between runs
    user: int = 0
    # among the machines that wait for their start: the highest is the first
    priority: int = 0
    # seconds that its guest gets to shut down with the host
    grace: float = GRACE_SECONDS
    times: dict[str, float] = {}
    stop: Stopping | None = None
    # why QEMU waits for its command to quit, as far as it said so: `guest-shutdown`, `guest-reset`, `panicked`, `watchdog`, `killed`, ...
    evidence: tuple[str, ...] = ()
    # processes that serve QEMU: name -> (pid, ticks)
    helpers: dict[str, tuple[int, int]] = {}
    # disks whose layers are being merged: name -> path of the base
    commits: dict[str, str] = {}
    moving: MovingDisks | None = None
    backup: BackupState | None = None
    kept: dict[str, tuple[str, ...]] = {}
    # the file that the guest's state is read from; "": it boots
    restore: str = ""
    # the guest's state is being written
    saving: bool = False
    # the guest stands still while a disk changes over to another layer, and goes on then
    halted: bool = False
    # the guest comes out of a snapshot, and its clock was not set yet
    clock_due: bool = False
    # the identity that the guest of a fork did not get yet
    identity: GuestIdentity | None = None
    program: QemuProgram | None = None
    renewal: Renewal | None = None
    # the migration in which the guest is being sent to another host
    sending: str = ""
    end: RunEnd | None = None

    @property
    def arriving(self) -> bool:
        """It comes from another host, and has not run here."""
        return not self.begun and Path(self.restore).name == ARRIVAL

    @property
    def goes_on(self) -> bool:
        """The engine has stopped the guest for a moment, or a Paddock that was killed had."""
        changes_over = self.moving is not None and self.moving.changes_over and self.moving.still
        return self.saving or self.halted or bool(self.sending) or self.renewal is not None or changes_over


def next_run(record: RunRecord, boot: str, now: float, user: int, priority: int = 0) -> RunRecord:
    """A new run begins: nothing of the last one counts any more."""
    return RunRecord(run=record.run + 1, boot=boot, active=True, user=user, priority=priority, times={"queued": now})


class SavedMachine(msgspec.Struct, frozen=True):
    """A suspended machine: the hardware that its guest must find again, and the disks that it goes on with."""

    at: float
    # bytes of the state
    size: int
    # as the run was started, with the machine type in full
    started: MachineConfig
    # as it was suspended, with what was plugged
    config: MachineConfig
    places: dict[str, dict[str, Any]]
    processors: list[dict[str, Any]]
    accelerator: str
    processor: str
    # by a user
    paused: bool
    # files of disks: path -> bytes, nanoseconds since the epoch at the last write
    disks: dict[str, tuple[int, int]]
    # it comes out of a snapshot, so its guest may be far behind
    from_snapshot: bool = False
    # an agent in the guest had its channel open
    agent: bool = False
    # the identity that the guest still has to get
    identity: GuestIdentity | None = None
    version: int = _VERSION


_Kept = TypeVar("_Kept")


class _Stored(msgspec.Struct):
    version: int
    config: MachineConfig


class UnreadableState(Terminal):
    """A file of a machine says nothing that can be understood."""


def encode_path(value: Any) -> Any:
    """Return the form of a path in a file, which msgspec asks for."""
    if isinstance(value, Path):
        return os.fspath(value)
    raise NotImplementedError(f"{type(value)} has no form in a file")


def decode_path(form: type, value: Any) -> Any:
    """Return the path of a form in a file, which msgspec asks for."""
    if form is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{form} has no form in a file")


def encode_config(config: MachineConfig) -> bytes:
    return msgspec.json.encode(_Stored(_VERSION, config), enc_hook=encode_path)


def decode_config(data: bytes) -> MachineConfig:
    """Return the stored config. Raises `ValueError`, also for a version of another Paddock."""
    _check_version(data)
    return msgspec.json.decode(data, type=_Stored, dec_hook=decode_path).config


def _check_version(data: bytes) -> None:
    if why := versions.strange(data, _VERSION):
        raise ValueError(why)


def _unreadable(what: str, path: Path, data: bytes, fix: str) -> UnreadableState:
    why = versions.strange(data, _VERSION)
    return UnreadableState(f"cannot read {what}", why=f"{path}: {why}" if why else f"{path} is damaged", fix=versions.FIX if why else fix)


def tame(id: str) -> bool:
    """It can name a directory."""
    return _TAME.fullmatch(id) is not None


class Directory:
    """The files of one machine."""

    def __init__(self, path: Path, *, beside: bool = False) -> None:
        """`beside`: as a second QEMU has it."""
        self.path = path
        self.run = path / (_NEXT if beside else "run")
        self.log = path / "qemu.log"
        self._lock = f"{_NEXT}.lock" if beside else "lock"
        self._beside = beside

    @property
    def beside(self) -> "Directory":
        """The files of a second QEMU of the machine."""
        return Directory(self.path, beside=True)

    def promote(self) -> None:
        """Make the second directory the machine's own; its QEMU notices nothing. A repeated call finishes an interrupted one."""
        other = self.beside
        if other.run.is_dir():
            shutil.rmtree(self.run, ignore_errors=True)
            os.rename(other.run, self.run)
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path / other._lock, self.path / self._lock)

    def drop_beside(self) -> None:
        """Nothing is beside any more. A lock that is still held stays, and keeps the machine from being started."""
        other = self.beside
        shutil.rmtree(other.run, ignore_errors=True)
        if (self.path / other._lock).exists() and not other.locked():
            (self.path / other._lock).unlink()

    @property
    def id(self) -> str:
        return self.path.name

    def make(self) -> None:
        """The directories exist, readable for their owner alone."""
        self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
        os.chmod(self.path, 0o711)
        self.run.mkdir(mode=0o700, exist_ok=True)

    def remove(self) -> None:
        """Everything goes. The config goes last but the directory itself, so that a removal that was cut short is finished later."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / "config.json").unlink()
        shutil.rmtree(self.path, ignore_errors=True)

    def read_config(self) -> MachineConfig | None:
        """None: there is none, so the machine was never defined. Raises `UnreadableState`."""
        path, raw = self.path / "config.json", b""
        try:
            raw = path.read_bytes()
            return decode_config(raw)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(f"the config of machine {self.id}", path, raw, _RESTORE) from error

    def lost(self) -> UnreadableState:
        """The error about a config that is gone while its QEMU lives."""
        return UnreadableState(f"cannot read the config of machine {self.id}", why=f"{self.path}/config.json is gone", fix=_RESTORE)

    def write_config(self, config: MachineConfig) -> None:
        """Synchronised: after it returned, the machine exists."""
        self._replace("config.json", encode_config(config), durable=True)

    def replace_config(self, config: MachineConfig) -> None:
        """Write a config in the place of one that cannot be read, which is kept beside it. A full disk is no matter: it can be repeated."""
        path = self.path / "config.json"
        with contextlib.suppress(OSError):
            if path.exists():
                os.replace(path, path.with_suffix(".json.damaged"))
            self.write_config(config)

    def write_started(self, config: MachineConfig) -> None:
        """Write the config of the run's start."""
        self._replace("started.json", encode_config(config), durable=False)

    def read_started(self) -> MachineConfig | None:
        """Return the config of the run's start; None: it cannot be known."""
        try:
            return decode_config((self.path / "started.json").read_bytes())
        except (OSError, ValueError):
            return None

    def read_record(self) -> RunRecord | None:
        """None: there is none, or none that can be read."""
        try:
            record = msgspec.json.decode((self.path / "process.json").read_bytes(), type=RunRecord, dec_hook=decode_path)
        except (OSError, ValueError):
            return None
        return record if record.version == _VERSION else None

    def write_record(self, record: RunRecord) -> None:
        """Not synchronised: it is about processes, which a crash of the host ends as well."""
        self._replace("process.json", msgspec.json.encode(record, enc_hook=encode_path), durable=False)

    @property
    def saved_state(self) -> Path:
        """The state of a suspended machine."""
        return self.path / "saved.state"

    @property
    def is_saved(self) -> bool:
        """The machine is suspended: nobody may run its guest but a QEMU that has read the state."""
        return (self.path / "saved.json").exists()

    @property
    def fresh_state(self) -> Path:
        """The file that becomes the state of a suspended machine with `write_saved`."""
        return self.path / "saved.state.new"

    def write_saved(self, saved: SavedMachine) -> None:
        """Synchronised: after it returned, the machine is suspended, and the fresh state is its state."""
        os.rename(self.fresh_state, self.saved_state)
        self.keep("saved.json", saved)

    def keep(self, name: str, value: msgspec.Struct) -> None:
        """Synchronised: after it returned, a power cut takes nothing away of it."""
        self._replace(name, msgspec.json.encode(value, enc_hook=encode_path), durable=True)

    def read_saved(self) -> SavedMachine | None:
        """None: it is not suspended. Raises `UnreadableState`."""
        return self.read_kept("saved.json", SavedMachine, "the saved state", "discard the state")

    def read_kept(self, name: str, kind: type[_Kept], what: str, fix: str) -> _Kept | None:
        """Return what a file with a version says; None: there is none. Raises `UnreadableState`."""
        path, raw = self.path / name, b""
        try:
            raw = path.read_bytes()
            _check_version(raw)
            return msgspec.json.decode(raw, type=kind, dec_hook=decode_path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(f"{what} of machine {self.id}", path, raw, fix) from error

    def drop_saved(self) -> None:
        """Synchronised: after it returned, nobody resumes the guest from its state. `sweep` removes the state itself."""
        self.drop_kept("saved.json")

    def drop_kept(self, name: str) -> None:
        """Synchronised: after it returned, the file is gone for good."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).unlink()
            _synchronise(self.path)

    def drop_leftovers(self) -> None:
        """Remove a state that is not whole, or that nobody may use any more."""
        for name in ("saved.state.new", "saved.json.new", *(() if self.is_saved else ("saved.state",))):
            with contextlib.suppress(FileNotFoundError):
                (self.path / name).unlink()

    def take_lock(self) -> int | None:
        """The descriptor that holds the lock; None: a QEMU holds it. Whoever inherits the descriptor holds the lock, too."""
        if not self._beside and (self.path / self.beside._lock).exists() and self.beside.locked():
            return None
        handle = os.open(self.path / self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def locked(self) -> bool:
        handle = self.take_lock()
        if handle is None:
            return True
        os.close(handle)
        return False

    def open_log(self, run: int) -> int:
        """For QEMU to write to; what it said in earlier runs is kept up to a limit."""
        handle = os.open(self.log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        shorten(handle, LOG_LIMIT // 2 if os.fstat(handle).st_size > LOG_LIMIT else LOG_LIMIT)
        os.write(handle, f"--- run {run}\n".encode())
        return handle

    def log_tail(self, lines: int = 8, size: int = 4096) -> str:
        """The last lines QEMU said in the newest run, cleaned of what would disturb a terminal."""
        try:
            handle = os.open(self.log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return ""
        with os.fdopen(handle, "rb") as file:
            file.seek(max(0, os.fstat(handle).st_size - size))
            text = file.read(size).decode("utf-8", "replace")
        text = text.rpartition("--- run ")[2].partition("\n")[2] if "--- run " in text else text
        return "\n".join([line for line in clean(text).splitlines() if line.strip()][-lines:])

    def serial_tail(self, size: int) -> bytes:
        """The end of what the guest wrote to its serial console."""
        try:
            handle = os.open(self.run / "serial.log", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return b""
        with os.fdopen(handle, "rb") as file:
            file.seek(max(0, os.fstat(handle).st_size - size))
            return file.read(size)

    def serial_log(self) -> bytes:
        """What is kept of the guest's output on its serial console."""
        return self.serial_tail(SERIAL_LIMIT)

    def bound_logs(self) -> None:
        """Shortens logs that have grown too long. QEMU appends to them, so it goes on at the new end."""
        for path, limit in ((self.run / "serial.log", SERIAL_LIMIT), (self.log, LOG_LIMIT)):
            try:
                handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                status = os.fstat(handle)
                if stat.S_ISREG(status.st_mode) and status.st_size > limit:
                    shorten(handle, limit // 4)
            finally:
                os.close(handle)

    def sweep(self) -> None:
        """After an end: the sockets and what a run left go; logs stay."""
        for name in os.listdir(self.run) if self.run.is_dir() else ():
            if not name.endswith(".log"):
                path = self.run / name
                with contextlib.suppress(OSError):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if not self._beside:
            self.drop_beside()
            self.drop_leftovers()

    def _replace(self, name: str, data: bytes, *, durable: bool) -> None:
        new = self.path / (name + ".new")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            write_all(handle, data)
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(new, self.path / name)
        if durable:
            _synchronise(self.path)


def _synchronise(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def shorten(handle: int, keep: int) -> None:
    """Leaves the last `keep` bytes of a file that others append to."""
    size = os.fstat(handle).st_size
    if size <= keep:
        return
    tail = os.pread(handle, keep, size - keep)
    os.ftruncate(handle, 0)
    # The start of a line, so that nobody reads half a sentence.
    os.write(handle, tail[tail.find(b"\n") + 1 :])


def clean(text: str) -> str:
    """Without control characters, which would do things to the terminal that shows it."""
    return _CONTROLS.sub("?", text.replace("\r\n", "\n"))

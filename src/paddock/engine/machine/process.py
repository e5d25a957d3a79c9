"""Processes that outlive Paddock: started detached, known by pid and start time, watched through a pidfd, never polled."""

import asyncio
import contextlib
import logging
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field

from paddock.engine.machine.errors import StartFailed

_LOG = logging.getLogger(__name__)
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}

# states of a process that somebody has stopped
STOPPED = ("T", "t")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessLaunch(Struct, frozen=True):
    """A program to start. `user` 0 leaves the rights as they are; `files` are inherited under the same numbers.

    `offline`: with a user of its own it gets a network namespace in which nothing is; what it may use, it has open.
    """

    argv: Sequence[str]
    folder: Path
    log: int
    files: Sequence[int] = ()
    user: int = 0
    groups: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False


@lru_cache
def _program(name: str) -> str | None:
    """Return the path of a program of util-linux."""
    return shutil.which(name, path=_ENVIRONMENT["PATH"])


# A /proc of its own shows a machine's user nothing of other processes: neither their command lines nor that they are there.
_OWN_PROC = 'mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc /proc && exec "$@"'
# What the host mounts later is seen inside as well: a machine may get a disk from there.
_APART = ("--mount", "--ipc", "--propagation", "slave", "--", "/bin/sh", "-c", _OWN_PROC, "paddock")


@lru_cache
def apart(*, offline: bool) -> tuple[tuple[str, ...], str]:
    """Return the words before a command that give it namespaces of its own, or the reason why this host cannot.

    A host that can make all of them but that of the network gives the others.
    """
    program = _program("unshare")
    if os.geteuid() != 0:
        return (), "Paddock does not run as root"
    if program is None or _program("setpriv") is None:
        return (), "there is no unshare or no setpriv (util-linux)"
    words = (program, *(("--net",) if offline else ()), *_APART)
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False, env=_ENVIRONMENT, stdin=subprocess.DEVNULL)
    lines = tried.stderr.strip().splitlines()
    if offline and tried.returncode:
        _LOG.warning("machines share the network of the host", extra={"why": lines[-1] if lines else ""})
        return apart(offline=False)
    return (words, "") if tried.returncode == 0 else ((), lines[-1] if lines else f"unshare ended with {tried.returncode}")


def is_offline(pid: int) -> bool:
    """Return whether a process has a network namespace that is not this one's."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def boot_id() -> str:
    """Of this boot of the host."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int:
    """Return the start of a process, in the kernel's ticks since the boot; 0: there is none, or only its exit status is left."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def state_of(pid: int) -> str:
    """The letter of a process's state: T and t are stopped, D waits for a device; "" when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def cpu_seconds(pid: int, thread: int = 0) -> tuple[float, float]:
    """Return the CPU seconds of a process, or one of its threads, up to now: (user, system)."""
    place = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    try:
        fields = Path(place).read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0, 0.0
    return int(fields[11]) / _TICKS, int(fields[12]) / _TICKS


class ProcessUsage(Struct, frozen=True):
    """The use of a process up to now: CPU seconds and seconds since its start, and the bytes it holds in memory."""

    cpu_seconds: float
    age_seconds: float
    resident_bytes: int


def usage(pid: int) -> ProcessUsage | None:
    """Return the use of a process, in one read; None when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS
    return ProcessUsage((int(fields[11]) + int(fields[12])) / _TICKS, max(0.0, age), int(fields[21]) * _PAGE)


def wanted_seconds(pid: int) -> float:
    """The CPU seconds that a process used and those that it waited for a CPU, up to now: on a busy host one that wants all gets little."""
    spent = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ran, waited, _ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_bytes().split()
                spent += int(ran) + int(waited)
    except OSError:
        # It is gone, or the kernel keeps no such figures.
        return sum(cpu_seconds(pid))
    return spent / 1e9 if spent else sum(cpu_seconds(pid))


def spawn(launch: ProcessLaunch) -> int:
    """Starts a program in a session of its own; returns its pid. Raises `StartFailed`.

    No Python runs between fork and exec, so the child shares our memory until then (vfork): a server of any size starts a program
    in about a millisecond. That leaves changing the user to `setpriv`, making namespaces to `unshare`, and the session to `setsid`, which
    exec once more. We stand still until the first exec, and the kernel schedules a new session as a group of its own: on a busy host a
    child that made one before its exec would wait for a processor, and we for it.
    """
    argv = list(launch.argv)
    drop: dict[str, int | Sequence[int]] = {}
    if (setpriv := _program("setpriv")) is not None:
        argv = [*(apart(offline=launch.offline)[0] if launch.user else ()), setpriv, "--no-new-privs", *_rights(launch), "--", *argv]
    elif launch.user:
        drop = {"user": launch.user, "group": launch.user, "extra_groups": list(launch.groups)}
    if setsid := _program("setsid"):
        argv = [setsid, *argv]
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # A core of a guest's memory is a guest's secrets on our disk. The child inherits the limit, and its sandbox keeps it from raising it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        child = subprocess.Popen(  # type: ignore[call-overload]
            argv,
            cwd=launch.folder,
            env={**_ENVIRONMENT, **launch.environment},
            stdin=subprocess.DEVNULL,
            stdout=launch.log,
            stderr=launch.log,
            pass_fds=tuple(launch.files),
            start_new_session=not setsid,
            umask=0o077,
            **drop,
        )
    except OSError as error:
        raise StartFailed(f"cannot start {launch.argv[0]}", why=error.strerror or str(error)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    # `Process` waits for it; left to itself, subprocess would warn and take the exit status away.
    child.returncode = 0
    return int(child.pid)


def _rights(launch: ProcessLaunch) -> list[str]:
    if not launch.user:
        return []
    groups = ["--groups", ",".join(map(str, launch.groups))] if launch.groups else ["--clear-groups"]
    return ["--reuid", str(launch.user), "--regid", str(launch.user), *groups, "--inh-caps=-all", "--bounding-set=-all"]


class Process:
    """A process, ours or adopted. `ended` is called once with its wait status; None: it was no child of ours, so nobody told us."""

    def __init__(self, pid: int, ended: Callable[[int | None], None]) -> None:
        """Raises `ProcessLookupError` when there is none."""
        self.pid = pid
        self._ended = ended
        self._handle = os.pidfd_open(pid)
        self.ticks = start_ticks(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._handle, self._gone)

    def kill(self) -> None:
        """It cannot refuse."""
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """To this process and no other, whoever has its pid by now."""
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def release(self) -> None:
        """It is no longer watched, and lives on."""
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _gone(self) -> None:
        status: int | None = None
        with contextlib.suppress(ChildProcessError):
            result = os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG)
            if result is not None:
                status = result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
        self.release()
        self._ended(status)


class HelperProcesses:
    """The helper programs of one machine: without one of them the guest has lost a device, and who cares hears of it."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        self._processes: dict[str, Process] = {}

    def watch(self, name: str, pid: int) -> None:
        """Watch a program from now on; its end logs and reads its status."""
        with contextlib.suppress(ProcessLookupError):
            self._processes[name] = Process(pid, lambda status: self._ended(name))

    def release(self) -> None:
        """Watch none of them any more."""
        for process in self._processes.values():
            process.release()
        self._processes.clear()


def end_process(pid: int, ticks: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Kills it, or sends it another signal, unless the number is somebody else's by now."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if ticks and start_ticks(pid) == ticks:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def holders(path: Path) -> list[int]:
    """The processes that have a file open, other than this one. Slow: for the case that nothing else tells.

    In a chroot or a container, the path of a file that a process with mounts of its own has open is another one, so the file itself counts.
    Its name comes first: to look at any file might wait for a server of files that is gone.
    """
    try:
        wanted, name = os.stat(path), os.path.basename(os.path.realpath(path))
    except FileNotFoundError:
        return []
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        if any(_is_open(f"/proc/{entry}/fd/{handle}", name, wanted) for handle in _handles(entry)):
            found.append(int(entry))
    return found


def _handles(pid: str) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []


def _is_open(link: str, name: str, status: os.stat_result) -> bool:
    """Return whether a descriptor is of this file. One that its process has closed meanwhile, as at the start of a program, is not."""
    try:
        return os.path.basename(os.readlink(link)) == name and os.path.samestat(os.stat(link), status)
    except OSError:
        return False

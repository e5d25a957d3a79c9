"""The processes of VMMs: started apart from the driver, found again by number and start, ended without the risk of meeting another.

The launcher writes down which process it becomes before it does. A number that was used again has another start, another run of the host
another boot; a signal goes to an open descriptor of the process.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.firecracker import files, launcher

_TAIL = 2000
_MOST_TEXT = 400
_KILL_SECONDS = 30.0


class VmmProcess(msgspec.Struct, frozen=True):
    """A process of a VMM."""

    pid: int
    start: int
    boot: str

    @property
    def id(self) -> str:
        """The facts that tell it from every other process that this host ever has."""
        return f"{self.pid}-{self.start}-{self.boot[:8]}"


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a VMM. `user` 0: the driver's own, or the jailer's to change."""

    argv: Sequence[str]
    root: Path
    limits: tuple[str, ...] = ()
    user: int = 0
    groups: tuple[int, ...] = ()


def find(folder: Path) -> VmmProcess | None:
    """Return the process of a machine, if it lives."""
    found = files.read(folder / "process.json", VmmProcess)
    return found if found is not None and is_alive(found) else None


def is_alive(process: VmmProcess) -> bool:
    """Return whether it is this process that has the number, and has not ended."""
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(fields[19]) == process.start and fields[0] not in (b"Z", b"X") and process.boot == launcher.boot()


def is_starting(folder: Path) -> bool:
    """Return whether a process has the machine's lock, known or not."""
    try:
        handle = os.open(folder / "vmm.log", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


async def launch(folder: Path, plan: LaunchPlan) -> None:
    """Start a VMM. Returns as soon as it is on its way."""
    words = (str(folder), str(plan.root), ",".join(plan.limits), str(plan.user or ""), ",".join(map(str, plan.groups)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", launcher.__file__, *words, "--", *plan.argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    # The launcher's first process ends at once; the VMM's is init's.
    if await process.wait():
        raise ProviderError(ErrorKind.UNAVAILABLE, "Firecracker cannot be started", why="the launcher failed")


async def kill(process: VmmProcess) -> None:
    """End a process at once, and wait until it is gone."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(process.pid)
        try:
            # The descriptor is of whatever has the number now; only then is the start compared.
            if is_alive(process):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    if not await wait(process, _KILL_SECONDS):
        raise ProviderError(ErrorKind.TIMEOUT, "a process of Firecracker does not end", why=f"process {process.pid} was killed")


async def wait(process: VmmProcess, seconds: float) -> bool:
    """Wait until a process is gone, so long at most; returns whether it is."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, ended.set)
    try:
        if not is_alive(process):
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return not is_alive(process)


def last_words(folder: Path) -> str:
    """Return the end of what the VMM wrote, for errors. What its guest wrote is in another file."""
    try:
        with open(folder / "vmm.log", "rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    text = " ".join(each.strip() for each in lines[-3:] if each.strip())
    return "".join(each if each.isprintable() else " " for each in text)[-_MOST_TEXT:]

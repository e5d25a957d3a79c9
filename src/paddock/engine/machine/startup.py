"""The preparation of a start of QEMU, and the start itself. No state: existing files are found again, or made anew."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import taps
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.line import Command, FileCopy, HelperProgram
from paddock.engine.machine.config import MachineConfig, UserNetwork
from paddock.engine.machine.directory import Directory, Renewal, UnreadableState
from paddock.engine.machine.errors import RequestRefused, StartFailed, Unanswered
from paddock.engine.machine.livefiles import handed_of
from paddock.engine.machine.observation import Observation, RunEnd, SuspendedState
from paddock.engine.machine.process import ProcessLaunch, end_process, spawn, start_ticks
from paddock.engine.machine.qmp import open_socket
from paddock.engine.machine.users import UserRange, groups, hand_over, hand_over_disk, hand_over_memory

LOOK_SECONDS = 0.01
# A QEMU that ends closes its monitor this much before it is gone.
_ENDING_SECONDS = 1.0


def make_files(directory: Directory, config: MachineConfig, command: Command, user: int, users: UserRange) -> None:
    """Directories, copies, and whose they are."""
    directory.make()
    directory.sweep()
    for copy in command.copies:
        _copy(directory.run, copy, user)
    for helper in command.helpers:
        for name in helper.remove:
            _remove(directory.run / name)
        for name in helper.directories:
            folder = directory.run / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _hand_over_tree(folder, user)
    try:
        for disk in config.disks:
            hand_over_disk(disk, user, users)
        hand_over_memory(config.memory, user, users)
        for path in (*config.firmware.acpi_tables, *(file for _, file in config.firmware.files)):
            hand_over(path, user)
    except OSError as error:
        raise StartFailed(
            f"cannot give machine {directory.id} its disks, memory and firmware", why=f"{error.filename}: {error.strerror}"
        ) from error
    hand_over(directory.run, user, mode=0o700)


def _copy(folder: Path, copy: FileCopy, user: int) -> None:
    target = folder / copy.to
    if not copy.fresh and target.exists():
        hand_over(target, user)
        return
    new = target.with_name(target.name + ".new")
    _remove(new)
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file, open(copy.source, "rb") as source:
            shutil.copyfileobj(source, file)
    except OSError as error:
        raise StartFailed(f"cannot copy {copy.source} to {target}", why=error.strerror or str(error)) from error
    hand_over(new, user)
    os.rename(new, target)


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _hand_over_tree(folder: Path, user: int) -> None:
    hand_over(folder, user, mode=0o700)
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            hand_over(path, user)


def start_helper(directory: Directory, helper: HelperProgram, log: int, user: int) -> int:
    """Returns its pid. It has to be waited for: see `listens`.

    A directory outside of the run's is handed over open: the machine's user cannot pass through what is above it.
    """
    argv, handles = list(helper.argv), []
    try:
        for name in helper.directories:
            if not Path(name).is_absolute():
                continue
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            handles.append(handle)
            argv = [word.replace(f"dir={name},", f"dir=/proc/self/fd/{handle},") for word in argv]
        return spawn(ProcessLaunch(argv, directory.run, log, handles, user=0 if helper.needs_root else user, offline=True))
    finally:
        for handle in handles:
            os.close(handle)


async def listens(directory: Directory, helper: HelperProgram, pid: int, user: int, patience: float) -> None:
    """Returns when a helper does what QEMU needs. Raises `StartFailed`."""
    pause = 0.002
    try:
        async with asyncio.timeout(patience):
            while not (directory.run / helper.socket).is_socket():
                if not start_ticks(pid):
                    raise StartFailed(f"cannot start {helper.name}", why=f"{helper.argv[0]} ended at once", text=directory.log_tail())
                await asyncio.sleep(pause)
                pause = min(0.05, pause * 1.5)
    except TimeoutError:
        raise StartFailed(f"cannot start {helper.name}", why=f"{helper.argv[0]} did not listen within {patience:g} s") from None
    if helper.needs_root and user:
        hand_over_socket(directory.run / helper.socket, user)


def end_helpers(helpers: Iterable[tuple[int, int]]) -> None:
    """They end by themselves when QEMU goes, unless something hung."""
    for pid, ticks in helpers:
        if ticks and start_ticks(pid) == ticks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def end_beside(renewal: Renewal | None) -> None:
    """A second process of a machine that has ended."""
    if renewal is not None:
        end_process(renewal.pid, renewal.ticks)
        end_helpers(renewal.helpers.values())


def hand_over_socket(path: Path, user: int) -> None:
    """QEMU may connect to it."""
    with contextlib.suppress(OSError):
        os.chown(path, user, user, follow_symlinks=False)


def make_files_beside(directory: Directory, command: Command, user: int) -> None:
    """Make the files that a second QEMU needs beside the first: output that the first writes as it goes is one file under two names."""
    other = directory.beside
    directory.drop_beside()
    other.run.mkdir(mode=0o700)
    for name in (names.SERIAL_LOG, *(os.fspath(copy.to) for copy in command.copies if copy.fresh)):
        with contextlib.suppress(FileNotFoundError):
            os.link(directory.run / name, other.run / name, follow_symlinks=False)
    for helper in command.helpers:
        for name in helper.directories:
            folder = other.run / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            hand_over(folder, user, mode=0o700)
    hand_over(other.run, user, mode=0o700)


def start_qemu(
    directory: Directory, config: MachineConfig, command: Command, log: int, rights: tuple[int, UserRange], beside: int = 0
) -> int:
    """Returns its pid. The lock is taken here and inherited by QEMU alone. Raises `StartFailed`.

    `beside` is the process whose guest it takes over.
    """
    user, users = rights
    lock = directory.take_lock()
    if lock is None:
        raise StartFailed(
            f"cannot start machine {directory.id}", why="a QEMU of it still runs", fix="it is found again when Paddock is started anew"
        )
    try:
        wanted = ((opening.nic, opening.device, opening.queues, opening.vhost) for opening in command.openings)
        files = taps.open_all(wanted, beside)
        try:
            argv = command.arguments(files.taps, files.vhosts)
            inherited: Sequence[int] = [lock, *files.all()]
            extra = groups(config, users, kvm=command.accelerator == "kvm") if user else ()
            # It has taps open, and connects to sockets that are files; its own user-mode network alone speaks for itself.
            offline = not any(isinstance(nic.backend, UserNetwork) for nic in config.nics)
            return spawn(ProcessLaunch(argv, directory.run, log, inherited, user, extra, command.environment, offline))
        finally:
            files.close()
    finally:
        os.close(lock)


async def lets_go(directory: Directory, patience: float) -> None:
    """Returns when no QEMU of an earlier run is left, or after this time: a second one is killed with a run and not waited for."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while directory.locked():
                await asyncio.sleep(LOOK_SECONDS)


async def reach(directory: Directory, name: str, patience: float) -> socket.socket:
    """Connects to a socket of QEMU as soon as it is there. Raises `StartFailed`."""
    pause = 0.004
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    return open_socket(directory.run, name)
                except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                    await asyncio.sleep(pause)
                    pause = min(0.1, pause * 1.2)
    except TimeoutError:
        raise StartFailed(f"cannot talk to the QEMU of machine {directory.id}", why=f"its monitor is silent for {patience:g} s") from None
    except OSError as error:
        raise StartFailed(f"cannot talk to the QEMU of machine {directory.id}", why=error.strerror or str(error)) from error


async def unless_it_ends(talk: Awaitable[None]) -> None:
    """Talk to QEMU. Where that fails because it is ending, its end comes first, ends this too, and tells more."""
    try:
        await talk
    except Unanswered:
        await asyncio.sleep(_ENDING_SECONDS)
        raise


def clear(directory: Directory, seen: Observation, *, stopped: bool) -> Observation:
    """Remove the files of a run that is over, and return the state after it. A stop discards the saved state of a guest."""
    with contextlib.suppress(OSError):
        if stopped:
            directory.drop_saved()
        directory.sweep()
    return over(directory, seen)


def over(directory: Directory, seen: Observation) -> Observation:
    """Return the state after a run: ended, or suspended if the guest's state was saved."""
    seen = replace(seen, handed=handed_of(directory))
    if not directory.is_saved:
        return replace(seen, phase="ended")
    try:
        saved = directory.read_saved()
        state = SuspendedState(saved.at, saved.size) if saved is not None else None
    except UnreadableState as error:
        state, end = SuspendedState(0.0, 0), seen.end or RunEnd("saved")
        seen = replace(seen, end=replace(end, text=str(error)))
    return replace(seen, phase="suspended", suspended=state)


def demand_here(id: str, seen: Observation, command: str) -> None:
    """Raise for a command that lets a guest run which another host may run. Whoever gives it."""
    if seen.handed and command == "cont":
        why = "the guest was handed over to another host"
        raise RequestRefused(f"cannot let machine {id} go on", reason="Offered", why=why, fix="look there")


def problem(error: PaddockError | OSError) -> str:
    """Return the reason why a start failed."""
    return str(error) if isinstance(error, PaddockError) or not error.filename else f"{error.strerror}: {error.filename}"

"""The memory of a running guest goes into a file, and its disks go on in new layers, at one moment.

    stream    the guest runs, and QEMU writes its memory, and again what the guest has changed since     the disks are in their old layers
    switch    the guest stands still, and its disks go on in new layers: one transaction                 in the new ones
    rest      QEMU writes what is left, and the state of its devices
    go on     the guest goes on, and the file is synchronised

Until the switch everything can become as it was, and does when anything fails. What fails after it leaves disks in their new layers, and
no memory. A Paddock that is killed finds `saving` in the record, and lets the guest go on (`suspension.adopt`).
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.engine.machine import hardware, migration, suspension
from paddock.engine.machine.blockjobs import BlockJobs
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.owner import MachineOwner

# A guest that changes its memory as fast as it is written stands still from then on.
FORCE_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_WITHOUT = "take the snapshot without memory"


class MemoryRequest(Struct, frozen=True):
    """The parts of a snapshot with memory."""

    # the layers that the disks go on in
    layers: Mapping[str, DiskLayer]
    # further disks, made anew at each start from what does not change
    unchanging: frozenset[str]
    # the file of the memory
    path: Path


class TakenMemory(Struct, frozen=True):
    """The guest's state is in the file."""

    saved: SavedMachine
    # seconds for which the guest stood still
    pause: float
    # the version of QEMU that wrote it
    qemu: str


class MemorySnapshots:
    """Writes the memory of one machine. Called by the owner's inbox only."""

    def __init__(self, owner: MachineOwner, layers: BlockJobs) -> None:
        self._owner = owner
        self._layers = layers

    async def take(self, memory_request: MemoryRequest) -> TakenMemory:
        """Returns when the file is whole. Raises when it is not; unless it ended, the guest then goes on."""
        owner = self._owner
        try:
            included = memory_request.layers.keys() | memory_request.unchanging
            limit = await self.demand(included, memory_request.path.parent)
            started, now = await hardware.find(owner, self._refused)
            qemu, paused = await _version(owner), bool(owner.observed.paused)
            async with self._layers.switching(memory_request.layers) as switch:
                size, pause = await self._write(memory_request.path, switch, limit)
            saved = replace(suspension.saved_machine(owner, started, now, size, paused=paused), config=owner.config)
            return TakenMemory(saved, pause, qemu)
        except OSError as error:
            why = f"{error.filename or memory_request.path}: {error.strerror}"
            raise self._refused("NoFile", why, "look at the host's disk") from error

    # --- what has to hold -------------------------------------------------------------------------------------------------

    async def demand(self, included: Collection[str], folder: Path) -> int:
        """Raise before the guest notices anything; return the size of the file at which the guest is stopped.

        `included`: the disks that the snapshot has, or that do not change. `folder`: where the memory is to be.
        """
        owner = self._owner

        def refused(reason: str, why: str, fix: str) -> RequestRefused:
            return self._refused(reason, why, _WITHOUT if reason == reasons.MEMORY_REFUSED else fix)

        await hardware.demand_movable(owner, refused, reason=reasons.MEMORY_REFUSED, at_once=False)
        if found := obstacles(owner.started, owner.config, included):
            raise self._refused(reasons.MEMORY_REFUSED, "; ".join(found), _WITHOUT)
        if owner.record.identity is not None:
            raise self._refused("Busy", "its guest has the identity of another machine", "try again when it has one of its own")
        if owner.observed.paused not in ("", "user"):
            raise self._refused("Busy", f"its guest does not run ({owner.observed.paused})", "try again when it does")
        return self._room(folder)

    def _room(self, folder: Path) -> int:
        """Raise if the file may not fit. Between the limit and the end, the guest's memory is written once more at most."""
        size = suspension.taken(Path(f"/proc/{self._owner.observed.pid}/status").read_text())
        limit = size + size // 4
        found = os.statvfs(folder)
        if (free := found.f_bavail * found.f_frsize) < (need := limit + size + suspension.SPARE):
            why = f"its memory may take {need >> 20} MiB, and {folder} has room for {free >> 20} MiB"
            raise self._refused(reasons.MEMORY_REFUSED, why, f"make room there, or {_WITHOUT}")
        return limit

    # --- writing ----------------------------------------------------------------------------------------------------------

    async def _write(self, path: Path, switch: Callable[[], Awaitable[None]], limit: int) -> tuple[int, float]:
        """Return the size of the file, and the seconds for which the guest stood still."""
        owner, loop = self._owner, asyncio.get_running_loop()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        stopped: list[float] = []

        def stops(name: str, data: Mapping[str, Any]) -> bool:
            if name == "STOP":
                stopped.append(loop.time())
            return False

        try:
            with owner.occupied(), owner.events.expect(stops):
                try:
                    owner.save(saving=True)
                    await migration.give(owner, handle)
                    async with _forced(owner, handle, limit):
                        await migration.send(owner, "snapshot", switch)
                finally:
                    # Done in any case, also when nobody waits for it.
                    await asyncio.wait([owner.background(suspension.go_on(owner))])
                pause = loop.time() - stopped[0] if stopped else 0.0
            await asyncio.to_thread(os.fsync, handle)
            return os.fstat(handle).st_size, pause
        finally:
            os.close(handle)

    def _refused(self, reason: str, why: str, fix: str = "") -> RequestRefused:
        return RequestRefused(f"cannot take the memory of machine {self._owner.id}", reason=reason, why=why, fix=fix)


@contextlib.asynccontextmanager
async def _forced(owner: MachineOwner, handle: int, limit: int) -> AsyncIterator[None]:
    """Stop the guest when the file has become too long, or the time is over: then it comes to an end."""

    async def watch() -> None:
        due = asyncio.get_running_loop().time() + FORCE_SECONDS
        while os.fstat(handle).st_size < limit and asyncio.get_running_loop().time() < due:
            await asyncio.sleep(_LOOK_SECONDS)
        with contextlib.suppress(PaddockError):
            await owner.execute("stop")

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _version(owner: MachineOwner) -> str:
    answer = await owner.execute("query-version")
    return ".".join(str(answer["qemu"][part]) for part in ("major", "minor", "micro"))


# --- decisions --------------------------------------------------------------------------------------------------------------


def obstacles(started: MachineConfig, config: MachineConfig, included: Collection[str]) -> tuple[str, ...]:
    """Return the reasons why the memory of a machine would not fit to what a snapshot has of it besides; empty: it does."""
    found = []
    if started.memory.file is not None:
        found.append("its memory is a file that others may share")
    if hardware_of(started) != hardware_of(config):
        found.append("devices were plugged or unplugged since its start, which a restored machine would not have")
    found += [
        f"disk {disk.name} is not in the snapshot, and the guest may write it"
        for disk in config.disks
        if is_written(disk) and disk.name not in included
    ]
    return tuple(found)


def hardware_of(config: MachineConfig) -> MachineConfig:
    """Return a config without what may differ from one moment to the next: layers of disks, links of cards."""
    disks = tuple(replace(disk, layer=None) for disk in config.disks)
    return replace(config, disks=disks, nics=tuple(replace(nic, link_up=True) for nic in config.nics))


def is_written(disk: DiskConfig) -> bool:
    """Return whether the guest may write a disk."""
    return disk.layer is not None and not disk.readonly and disk.role != "cdrom"

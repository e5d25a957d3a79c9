"""Snapshots of volumes, whether a machine runs on them or not: those of one machine in one moment, with the guest's file systems quiet.

A machine that runs goes on in new layers, all of them in one transaction, and what lies below is the snapshot. Every step finds what an
earlier attempt did: a new layer that nobody uses yet says the same as the one below it, and a machine that has gone on is not asked again.
"""

import asyncio
import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.engine.machine import forks, identities
from paddock.engine.machine.config import DiskLayer
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.memorysnapshots import MemoryRequest
from paddock.engine.memorystates import MemoryState, MemoryStates
from paddock.engine.storage.volume import busy, suspended
from paddock.engine.storage.volumes import Volumes

_FREEZE_SECONDS = 60.0


class WantedMemory(Struct, frozen=True):
    """The memory that a snapshot is to have."""

    # the name under which it is kept; empty: there is none yet
    id: str
    # volumes that are made anew at each start from what does not change
    unchanging: frozenset[str] = frozenset()
    # another machine is to go on from it
    fork: bool = False


class SnapshotContext(Struct, frozen=True):
    """The circumstances a snapshot was taken in."""

    online: bool = False
    paused: bool = False
    # the guest's agent was there, and did what it was asked to
    agent: bool = False
    quiesced: bool = False
    # why the guest's file systems were not quiet, when they could have been
    problem: str = ""
    memory: MemoryState | None = None


class Snapshots:
    def __init__(self, machines: Machines, volumes: Volumes, memories: MemoryStates) -> None:
        self._machines = machines
        self._volumes = volumes
        self._memories = memories

    async def demand_memory(self, volumes: Collection[str], memory: WantedMemory) -> None:
        """Raise if a snapshot of these volumes cannot have the memory of the machine that runs on them."""
        if not memory.id or self._memories.get(memory.id) is None:
            machine, disks = self._running(volumes)
            await machine.demand_memory(disks.keys() | memory.unchanging, self._memories.root)
            if memory.fork:
                await _demand_forkable(machine)

    def _running(self, volumes: Iterable[str]) -> tuple[QemuMachine, dict[str, str]]:
        """Return the machine that runs on volumes, with its disks on them."""
        directories = self._directories(volumes)
        found = [(each, disks) for each in self._machines if each.observed.phase == "running" and (disks := _disks(each, directories))]
        if len(found) != 1:
            why = "several machines run on its volumes" if found else "no machine runs on its volumes"
            fix = "start the machine, or take the snapshot without memory"
            raise RequestRefused("cannot take a snapshot with memory", reason=reasons.MEMORY_REFUSED, why=why, fix=fix)
        return found[0]

    async def take_with_memory(self, wanted: Mapping[str, str], memory: WantedMemory) -> SnapshotContext:
        """Freeze what these volumes of a running machine hold, and its memory of the same moment."""
        if (kept := self._memories.get(memory.id)) is None:
            machine, disks = self._running(wanted)
            if any(self._volumes.get_snapshot(each) is not None for each in wanted.values()):
                raise _lost()
            kept = await self._with_memory(machine, disks, wanted, memory)
        for volume, snapshot in wanted.items():
            await self._volumes.frozen(volume, snapshot)
        return SnapshotContext(online=True, paused=kept.record.saved.paused, memory=kept)

    async def _with_memory(
        self, machine: QemuMachine, disks: Mapping[str, str], wanted: Mapping[str, str], memory: WantedMemory
    ) -> MemoryState:
        layers = {name: await self._volumes.next_layer(volume, wanted[volume]) for name, volume in disks.items()}
        used = {disk.name: disk.layer for disk in machine.config.disks}
        steps = {name: _steps(used.get(name), layer) for name, layer in layers.items()}
        if not all(steps.values()):
            raise _lost()
        *earlier, last = _rounds(steps)
        for each in earlier:
            await machine.overlay_disks(each)
        path = self._memories.draft(memory.id)
        try:
            taken = await machine.take_memory(MemoryRequest(last, memory.unchanging, path))
        except BaseException:
            self._memories.delete(memory.id)
            raise
        return self._memories.keep(memory.id, taken)

    async def take(self, wanted: Mapping[str, str]) -> SnapshotContext:
        """Freeze what these volumes hold; `wanted` has a snapshot for each volume. Volumes of one machine show the same moment."""
        todo = {volume: snapshot for volume, snapshot in wanted.items() if self._volumes.get_snapshot(snapshot) is None}
        taken, directories = SnapshotContext(), self._directories(todo)
        for machine in tuple(self._machines):
            disks = _disks(machine, directories)
            if disks and machine.observed.phase == "suspended":
                raise suspended(next(iter(disks.values())))
            if disks and machine.observed.phase in ("defined", "queued", "starting"):
                # It opens the layers of its command line, and writes into them.
                raise busy(next(iter(disks.values())))
            if disks and machine.observed.phase == "running":
                taken = await self._online(machine, disks, todo)
        for volume, snapshot in todo.items():
            if self._volumes.get_snapshot(snapshot) is None:
                await self._volumes.snapshot(volume, snapshot)
        return taken

    def user_of(self, volume: str) -> QemuMachine | None:
        """The machine that lives, or is suspended, and has a disk on this volume."""
        directories = self._directories((volume,))
        if not directories:
            # Each new claim is asked about before it has a volume: that must not cost a look at all machines.
            return None
        return next((each for each in self._machines if each.observed.holds_disks and _disks(each, directories)), None)

    def _directories(self, volumes: Iterable[str]) -> dict[str, str]:
        """The volumes that are there, by where they are."""
        return {str(found.directory): each for each in volumes if (found := self._volumes.get(each)) is not None}

    async def _online(self, machine: QemuMachine, disks: Mapping[str, str], wanted: Mapping[str, str]) -> SnapshotContext:
        layers = {name: await self._volumes.next_layer(volume, wanted[volume]) for name, volume in disks.items()}
        used = {disk.name: disk.layer for disk in machine.config.disks}
        rounds = _rounds({name: _steps(used.get(name), layer) for name, layer in layers.items()})
        paused = bool(machine.observed.paused)
        agent = machine.observed.agent and not paused
        quiesced, problem = False, ""
        if rounds:
            quiesced, problem = await self._quietly(machine, rounds, agent=agent)
        elif layers:
            # An earlier attempt has written the config; its layers may not be QEMU's yet.
            await machine.overlay_disks(layers)
        for volume in disks.values():
            await self._volumes.frozen(volume, wanted[volume])
        return SnapshotContext(online=True, paused=paused, agent=agent, quiesced=quiesced, problem=problem)

    async def _quietly(self, machine: QemuMachine, rounds: Sequence[Mapping[str, DiskLayer]], *, agent: bool) -> tuple[bool, str]:
        """Go on in new layers while the guest's file systems are quiet; whatever happens, they are thawed."""
        quiet, problem = False, ""
        if agent:
            try:
                async with asyncio.timeout(_FREEZE_SECONDS):
                    await machine.agent.freeze()
                quiet = True
            except (PaddockError, TimeoutError) as error:
                problem = str(error) or "the guest did not become quiet in time"
        try:
            for layers in rounds:
                await machine.overlay_disks(layers)
        finally:
            if agent:
                # Also after a freeze that failed: it may have gone half the way.
                with contextlib.suppress(PaddockError):
                    await machine.agent.thaw()
        return quiet, problem


async def _demand_forkable(machine: QemuMachine) -> None:
    """Raise if no other machine could go on from the memory of this one."""
    agent = machine.observed.agent
    found = "; ".join(forks.obstacles(machine.config, agent=agent))
    if agent and not found:
        try:
            await identities.check(machine.agent, machine.id)
        except PaddockError as error:
            found = str(error)
    if found:
        what, fix = f"cannot fork machine {machine.id}", "clone it without its memory"
        raise RequestRefused(what, reason=reasons.MEMORY_REFUSED, why=found, fix=fix)


def _lost() -> RequestRefused:
    what, why = "cannot take a snapshot with memory", "an attempt was cut short after the disks had gone on"
    return RequestRefused(what, reason=reasons.MEMORY_LOST, why=why, fix="delete this snapshot and take another one")


def _disks(machine: QemuMachine, directories: Mapping[str, str]) -> dict[str, str]:
    """The disks of a machine that are on the volumes in these directories: name -> volume."""
    # As strings: this compares the disks of all machines, and a Path for each disk's directory would take ten times as long.
    on = ((disk.name, directories.get(os.path.dirname(disk.layer.path))) for disk in machine.config.disks if disk.layer is not None)
    return {name: volume for name, volume in on if volume is not None}


def _steps(used: DiskLayer | None, disk_layer: DiskLayer) -> list[DiskLayer]:
    """The layers between the one a disk is in and the one it is to go on in, that one included; none when it is there already.

    More than one where an earlier attempt wrote layers down and ended before they were used.
    """
    found: list[DiskLayer] = []
    layer: DiskLayer | None = disk_layer
    while layer is not None:
        if used is not None and layer.path == used.path:
            return found[::-1]
        found.append(layer)
        layer = layer.backing
    # The disk is not below: it has gone on from there.
    return []


def _rounds(steps: Mapping[str, Sequence[DiskLayer]]) -> list[dict[str, DiskLayer]]:
    """Steps that are taken together. All disks take their last one together, so that they show the same moment."""
    most = max((len(each) for each in steps.values()), default=0)
    rounds: list[dict[str, DiskLayer]] = []
    for number in range(most):
        late = {name: number - (most - len(each)) for name, each in steps.items()}
        rounds.append({name: steps[name][index] for name, index in late.items() if index >= 0})
    return rounds

"""A guest is suspended to disk, and resumed: its memory and devices are a file, and no process is left.

    write     the guest stands still, and its state goes into `saved.state.new`                QEMU may run the guest
    commit    `saved.json` is on disk: one write, and the machine is suspended                 nobody may
    end       QEMU ends, and the host has its memory again                                     nobody
    read      a new QEMU reads the state, and waits                                            nobody
    consume   `saved.json` is gone from the disk                                               the new QEMU
    go on     the guest goes on; the state is removed                                          the new QEMU

Up to the commit the guest can go on, and does when anything fails. While `saved.json` is there, no process runs the guest: one that is
found after Paddock was killed is killed, too, and the state is still whole. So a state that ran once never runs again, on disks that
went on.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import hardware, migration, probe
from paddock.engine.machine.argv.command import command as command_line
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.renewed import RunningHardware, renewed
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.errors import RequestRefused, StartFailed
from paddock.engine.machine.observation import RunEnd, SuspendedState
from paddock.engine.machine.owner import MachineOwner

# The host keeps so much room besides the state.
SPARE = 64 << 20
# Lines of /proc/PID/status: the guest has touched no more than its process has, in memory or swapped out.
_TAKEN = ("VmRSS:", "VmSwap:", "HugetlbPages:")


class Suspensions:
    """The suspensions of one machine. Called by the owner's inbox only, apart from `demand`."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner

    async def demand(self) -> None:
        """Raise if the machine cannot be suspended now. The guest notices nothing."""
        owner = self._owner
        await hardware.demand_movable(owner, self._refused, reason="NotSuspendable", at_once=False)
        if owner.started.memory.file is not None:
            raise self._refused("NotSuspendable", "its memory is a file that others may share", "stop and start it")
        if owner.observed.paused not in ("", "user", "start"):
            raise self._refused("NotSuspendable", f"its guest was stopped by the host ({owner.observed.paused})", "mend that first")
        need = taken(Path(f"/proc/{owner.observed.pid}/status").read_text()) + SPARE
        found = os.statvfs(owner.directory.path)
        if (free := found.f_bavail * found.f_frsize) < need:
            why = f"its state may take {need >> 20} MiB, and {owner.directory.path} has room for {free >> 20} MiB"
            raise self._refused("NoSpace", why, "make room there")

    async def suspend(self) -> None:
        """Returns when the state is on disk and QEMU ends. Raises when it is not; unless it ended, the guest then goes on."""
        owner = self._owner
        try:
            await self.demand()
            started, now = await hardware.find(owner, self._refused)
            paused = bool(owner.observed.paused)
            with owner.occupied():
                try:
                    owner.save(saving=True)
                    size = await self._write()
                    self._commit(started, now, size, paused=paused)
                    # Whatever comes now, nobody lets the guest of this process go on.
                    owner.observe(phase="stopping")
                except BaseException as error:
                    # Done in any case, also when nobody waits for it.
                    end = owner.background(self._back())
                    if isinstance(error, PaddockError | OSError):
                        await asyncio.wait([end])
                    raise
        except OSError as error:
            raise self._refused(
                "NoFile", f"{error.filename or owner.directory.path}: {error.strerror}", "look at the host's disk"
            ) from error
        owner.quit("saved")

    async def _write(self) -> int:
        """Returns the size of the state."""
        path = self._owner.directory.fresh_state
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            await migration.write(self._owner, handle, bitmaps=True)
            await asyncio.to_thread(synchronise, self._owner.config)
            return os.fstat(handle).st_size
        finally:
            os.close(handle)

    def _commit(self, started: MachineConfig, now: RunningHardware, size: int, *, paused: bool) -> None:
        """Never interrupted: nothing else happens in this process until it is done."""
        owner = self._owner
        owner.directory.write_saved(replace(saved_machine(owner, started, now, size, paused=paused), disks=written(now.config)))

    async def _back(self) -> None:
        """The guest goes on as if nothing had been."""
        owner = self._owner
        # A commit that failed half the way must not be found by anybody.
        owner.directory.drop_saved()
        owner.directory.drop_leftovers()
        await go_on(owner)

    async def adopt(self) -> None:
        """Paddock ended in the middle of a suspension, which then is none, or of a resume whose state is consumed."""
        record = self._owner.record
        if record.saving:
            await self._back()
        elif record.restore and not record.start_paused:
            await migration.go_on(self._owner)
            await probe.changes(self._owner)
            self._owner.directory.drop_leftovers()

    def line(self) -> tuple[MachineConfig, Command]:
        """Return the config and the command line of a start. Raises `StartFailed` when the guest could not go on there."""
        owner = self._owner
        view = owner.surroundings.host_view(owner.config)
        saved = owner.directory.read_saved() if owner.record.restore == os.fspath(owner.directory.saved_state) else None
        if saved is None:
            return owner.config, command_line(owner.config, view, incoming=bool(owner.record.restore))
        started = with_host_parts(saved.started, owner.config)
        now = RunningHardware(owner.config, saved.places, saved.processors, ports_taken=False)
        command = renewed(started, now, view)
        # The header of a layer that nobody has written is corrected when layers below it are merged.
        disks = written(saved.config, times=not saved.from_snapshot)
        if found := tuple(mismatches(saved, command.accelerator, view.processor, disks)):
            raise StartFailed(f"cannot resume machine {owner.id}", why="; ".join(found), fix="undo that, or discard the saved state")
        if saved.from_snapshot or saved.identity is not None:
            owner.save(clock_due=saved.from_snapshot, identity=saved.identity)
        return started, command

    def _refused(self, reason: str, why: str, fix: str = "") -> RequestRefused:
        return RequestRefused(f"cannot suspend machine {self._owner.id}", reason=reason, why=why, fix=fix)


def saved_machine(owner: MachineOwner, started: MachineConfig, now: RunningHardware, size: int, *, paused: bool) -> SavedMachine:
    """Return what a file with the state of a guest belongs to, but for its disks."""
    return SavedMachine(
        at=owner.surroundings.clock.seconds(),
        size=size,
        started=started,
        config=now.config,
        places={device: dict(place) for device, place in now.places.items()},
        processors=[dict(each) for each in now.processors],
        accelerator=owner.record.accelerator,
        processor=owner.surroundings.host_view(owner.config).processor,
        paused=paused,
        disks={},
        agent=owner.observed.agent,
        identity=owner.record.identity,
    )


async def go_on(owner: MachineOwner) -> None:
    """The guest goes on after its state was written, if there is one."""
    if owner.record.active and owner.run.process is not None:
        with contextlib.suppress(PaddockError):
            await migration.go_on(owner)
        owner.save(saving=False)
        # One that was paused before still is.
        await owner.look_at_status()


async def begin(owner: MachineOwner, saved: SavedMachine, fill: Callable[[Path], None]) -> None:
    """A machine that never ran is suspended from now on. `fill` makes the file of its state, in a thread, and synchronises it."""
    directory = owner.directory
    directory.drop_leftovers()
    await asyncio.to_thread(fill, directory.fresh_state)
    directory.write_saved(replace(saved, disks=written(owner.config, times=False), from_snapshot=True))
    owner.observe(phase="suspended", suspended=SuspendedState(saved.at, saved.size))


def discard(owner: MachineOwner) -> None:
    """The saved state of a suspended machine is thrown away."""
    owner.directory.drop_saved()
    owner.directory.sweep()
    now = owner.surroundings.clock.seconds()
    end = RunEnd("discarded", "", now, asked=True)
    owner.save(end=end, times={**owner.record.times, "ended": now})
    owner.observe(phase="ended", suspended=None, end=end, times=owner.record.times)


# --- decisions --------------------------------------------------------------------------------------------------------------


def taken(status: str) -> int:
    """Return the bytes that a process has, from its /proc/PID/status."""
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(_TAKEN))


def mismatches(saved: SavedMachine, accelerator: str, processor: str, disks: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield the reasons why a saved guest cannot go on here and now."""
    if accelerator != saved.accelerator:
        yield f"it was suspended under {saved.accelerator}, and this host has {accelerator}"
    elif saved.accelerator == "kvm" and processor != saved.processor:
        yield f"it was suspended on a processor {saved.processor or 'of an unknown model'}, and this host has {processor or 'another one'}"
    own = {os.fspath(path) for path, is_own in _files(saved.config).items() if is_own}
    for path in sorted(saved.disks.keys() | disks.keys()):
        before, now = saved.disks.get(path), disks.get(path)
        if now is None:
            yield f"its disk {path} is gone"
        # A layer below grows when those above it are merged into it, and never becomes shorter.
        elif before is None or (now != before if path in own else now < before):
            yield f"its disk {path} was written since"


def written(config: MachineConfig, *, times: bool = True) -> dict[str, tuple[int, int]]:
    """Return the size and the last write of each file that the disks consist of; 0 for those that nobody writes. Devices do not tell.

    Without `times` there are sizes alone, which are enough for empty layers: the first write makes them larger.
    """
    found = {}
    for path, own in _files(config).items():
        with contextlib.suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                found[os.fspath(path)] = (status.st_size, status.st_mtime_ns if own and times else 0)
    return found


def synchronise(config: MachineConfig) -> None:
    """A power cut takes nothing away of what the guest wrote, nor the time of it."""
    for path in (path for path, own in _files(config).items() if own):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _files(config: MachineConfig) -> dict[Path, bool]:
    """The files of disks, each with whether the guest writes it."""
    found: dict[Path, bool] = {}
    for disk in config.disks:
        layer, own = disk.layer, not disk.readonly and disk.role != "cdrom"
        while layer is not None:
            found[layer.path] = own or found.get(layer.path, False)
            layer, own = layer.backing, False
    return found


def with_host_parts(started: MachineConfig, fresh: MachineConfig) -> MachineConfig:
    """A config of before with what a host gives anew at each start: processors of its own, and the backends of cards."""
    backends = {nic.name: nic.backend for nic in fresh.nics}
    nics = tuple(replace(nic, backend=backends.get(nic.name, nic.backend)) for nic in started.nics)
    cpu = replace(started.cpu, pinned=fresh.cpu.pinned, emulator_pinned=fresh.cpu.emulator_pinned)
    return replace(started, cpu=cpu, nics=nics)

"""Machines in memory, with the contract of `paddock.engine.machine` and no QEMU.

machines = FakeMachines(clock)
machine = await machines.define("uid-1", config)
await machine.start()              # queued, starting, running: one step each time the loop turns
machine.power_off()                # the guest shuts itself down
machine.crash("a line of its log")
machine.agent.connect()
machines.hold("uid-1")             # the next start stays in `starting` until release()
machines.fail("uid-1", "no such file")   # its starts fail

A guest obeys the power button at once unless `machine.deaf`. Time is asyncio's, so tests in virtual time see stops take their grace.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddock.base.clock import Clock, SystemClock
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig, Nic
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.observation import (
    DiskState,
    EndReason,
    GuestFault,
    MemoryStatistics,
    NicState,
    Observation,
    Paused,
    RenewalResult,
    RunEnd,
    Statistics,
    SuspendedState,
)
from paddock.engine.machine.pipes import last_screen
from paddock.engine.machine.requests import Verb, admit
from tests.kit.engine.agentfakes import FakeAgent
from tests.kit.engine.enginefakes_backups import FakeBackups
from tests.kit.engine.enginefakes_directory import FakeDirectory
from tests.kit.engine.enginefakes_live import FakeDecisions, FakeLive
from tests.kit.engine.enginefakes_memory import FakeMemory
from tests.kit.engine.enginefakes_moves import FakeMoves
from tests.kit.engine.enginefakes_shares import FakeShares

PNG = b"\x89PNG\r\n\x1a\nfake"


class FakePipe:
    """A pipe to a guest. `written` is the input of the guest; `say` adds its output."""

    def __init__(self) -> None:
        self.written, self.closed = b"", False
        self._said: asyncio.Queue[bytes] = asyncio.Queue()

    def say(self, data: bytes) -> None:
        self._said.put_nowait(data)

    async def read(self) -> bytes:
        return b"" if self.closed and self._said.empty() else await self._said.get()

    async def write(self, data: bytes) -> None:
        if not self.closed:
            self.written += data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._said.put_nowait(b"")


class FakeMachine(FakeBackups, FakeMemory, FakeMoves, FakeLive):
    """A machine in memory."""

    def __init__(self, machines: "FakeMachines", id: str, config: MachineConfig) -> None:
        for part in (FakeBackups, FakeMemory, FakeMoves, FakeLive):
            part.__init__(self)
        self.id = id
        self.config = config
        self.observed = Observation()
        self.agent = FakeAgent(self)
        self.directory = FakeDirectory()
        self.deaf = False
        self.guest_changes = 0
        self.outdated = False
        self.immovable: tuple[str, ...] = ()
        self.presses = 0
        # that of its last start
        self.priority = 0
        # why it cannot be read
        self.unreadable = ""
        self.overlays: list[Mapping[str, DiskLayer]] = []
        self.commits: list[tuple[str, Path]] = []
        self.consoles: list[FakePipe] = []
        self.displays: list[FakePipe] = []
        self.usb_devices: list[FakePipe] = []
        self.told = Statistics(memory=MemoryStatistics(domain=config.memory.size, resident=config.memory.size))
        self._machines = machines
        self._steps: list[asyncio.Handle] = []

    # What tests do to the guest.

    def power_off(self) -> None:
        self._end("guest-shutdown")

    def reboot(self) -> None:
        if self.config.reboot_ends:
            self._end("guest-reboot")
        else:
            self.observe(resets=self.observed.resets + 1, agent=False)

    def crash(self, text: str = "") -> None:
        self._end("crashed", text)

    def end(self, reason: EndReason, text: str = "") -> None:
        self._end(reason, text)

    def io_error(self, disk: str, error: str = "enospc") -> None:
        self.observe(paused="io-error", disk_errors={**self.observed.disk_errors, disk: error})

    # The contract.

    async def start(self, *, paused: bool = False, priority: int = 0, grace: float = 0.0) -> None:
        if not self._admit(Verb.START):
            return
        self.priority = priority
        if self.observed.phase == "suspended":
            paused = self.saved_paused
            if self.unreadable:
                self.observe(run=self.observed.run + 1, end=RunEnd("never-started", self.unreadable))
                return
        times = {"queued": self._machines.clock.seconds()}
        self._replace(Observation(phase="queued", run=self.observed.run + 1, times=times))
        self._soon(0.0, self._starting, "start" if paused else "")

    async def stop(self, grace_seconds: float) -> None:
        if not self._admit(Verb.STOP):
            return
        if self.observed.phase == "suspended":
            self._end("discarded")
            return
        if self.observed.phase == "queued":
            self._end("killed")
            return
        deadline = self._machines.clock.seconds() + grace_seconds
        if self.observed.deadline:
            deadline = min(deadline, self.observed.deadline)
        self._drop_steps()
        self.observe(phase="stopping", deadline=deadline, milestone="stopping")
        if grace_seconds > 0 and not self.deaf and not self.observed.paused:
            self.presses += 1
            self._soon(0.0, self.power_off)
        else:
            self._soon(max(0.0, deadline - self._machines.clock.seconds()), self._end, "killed")

    async def pause(self) -> None:
        if self._admit(Verb.PAUSE):
            self.observe(paused="user")

    async def resume(self) -> None:
        if self._admit(Verb.RESUME):
            self.observe(paused="", disk_errors={})

    async def reset(self) -> None:
        self._admit(Verb.RESET)
        self.observe(resets=self.observed.resets + 1, agent=False)

    async def renew(self) -> RenewalResult:
        self._admit(Verb.RENEW)
        if self.immovable:
            why = "; ".join(self.immovable)
            raise RequestRefused(f"cannot renew machine {self.id}", reason="NotRenewable", why=why, fix="stop and start it")
        self.outdated = False
        self.observe(pid=self.observed.pid + 1, milestone="renewed")
        return RenewalResult(0.5, 0.0125, "7.2.0", "9.1.0")

    async def demand_suspendable(self) -> None:
        self._admit(Verb.SUSPEND)
        if self.immovable:
            why = "; ".join(self.immovable)
            raise RequestRefused(f"cannot suspend machine {self.id}", reason="NotSuspendable", why=why, fix="stop and start it")

    async def suspend(self) -> None:
        if self._admit(Verb.SUSPEND):
            await self.demand_suspendable()
            if self.unwritable:
                raise RequestRefused(f"cannot suspend machine {self.id}", reason="MigrationFailed", why=self.unwritable)
            self.saved_paused = bool(self.observed.paused)
            self._drop_steps()
            state = SuspendedState(self._machines.clock.seconds(), 38 << 20)
            end = RunEnd("saved", at=state.at)
            self._replace(Observation(phase="suspended", run=self.observed.run, end=end, suspended=state, times=self.observed.times))

    async def press_power(self) -> None:
        if self._admit(Verb.PRESS):
            self.presses += 1
            if not self.deaf:
                self._soon(0.0, self.power_off)

    async def soft_reboot(self) -> None:
        if self._admit(Verb.PRESS):
            self.presses += 1
            if not self.deaf:
                self.reboot()

    def usb(self) -> FakePipe:
        self._admit(Verb.LOOK)
        taken = [pipe for pipe in self.usb_devices if not pipe.closed]
        if len(taken) >= self.config.devices.usb_redirections:
            raise RequestRefused(f"cannot redirect a USB device to machine {self.id}", reason="NoSlot", why="all its slots are taken")
        self.usb_devices.append(FakePipe())
        return self.usb_devices[-1]

    async def forget(self) -> None:
        self._admit(Verb.FORGET)
        self.keep_migrations(self._machines.migrations)
        self._machines.drop(self.id)

    async def plug_disk(self, disk: DiskConfig) -> None:
        self._admit(Verb.CHANGE)
        if any(one.name == disk.name for one in self.config.disks):
            return
        self.config = replace(self.config, disks=(*self.config.disks, replace(disk, hotplugged=True)))
        self.observe(disks={**self.observed.disks, disk.name: DiskState()})

    async def unplug_disk(self, name: str) -> None:
        self._admit(Verb.CHANGE)
        self.config = replace(self.config, disks=tuple(one for one in self.config.disks if one.name != name))
        self.observe(disks={key: value for key, value in self.observed.disks.items() if key != name})

    async def change_medium(self, drive: DiskConfig) -> None:
        self._admit(Verb.CHANGE)
        known = next(one for one in self.config.disks if one.name == drive.name)
        changed = replace(known, layer=drive.layer)
        self.config = replace(self.config, disks=tuple(changed if one is known else one for one in self.config.disks))
        self.observe(disks={**self.observed.disks, drive.name: DiskState(size=1 << 20 if drive.layer is not None else 0)})

    async def resize_disk(self, name: str, size: int) -> None:
        self._admit(Verb.CHANGE)
        self.observe(disks={**self.observed.disks, name: replace(self.observed.disks[name], size=size)})

    async def plug_nic(self, nic: Nic) -> None:
        self._admit(Verb.CHANGE)
        if any(one.name == nic.name for one in self.config.nics):
            return
        self.config = replace(self.config, nics=(*self.config.nics, nic))
        self.observe(nics={**self.observed.nics, nic.name: NicState(link_up=nic.link_up)})

    async def unplug_nic(self, name: str) -> None:
        self._admit(Verb.CHANGE)
        self.config = replace(self.config, nics=tuple(one for one in self.config.nics if one.name != name))
        self.observe(nics={key: value for key, value in self.observed.nics.items() if key != name})

    async def set_link(self, name: str, up: bool) -> None:
        self._admit(Verb.CHANGE)
        self.config = replace(self.config, nics=tuple(replace(one, link_up=up) if one.name == name else one for one in self.config.nics))
        self.observe(nics={**self.observed.nics, name: replace(self.observed.nics[name], link_up=up)})

    async def set_sockets(self, count: int) -> None:
        self._admit(Verb.CHANGE)
        if not self.observed.sockets <= count <= self.config.cpu.max_sockets:
            raise RequestRefused(f"cannot give machine {self.id} {count} sockets", reason="OutOfRange")
        self.config = replace(self.config, cpu=replace(self.config.cpu, sockets=count))
        self.observe(sockets=count)

    async def set_memory(self, size: int) -> None:
        self._admit(Verb.CHANGE)
        if size > self.config.memory.max_size:
            raise RequestRefused(f"cannot give machine {self.id} {size} bytes of memory", reason="OutOfRange")
        self.config = replace(self.config, memory=replace(self.config.memory, size=size))
        self.observe(memory=size)

    async def overlay_disks(self, layers: Mapping[str, DiskLayer]) -> None:
        self._admit(Verb.CHANGE)
        self.overlays.append(dict(layers))
        self.config = replace(self.config, disks=tuple(replace(one, layer=layers.get(one.name, one.layer)) for one in self.config.disks))
        self.observe()

    async def commit_disk(self, name: str, base: Path) -> None:
        self._admit(Verb.CHANGE)
        self.commits.append((name, base))

    async def console_log(self) -> bytes:
        return self.directory.serial

    async def screenshot(self) -> bytes:
        self._admit(Verb.LOOK)
        if not self.config.devices.graphics:
            raise RequestRefused(f"cannot take a picture of machine {self.id}", reason="NoDisplay", why="it has no display")
        return PNG

    async def dump_memory(self, path: Path) -> None:
        self._admit(Verb.LOOK)
        path.write_bytes(b"\x7fELFfake")

    async def statistics(self) -> Statistics:
        self._admit(Verb.LOOK)
        return self.told

    def guest_changed(self) -> None:
        self.guest_changes += 1
        self._machines.changed(self.id)

    def console(self, *, screen: bool = True) -> FakePipe:
        self._admit(Verb.LOOK)
        return self._session(self.consoles, last_screen(self.directory.serial) if screen else b"")

    async def vnc(self) -> FakePipe:
        self._admit(Verb.LOOK)
        return self._session(self.displays)

    # How it works.

    def observe(self, *, milestone: str = "", **changes: Any) -> None:
        """Replaces members of the observation, and tells."""
        if milestone:
            changes["times"] = {**self.observed.times, milestone: self._machines.clock.seconds()}
        self._replace(replace(self.observed, **changes))

    def proceed(self, paused: Paused) -> None:
        """From `starting` to `running`, or to what the test said instead."""
        if text := self._machines.failing.get(self.id):
            self._end("never-started", text)
            return
        config = self.config
        self.observe(
            phase="running",
            paused=paused,
            pid=4000 + self.observed.run,
            accelerator="tcg",
            sockets=config.cpu.sockets,
            memory=config.memory.size,
            disks={one.name: DiskState() for one in config.disks},
            nics={one.name: NicState(link_up=one.link_up) for one in config.nics},
            milestone="running",
        )

    def _starting(self, paused: Paused) -> None:
        self.observe(phase="starting", milestone="started")
        if self.id in self._machines.held:
            self._machines.held[self.id] = paused
        else:
            self._soon(0.0, self.proceed, paused)

    def _end(self, reason: EndReason, text: str = "") -> None:
        if self.observed.phase in ("defined", "ended"):
            return
        self._drop_steps()
        now = self._machines.clock.seconds()
        for pipe in (*self.consoles, *self.displays):
            pipe.close()
        seen = self.observed
        end = RunEnd(reason, text, now, asked=seen.phase == "stopping")
        self._replace(Observation(phase="ended", run=seen.run, end=end, times={**seen.times, "ended": now}))

    def _admit(self, verb: Verb) -> bool:
        return admit(verb, self.observed, self.id)

    def _session(self, pipes: list[FakePipe], said: bytes = b"") -> FakePipe:
        for pipe in pipes:
            pipe.close()
        pipes.append(FakePipe())
        if said:
            pipes[-1].say(said)
        return pipes[-1]

    def _soon(self, seconds: float, call: Callable[..., None], *values: Any) -> None:
        self._steps.append(asyncio.get_running_loop().call_later(seconds, call, *values))

    def _drop_steps(self) -> None:
        for step in self._steps:
            step.cancel()
        self._steps.clear()

    def _replace(self, observed: Observation) -> None:
        self.observed = observed
        self._machines.changed(self.id)


class EveryStart(dict[str, Paused]):
    """For `FakeMachines.held`: each start waits in `starting`."""

    def __contains__(self, key: object) -> bool:
        return True


class FakeUnmanaged:
    """A machine in memory whose config cannot be read."""

    def __init__(self, id: str, machine: FakeMachine, problem: str) -> None:
        self.machine, self._problem = machine, problem
        self.is_mended = False
        self.directory = machine.directory
        self.directory.id = id

    @property
    def lives(self) -> bool:
        return self.machine.observed.live

    @property
    def holds_disks(self) -> bool:
        return self.machine.observed.holds_disks

    @property
    def observed(self) -> Observation:
        return replace(self.machine.observed, fault=GuestFault("MachineUnmanaged", self._problem) if self.holds_disks else None)


class FakeMachines:
    """The machines of a host in memory."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.shares = FakeShares()
        self.migrations = FakeDecisions()
        self.clock = clock or SystemClock()
        self.failing: dict[str, str] = {}
        self.held: dict[str, Paused] = {}
        self._machines: dict[str, FakeMachine] = {}
        self._unmanaged: dict[str, FakeUnmanaged] = {}
        self._listeners: list[Callable[[str], None]] = []

    def fail(self, id: str, text: str) -> None:
        """Its starts fail; "" lets them succeed again."""
        self.failing[id] = text

    def hold(self, id: str) -> None:
        """Its next start waits in `starting`."""
        self.held[id] = ""

    def release(self, id: str) -> None:
        """A start that waits goes on."""
        self._machines[id].proceed(self.held.pop(id))

    async def adopt(self) -> None: ...

    def get(self, id: str) -> FakeMachine | None:
        return self._machines.get(id)

    def __iter__(self) -> Iterator[FakeMachine]:
        return iter(tuple(self._machines.values()))

    def lose(self, id: str, problem: str = "a/config.json is damaged") -> FakeUnmanaged:
        """Its config cannot be read any more."""
        self._unmanaged[id] = FakeUnmanaged(id, self._machines.pop(id), problem)
        return self._unmanaged[id]

    def mend(self, id: str) -> None:
        """Its config can be read again; nobody is told."""
        self._unmanaged[id].is_mended = True

    def unmanaged(self, id: str) -> FakeUnmanaged | None:
        return self._unmanaged.get(id)

    async def recover(self, id: str) -> FakeMachine | None:
        if id in self._unmanaged and self._unmanaged[id].is_mended:
            self._machines[id] = self._unmanaged.pop(id).machine
        return self._machines.get(id)

    def discard(self, id: str) -> None:
        if id in self._unmanaged and not self._unmanaged[id].lives:
            del self._unmanaged[id]

    def holds_disks(self, id: str) -> bool:
        machine, left = self._machines.get(id), self._unmanaged.get(id)
        return machine.observed.holds_disks if machine is not None else left is not None and left.holds_disks

    def living(self) -> dict[str, MachineConfig]:
        every = (*self._machines.values(), *(left.machine for left in self._unmanaged.values()))
        return {machine.id: machine.config for machine in every if machine.observed.live}

    def leftovers(self) -> set[str]:
        return set(self._unmanaged)

    async def define(self, id: str, config: MachineConfig) -> FakeMachine:
        machine = self._machines.get(id)
        if machine is None:
            machine = self._machines[id] = FakeMachine(self, id, config)
        elif machine.config != config:
            if machine.observed.live:
                raise RequestRefused(f"cannot change the config of machine {id}", reason="StillRunning", why="its process lives")
            machine.config = config
        return machine

    def listen(self, tell: Callable[[str], None]) -> None:
        self._listeners.append(tell)

    def changed(self, id: str) -> None:
        for tell in self._listeners:
            tell(id)

    def drop(self, id: str) -> None:
        del self._machines[id]
        self.changed(id)

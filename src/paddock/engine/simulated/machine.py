"""A simulated machine: each request is held against the table of the real one, and what happens by itself comes from the model."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from paddock.base import reasons
from paddock.base.clock import Clock
from paddock.engine.machine.backupstate import BackupRequest, BackupState
from paddock.engine.machine.config import DiskConfig, DiskLayer, Forwarded, MachineConfig, Nic
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.memorysnapshots import MemoryRequest, TakenMemory
from paddock.engine.machine.observation import (
    DiskState,
    EndReason,
    MemoryStatistics,
    NicState,
    Observation,
    Paused,
    RenewalResult,
    RunEnd,
    Statistics,
    SuspendedState,
    VcpuStatistics,
)
from paddock.engine.machine.pipes import last_screen
from paddock.engine.machine.requests import Verb, admit
from paddock.engine.networks.nics import AttachedNic
from paddock.engine.simulated import model, refusals
from paddock.engine.simulated.agent import AgentState, SimulatedAgent
from paddock.engine.simulated.behaviour import Behaviour
from paddock.engine.simulated.diskmoves import DiskMoves
from paddock.engine.simulated.guest import BANNER, ConsoleLog, ConsolePipe

# Processor time that a guest takes of each second.
_IDLE = 0.01
# The memory of a guest that is kept when it is suspended, as a part of all.
_SAVED_SHARE = 8


class MachineRecord(Struct, frozen=True):
    """A machine, as it is kept over restarts of the server."""

    config: MachineConfig
    observed: Observation = Observation()
    behaviour: Behaviour = Behaviour()
    inside: AgentState = AgentState()
    # it is paused when it is resumed from disk
    saved_paused: bool = False
    # its next start leaves it paused
    start_paused: bool = False


class GuestRegistry(Protocol):
    """The registry of all machines, as one of them uses it."""

    clock: Clock

    def keep(self, id: str, record: MachineRecord) -> None:
        """Keep a record, and tell listeners."""

    def drop(self, id: str) -> None:
        """The machine is no more."""

    def behaviour(self, id: str) -> Behaviour:
        """Return the behaviour that its instance asks for now. Raises `ValueError`."""

    def attached(self, mac: str) -> AttachedNic | None:
        """Return the network's side of a card."""

    def size_of(self, layer: DiskLayer) -> int:
        """Return what a guest sees of a layer, in bytes."""


class SimulatedMachine(DiskMoves):
    """A machine that is not there."""

    def __init__(self, registry: GuestRegistry, id: str, record: MachineRecord) -> None:
        super().__init__()
        self.id = id
        self.agent = SimulatedAgent(self, registry.attached)
        self.directory = ConsoleLog(id)
        self.guest_changes = 0
        self.outdated = False
        self.immovable: tuple[str, ...] = ()
        # No guest comes from another host, or goes there.
        self.arrival, self.handed_over = None, None
        self._registry = registry
        self._record = record
        self._timer: asyncio.TimerHandle | None = None
        self._console: ConsolePipe | None = None

    @property
    def config(self) -> MachineConfig:
        """As it is now, with what was plugged."""
        return self._record.config

    @property
    def observed(self) -> Observation:
        """The observed state of the machine."""
        return self._record.observed

    @property
    def plugged(self) -> bool:
        """Something was plugged since its start."""
        return any(each.hotplugged for each in self.config.disks)

    @property
    def hostname(self) -> str:
        """The name that the guest gives itself: that of its instance."""
        return self.config.label.partition("_")[2] or self.config.label

    @property
    def inside(self) -> AgentState:
        """The changes that requests made in the guest."""
        return self._record.inside

    def change_inside(self, state: AgentState) -> None:
        """Keep what changed in the guest."""
        self._replace(inside=state)

    def reconfigure(self, config: MachineConfig) -> None:
        """Take another config. The machine does not run."""
        self._replace(config=config)

    def wake(self) -> None:
        """Go on where the record says."""
        self._arm()

    def close(self) -> None:
        """The server goes; the guest stays."""
        self._disarm()
        self._close_console()

    # --- what the guest does ----------------------------------------------------------------------------------------------

    def power_off(self) -> None:
        """The guest shuts itself down."""
        if self.observed.live:
            self._end("guest-shutdown")

    def reboot(self) -> None:
        """The guest reboots, which may end the run."""
        if self.config.reboot_ends:
            self._end("guest-reboot")
        elif self.observed.phase == "running":
            self._reset()

    def _reset(self) -> None:
        times = {**self.observed.times, model.RESET: self._now()}
        self._log("reset")
        self._replace(
            inside=replace(self.inside, frozen=False), observed=self._seen(resets=self.observed.resets + 1, agent=False, times=times)
        )

    # --- requests ---------------------------------------------------------------------------------------------------------

    async def start(self, *, paused: bool = False, state: Path | None = None, priority: int = 0, grace: float = 30.0) -> None:
        """Returns when the start is queued; the observation tells the rest."""
        if state is not None:
            raise refusals.machine(f"cannot start machine {self.id} from a file")
        if not self._admit(Verb.START):
            return
        before = self.observed
        paused = self._record.saved_paused if before.phase == "suspended" else paused
        observed = Observation(phase="queued", run=before.run + 1, times={"queued": self._now()})
        try:
            behaviour = self._registry.behaviour(self.id)
        except ValueError as error:
            behaviour = Behaviour(start_failure=str(error))
        self._replace(observed=observed, behaviour=behaviour, start_paused=paused, inside=replace(self.inside, frozen=False))

    async def stop(self, grace_seconds: float) -> None:
        """Returns when the stop has begun. Repeated it may shorten the grace."""
        if not self._admit(Verb.STOP):
            return
        if self.observed.phase == "suspended":
            self._end("discarded")
        elif self.observed.phase == "queued":
            self._end("killed")
        else:
            deadline = self._now() + grace_seconds
            if self.observed.deadline:
                deadline = min(deadline, self.observed.deadline)
            times = {**self.observed.times, "stopping": self.observed.times.get("stopping", self._now())}
            self._observe(phase="stopping", deadline=deadline, times=times)

    async def forget(self) -> None:
        """All that was known of it goes."""
        self._admit(Verb.FORGET)
        self.close()
        self._registry.drop(self.id)

    async def pause(self) -> None:
        """The guest stands still until `resume`."""
        if self._admit(Verb.PAUSE):
            self._observe(paused="user")

    async def resume(self) -> None:
        """The guest goes on after a pause."""
        if self._admit(Verb.RESUME):
            self._observe(paused="", disk_errors={})

    async def reset(self) -> None:
        """Reset the guest, as a reset button does."""
        if self._admit(Verb.RESET):
            self._reset()

    async def soft_reboot(self) -> None:
        """The power button once; the guest is started again."""
        if self._admit(Verb.PRESS, "reboot") and self._record.behaviour.obeys_power:
            self.reboot()

    async def demand_suspendable(self) -> None:
        """Raise if it cannot be suspended now."""
        self._admit(Verb.SUSPEND)

    async def suspend(self) -> None:
        """The guest's memory goes to disk, as the record has it."""
        if self._admit(Verb.SUSPEND):
            self._close_console()
            state = SuspendedState(self._now(), self.config.memory.size // _SAVED_SHARE)
            seen, end = self.observed, RunEnd("saved", at=self._now())
            observed = Observation(phase="suspended", run=seen.run, end=end, suspended=state, times=seen.times)
            self._replace(observed=observed, saved_paused=bool(seen.paused))

    async def save(self, path: Path) -> None:
        """Refuse: there is no state for a file."""
        raise refusals.machine(f"cannot save machine {self.id} to a file")

    async def renew(self) -> RenewalResult:
        """Refuse: there is no QEMU that could be older than the host's."""
        self._admit(Verb.RENEW)
        raise refusals.machine(f"cannot renew machine {self.id}")

    # --- changes ----------------------------------------------------------------------------------------------------------

    async def plug_disk(self, disk: DiskConfig) -> None:
        """Plug a disk; it is there at once."""
        self._admit(Verb.CHANGE, f"plug disk {disk.name} into")
        if all(one.name != disk.name for one in self.config.disks):
            config = replace(self.config, disks=(*self.config.disks, replace(disk, hotplugged=True)))
            self._replace(config=config, observed=self._seen(disks={**self.observed.disks, disk.name: self._disk(disk)}))

    async def unplug_disk(self, name: str) -> None:
        """Unplug a disk; the guest lets go at once."""
        self._admit(Verb.CHANGE, f"unplug disk {name} from")
        config = replace(self.config, disks=tuple(one for one in self.config.disks if one.name != name))
        self._replace(config=config, observed=self._seen(disks=_without(self.observed.disks, name)))

    async def change_medium(self, drive: DiskConfig) -> None:
        """The drive of this name has the medium of `drive`, or none."""
        self._admit(Verb.CHANGE, f"change the medium of disk {drive.name} of")
        changed = tuple(replace(one, layer=drive.layer) if one.name == drive.name else one for one in self.config.disks)
        observed = self._seen(disks={**self.observed.disks, drive.name: self._disk(drive)})
        self._replace(config=replace(self.config, disks=changed), observed=observed)

    async def resize_disk(self, name: str, size: int) -> None:
        """The guest sees that it has grown."""
        self._admit(Verb.CHANGE, f"grow disk {name} of")
        self._observe(disks={**self.observed.disks, name: replace(self.observed.disks.get(name, DiskState()), size=size)})

    async def plug_nic(self, nic: Nic) -> None:
        """Plug a card; it is there at once."""
        self._admit(Verb.CHANGE, f"plug card {nic.name} into")
        if all(one.name != nic.name for one in self.config.nics):
            config = replace(self.config, nics=(*self.config.nics, nic))
            self._replace(config=config, observed=self._seen(nics={**self.observed.nics, nic.name: NicState(link_up=nic.link_up)}))

    async def unplug_nic(self, name: str) -> None:
        """Unplug a card; the guest lets go at once."""
        self._admit(Verb.CHANGE, f"unplug card {name} from")
        config = replace(self.config, nics=tuple(one for one in self.config.nics if one.name != name))
        self._replace(config=config, observed=self._seen(nics=_without(self.observed.nics, name)))

    async def set_link(self, name: str, up: bool) -> None:
        """Plug or unplug the cable of a card."""
        self._admit(Verb.CHANGE, f"set the link of card {name} of")
        nics = tuple(replace(one, link_up=up) if one.name == name else one for one in self.config.nics)
        states = {key: replace(each, link_up=up) if key == name else each for key, each in self.observed.nics.items()}
        self._replace(config=replace(self.config, nics=nics), observed=self._seen(nics=states))

    async def forward(self, name: str, port: Forwarded) -> None:
        """Refuse: nothing listens in the guest."""
        raise refusals.machine(f"cannot forward a port to card {name} of machine {self.id}")

    async def set_sockets(self, count: int) -> None:
        """More processors, up to `max_sockets`."""
        self._admit(Verb.CHANGE, f"give {count} sockets to")
        if not self.observed.sockets <= count <= self.config.cpu.max_sockets:
            why = f"it has {self.observed.sockets}, and can have {self.config.cpu.max_sockets}"
            raise RequestRefused(f"cannot give machine {self.id} {count} sockets", reason="OutOfRange", why=why)
        self._replace(config=replace(self.config, cpu=replace(self.config.cpu, sockets=count)), observed=self._seen(sockets=count))

    async def set_memory(self, size: int) -> None:
        """The guest has that much memory at once."""
        self._admit(Verb.CHANGE, f"give {size} bytes of memory to")
        if size > self.config.memory.max_size:
            why = f"it can have {self.config.memory.max_size}"
            raise RequestRefused(f"cannot give machine {self.id} {size} bytes of memory", reason="OutOfRange", why=why)
        self._replace(config=replace(self.config, memory=replace(self.config.memory, size=size)), observed=self._seen(memory=size))

    async def overlay_disks(self, layers: Mapping[str, DiskLayer]) -> None:
        """All these disks go on in new layers."""
        self._admit(Verb.CHANGE, "snapshot")
        disks = tuple(replace(one, layer=layers.get(one.name, one.layer)) for one in self.config.disks)
        self._replace(config=replace(self.config, disks=disks))

    async def begin_suspended(self, saved: SavedMachine, fill: Callable[[Path], None]) -> None:
        """Refuse: no memory was kept."""
        raise refusals.machine(f"cannot go on with machine {self.id} from a memory")

    async def demand_memory(self, included: Collection[str], folder: Path) -> None:
        """Refuse: there is no memory."""
        raise refusals.machine(f"cannot take the memory of machine {self.id}", reason=reasons.MEMORY_REFUSED)

    async def take_memory(self, memory_request: MemoryRequest) -> TakenMemory:
        """Refuse: there is no memory."""
        raise refusals.machine(f"cannot take the memory of machine {self.id}", reason=reasons.MEMORY_REFUSED)

    @property
    def backup(self) -> BackupState | None:
        """None: there is nothing to back up."""
        return None

    async def take_backup(self, request: BackupRequest) -> None:
        raise refusals.machine(f"cannot back up machine {self.id}")

    async def cancel_backup(self, name: str) -> None:
        """Do nothing: no backup of a simulated disk begins."""

    async def checkpoints(self) -> Mapping[str, frozenset[str]]:
        return {}

    async def retain_checkpoints(self, checkpoints: Collection[str]) -> None:
        """Do nothing: nobody follows the changes of a simulated disk."""

    async def dump_memory(self, path: Path) -> None:
        """Refuse: there is no memory."""
        raise refusals.machine(f"cannot write the memory of machine {self.id}")

    # --- looking ----------------------------------------------------------------------------------------------------------

    async def screenshot(self) -> bytes:
        """Refuse: there is no picture."""
        self._admit(Verb.LOOK, "take a picture of")
        raise refusals.machine(f"cannot take a picture of machine {self.id}")

    async def vnc(self) -> ConsolePipe:
        """Refuse: there is no display."""
        self._admit(Verb.LOOK, "open the display of")
        raise refusals.machine(f"cannot open the display of machine {self.id}")

    def usb(self) -> ConsolePipe:
        """Refuse: there is no port."""
        self._admit(Verb.LOOK, "redirect USB to")
        raise refusals.machine(f"cannot redirect a USB device to machine {self.id}")

    def console(self, *, screen: bool = True) -> ConsolePipe:
        """The serial console. A new session ends the old."""
        self._admit(Verb.LOOK, "open the console of")
        self._close_console()
        first = last_screen(self.directory.serial_tail(4096)) + f"{self.hostname}# ".encode() if screen else b""
        self._console = ConsolePipe(first, self.agent.answer)
        return self._console

    async def console_log(self) -> bytes:
        """Return what is kept of the guest's output."""
        return self.directory.serial_tail(4096)

    async def statistics(self) -> Statistics:
        """Return the use of a guest that does nothing, in proportion to the time it runs."""
        self._admit(Verb.LOOK)
        seconds = max(self._now() - self.observed.times.get("running", self._now()), 0.0)
        count = self.observed.sockets * self.config.cpu.cores * self.config.cpu.threads
        vcpus = tuple(VcpuStatistics(number, seconds * _IDLE) for number in range(count))
        size = self.observed.memory
        memory = MemoryStatistics(domain=size, balloon=size, resident=size // 4, available=size, usable=size // 4 * 3, unused=size // 2)
        return Statistics(seconds * _IDLE * count, seconds * _IDLE / 4, vcpus, memory)

    def guest_changed(self) -> None:
        """Have the guest asked soon."""
        self.guest_changes += 1
        self._registry.keep(self.id, self._record)

    # --- the model --------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Wait for what comes next."""
        self._disarm()
        event = model.next_event(self.observed, self._record.behaviour, has_agent=self.config.devices.agent)
        if event is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(event.at - self._now(), 0.0), self._happen, event)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _happen(self, event: model.GuestEvent) -> None:
        self._timer = None
        consequences: dict[model.What, Callable[[], None]] = {
            "begin": lambda: self._observe(phase="starting", times={**self.observed.times, "started": self._now()}),
            "run": self._run,
            "fail": lambda: self._end("never-started", event.text),
            "agent": lambda: self._observe(agent=True, times={**self.observed.times, "agent": self._now()}),
            "panic": lambda: self._end("panicked", "the annotation panic-after asked for it"),
            "crash": lambda: self._end("crashed", "the annotation crash-after asked for it"),
            "power-off": self.power_off,
            "reboot": self.reboot,
            "kill": lambda: self._end("killed"),
        }
        consequences[event.what]()

    def _run(self) -> None:
        config = self.config
        paused: Paused = "start" if self._record.start_paused else ""
        self._log(f"{config.label} runs")
        self._observe(
            phase="running",
            paused=paused,
            accelerator="kvm",
            sockets=config.cpu.sockets,
            memory=config.memory.size,
            disks={one.name: self._disk(one) for one in config.disks},
            nics={one.name: NicState(link_up=one.link_up) for one in config.nics},
            times={**self.observed.times, "running": self._now()},
        )

    def _disk(self, disk: DiskConfig) -> DiskState:
        return DiskState(size=self._registry.size_of(disk.layer) if disk.layer is not None else 0)

    def _end(self, reason: EndReason, text: str = "") -> None:
        seen, now = self.observed, self._now()
        self._close_console()
        end = RunEnd(reason, text, now, asked=seen.phase == "stopping")
        observed = Observation(phase="ended", run=seen.run, end=end, times={**seen.times, "ended": now})
        self._replace(observed=observed)

    def _observe(self, **changes: Any) -> None:
        self._replace(observed=self._seen(**changes))

    def _seen(self, **changes: Any) -> Observation:
        return replace(self.observed, **changes)

    def _replace(self, **changes: Any) -> None:
        self._record = replace(self._record, **changes)
        self._arm()
        self._registry.keep(self.id, self._record)

    def _log(self, text: str) -> None:
        if not self.directory.serial_tail(1):
            self.directory.write(BANNER)
        self.directory.write(text)

    def _close_console(self) -> None:
        if self._console is not None:
            self._console.close()
            self._console = None

    def _now(self) -> float:
        return self._registry.clock.seconds()

    def _admit(self, verb: Verb, action: str = "") -> bool:
        return admit(verb, self.observed, self.id, action)


def _without(states: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in states.items() if key != name}

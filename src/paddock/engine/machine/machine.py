"""A machine, as others know it: each request is held against the table of `requests`, then done by its owner."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

from paddock.base.threads import undisturbed
from paddock.engine.machine import livefiles, migration, programs, screenshots, statistics, suspension
from paddock.engine.machine.argv.renewed import obstacles
from paddock.engine.machine.backupstate import BackupRequest, BackupState
from paddock.engine.machine.config import DiskConfig, DiskLayer, Forwarded, MachineConfig, Nic
from paddock.engine.machine.directory import GRACE_SECONDS, Directory, SavedMachine, UnreadableState
from paddock.engine.machine.livefiles import DecidedMigrations, HandedGuest, ReceivedGuest
from paddock.engine.machine.livelinks import ReceiverAddress
from paddock.engine.machine.livesource import GuestReceiver, SendRequest
from paddock.engine.machine.livetarget import LeavingGuest, ReceiveRequest
from paddock.engine.machine.memorysnapshots import MemoryRequest, TakenMemory
from paddock.engine.machine.observation import Observation, RenewalResult, Statistics
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.parts import MachineParts
from paddock.engine.machine.pipes import Pipe
from paddock.engine.machine.requests import Verb, admit

# What waits, or is refused, while the guest is being sent to another host.
_NOT_ON_THE_WAY = (Verb.PAUSE, Verb.RESET, Verb.PRESS, Verb.RENEW, Verb.SUSPEND, Verb.CHANGE)


class MachineRegistry(Protocol):
    """All machines, as far as one of them needs them."""

    def user_for(self, owner: MachineOwner) -> int:
        """Return the user that its QEMU runs as; 0: the user that runs Paddock."""

    @property
    def migrations(self) -> DecidedMigrations:
        """The ends of migrations, which outlive their machines."""

    def drop(self, id: str) -> None:
        """The machine is no more."""


class QemuMachine:
    """A machine of this host. What it does is done when the call returns, except where the docstring says else."""

    def __init__(self, parts: MachineParts, registry: "MachineRegistry") -> None:
        self._owner = parts.owner
        self._parts = parts
        self._registry = registry
        self.id = parts.owner.id
        self.agent = parts.sessions.agent
        # rises with each request that changed what the agent says
        self.guest_changes = 0

    @property
    def config(self) -> MachineConfig:
        """As it is now, with what was plugged."""
        return self._owner.config

    @property
    def observed(self) -> Observation:
        return self._owner.observed

    @property
    def plugged(self) -> bool:
        """Something was plugged, unplugged or grown since the present run was started."""
        return self._owner.config != self._owner.started

    @property
    def directory(self) -> Directory:
        return self._owner.directory

    def close(self) -> None:
        """Paddock goes; the guest stays. Sessions with it end."""
        self._owner.release()
        self._parts.sessions.close()

    async def start(self, *, paused: bool = False, state: Path | None = None, priority: int = 0, grace: float = GRACE_SECONDS) -> None:
        """Returns when the start is queued; the observation tells the rest.

        `paused`: its guest waits for `resume`. `state`: it goes on where `save` to this file left it. A suspended machine is resumed.
        `priority`: among those that wait for their start, the highest is the first, and it shuts down last with the host. `grace`: the
        seconds that its guest then gets.
        """
        if self._admit(Verb.START):
            if self._owner.observed.phase == "suspended":
                saved = self._owner.directory.read_saved()
                paused, state = saved is not None and saved.paused, self._owner.directory.saved_state
            user = self._registry.user_for(self._owner)
            self._owner.start(paused=paused, user=user, state=state, priority=priority, grace=grace)
            # When it is its turn, QEMU is started before the caller goes on: nothing else takes as long.
            await asyncio.sleep(0)

    async def forget(self) -> None:
        """Its directory goes, and with it all that was known of it. Its disks are elsewhere and stay."""
        self._admit(Verb.FORGET)
        self._keep_migrations()
        self.close()
        await undisturbed(self._owner.directory.remove)
        self._registry.drop(self.id)

    async def pause(self) -> None:
        if self._admit(Verb.PAUSE):
            await self._owner.inbox.offer(self._pause)

    async def resume(self) -> None:
        if self._admit(Verb.RESUME):
            await self._owner.inbox.offer(self._resume)

    async def reset(self) -> None:
        """Reset the guest, as the reset button of a computer does."""
        if self._admit(Verb.RESET):
            await self._owner.inbox.offer(self._reset)

    async def soft_reboot(self) -> None:
        """The power button once; a guest that shuts down for it is started again in the same process."""
        if self._admit(Verb.PRESS, "reboot"):
            await self._owner.inbox.offer(self._soft_reboot)

    async def stop(self, grace_seconds: float) -> None:
        """Returns when the stop has begun: the power button at once, again each 5 s, then the end. Repeated it may shorten the grace."""
        if not self._admit(Verb.STOP):
            return
        if self._owner.observed.phase == "suspended":
            suspension.discard(self._owner)
        else:
            self._owner.stop(grace_seconds)

    async def demand_suspendable(self) -> None:
        """Raise if it cannot be suspended now."""
        if self._admit(Verb.SUSPEND):
            await self._parts.suspensions.demand()

    async def suspend(self) -> None:
        """Its guest's memory and devices go to disk, and its process ends. `start` goes on from there, and `stop` throws that away."""

        async def admitted() -> None:
            if self._admit(Verb.SUSPEND):
                self._parts.sessions.demand_no_usb("suspend")
                await self._parts.suspensions.suspend()

        if self._admit(Verb.SUSPEND):
            async with self._owner.shared.moving:
                await self._owner.inbox.offer(admitted)

    async def begin_suspended(self, saved: SavedMachine, fill: Callable[[Path], None]) -> None:
        """A machine that never ran is a suspended one, with a guest that was saved elsewhere. `fill` makes the file of its state."""
        if self._admit(Verb.RECEIVE):
            await suspension.begin(self._owner, saved, fill)

    async def demand_memory(self, included: Collection[str], folder: Path) -> None:
        """Raise if its memory cannot be kept in a folder now, beside a snapshot of these disks."""
        if self._admit(Verb.CHANGE, "take the memory of"):
            await self._parts.memory.demand(included, folder)

    async def take_memory(self, memory_request: MemoryRequest) -> TakenMemory:
        """The guest's state goes into a file, and its disks go on in new layers from the same moment on. The guest runs meanwhile."""

        async def admitted() -> TakenMemory:
            self._admit(Verb.CHANGE, "take the memory of")
            self._parts.sessions.demand_no_usb("take the memory of")
            return await self._parts.memory.take(memory_request)

        self._admit(Verb.CHANGE, "take the memory of")
        async with self._owner.shared.moving:
            return await self._owner.inbox.offer(admitted)

    async def save(self, path: Path) -> None:
        """Its state goes into a file, and it ends with `saved`. Its disks belong to that state: they must not change until then."""
        self._admit(Verb.CHANGE, "save")
        await self._change(lambda: migration.save(self._owner, path), "save")

    @property
    def outdated(self) -> bool:
        """The host has another QEMU by now than the one it runs on: `renew` moves it there."""
        return programs.is_outdated(self._owner.record)

    @property
    def immovable(self) -> tuple[str, ...]:
        """The reasons why it cannot be renewed while it runs; empty: it can."""
        return tuple(dict.fromkeys(obstacles(self._owner.started) + obstacles(self._owner.config)))

    async def renew(self) -> RenewalResult:
        """Its guest moves into a new QEMU of this host, and stands still for a moment. A failure leaves it where it was.

        One machine of the host moves at a time.
        """

        async def admitted() -> RenewalResult:
            self._admit(Verb.RENEW)
            self._parts.sessions.demand_no_usb("renew")
            return await self._parts.renewals.renew()

        async with self._owner.shared.moving:
            self._admit(Verb.RENEW)
            return await self._owner.inbox.offer(admitted)

    async def describe_leaving(self) -> LeavingGuest:
        """Return the running guest as another host has to know it that is to receive it. Raises if it cannot leave."""
        self._admit(Verb.SEND)
        return await self._parts.source.describe()

    async def send(self, send_request: SendRequest, target: GuestReceiver) -> bool:
        """The guest goes to another host while it runs. True: it runs there. False: it was not taken there, and runs on here.

        Raises when it did not leave, and runs on here; or `Unanswered` when it has left and stands still until `settle` knows more.
        """

        async def admitted() -> bool:
            self._admit(Verb.SEND)
            self._parts.sessions.demand_no_usb("migrate")
            return await self._parts.source.send(send_request, target)

        if not self._admit(Verb.SEND):
            return await self._parts.source.settle(target)
        return await self._owner.inbox.offer(admitted)

    def keep_guest(self) -> None:
        """Call off what `send` does, which raises then. A guest that was handed over is not called back."""
        self._parts.source.cancel()

    async def settle(self, target: GuestReceiver) -> bool:
        """Ask the target of a guest that was handed over whether it runs there. True: it does. False: the guest is here."""
        return await self._parts.source.settle(target)

    async def receive(self, receive_request: ReceiveRequest) -> ReceiverAddress:
        """A QEMU waits for the guest of another host. Returns where; raises with what is missing here, before anything happens."""
        self._admit(Verb.ARRIVE)
        listens = await self._parts.target.prepare(receive_request)
        user, state = self._registry.user_for(self._owner), livefiles.arrival_of(self._owner.directory)
        self._owner.start(paused=False, user=user, state=state)
        return await asyncio.shield(listens)

    async def arrived(self, migration: str) -> None:
        """Returns when the guest of another host is here and stands still."""
        await self._parts.target.arrived(migration)

    async def take(self, migration: str) -> bool:
        """Whether the guest that arrived runs here from now on. Asked by its source alone, once that has given it up for good."""
        return await self._parts.target.take(migration)

    async def drop_arrival(self, migration: str) -> bool:
        """Whether the guest of another host never runs here, from now on. False: it was taken."""
        return self._parts.target.drop(migration)

    def _keep_migrations(self) -> None:
        """The other host may ask after the guest when nothing of this machine is left. One that was not taken by now never is."""
        with contextlib.suppress(UnreadableState):
            if (arrival := self.arrival) is not None:
                is_dropped = self._parts.target.drop(arrival.migration)
                self._registry.migrations.note("target", arrival.migration, "dropped" if is_dropped else "taken")
        with contextlib.suppress(UnreadableState):
            if (handed := self.handed_over) is not None and handed.decided:
                self._registry.migrations.note("source", handed.migration, "sent")

    @property
    def handed_over(self) -> HandedGuest | None:
        """The guest that was handed over to another host; None: it is here. Raises `UnreadableState`."""
        return livefiles.read_handed(self._owner.directory)

    @property
    def arrival(self) -> ReceivedGuest | None:
        """The guest that comes here from another host, or did; None: none was ever expected. Raises `UnreadableState`."""
        return livefiles.read_arrival(self._owner.directory)

    async def plug_disk(self, disk: DiskConfig) -> None:
        """On the bus scsi or virtio. It is plugged again when the machine is started anew."""
        await self._change(lambda: self._parts.hotplug.plug_disk(disk), f"plug disk {disk.name} into")

    async def unplug_disk(self, name: str) -> None:
        """Raises `Unanswered` when the guest does not let go in time; it may do so later."""
        await self._change_disk(name, lambda: self._parts.hotplug.unplug_disk(name), f"unplug disk {name} from")

    async def change_medium(self, drive: DiskConfig) -> None:
        """The drive of this name has the medium of `drive`, or none. Raises `Unanswered` when the guest keeps the tray locked."""
        await self._change(lambda: self._parts.hotplug.change_medium(drive), f"change the medium of disk {drive.name} of")

    async def resize_disk(self, name: str, size: int) -> None:
        """The guest sees at once that it has grown."""
        await self._change_disk(name, lambda: self._parts.hotplug.resize_disk(name, size), f"grow disk {name} of")

    async def plug_nic(self, nic: Nic) -> None:
        """Into a free root port."""
        await self._change(lambda: self._parts.hotplug.plug_nic(nic), f"plug card {nic.name} into")

    async def unplug_nic(self, name: str) -> None:
        """Raises `Unanswered` when the guest does not let go in time; it may do so later."""
        await self._change(lambda: self._parts.hotplug.unplug_nic(name), f"unplug card {name} from")

    async def set_link(self, name: str, up: bool) -> None:
        """Plug or unplug the cable of a card."""
        await self._change(lambda: self._parts.hotplug.set_link(name, up), f"set the link of card {name} of")

    async def forward(self, name: str, port: Forwarded) -> None:
        """A port of the host leads to one of the guest; for cards on QEMU's own network."""
        await self._change(lambda: self._parts.hotplug.forward(name, port), f"forward a port of card {name} of")

    async def set_sockets(self, count: int) -> None:
        """More processors, up to `max_sockets`."""
        await self._change(lambda: self._parts.hotplug.set_sockets(count), f"give {count} sockets to")

    async def set_memory(self, size: int) -> None:
        """Asks the guest to take or give back memory; `observed.memory` tells how much it has."""
        await self._change(lambda: self._parts.hotplug.set_memory(size), f"give {size} bytes of memory to")

    async def overlay_disks(self, layers: Mapping[str, DiskLayer]) -> None:
        """All these disks go on in new layers from the same moment on: what is below is a snapshot."""
        await self._change_disk("", lambda: self._parts.layers.overlay(layers), "snapshot")

    async def commit_disk(self, name: str, base: Path) -> None:
        """The layers above `base` are merged into it; returns when that is done. Whoever waits may go: it goes on."""
        action = f"merge the layers of disk {name} of"
        self._admit(Verb.CHANGE, action)
        self._parts.mirrors.demand_idle(action, name)
        self._parts.backups.demand_idle(action)
        await self._parts.layers.commit(name, base)

    @property
    def backup(self) -> BackupState | None:
        """The backup that runs, or that has ended and was not forgotten."""
        return self._parts.backups.state

    async def take_backup(self, request: BackupRequest) -> None:
        """Begin a backup of disks, all as they are at one moment. `backup` tells how it goes; repeated, it goes on."""
        self._admit(Verb.CHANGE, "back up")
        await self._parts.backups.take(request)

    async def cancel_backup(self, name: str) -> None:
        """A backup that runs has failed then; one that has ended is forgotten."""

        async def cancel() -> None:
            if self.backup is not None and self.backup.name == name:
                await self._parts.backups.cancel()

        if self.backup is not None and not self.backup.ended:
            await self._change(cancel, "end a backup of")
        await self._parts.backups.forget(name)

    async def checkpoints(self) -> Mapping[str, frozenset[str]]:
        """Return the checkpoints since which all changes are known, for each disk whose changes are followed."""
        self._admit(Verb.LOOK)
        return await self._parts.tracking.checkpoints()

    async def retain_checkpoints(self, checkpoints: Collection[str]) -> None:
        """Follow changes since these checkpoints, and no others."""
        await self._change_disk("", lambda: self._parts.tracking.retain(checkpoints), "drop checkpoints of")

    async def move_disks(self, targets: Mapping[str, DiskLayer], speed: int = 0) -> None:
        """Begins to copy disks into other files, each of the disk's size. `observed.jobs` tells when they are `ready`, or why not.

        `speed`: bytes per second and disk; 0: as fast as it goes.
        """

        async def begin() -> None:
            self._parts.backups.demand_idle("move disks of")
            await self._parts.mirrors.begin(targets, speed)

        await self._change(begin, "move disks of")

    async def change_over(self) -> None:
        """Disks that are `ready` go on in their new files, all at the same moment; returns when the config says so."""
        await self._change(self._parts.mirrors.change_over, "move disks of")

    async def keep_disks(self) -> None:
        """Call off what `move_disks` began: the disks stay where they are."""
        await self._change(self._parts.mirrors.cancel, "move disks of")

    async def screenshot(self) -> bytes:
        """A PNG of the display."""
        self._admit(Verb.LOOK, "take a picture of")
        return await screenshots.screenshot(self._owner)

    async def dump_memory(self, path: Path) -> None:
        """An ELF file; the guest stands still meanwhile."""
        await self._change(lambda: screenshots.dump_memory(self._owner, path), "write the memory of")

    async def statistics(self) -> Statistics:
        """Return its usage up to now."""
        self._admit(Verb.LOOK)
        return await statistics.collect(self._owner)

    def guest_changed(self) -> None:
        """Have the guest asked soon: a request of its agent changed what the agent says."""
        self.guest_changes += 1
        self._owner.tell()

    def console(self, *, screen: bool = True) -> Pipe:
        """The serial console, from its last screen on, or from what the guest writes next. A new session ends the old."""
        self._admit(Verb.LOOK, "open the console of")
        return self._parts.sessions.console(screen=screen)

    async def console_log(self) -> bytes:
        """Return what is kept of the guest's output on its serial console in this run; its end, when it is long."""
        return await asyncio.to_thread(self._owner.directory.serial_log)

    async def vnc(self) -> Pipe:
        """The display, as RFB. A new session ends the old."""
        self._admit(Verb.LOOK, "open the display of")
        return self._parts.sessions.vnc()

    def usb(self) -> Pipe:
        """A free port that a client redirects a USB device to."""
        self._admit(Verb.LOOK, "redirect USB to")
        return self._parts.sessions.usb()

    async def _change(self, work: Callable[[], Coroutine[Any, Any, None]], action: str) -> None:
        async def admitted() -> None:
            # It may have changed since it was asked.
            self._admit(Verb.CHANGE, action)
            await work()

        self._admit(Verb.CHANGE, action)
        await self._owner.inbox.offer(admitted)

    async def _change_disk(self, name: str, work: Callable[[], Coroutine[Any, Any, None]], action: str) -> None:
        """Change a disk, or all with the name "", that is not being moved."""

        async def idle() -> None:
            self._parts.mirrors.demand_idle(action, name)
            self._parts.backups.demand_idle(action)
            await work()

        await self._change(idle, action)

    async def _pause(self) -> None:
        if self._admit(Verb.PAUSE):
            self._owner.save(paused=True)
            await self._owner.execute("stop")
            self._owner.observe(paused="user")

    async def _resume(self) -> None:
        if self._admit(Verb.RESUME):
            self._owner.save(paused=False, start_paused=False)
            # What QEMU tells about it comes before its answer, and what came of it may do so, too.
            await self._owner.execute("cont")

    async def _reset(self) -> None:
        if self._admit(Verb.RESET):
            await self._owner.execute("system_reset")

    async def _soft_reboot(self) -> None:
        if self._admit(Verb.PRESS, "reboot"):
            await self._parts.reboots.begin()

    def _admit(self, verb: Verb, action: str = "") -> bool:
        if verb in _NOT_ON_THE_WAY:
            self._parts.source.demand_idle(action or verb.value)
        return admit(verb, self._owner.observed, self.id, action)

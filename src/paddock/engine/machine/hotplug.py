"""Devices that come and go while the guest runs. The config says first what is wanted, so that a change that was cut short is finished.

A device is taken out by asking the guest. If it does not let go in time, the caller gets an error, and nothing is forced; if it lets go
later, the rest is done then.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.base.threads import undisturbed
from paddock.engine.machine import drives, probe, taps, tracking
from paddock.engine.machine.argv import hotplug, names
from paddock.engine.machine.argv.command import spare_ports
from paddock.engine.machine.argv.processors import MEMORY_BLOCK, boot_size, plugged_size
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.arrivals import CpuArrivals
from paddock.engine.machine.config import DiskConfig, Forwarded, MachineConfig, Nic, UserNetwork
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.observation import DiskState, NicState
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import is_offline
from paddock.engine.machine.users import hand_over_disk, lent

_Work = Callable[[], Coroutine[Any, Any, None]]
# What QEMU measures disks in.
SECTOR = 512
_RETRIES = 40
_OPENED_EVERY = 8
_EXCHANGES = 5
_RETRY_SECONDS = 0.05


class Hotplug:
    """Carries out changes of a machine's devices. Called by the owner's inbox only, one after another."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self._arrivals = CpuArrivals(owner)

    async def plug_disk(self, disk: DiskConfig) -> None:
        """Repeated it finds the disk there."""
        disk = replace(disk, hotplugged=True)
        owner = self._owner
        known = next((one for one in owner.config.disks if one.name == disk.name), None)
        if known is not None and disk.name in owner.observed.disks:
            if known.layer != disk.layer or known.bus != disk.bus:
                raise self._refuse(f"plug disk {disk.name} into", "NameTaken", "there is another one of that name", "unplug that first")
            return
        config = _with_disk(owner.config, disk)
        view = owner.surroundings.host_view(config)
        plan = hotplug.plug_disk(disk, owner.started, view, *await self._ports())
        plan = await self._handed_over(disk, plan, view)
        await self._reconfigured(config, plan, lambda: tracking.take_up(owner, disk))
        sizes = probe.disk_sizes(await owner.execute("query-block"))
        owner.observe(disks={**owner.observed.disks, disk.name: DiskState(size=sizes.get(plan.device, 0))})

    async def _handed_over(self, disk: DiskConfig, plan: hotplug.HotplugPlan, view: HostView) -> hotplug.HotplugPlan:
        """Let the machine have the files of a disk; returns the plan with the names under which QEMU has them."""
        owner = self._owner
        with _said(f"hand disk {disk.name} to machine {owner.id}"):
            hand_over_disk(disk, owner.record.user, owner.surroundings.users)
            return hotplug.with_files(plan, {view.named(path): name for path, name in (await self._lend(disk)).items()})

    async def _lend(self, disk: DiskConfig) -> Mapping[Path, str]:
        """Hand QEMU files that its user may not open: it got its groups when it started. Returns the names under which it has them."""
        owner, user = self._owner, self._owner.record.user
        names = {}
        for path in lent(disk, user, owner.surroundings.users) if user else ():
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                said = await owner.execute("add-fd", {"opaque": disk.name}, fds=[handle])
            finally:
                os.close(handle)
            names[path] = f"/dev/fdset/{said['fdset-id']}"
        return names

    async def unplug_disk(self, name: str) -> None:
        """Raises `Unanswered` when the guest did not let go in time."""
        owner = self._owner
        disk = next((one for one in owner.config.disks if one.name == name), None)
        if disk is None:
            return
        state = owner.observed.disks.get(name, DiskState())
        owner.observe(disks={**owner.observed.disks, name: replace(state, state="unplugging", error="")})
        error = await self._take_out(hotplug.unplug_disk(disk), f"disk {name}")
        if error is not None:
            owner.observe(disks={**owner.observed.disks, name: replace(state, state="unplugging", error=error.why)})
            raise error
        await self._disk_is_out(name)

    async def change_medium(self, drive: DiskConfig) -> None:
        """Put the medium of `drive` into the drive of its name, or take out what is there.

        QEMU says what is there, so a change that was cut short is finished when it is repeated. Raises `Unanswered` when the guest
        keeps the tray locked.
        """
        owner, device = self._owner, names.device(drive.name)
        known = drives.find(self._owner, drive.name)
        if known.role != "cdrom" or known.bus == "virtio":
            raise self._refuse(f"change the medium of disk {drive.name} of", "NoSuchDevice", "it is no drive", "restart the machine")
        changed = replace(known, layer=drive.layer)
        view = owner.surroundings.host_view(_with_drive(owner.config, changed))
        plan = hotplug.medium(changed, view)
        wanted = names.format_node(drive.name, drive.layer.path) if drive.layer is not None else ""
        present, _ = probe.medium(device, await owner.execute("query-block"))
        if present != wanted:
            for attempts_left in reversed(range(_EXCHANGES)):
                try:
                    await self._exchange(changed, plan, view, (present, wanted))
                    break
                except QemuRefused as refusal:
                    # A guest closes its drive when it likes, as firmware does that looks for something to boot.
                    if "is not open" not in refusal.description or not attempts_left:
                        raise
            await owner.execute("blockdev-close-tray", {"id": device})
        await owner.reconfigure(lambda config: _with_drive(config, changed))
        sizes = probe.disk_sizes(await owner.execute("query-block"))
        owner.observe(disks={**owner.observed.disks, drive.name: DiskState(size=sizes.get(device, 0))})

    async def _exchange(self, drive: DiskConfig, plan: hotplug.HotplugPlan | None, view: HostView, nodes: tuple[str, str]) -> None:
        """Open the tray, take out what is there, and put in what `plan` says."""
        await self._open_tray(drive.name)
        await self._owner.execute("blockdev-remove-medium", {"id": names.device(drive.name)})
        # One that an attempt before this one left behind goes, too.
        for node in filter(None, nodes):
            with contextlib.suppress(QemuRefused):
                await self._owner.execute("blockdev-del", {"node-name": node})
        if plan is not None:
            await self._carry_out(await self._handed_over(drive, plan, view))

    async def _open_tray(self, name: str) -> None:
        """Without force: a guest that has mounted the medium is asked to let go of it, and may do so until the next attempt."""
        owner, device = self._owner, names.device(name)
        # Not for long: nobody else can ask anything of the machine meanwhile.
        for attempt in range(_RETRIES):
            # Again now and then: the guest may have closed it before anybody looked.
            if attempt % _OPENED_EVERY == 0:
                await owner.execute("blockdev-open-tray", {"id": device})
            if probe.medium(device, await owner.execute("query-block"))[1]:
                return
            await asyncio.sleep(_RETRY_SECONDS)
        what = f"cannot change the medium of disk {name} of machine {owner.id}"
        raise Unanswered(what, why="the guest keeps its tray locked", fix="unmount it in the guest")

    async def plug_nic(self, nic: Nic) -> None:
        """Repeated it finds the card there."""
        owner = self._owner
        known = next((one for one in owner.config.nics if one.name == nic.name), None)
        if known is not None and nic.name in owner.observed.nics:
            if known.mac != nic.mac or known.backend != nic.backend:
                raise self._refuse(f"plug card {nic.name} into", "NameTaken", "there is another one of that name", "unplug that first")
            return
        if isinstance(nic.backend, UserNetwork) and is_offline(owner.observed.pid):
            raise self._refuse(f"plug card {nic.name} into", "NoNetwork", "its QEMU was started without a network", "restart the machine")
        before = owner.config
        config = replace(before, nics=(*(one for one in before.nics if one.name != nic.name), nic))
        plan = hotplug.plug_nic(nic, owner.started, owner.surroundings.host_view(config), *await self._ports())
        await self._reconfigured(config, plan)
        owner.observe(nics={**owner.observed.nics, nic.name: NicState(link_up=nic.link_up)})

    async def unplug_nic(self, name: str) -> None:
        """Raises `Unanswered` when the guest did not let go in time."""
        owner = self._owner
        nic = next((one for one in owner.config.nics if one.name == name), None)
        if nic is None:
            return
        state = owner.observed.nics.get(name, NicState())
        owner.observe(nics={**owner.observed.nics, name: replace(state, state="unplugging", error="")})
        error = await self._take_out(hotplug.unplug_nic(nic), f"network card {name}")
        if error is not None:
            owner.observe(nics={**owner.observed.nics, name: replace(state, state="unplugging", error=error.why)})
            raise error
        await self._nic_is_out(name)

    async def resize_disk(self, name: str, size: int) -> None:
        """To at least this size, in whole sectors: a disk never shrinks."""
        owner, disk, size = self._owner, drives.find(self._owner, name), -(-size // SECTOR) * SECTOR
        state = owner.observed.disks.get(name, DiskState())
        if disk.layer is None or disk.readonly:
            raise self._refuse(f"grow disk {name} of", "ReadOnly", "it cannot be written", "")
        if state.size > size:
            raise self._refuse(f"shrink disk {name} of", "Shrink", f"it has {state.size} bytes, and {size} are fewer", "ask for more")
        node = names.format_node(disk.name, disk.layer.path)
        await owner.execute("block_resize", {"node-name": node, "size": size}, patience=60.0)
        owner.observe(disks={**owner.observed.disks, name: replace(state, size=size)})

    async def set_link(self, name: str, up: bool) -> None:
        """The cable is in, or not."""
        owner = self._owner
        if all(one.name != name for one in owner.config.nics):
            raise self._refuse(f"set the link of card {name} of", "NoSuchDevice", "it has no such card", "")
        await owner.execute("set_link", {"name": names.nic(name), "up": up})
        await owner.reconfigure(
            lambda config: replace(config, nics=tuple(replace(one, link_up=up) if one.name == name else one for one in config.nics))
        )
        state = owner.observed.nics.get(name, NicState())
        owner.observe(nics={**owner.observed.nics, name: replace(state, link_up=up)})

    async def forward(self, name: str, port: Forwarded) -> None:
        """A port of the host leads to one of the guest; for cards on QEMU's own network."""
        owner = self._owner
        if not any(one.name == name and isinstance(one.backend, UserNetwork) for one in owner.config.nics):
            raise self._refuse(f"forward a port of card {name} of", "NoSuchDevice", "it has no such card on a network of its own", "")
        # There is no command of QMP for it. Nothing in this line was written by a user.
        line = f"hostfwd_add {names.netdev(name)} {port.protocol}:{port.address}:{port.outside}-:{port.inside}"
        said = await owner.execute("human-monitor-command", {"command-line": line})
        if said:
            raise self._refuse(f"forward port {port.inside} of", "Refused", str(said).strip(), "")

    async def set_sockets(self, count: int) -> None:
        """Whole sockets are added, the lowest first; none is taken away."""
        owner, cpu = self._owner, self._owner.started.cpu
        if count < owner.observed.sockets or count > cpu.max_sockets:
            why = f"it has {owner.observed.sockets} and can have up to {cpu.max_sockets}; sockets cannot be taken away"
            raise self._refuse(f"give {count} sockets to", "OutOfRange", why, "stop and start it")
        slots = await owner.execute("query-hotpluggable-cpus")
        free = sorted((slot for slot in slots if "qom-path" not in slot), key=_topology)
        missing = (count - owner.observed.sockets) * cpu.cores * cpu.threads
        if len(free) < missing:
            raise self._refuse(f"give {count} sockets to", "OutOfRange", "QEMU has no room for them", "stop and start it")
        await self._room_to_emulate(missing)
        for slot in free[:missing]:
            place = "-".join(str(number) for number in _topology(slot))
            await owner.execute("device_add", {"driver": slot["type"], "id": f"cpu-{place}", **slot["props"]})
            self._arrivals.expect(1)
        await owner.reconfigure(lambda config: replace(config, cpu=replace(config.cpu, sockets=count)))
        owner.observe(sockets=count)
        await undisturbed(owner.shared.shares.enclose, owner.id, owner.config, [])

    async def _room_to_emulate(self, count: int) -> None:
        """QEMU aborts, and the guest with it, when an emulated processor finds no free part of the buffer for translated code."""
        owner, cpu = self._owner, self._owner.started.cpu
        if owner.observed.accelerator != "tcg":
            return
        most = max(cpu.sockets, cpu.max_sockets) * cpu.cores * cpu.threads
        there = len(await owner.execute("query-cpus-fast"))
        answer = await owner.execute("x-query-jit")
        if free_regions(str(answer.get("human-readable-text", "")), most, there) < count:
            why = "the buffer for translated code has no room for more emulated processors just now"
            raise self._refuse(f"add {count} processors to", "EmulationFull", why, "try again later, or stop and start it")

    async def set_memory(self, size: int) -> None:
        """The guest is asked to take, or give back, memory; the observation tells when it did."""
        owner = self._owner
        lowest = boot_size(owner.started)
        most = lowest + plugged_size(owner.started)
        if not lowest <= size <= most:
            why = f"it was started with {lowest} bytes and can have up to {most}"
            raise self._refuse(f"give {size} bytes of memory to", "OutOfRange", why, "stop and start it")
        requested = (size - lowest) // MEMORY_BLOCK * MEMORY_BLOCK
        if most > lowest:
            path = f"/machine/peripheral/{names.VIRTIO_MEM}"
            await owner.execute("qom-set", {"path": path, "property": "requested-size", "value": requested})
        await owner.reconfigure(lambda config: replace(config, memory=replace(config.memory, size=size)))

    async def repair(self) -> None:
        """After Paddock was away: what was to be plugged and is not, is."""
        owner = self._owner
        there = await self._devices()
        # One that was plugged just before may not have arrived.
        self._arrivals.expect(owner.config.cpu.sockets - owner.started.cpu.sockets)
        for disk in owner.config.disks:
            if disk.hotplugged and names.device(disk.name) not in there:
                await self._again(disk.name, self.plug_disk(disk))
        started = {one.name for one in owner.started.nics}
        for nic in owner.config.nics:
            if nic.name not in started and names.nic(nic.name) not in there:
                await self._again(nic.name, self.plug_nic(nic))

    async def _again(self, name: str, work: Any) -> None:
        owner = self._owner
        owner.observe(
            disks={key: value for key, value in owner.observed.disks.items() if key != name},
            nics={key: value for key, value in owner.observed.nics.items() if key != name},
        )
        with contextlib.suppress(PaddockError):
            await work

    async def _devices(self) -> set[str]:
        answer = await self._owner.execute("qom-list", {"path": "/machine/peripheral"})
        return {str(one.get("name")) for one in answer}

    async def _ports(self) -> tuple[Sequence[str], list[str]]:
        """Root ports that were spare at the start, and those that are taken since."""
        owner = self._owner
        there = await self._devices()
        taken = []
        for device in [*(names.device(one.name) for one in owner.config.disks), *(names.nic(one.name) for one in owner.config.nics)]:
            if device in there:
                path = f"/machine/peripheral/{device}"
                with contextlib.suppress(QemuRefused):
                    bus = str(await owner.execute("qom-get", {"path": path, "property": "parent_bus"}))
                    taken.append(bus.rpartition("/")[2])
        return spare_ports(owner.started, owner.surroundings.host_view(owner.started)), taken

    async def _reconfigured(self, config: MachineConfig, plan: hotplug.HotplugPlan, ready: _Work | None = None) -> None:
        """The config is kept only when the guest has the device. `ready` is awaited once QEMU has what is behind the device."""
        owner, before = self._owner, self._owner.config
        await owner.reconfigure(lambda _: config)
        try:
            await self._carry_out(plan, ready)
        except BaseException:
            await owner.reconfigure(lambda _: before)
            raise

    async def _carry_out(self, plan: hotplug.HotplugPlan, ready: _Work | None = None) -> None:
        owner = self._owner
        files = taps.OpenFiles()
        if (opening := plan.opening) is not None:
            files = taps.open_all([(opening.nic, opening.device, opening.queues, opening.vhost)])
        try:
            for wanted, opened in ((plan.files, files.taps), (plan.vhosts, files.vhosts)):
                for name, handle in zip(wanted, [one for many in opened.values() for one in many], strict=True):
                    await owner.execute("getfd", {"fdname": name}, fds=[handle])
            try:
                first, *rest = plan.steps
                await owner.execute(first.execute, first.arguments)
                if ready is not None:
                    await ready()
                for request in rest:
                    await owner.execute(request.execute, request.arguments)
            except BaseException:
                for request in plan.undo:
                    with contextlib.suppress(PaddockError):
                        await owner.execute(request.execute, request.arguments)
                raise
        finally:
            files.close()

    async def _take_out(self, removal: hotplug.Removal, what: str) -> Unanswered | None:
        owner = self._owner

        def gone(name: str, data: Mapping[str, Any]) -> bool:
            return name in ("DEVICE_DELETED", "DEVICE_UNPLUG_GUEST_ERROR") and data.get("device") == removal.device

        with owner.events.expect(gone) as event:
            try:
                await owner.execute(removal.first.execute, removal.first.arguments)
            except QemuRefused as error:
                if error.kind == "DeviceNotFound":
                    event.cancel()
                elif "in the process of unplug" not in error.description:
                    raise
            if not event.cancelled():
                patience = owner.surroundings.times.unplug
                try:
                    async with asyncio.timeout(patience):
                        name, _ = await event
                except TimeoutError:
                    why = f"the guest has not let go of it within {patience:g} s; it may still do so"
                    return Unanswered(f"cannot unplug {what} of machine {owner.id}", why=why, fix="unmount it in the guest and try again")
                if name != "DEVICE_DELETED":
                    why = "the guest refused to let go of it"
                    return Unanswered(f"cannot unplug {what} of machine {owner.id}", why=why, fix="unmount it in the guest and try again")
        await self._clear(removal)
        return None

    async def _clear(self, removal: hotplug.Removal) -> None:
        """Let go of what was behind a device. A disk takes along what is known of its changes."""
        disk = next((one for one in self._owner.config.disks if names.device(one.name) == removal.device), None)
        kept: tuple[str, ...] = ()
        if disk is not None and disk.tracked:
            with contextlib.suppress(PaddockError, OSError):
                kept = await tracking.write_map(self._owner, disk)
        await self._let_go(removal)
        if disk is not None and kept:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(tracking.write_note, disk, kept)

    async def _let_go(self, removal: hotplug.Removal) -> None:
        # The block graph lets go a moment after the event.
        for request in removal.then:
            for left in reversed(range(_RETRIES)):
                try:
                    await self._owner.execute(request.execute, request.arguments)
                    break
                except QemuRefused as error:
                    if "not find" in error.description or "not found" in error.description or not left:
                        break
                    await asyncio.sleep(_RETRY_SECONDS)

    def follow(self, name: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        self._arrivals.follow(name, data)
        """A guest that lets go long after it was asked."""
        if name != "DEVICE_DELETED":
            return
        owner, device = self._owner, data.get("device")
        for disk in owner.config.disks:
            state = owner.observed.disks.get(disk.name)
            if names.device(disk.name) == device and state is not None and state.error:
                owner.background(self._late(hotplug.unplug_disk(disk), disk.name))
        for nic in owner.config.nics:
            each = owner.observed.nics.get(nic.name)
            if names.nic(nic.name) == device and each is not None and each.error:
                owner.background(self._late(hotplug.unplug_nic(nic), nic.name))

    async def _late(self, removal: hotplug.Removal, name: str) -> None:
        async def finish() -> None:
            await self._clear(removal)
            if any(one.name == name for one in self._owner.config.disks):
                await self._disk_is_out(name)
            else:
                await self._nic_is_out(name)

        with contextlib.suppress(PaddockError):
            await self._owner.inbox.offer(finish)

    async def _disk_is_out(self, name: str) -> None:
        owner = self._owner
        await owner.reconfigure(lambda config: replace(config, disks=tuple(one for one in config.disks if one.name != name)))
        owner.observe(disks={key: value for key, value in owner.observed.disks.items() if key != name})

    async def _nic_is_out(self, name: str) -> None:
        owner = self._owner
        await owner.reconfigure(lambda config: replace(config, nics=tuple(one for one in config.nics if one.name != name)))
        owner.observe(nics={key: value for key, value in owner.observed.nics.items() if key != name})

    def _refuse(self, action: str, reason: str, why: str, fix: str) -> RequestRefused:
        return RequestRefused(f"cannot {action} machine {self._owner.id}", reason=reason, why=why, fix=fix)


def free_regions(text: str, most: int, there: int) -> int:
    """Return how many parts of the buffer are surely free, from `x-query-jit`; 0 if unknown. Computed as QEMU's tcg_n_regions."""
    found = re.search(r"gen code size +(\d+)/(\d+)", text)
    if found is None:
        return 0
    used, total = int(found[1]), int(found[2])
    if most == 1:
        return 0
    # At least 2 MiB each, at most eight for each processor; the buffer's size was rounded down a little.
    parts = round(total / (2 << 20))
    regions = most if parts <= most else min(parts, most * 8)
    size = total // regions
    # Each processor may have begun one that is hardly used.
    return max(0, regions - -(-used // size) - max(0, there - 1))


def _with_disk(config: MachineConfig, disk: DiskConfig) -> MachineConfig:
    return replace(config, disks=(*(one for one in config.disks if one.name != disk.name), disk))


def _with_drive(config: MachineConfig, drive: DiskConfig) -> MachineConfig:
    return replace(config, disks=tuple(drive if one.name == drive.name else one for one in config.disks))


def _topology(slot: Mapping[str, Any]) -> tuple[int, ...]:
    props = slot["props"]
    return tuple(int(props.get(name, 0)) for name in ("socket-id", "die-id", "core-id", "thread-id"))


@contextlib.contextmanager
def _said(action: str) -> Any:
    try:
        yield
    except OSError as error:
        raise RequestRefused(f"cannot {action}", reason="NoFile", why=f"{error.filename}: {os.strerror(error.errno or 0)}") from error

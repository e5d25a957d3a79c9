"""The target of a live migration: a QEMU that waits for the guest of another host, and runs it once its source lets it.

    receive   QEMU waits; its disks are exported to the source            the source runs the guest
    arrive    memory and devices are there; the exports are closed        the source may
    take      `arrival.json` says "taken": one write, and it is ours      this one, for ever
    drop      `arrival.json` says "dropped": one write                    the source

The source asks to take only after it has given the guest up for good. Until one of the two writes the guest stands still here. A QEMU or a
Paddock that ends before means that the guest is never taken here; one that ends after it is a machine that ended, as any other.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import livefiles, livelinks, migration, rehosting
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.renewed import RunningHardware, renewed
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import DiskLayer, MachineConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.errors import QemuRefused, RequestRefused, StartFailed, Unanswered
from paddock.engine.machine.livelinks import Credentials, ReceiverAddress
from paddock.engine.machine.memorysnapshots import is_written
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.startup import LOOK_SECONDS
from paddock.engine.machine.suspension import with_host_parts

# The guest is here a moment before QEMU says so.
_SETTLE_SECONDS = 30.0
_LISTEN = "live-disks"
# Longer content of a drive that the guest only reads is not compared, and refused.
_LONGEST_READONLY = 64 << 20


class LeavingGuest(Struct, frozen=True):
    """A running guest as the target has to know it before the first byte."""

    saved: SavedMachine
    # the version of its QEMU
    qemu: str
    # SHA-256 of what it only reads, by the disk's name; "": it cannot be known
    contents: Mapping[str, str]
    # bytes of what it writes, by the disk's name
    sizes: Mapping[str, int] = {}


class ReceiveRequest(Struct, frozen=True):
    """A guest that is to come, from the source that has the other certificate."""

    migration: str
    guest: LeavingGuest
    credentials: Credentials
    # where to listen
    address: str


class LiveTarget:
    """The arrival of one machine's guest."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        # what comes, until its QEMU asks for it, and who waits for it to listen
        self._expected: tuple[ReceiveRequest, asyncio.Future[ReceiverAddress]] | None = None
        self._listens: asyncio.Future[ReceiverAddress] | None = None
        self._arrived, self._taken = asyncio.Event(), asyncio.Event()

    async def prepare(self, receive_request: ReceiveRequest) -> asyncio.Future[ReceiverAddress]:
        """Note who comes, and return who will know where its QEMU listens.

        Raises `RequestRefused` with all that this host or machine lacks, before anything happens.
        """
        owner = self._owner
        contents, sizes = await asyncio.to_thread(lambda: (contents_of(owner.config), sizes_of(owner.config)))
        if found := (*lacks(receive_request.guest, owner.config, self._view(), contents), *other_sizes(receive_request.guest, sizes)):
            what = f"cannot receive the guest of machine {owner.id}"
            raise RequestRefused(what, reason="NotReceivable", why="; ".join(found), fix="change the target, or stop and move the machine")
        guest = expected(receive_request.guest.saved, owner.config)
        livefiles.write_arrival(owner.directory, livefiles.ReceivedGuest(receive_request.migration, guest))
        self._listens = asyncio.get_running_loop().create_future()
        self._expected = receive_request, self._listens
        return self._listens

    def line(self) -> tuple[MachineConfig, Command]:
        """Return the config and the command line of a QEMU that waits for the guest."""
        owner = self._owner
        arrival = livefiles.read_arrival(owner.directory)
        if arrival is None:
            raise StartFailed(f"cannot receive the guest of machine {owner.id}", why=f"{owner.directory.path}/arrival.json is gone")
        started = with_host_parts(arrival.guest.started, owner.config)
        now = RunningHardware(owner.config, arrival.guest.places, arrival.guest.processors, ports_taken=False)
        return started, renewed(started, now, self._view())

    def _view(self) -> HostView:
        return self._owner.surroundings.host_view(self._owner.config)

    async def restore(self) -> None:
        """Returns when the guest is there and is taken. Part of the start, which lets it run then."""
        owner = self._owner
        arrival = livefiles.read_arrival(owner.directory)
        expected_guest, self._expected = self._expected, None
        if arrival is None or arrival.state == "dropped":
            raise StartFailed(f"cannot receive the guest of machine {owner.id}", why="the migration is over")
        if expected_guest is not None:
            # Other machines may start meanwhile.
            owner.booted()
            await self._receive(*expected_guest)
        elif (await owner.execute("query-migrate")).get("status") != "completed":
            owner.kill()
            raise StartFailed(f"cannot receive the guest of machine {owner.id}", why="Paddock ended while the guest was on its way")
        with contextlib.suppress(QemuRefused):
            await owner.execute("nbd-server-stop")
        await livelinks.hide(owner)
        self._arrived.set()
        if arrival.state != "taken":
            await self._taken.wait()

    async def _receive(self, receive_request: ReceiveRequest, listens: asyncio.Future[ReceiverAddress]) -> None:
        owner, wire = self._owner, migration.Wire(livelinks.CREDENTIALS, "")
        with contextlib.ExitStack() as open_files:
            disks, memory = (open_files.enter_context(livelinks.listen(receive_request.address)) for _ in range(2))
            await livelinks.show(owner, receive_request.credentials, "server")
            await self._export(disks)
            token = secrets.token_hex(32)
            ports = [int(each.getsockname()[1]) for each in (disks, memory)]
            listens.set_result(ReceiverAddress(receive_request.address, ports[0], ports[1], token))
            connection = open_files.enter_context(await livelinks.accept(memory, token))
            await livelinks.give(owner, connection)
        await migration.receive(owner, wire)

    async def _export(self, listener: socket.socket) -> None:
        """The source writes the disks until its guest stands still."""
        owner = self._owner
        await owner.execute("getfd", {"fdname": _LISTEN}, fds=[listener.fileno()])
        address = {"type": "fd", "data": {"str": _LISTEN}}
        await owner.execute("nbd-server-start", {"addr": address, "tls-creds": livelinks.CREDENTIALS})
        for disk in owner.config.disks:
            if is_written(disk) and disk.layer is not None:
                node = names.format_node(disk.name, disk.layer.path)
                export = {"type": "nbd", "id": names.device(disk.name), "node-name": node, "name": disk.name, "writable": True}
                await owner.execute("block-export-add", export)

    async def take(self, migration_id: str) -> bool:
        """Whether the guest is ours, which is decided here for good. Raises `Unanswered` while nobody knows."""
        owner = self._owner
        if self._arrival(migration_id).state == "waiting" and await self._is_there():
            self._decide(migration_id, "taken")
        elif not owner.observed.live:
            self._decide(migration_id, "dropped")
        state = self._arrival(migration_id).state
        if state == "waiting":
            raise Unanswered(f"cannot take the guest of machine {owner.id}", why="it is not whole yet", fix="ask again")
        if state == "taken":
            self._taken.set()
        return state == "taken"

    async def _is_there(self) -> bool:
        """Whether the guest stands still in a QEMU that answers; a Paddock that was away needs a moment to know."""
        owner = self._owner
        with contextlib.suppress(TimeoutError, PaddockError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                while not self._arrived.is_set() and owner.observed.live:
                    await asyncio.sleep(LOOK_SECONDS)
                await owner.execute("query-status")
                return self._arrived.is_set() and owner.run.process is not None
        return False

    def _decide(self, migration_id: str, state: Literal["taken", "dropped"]) -> None:
        arrival = self._arrival(migration_id)
        if arrival.state == "waiting":
            livefiles.write_arrival(self._owner.directory, replace(arrival, state=state))

    async def arrived(self, migration_id: str) -> None:
        """Returns when memory and devices are there. Raises when they never will be."""
        owner = self._owner
        while not self._arrived.is_set():
            if self._arrival(migration_id).state != "waiting" or not owner.observed.live:
                raise self._failure()
            await asyncio.sleep(LOOK_SECONDS)

    def drop(self, migration_id: str) -> bool:
        """Whether the guest never runs here, which is decided for good; False: it is taken already."""
        self._decide(migration_id, "dropped")
        dropped = self._arrival(migration_id).state == "dropped"
        if dropped and self._owner.observed.live:
            self._owner.kill()
        return dropped

    def follow(self, name: str, _: Mapping[str, object]) -> None:
        """Hear of the end of a run: whoever waits for it to listen waits for nothing."""
        if not name:
            self._arrived.clear()
            # Why it ended is known a moment later.
            asyncio.get_running_loop().call_soon(self._give_up)

    def _give_up(self) -> None:
        if self._listens is not None and not self._listens.done():
            self._listens.set_exception(self._failure())

    def _failure(self) -> StartFailed:
        end = self._owner.observed.end
        why = (end.text if end is not None else "") or self._owner.directory.log_tail() or "its QEMU ended"
        return StartFailed(f"cannot receive the guest of machine {self._owner.id}", why=why)

    def _arrival(self, migration_id: str) -> livefiles.ReceivedGuest:
        arrival = livefiles.read_arrival(self._owner.directory)
        if arrival is None or arrival.migration != migration_id:
            what = f"cannot tell what became of migration {migration_id}"
            raise Unanswered(what, why=f"machine {self._owner.id} knows nothing of it", fix="look at both hosts, and delete one machine")
        return arrival


# --- decisions --------------------------------------------------------------------------------------------------------------


def lacks(guest: LeavingGuest, config: MachineConfig, host: HostView, contents: Mapping[str, str]) -> Iterator[str]:
    """Yield what a target lacks for a guest; nothing: it can come."""
    yield from rehosting.mismatches(guest.saved, guest.qemu, host, "runs")
    # Under another name it is the same guest, and no fork: it keeps all that others know it by.
    if differences := rehosting.described_differences(guest.saved, replace(config, label=guest.saved.config.label)):
        yield f"the machine there is another one: {', '.join(differences)} {'differs' if len(differences) == 1 else 'differ'}"
    for name in sorted(guest.contents.keys() | contents.keys()):
        before, here = guest.contents.get(name, ""), contents.get(name, "")
        if not before or not here:
            yield f"disk {name} is only read and too large to compare"
        elif before != here:
            yield f"disk {name} is only read and has another content there"


def other_sizes(guest: LeavingGuest, sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the disks of a target that have another size than those of the guest."""
    for name, size in sorted(guest.sizes.items()):
        if (here := sizes.get(name, size)) != size:
            yield f"disk {name} has {size} bytes, and that of the target has {here}"


def expected(saved: SavedMachine, config: MachineConfig) -> SavedMachine:
    """Return a guest as it is here: with the disks and networks of this machine, and all that it has seen of the other one."""
    devices = replace(config.devices, generation_id=saved.started.devices.generation_id)
    guest = rehosting.rehosted(saved, replace(config, label=saved.config.label, devices=devices))
    return replace(guest, started=replace(guest.started, label=config.label), config=replace(guest.config, label=config.label))


def contents_of(config: MachineConfig) -> dict[str, str]:
    """Return the SHA-256 of each disk that the guest only reads; "" for one that is not a short raw file."""
    return {
        disk.name: _digest(disk.layer.path) if disk.layer.format == "raw" and disk.layer.backing is None else ""
        for disk in config.disks
        if disk.layer is not None and not is_written(disk)
    }


def sizes_of(config: MachineConfig) -> dict[str, int]:
    """Return the bytes of each disk that the guest writes, as far as its file says them."""
    found = {disk.name: _size(disk.layer) for disk in config.disks if disk.layer is not None and is_written(disk)}
    return {name: size for name, size in found.items() if size}


def _size(layer: DiskLayer) -> int:
    with contextlib.suppress(OSError), layer.path.open("rb") as file:
        if layer.format == "raw":
            return file.seek(0, os.SEEK_END)
        head = file.read(32)
        # The header of qcow2 has it.
        return int.from_bytes(head[24:32], "big") if head[:4] == b"QFI\xfb" and len(head) == 32 else 0
    return 0


def _digest(path: Path) -> str:
    with contextlib.suppress(OSError):
        if path.stat().st_size <= _LONGEST_READONLY:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return ""

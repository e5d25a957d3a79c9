"""The source of a live migration: the guest runs here until its disks and memory are at the target, and then never again.

    copy        QEMU mirrors the disks into those of the target, and what the guest writes goes to both     the source runs the guest
    send        its memory goes, while it runs; then it stands still, and the disks are flushed             nobody, the source may
    offer       `handed.json` says "offered": one write, and the guest is given up                           nobody
    settle      the target decides, once: it takes the guest, or never will                                  the target, or the source
    end         `handed.json` says "decided", and QEMU ends                                                  the target

Up to the offer anything that fails leaves the guest where it is, and the target drops what it has. While the target cannot be asked after
it, the guest stands still: nobody can know whether it runs there. The QEMU here keeps its memory until the answer is there.
"""

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import hardware, livefiles, livelinks, migration
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.livelinks import Credentials, ReceiverAddress
from paddock.engine.machine.livetarget import LeavingGuest, contents_of
from paddock.engine.machine.memorysnapshots import is_written
from paddock.engine.machine.observation import JobState
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.suspension import saved_machine

KIND = "migrate"
_POLL_SECONDS = 0.05
# QEMU drains what is under way.
_DRAIN_SECONDS = 60.0
_HELLO_SECONDS = 5.0
_STAYS = "the guest runs on here"


class SendRequest(Struct, frozen=True):
    """A guest that is to go."""

    migration: str
    receiver_address: ReceiverAddress
    credentials: Credentials
    # bytes per second; 0: as fast as it goes
    bandwidth: int = 0
    # the longest time of all; 0: any
    seconds: float = 0.0
    auto_converge: bool = False


class GuestReceiver(Protocol):
    """The other host, as the source asks it. Each may raise, and then nothing is known."""

    async def arrived(self, migration: str) -> None:
        """Returns when memory and devices are there."""

    async def take(self, migration: str) -> bool:
        """Whether the guest runs there from now on, for good; False: it never will."""


class LiveSource:
    """The departure of one machine's guest."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        # why a copy ended, by its job
        self._errors: dict[str, str] = {}
        self._settling = asyncio.Lock()
        # connections that QEMU has, too: what ends here ends there, whatever QEMU waits for
        self._lines: list[socket.socket] = []
        # up to the offer
        self._work: asyncio.Future[None] | None = None

    def demand_idle(self, action: str) -> None:
        """Raise while the guest is on its way: nothing else may change it."""
        if self._owner.record.sending and not self._owner.observed.handed:
            why, fix = "its guest is being migrated to another host", "wait for the end, or cancel the migration"
            raise RequestRefused(f"cannot {action} machine {self._owner.id}", reason="Busy", why=why, fix=fix)

    async def describe(self) -> LeavingGuest:
        """Return the guest, as the target has to know it. Raises `RequestRefused` if it cannot leave."""
        owner = self._owner
        await hardware.demand_movable(owner, self._refused, reason="NotMigratable")
        if owner.started.memory.file is not None:
            raise self._refused("NotMigratable", "its memory is a file that others may share", "stop and move it")
        if shared := [disk.name for disk in owner.config.disks if disk.shareable and is_written(disk)]:
            raise self._refused("NotMigratable", f"disk {shared[0]} is shared with other machines", "stop and move it")
        started, now = await hardware.find(owner, self._refused)
        version = (await owner.execute("query-version"))["qemu"]
        qemu = ".".join(str(version[part]) for part in ("major", "minor", "micro"))
        contents = await asyncio.to_thread(contents_of, owner.config)
        sizes = {disk.name: owner.observed.disks[disk.name].size for disk in owner.config.disks if disk.name in owner.observed.disks}
        written = {disk.name: sizes[disk.name] for disk in owner.config.disks if is_written(disk) and sizes.get(disk.name)}
        return LeavingGuest(saved_machine(owner, started, now, 0, paused=False), qemu, contents, written)

    async def send(self, send_request: SendRequest, target: GuestReceiver) -> bool:
        """True: the guest runs at the target. False: the target never took it, and it goes on here. Raises when it did not leave.

        Raises `Unanswered` when it left, and the target does not say whether it has arrived: `settle` asks again.
        """
        owner = self._owner
        self.demand_idle("migrate")
        await self.describe()
        owner.save(sending=send_request.migration)
        self._errors.clear()
        self._work = work = asyncio.ensure_future(self._leave_for(send_request, target))
        try:
            await work
            self._offer(send_request.migration)
        except BaseException as error:
            work.cancel()
            # Done in any case, also when nobody waits for it.
            end = owner.background(self._back(work))
            problem = self._problem(error, send_request)
            if problem is not None:
                await asyncio.wait([end])
            if problem is None or problem is error:
                raise
            raise problem from error
        finally:
            self._work = None
        return await self.settle(target)

    async def _leave_for(self, send_request: SendRequest, target: GuestReceiver) -> None:
        try:
            async with asyncio.timeout(send_request.seconds or None):
                await self._copy(send_request)
                await self._send(send_request)
                await target.arrived(send_request.migration)
        finally:
            self._cut()

    async def _connect(self, port: int, what: str, receiver_address: ReceiverAddress) -> socket.socket:
        connection = await livelinks.connect(receiver_address.address, port, what)
        self._lines.append(connection)
        return connection

    def _cut(self) -> None:
        """Nothing of QEMU waits for the target any more."""
        while self._lines:
            with self._lines.pop() as line, contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def _problem(self, error: BaseException, send_request: SendRequest) -> PaddockError | None:
        """Return what to tell of an error. None: the machine is being stopped, or Paddock is at fault."""
        task = asyncio.current_task()
        if isinstance(error, TimeoutError):
            why = f"it was not done within {send_request.seconds:g} s"
            return self._refused("TooSlow", why, "give it more time or bandwidth, or let it converge")
        if isinstance(error, OSError):
            return self._refused("NoFile", f"{error.filename or 'the host'}: {error.strerror or error}")
        if isinstance(error, asyncio.CancelledError) and task is not None and not task.cancelling():
            return self._refused("Cancelled", "the migration was called off", _STAYS)
        if isinstance(error, QemuRefused):
            return self._refused("MigrationFailed", error.description, _STAYS)
        return error if isinstance(error, PaddockError) else None

    def cancel(self) -> None:
        """Call it off: the guest runs on here. A guest that was handed over is not called back."""
        if self._work is not None:
            self._work.cancel()

    # --- before the offer -------------------------------------------------------------------------------------------------

    async def _copy(self, send_request: SendRequest) -> None:
        """Returns when the disks are equal, and stay so."""
        owner = self._owner
        await livelinks.show(owner, send_request.credentials, "client")
        disks = [disk for disk in owner.config.disks if is_written(disk)]
        owner.observe(jobs={**owner.observed.jobs, **{disk.name: JobState(KIND) for disk in disks}})
        for disk in disks:
            if disk.layer is not None:
                await self._mirror(disk, disk.layer, send_request)
        while disks and not await self._is_ready(disks):
            await asyncio.sleep(_POLL_SECONDS)

    async def _mirror(self, disk: DiskConfig, layer: DiskLayer, send_request: SendRequest) -> None:
        owner, receiver_address, node = self._owner, send_request.receiver_address, _node(disk)
        source = names.format_node(disk.name, layer.path)
        connection = await self._connect(receiver_address.disks_port, f"disk {disk.name}", receiver_address)
        await owner.execute("getfd", {"fdname": node}, fds=[connection.fileno()])
        export = {
            "driver": "nbd",
            "node-name": node,
            "server": {"type": "fd", "str": node},
            "export": disk.name,
            "tls-creds": livelinks.CREDENTIALS,
            "tls-hostname": livelinks.TARGET_NAME,
        }
        # QEMU does nothing else until the target has answered; without an answer the line is cut.
        await owner.execute("blockdev-add", export, patience=_HELLO_SECONDS)
        sizes = {
            str(each["node-name"]): int(each["image"]["virtual-size"])
            for each in await owner.execute("query-named-block-nodes", {"flat": True})
            if each["node-name"] in (source, node)
        }
        if sizes[source] != sizes[node]:
            raise self._refused("WrongSize", f"disk {disk.name} has {sizes[source]} bytes, and that of the target has {sizes[node]}")
        arguments = {
            "job-id": node,
            "device": source,
            "target": node,
            "sync": "full",
            "speed": send_request.bandwidth,
            # A guest that writes faster than the copy goes on waits for it, and the copy ends.
            "copy-mode": "write-blocking",
        }
        await owner.execute("blockdev-mirror", arguments, patience=_DRAIN_SECONDS)

    async def _is_ready(self, disks: list[DiskConfig]) -> bool:
        """Whether all copies are, and see how far they are. Raises if one ended."""
        owner = self._owner
        found = {str(job.get("device")): job for job in await owner.execute("query-block-jobs")}
        jobs, is_ready = dict(owner.observed.jobs), True
        for disk in disks:
            job = found.get(_node(disk))
            if job is None or self._errors:
                why = self._errors.get(_node(disk)) or next(iter(self._errors.values()), "its copy ended")
                raise self._refused("MigrationFailed", f"disk {disk.name}: {why}", _STAYS)
            done, total = int(job.get("offset", 0)), int(job.get("len", 0))
            jobs[disk.name] = JobState(KIND, "ready" if job.get("ready") else "running", done, total)
            is_ready = is_ready and bool(job.get("ready"))
        owner.observe(jobs=jobs)
        return is_ready

    async def _send(self, send_request: SendRequest) -> None:
        """The guest stands still, and the target has its memory, its devices and the last writes to its disks."""
        owner, receiver_address = self._owner, send_request.receiver_address
        wire = migration.Wire(livelinks.CREDENTIALS, livelinks.TARGET_NAME, send_request.bandwidth, send_request.auto_converge)
        connection = await self._connect(receiver_address.memory_port, "its memory", receiver_address)
        await livelinks.greet(connection, receiver_address.token)
        await livelinks.give(owner, connection)
        await migration.send(owner, "migrate", self._end_copies, wire)
        if owner.record.evidence:
            raise self._refused("Ended", "the guest ended meanwhile")

    async def _end_copies(self) -> None:
        """The guest stands still: what it wrote last is at the target, and flushed there, before the copies end."""
        owner = self._owner
        disks = [disk for disk in owner.config.disks if is_written(disk)]
        if not await self._is_ready(disks):
            raise self._refused("MigrationFailed", "its disks are not equal", _STAYS)
        for disk in disks:
            # A copy that is ready ends whole.
            await owner.execute("block-job-cancel", {"device": _node(disk)})
        await self._gone()
        if self._errors:
            raise self._refused("MigrationFailed", next(iter(self._errors.values())), _STAYS)
        for disk in disks:
            await owner.execute("blockdev-del", {"node-name": _node(disk)}, patience=_DRAIN_SECONDS)

    async def _gone(self) -> None:
        owner = self._owner
        nodes = {_node(disk) for disk in owner.config.disks}
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while any(str(job.get("id")) in nodes for job in await owner.execute("query-jobs")):
                    await asyncio.sleep(_POLL_SECONDS / 10)
        except TimeoutError:
            raise Unanswered(f"cannot end the copies of machine {owner.id}", why=f"it took longer than {_DRAIN_SECONDS:g} s") from None

    def _offer(self, migration_id: str) -> None:
        """Never interrupted: nothing else happens in this process until it is done."""
        owner = self._owner
        if owner.record.evidence or owner.run.process is None:
            raise self._refused("Ended", "the guest ended meanwhile")
        before = owner.observed.phase
        # From here on nobody lets it go on.
        owner.observe(phase="stopping", handed="offered")
        try:
            livefiles.write_handed(owner.directory, livefiles.HandedGuest(migration_id))
        except OSError:
            # It may be there in part.
            livefiles.drop_handed(owner.directory)
            owner.observe(phase=before, handed="")
            raise

    async def _back(self, work: asyncio.Future[None] | None = None) -> None:
        """The guest goes on here as if nothing had been, once `work` does nothing more."""
        owner = self._owner
        if work is not None:
            await asyncio.wait([work])
        if owner.record.active and owner.run.process is not None:
            with contextlib.suppress(PaddockError):
                await migration.go_on(owner)
                await self._drop_copies()
                await livelinks.hide(owner)
            jobs = {name: job for name, job in owner.observed.jobs.items() if job.kind != KIND}
            owner.observe(jobs=jobs)
            owner.save(sending="")
            await owner.look_at_status()

    async def _drop_copies(self) -> None:
        owner = self._owner
        for disk in owner.config.disks:
            with contextlib.suppress(PaddockError):
                await owner.execute("block-job-cancel", {"device": _node(disk), "force": True})
        await self._gone()
        for disk in owner.config.disks:
            with contextlib.suppress(PaddockError):
                await owner.execute("blockdev-del", {"node-name": _node(disk)})

    async def adopt(self) -> None:
        """Paddock ended before the offer: the guest is nowhere else."""
        if self._owner.record.sending and not self._owner.observed.handed:
            await self._back()

    def follow(self, event: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        if event == "BLOCK_JOB_COMPLETED" and data.get("error"):
            self._errors[str(data.get("device"))] = str(data["error"])

    # --- after it ---------------------------------------------------------------------------------------------------------

    async def settle(self, target: GuestReceiver) -> bool:
        """True: the guest runs at the target. False: it never will, and goes on here, if its QEMU lives. Raises while nobody knows."""
        async with self._settling:
            owner = self._owner
            handed = livefiles.read_handed(owner.directory)
            if handed is None:
                return False
            if not handed.decided:
                try:
                    taken = await target.take(handed.migration)
                except OSError as error:
                    what = f"cannot ask the target of migration {handed.migration}"
                    raise Unanswered(what, why=str(error), fix="the guest stands still until it answers") from error
                if not taken:
                    await self._take_back()
                    return False
                livefiles.write_handed(owner.directory, replace(handed, decided=True))
            self._leave()
            return True

    async def _take_back(self) -> None:
        owner = self._owner
        livefiles.drop_handed(owner.directory)
        if owner.run.process is None:
            owner.observe(handed="")
            return
        owner.observe(phase="running", handed="")
        await self._back()

    def _leave(self) -> None:
        """Nothing of the guest is left here but its disks."""
        owner = self._owner
        owner.observe(handed="decided")
        if owner.run.process is not None:
            owner.quit("saved")
        elif owner.record.end is not None:
            end = replace(owner.record.end, reason="saved", text="")
            owner.save(end=end)
            owner.observe(end=end)

    def _refused(self, reason: str, why: str, fix: str = "") -> RequestRefused:
        return RequestRefused(f"cannot migrate machine {self._owner.id}", reason=reason, why=why, fix=fix)


def _node(disk: DiskConfig) -> str:
    """The copy's node in QEMU, and its job."""
    return f"{KIND}-{names.device(disk.name)}"

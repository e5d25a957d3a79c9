"""A guest moves into a new QEMU on the same host, as after an upgrade of QEMU: it stands still for a moment and notices nothing else.

    prepare      the new QEMU is started beside the old one, in `next/`, and waits for a guest        the old one runs the guest
    move         the old QEMU sends the guest's state through a socket pair, and stops it at the end  nobody runs it at the end
    commit       the record names the new process: one write, and it is the machine's                 nobody
    go on        the new QEMU runs the guest; the old one is killed; `next/` becomes `run/`           the new one

Up to the commit the old QEMU can go on, and does when anything fails: the new one never ran the guest, and is killed. From there on the
old one never runs it again. Whoever finds the record after Paddock was killed does the same (`settle`, `resume`), so at every moment one
of the two processes, and never both, is the one that may run the guest.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paddock.base import together
from paddock.base.errors import PaddockError
from paddock.base.threads import undisturbed
from paddock.engine.machine import hardware, migration, probe, taps
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.line import Command, Pins
from paddock.engine.machine.argv.renewed import renewed
from paddock.engine.machine.config import UserNetwork
from paddock.engine.machine.directory import Directory, QemuProgram, Renewal
from paddock.engine.machine.errors import QemuRefused, RequestRefused, StartFailed, Unanswered
from paddock.engine.machine.events import Events
from paddock.engine.machine.observation import RenewalResult
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import Process, end_process, holders, start_ticks
from paddock.engine.machine.programs import identify
from paddock.engine.machine.qmp import PATIENCE, Qmp
from paddock.engine.machine.startup import (
    LOOK_SECONDS,
    end_helpers,
    listens,
    make_files_beside,
    reach,
    start_helper,
    start_qemu,
    unless_it_ends,
)

# A guest that writes faster than its memory is sent stands still after so long, and then it comes to an end.
FORCE_SECONDS = 30.0
# The host keeps so much memory besides the second copy of a guest's.
_SPARE = 256 << 20
_STAYS = "the guest runs on in the old QEMU"
# Told to who follows a machine.
MOVED = "MOVED"


class _Beside:
    """The QEMU that the guest is to move into."""

    def __init__(self, owner: MachineOwner) -> None:
        self.id = owner.id
        self.started = owner.started
        self.events = Events()
        self.directory = owner.directory.beside
        self.pid = self.ticks = 0
        self.helpers: dict[str, tuple[int, int]] = {}
        self.qmp: Qmp | None = None
        # the machine's own, once it is that
        self.owner: MachineOwner | None = None

    async def connect(self, patience: float) -> None:
        connection = await reach(self.directory, names.QMP, patience)
        self.qmp = await Qmp.connect(connection, self._event, self._lost, patience)

    async def execute(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, fds: Sequence[int] = (), patience: float = PATIENCE
    ) -> Any:
        if self.qmp is None:
            raise Unanswered(f"cannot tell the new QEMU of machine {self.id} {command}", why="there is no connection to it")
        return await self.qmp.execute(command, arguments, fds=fds, patience=patience)

    def _event(self, name: str, data: Mapping[str, Any]) -> None:
        self.events.handle(name, data)
        if self.owner is not None:
            self.owner.event(name, data)

    def _lost(self) -> None:
        if self.owner is not None:
            self.owner.silent()
        else:
            self.qmp = None


class Renewals:
    """The moves of one machine. Called by the owner's inbox only."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner

    async def renew(self) -> RenewalResult:
        """Returns when the guest runs in the new QEMU. Raises when it does not; unless it ended, it then runs on in the old one."""
        owner, loop = self._owner, asyncio.get_running_loop()
        began = loop.time()
        await self._demand()
        before, command, beside = await _version(owner), await self._command(), _Beside(owner)
        with owner.occupied():
            try:
                await self._prepare(beside, command)
                stood = await self._move(beside)
                await self._commit(beside, identify(command.argv[0]))
                pause = loop.time() - stood
            except BaseException as error:
                # Done in any case, also when nobody waits for it.
                end = owner.background(self._finish() if _has_moved(owner) else self._back(beside))
                if isinstance(error, PaddockError | OSError):
                    await asyncio.wait([end])
                if isinstance(error, OSError):
                    raise self._refused("NoFile", f"{error.filename or 'the host'}: {error.strerror}") from error
                raise
        after = await _version(owner)
        await self._finish()
        return RenewalResult(loop.time() - began, pause, before, after)

    # --- what has to hold -------------------------------------------------------------------------------------------------

    async def _demand(self) -> None:
        owner = self._owner
        await hardware.demand_movable(owner, self._refused, reason="NotRenewable")
        need, free = _resident(owner), _available()
        if free - need < _SPARE:
            why = f"both processes have its memory for a moment: {need >> 20} MiB, and the host has {free >> 20} MiB to give"
            raise self._refused("NoMemory", why, "stop another machine, or stop and start this one")

    async def _command(self) -> Command:
        """The line of the new QEMU."""
        started, now = await hardware.find(self._owner, self._refused)
        return renewed(started, now, self._owner.surroundings.host_view(self._owner.config))

    def _refused(self, reason: str, why: str, fix: str = "") -> RequestRefused:
        return RequestRefused(f"cannot renew machine {self._owner.id}", reason=reason, why=why, fix=fix)

    # --- before the commit ------------------------------------------------------------------------------------------------

    async def _prepare(self, beside: _Beside, command: Command) -> None:
        """The new QEMU answers, and waits for a guest."""
        owner, times = self._owner, self._owner.surroundings.times
        users, user, old = owner.surroundings.users, owner.record.user, owner.observed.pid
        # First, so that nothing is ever beside that is not looked for.
        owner.save(renewal=Renewal())
        make_files_beside(owner.directory, command, user)
        log = beside.directory.open_log(owner.record.run)
        try:
            for helper in command.helpers:
                pid = start_helper(beside.directory, helper, log, user)
                beside.helpers[helper.name] = (pid, start_ticks(pid))
                owner.save(renewal=Renewal(helpers=beside.helpers))
                await listens(beside.directory, helper, pid, user, times.helper)
            with taps.headers_kept(old, [one.device for one in command.openings]):
                beside.pid = start_qemu(beside.directory, owner.config, command, log, (user, users), beside=old)
                beside.ticks = start_ticks(beside.pid)
                pids = [beside.pid, *(helper for helper, _ in beside.helpers.values())]
                owner.save(renewal=Renewal(beside.pid, beside.ticks, beside.helpers))
                await undisturbed(owner.shared.shares.enclose, owner.id, owner.config, pids)
                await self._answers(beside, times.start)
        finally:
            os.close(log)

    async def _answers(self, beside: _Beside, patience: float) -> None:
        """Its monitor does, or it has ended and its log says why."""
        ended = asyncio.Event()
        try:
            process = Process(beside.pid, lambda status: ended.set())
        except ProcessLookupError as error:
            raise self._refused("NewFailed", beside.directory.log_tail(), _STAYS) from error
        works = [asyncio.ensure_future(unless_it_ends(beside.connect(patience))), asyncio.ensure_future(ended.wait())]
        try:
            await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            if ended.is_set():
                raise self._refused("NewFailed", beside.directory.log_tail(), _STAYS)
            works[0].result()
        finally:
            process.release()
            for work in works:
                work.cancel()

    async def _move(self, beside: _Beside) -> float:
        """The guest is in the new QEMU, and stands still there. Returns since when, by the loop's clock."""
        owner, loop = self._owner, asyncio.get_running_loop()
        stopped: list[float] = []

        def stops(name: str, data: Mapping[str, Any]) -> bool:
            if name == "STOP":
                stopped.append(loop.time())
            return False

        ends = socket.socketpair()
        try:
            await migration.give(owner, ends[0].fileno())
            await migration.give(beside, ends[1].fileno())
        finally:
            # Each of them must notice when the other is gone.
            for end in ends:
                end.close()
        force = loop.call_later(FORCE_SECONDS, lambda: owner.background(self._stop()))
        try:
            with owner.events.expect(stops):
                await together.run((migration.receive(beside), migration.send(owner, "renew", bitmaps=True)), until=asyncio.FIRST_EXCEPTION)
        except (StartFailed, QemuRefused) as error:
            said = error.text if isinstance(error, StartFailed) else ""
            raise self._refused("MigrationFailed", said or error.why) from error
        finally:
            force.cancel()
        if owner.record.evidence:
            raise self._refused("Ended", "the guest ended meanwhile")
        return stopped[-1] if stopped else loop.time()

    async def _stop(self) -> None:
        with contextlib.suppress(PaddockError):
            await self._owner.execute("stop")

    async def _commit(self, beside: _Beside, program: QemuProgram | None) -> None:
        """From one write on the machine's process is the new one; then it runs the guest."""
        owner, old = self._owner, self._owner.record
        monitor, before = beside.qmp, owner.run.qmp
        if monitor is None or owner.run.process is None:
            raise self._refused("MigrationFailed", "one of the two processes ended", "look into its log")
        left = Renewal(old.pid, old.ticks, old.helpers, moved=True)
        owner.switch(monitor, pid=beside.pid, ticks=beside.ticks, helpers=beside.helpers, program=program, renewal=left)
        beside.owner = owner
        try:
            await owner.execute("cont")
        except QemuRefused:
            # It did not run the guest: the way back is open.
            beside.owner = None
            back = Renewal(beside.pid, beside.ticks, beside.helpers)
            owner.switch(before, pid=old.pid, ticks=old.ticks, helpers=old.helpers, program=old.program, renewal=back)
            raise
        finally:
            if before is not None and owner.run.qmp is not before:
                # Nothing it says counts any more.
                before.close()
        owner.helpers.release()
        for name, (pid, _) in owner.record.helpers.items():
            owner.helpers.watch(name, pid)
        owner.observe(pid=beside.pid, milestone="renewed")

    async def _back(self, beside: _Beside) -> None:
        """The guest stays, or goes on, in the old QEMU."""
        owner = self._owner
        if beside.qmp is not None:
            beside.qmp.close()
        await _ended(beside.pid, beside.ticks, owner.surroundings.times.quit)
        end_helpers(beside.helpers.values())
        owner.directory.drop_beside()
        if owner.record.active and owner.run.process is not None:
            with contextlib.suppress(PaddockError):
                await migration.go_on(owner)
            owner.save(renewal=None)

    # --- after it ---------------------------------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """Nothing is left of the old QEMU."""
        owner = self._owner
        owner.announce(MOVED, {})
        await clear(owner)
        await self.adopt()
        for work in owner.parts.recovery:
            if work != self.adopt:
                with contextlib.suppress(PaddockError):
                    await work()

    async def adopt(self) -> None:
        """The guest runs, also when Paddock ended in the middle of a move; then what is not QEMU's own follows it."""
        owner, renewal = self._owner, self._owner.record.renewal
        if renewal is None:
            return
        await migration.go_on(owner)
        if renewal.moved:
            cpu = owner.started.cpu
            await probe.pin(owner, Pins(cpu.pinned, cpu.emulator_pinned))
            failed = owner.shared.shares.apply(owner.id, owner.started, owner.observed.pid)
            failed += await self._forward()
            owner.observe(detail="; ".join(failed))
            await probe.changes(owner)
            for nic in owner.config.nics:
                if not nic.link_up:
                    await owner.execute("set_link", {"name": names.nic(nic.name), "up": False})
        owner.save(renewal=None)

    async def _forward(self) -> list[str]:
        """Ports that the card lists. Others are opened when somebody asks for them."""
        owner, failed = self._owner, list[str]()
        for nic in owner.config.nics:
            for protocol, address, outside, inside in nic.backend.forwards if isinstance(nic.backend, UserNetwork) else ():
                line = f"hostfwd_add {names.netdev(nic.name)} {protocol}:{address}:{outside}-:{inside}"
                said = await owner.execute("human-monitor-command", {"command-line": line})
                failed += [f"port {inside} of card {nic.name} is not forwarded any more: {str(said).strip()}"] if said else []
        return failed


async def settle(owner: MachineOwner) -> None:
    """After a restart of Paddock in the middle of a move, before anything is asked: one process is left, and the files are its own."""
    renewal = owner.record.renewal
    if renewal is None:
        return
    if renewal.moved:
        await clear(owner)
        return
    patience = owner.surroundings.times.quit
    if renewal.pid:
        await _ended(renewal.pid, renewal.ticks, patience)
    end_helpers(renewal.helpers.values())
    await _end_holders(owner.directory, patience)
    owner.directory.drop_beside()


async def clear(owner: MachineOwner) -> None:
    """The QEMU that the guest has left goes, and the files of the new one take the place of its."""
    renewal = owner.record.renewal
    if renewal is not None and renewal.moved:
        await _ended(renewal.pid, renewal.ticks, owner.surroundings.times.quit)
        end_helpers(renewal.helpers.values())
        owner.directory.promote()


async def _end_holders(directory: Directory, patience: float) -> None:
    """End a process that was just being started, and whose PID nobody recorded; a busy host may show it, or see it off, a moment later."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while directory.beside.locked():
                for pid in holders(directory.path / "next.lock"):
                    end_process(pid, start_ticks(pid))
                await asyncio.sleep(LOOK_SECONDS)


def _has_moved(owner: MachineOwner) -> bool:
    return owner.record.renewal is not None and owner.record.renewal.moved


async def _ended(pid: int, ticks: int, patience: float) -> None:
    """Kills a process and waits until it is gone; one that the kernel holds on to never runs a guest again."""
    gone = asyncio.Event()
    try:
        process = Process(pid, lambda status: gone.set())
    except OSError:
        return
    # 0: its first thread has ended, and the others may still hold its files.
    if process.ticks not in (ticks, 0):
        process.release()
        return
    if process.ticks:
        process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            await gone.wait()


async def _version(owner: MachineOwner) -> str:
    answer = await owner.execute("query-version")
    number = ".".join(str(answer["qemu"][part]) for part in ("major", "minor", "micro"))
    return f"{number} {answer.get('package', '')}".strip()


def _resident(owner: MachineOwner) -> int:
    """Bytes that the process has, if the new one cannot map the same."""
    if owner.started.memory.file is not None and not owner.started.memory.private:
        return 0
    return int(Path(f"/proc/{owner.observed.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0

"""The one that has a machine's process: starts it, watches it, stops it, says why it ended.

    defined ──start──▶ queued ──turn──▶ starting ──cont──▶ running ──stop──▶ stopping ──▶ ended
                          └─────────────────┴───────────────┴── the process goes ─────────┘

All that is known is in `record` (kept on disk, written before what depends on it) and in `observed` (what others see). Everything runs in
one event loop, so between two `await`s nothing changes.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from paddock.base.errors import PaddockError
from paddock.base.threads import undisturbed
from paddock.engine.machine import probe, runends, startup
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.command import command as command_line
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import GRACE_SECONDS, Directory, RunRecord, Stopping, next_run
from paddock.engine.machine.errors import StartFailed, Unanswered
from paddock.engine.machine.events import Events
from paddock.engine.machine.host import SharedHost
from paddock.engine.machine.inbox import Inbox
from paddock.engine.machine.observation import Observation, RunEnd
from paddock.engine.machine.ownerparts import MachineFiles, MachineRun, OwnerParts
from paddock.engine.machine.process import STOPPED, HelperProcesses, Process, boot_id, start_ticks, state_of
from paddock.engine.machine.programs import identify
from paddock.engine.machine.qmp import PATIENCE, Qmp
from paddock.engine.machine.timers import Tasks, Timers

_LOG = logging.getLogger(__name__)


class MachineOwner:
    """A machine's process and all that is known of it. Others read it, and change it by its methods."""

    def __init__(self, directory: Directory, config: MachineConfig, shared: SharedHost, parts: OwnerParts) -> None:
        self.id = directory.id
        self.surroundings = shared.surroundings
        self.shared = shared
        self.parts = parts
        self.files = MachineFiles(directory, config)
        self.observed = Observation()
        self.run = MachineRun()
        self.events = Events()
        self.inbox = Inbox(self.id)
        self.timers = Timers()
        self.helpers = HelperProcesses(self._helper_ended)
        self._tasks = Tasks({"machine": self.id})
        # things the engine does that pause the guest for a moment
        self.busy = 0

    # What others see and what is kept.

    @property
    def directory(self) -> Directory:
        """Its files on disk."""
        return self.files.directory

    @property
    def config(self) -> MachineConfig:
        """The machine as it is, with what was plugged."""
        return self.files.config

    @property
    def started(self) -> MachineConfig:
        """The config that the present run was started with."""
        return self.files.started

    @property
    def record(self) -> RunRecord:
        """The record of the present run, or of the last one."""
        return self.files.record

    def observe(self, *, milestone: str = "", **changes: Any) -> None:
        """Replaces members of the observation, and tells if that changed anything."""
        if milestone:
            changes["times"] = times = {**self.observed.times, milestone: self.surroundings.clock.seconds()}
            self.save(times=times)
        seen = structs.replace(self.observed, **changes)
        if seen != self.observed:
            self.observed = seen
            self.tell()

    def tell(self) -> None:
        """Tell of a change, also of one that is not observed, but learned by asking the guest."""
        self.shared.tell(self.id)

    def save(self, **changes: Any) -> None:
        """Replaces members of the record, on disk too."""
        self.files.write(structs.replace(self.record, **changes))

    def recall(self, *, record: RunRecord | None = None, observed: Observation | None = None, started: MachineConfig | None = None) -> None:
        """Go on with what an earlier Paddock kept; nobody has seen the machine yet."""
        self.files.recall(record, started)
        self.observed = observed or self.observed

    @contextlib.contextmanager
    def occupied(self) -> Iterator[None]:
        """Something is done that pauses the guest for a moment, and may keep QEMU from answering."""
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            if self.observed.still:
                self.background(self.look_at_status())

    async def reconfigure(self, change: Callable[[MachineConfig], MachineConfig]) -> None:
        """Change the config, on disk first; `change` gets the config of that moment. A slow disk keeps nobody else waiting."""
        if await self.files.reconfigure(change):
            self.tell()

    async def execute(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, fds: Sequence[int] = (), patience: float = PATIENCE
    ) -> Any:
        """Tells QEMU something. Raises `QemuRefused`, or `Unanswered` when it is silent, which then is looked into."""
        startup.demand_here(self.id, self.observed, command)
        if self.run.qmp is None:
            raise Unanswered(f"cannot tell the QEMU of machine {self.id} {command}", why="there is no connection to it", fix="try again")
        try:
            return await self.run.qmp.execute(command, arguments, fds=fds, patience=patience)
        except Unanswered:
            if self.run.process is not None:
                self.parts.watcher.suspect()
            raise

    def start(self, *, paused: bool, user: int, state: Path | None = None, priority: int = 0, grace: float = GRACE_SECONDS) -> None:
        """Queues it; `state` is a file that a machine was saved to. The caller has asked the table."""
        now = self.surroundings.clock.seconds()
        self.run = MachineRun()
        record = next_run(self.record, boot_id(), now, user, priority)
        self.files.write(structs.replace(record, start_paused=paused, restore=os.fspath(state) if state else "", grace=grace))
        self.observed = Observation(phase="queued", run=self.record.run, times={"queued": now})
        self.tell()
        self.begin()

    def begin(self) -> None:
        """Waits for its turn, then starts QEMU."""
        run = self.run
        run.starting = self.background(self._start())
        run.starting.add_done_callback(partial(self._start_over, run))

    def _start_over(self, run: MachineRun, task: "asyncio.Task[None]") -> None:
        run.starting = None
        # Its process, if there is one, tells when it is gone. A run that was released goes on without us.
        if task.cancelled() and run.process is None and self.record.active and run is self.run:
            self.finish(run.status)

    async def _start(self) -> None:
        try:
            await self.shared.turns.take(self.id, self.record.priority)
            self.observe(phase="starting", milestone="started")
            await startup.lets_go(self.directory, self.surroundings.times.quit)
            await self._launch()
            if self.record.start_paused:
                self.booted()
        except (PaddockError, OSError) as error:
            self._fail(startup.problem(error))
        except Exception:
            _LOG.exception("machine start failed because of a defect", extra={"machine": self.id})
            self._fail("an error in Paddock; its log tells more")

    async def _launch(self) -> None:
        started, command = self.parts.line()
        users, user = self.surroundings.users, self.record.user
        self.files.write_started(started)
        startup.make_files(self.directory, self.config, command, user, users)
        log = self.directory.open_log(self.record.run)
        try:
            for helper in command.helpers:
                pid = startup.start_helper(self.directory, helper, log, user)
                self.save(helpers={**self.record.helpers, helper.name: (pid, start_ticks(pid))})
                self.helpers.watch(helper.name, pid)
                await startup.listens(self.directory, helper, pid, user, self.surroundings.times.helper)
            pid = startup.start_qemu(self.directory, self.config, command, log, (user, users))
        finally:
            os.close(log)
        helpers = (each for each, _ in self.record.helpers.values())
        self.watch(pid)
        self.save(pid=pid, ticks=start_ticks(pid), accelerator=command.accelerator, program=identify(command.argv[0]))
        self.observe(pid=pid, accelerator=command.accelerator)
        # The kernel's lock of groups is one for the whole host, and held for long when that is busy.
        await undisturbed(self.shared.shares.enclose, self.id, self.config, [pid, *helpers])
        await startup.unless_it_ends(self.connect())
        await startup.unless_it_ends(self.complete(command))

    def watch(self, pid: int) -> None:
        """This process is the machine's."""
        try:
            self.run.process = Process(pid, self.gone)
        except ProcessLookupError:
            raise StartFailed(f"cannot start machine {self.id}", why="QEMU ended at once", text=self.directory.log_tail()) from None

    def switch(self, qmp: Qmp | None, *, pid: int, **changes: Any) -> None:
        """From now on this process is the machine's, and this is the connection to its monitor; `changes`: more of the record."""
        if self.run.process is not None:
            self.run.process.release()
        self.watch(pid)
        self.save(pid=pid, **changes)
        self.run.qmp = qmp

    def _helper_ended(self, name: str) -> None:
        if self.run.process is not None and self.observed.phase == "running":
            self.observe(detail=f"the program {name} ended, and the guest's device with it; stop and start the machine")

    async def connect(self, patience: float | None = None) -> None:
        """To the monitor of the process."""
        patience = self.surroundings.times.start if patience is None else patience
        connection = await startup.reach(self.directory, names.QMP, patience)
        self.run.qmp = await Qmp.connect(connection, self.event, self.silent, patience)

    async def complete(self, command: Command) -> None:
        """Complete a start once QEMU answers, up to the guest's first instruction."""
        if self.record.restore:
            await self.parts.restore(Path(self.record.restore))
        for request in command.before_start:
            await self.execute(request.execute, request.arguments)
        await probe.pin(self, command.pins)
        if self.started.limits:
            self.observe(detail="; ".join(self.shared.shares.apply(self.id, self.started, self.observed.pid)))
        await probe.devices(self)
        if self.record.restore:
            await probe.changes(self)
        paused = self.record.start_paused
        await self.parts.before_guest()
        # From here on the guest may have run: its saved state must never run again.
        self.directory.drop_saved()
        times = {**self.observed.times, "running": self.surroundings.clock.seconds()}
        self.save(begun=True, times=times)
        if not paused:
            await self.execute("cont")
        self.directory.drop_leftovers()
        self.observe(phase="running", paused="start" if paused else "", times=times)
        self.arm()

    def _fail(self, text: str) -> None:
        """The start did not succeed."""
        self.run.failure = text
        if self.run.process is not None:
            self.run.process.kill()
        else:
            self.finish(None)

    # Stopping.

    def stop(self, grace_seconds: float) -> None:
        """Begins to stop, or shortens a stop. The caller has asked the table."""
        now = self.surroundings.clock.seconds()
        before, was = self.record.stop, self.observed.phase
        deadline = now + max(0.0, grace_seconds)
        if before is None:
            times = {**self.observed.times, "stopping": now}
            self.save(stop=Stopping(now, deadline), times=times)
            self.observe(phase="stopping", deadline=deadline, times=times)
            self.inbox.overtake()
        else:
            deadline = min(deadline, before.deadline)
            self.save(stop=Stopping(before.asked, deadline))
            self.observe(deadline=deadline)
        if was in ("queued", "starting"):
            # The guest has not run: there is nothing that a grace could save.
            self.save(evidence=(*self.record.evidence, "killed"))
            if self.run.starting is not None:
                self.run.starting.cancel()
            self.kill()
        else:
            self.pursue_stop()

    def pursue_stop(self) -> None:
        """Presses the power button until the time is over. Also after a restart of Paddock."""
        stop = self.record.stop
        if stop is None:
            return
        # A clock that was set back must not make a stop longer than was asked for.
        left = min(stop.deadline - self.surroundings.clock.seconds(), stop.deadline - stop.asked)
        self.timers.cancel("press", "deadline")
        if left <= 0:
            self.kill()
            return
        self.timers.after("deadline", left, self.kill)
        self._press()

    def _press(self) -> None:
        self.timers.after("press", self.surroundings.times.press, self._press)
        self.background(self.attempt("system_powerdown"))

    def kill(self) -> None:
        """Ends the process. It cannot refuse."""
        self.timers.cancel("press", "deadline", "quit")
        if not self.record.evidence:
            self.save(evidence=("killed",))
        if self.run.process is not None:
            self.run.process.kill()
            self.timers.after("undead", self.surroundings.times.quit, self._undead)
        elif self.run.starting is None and self.record.active:
            self.finish(None)

    def _undead(self) -> None:
        self.observe(detail="QEMU was killed and is still there: the kernel waits for one of its disks or devices. Look at dmesg.")

    def quit(self, reason: str) -> None:
        """The guest has shut down; terminate QEMU."""
        if reason not in self.record.evidence:
            self.save(evidence=(*self.record.evidence, reason))
        if not self.timers.pending("quit"):
            self.timers.after("quit", self.surroundings.times.quit, self.kill)
        self.background(self._quit())

    async def _quit(self) -> None:
        with contextlib.suppress(PaddockError, OSError):
            await self.parts.before_end()
        await self.attempt("quit")

    async def attempt(self, command: str) -> None:
        """Tell QEMU something that it may refuse, and that nobody waits for."""
        with contextlib.suppress(PaddockError):
            await self.execute(command)

    # What QEMU tells.

    def event(self, name: str, data: Mapping[str, Any]) -> None:
        """Something happened in the guest or its devices."""
        self.events.handle(name, data)
        self.announce(name, data)

    def announce(self, name: str, data: Mapping[str, Any]) -> None:
        for follow in self.parts.followers:
            follow(name, data)

    async def look_at_status(self) -> None:
        """Update the status of the guest, with the reason why it does not run."""
        await self.parts.status.ask()

    def silent(self) -> None:
        """The monitor's connection ended. Mostly QEMU goes, which the process tells; if not, it is tried again."""
        self.run.qmp = None
        self.timers.after("reconnect", 1.0, lambda: self.background(self._reconnect()))

    async def _reconnect(self) -> None:
        if self.run.process is not None and self.run.qmp is None:
            await self.catch_up()

    async def catch_up(self) -> None:
        """Asks a QEMU that was not watched for a while; a start that was cut short is finished."""
        try:
            if state_of(self.observed.pid) in STOPPED:
                raise Unanswered("cannot talk to QEMU", why="its process is stopped")
            await self.connect(PATIENCE)
            if self.observed.handed:
                return
            status = str((await self.execute("query-status")).get("status", ""))
            if self.record.arriving or (status in ("prelaunch", "inmigrate") and not (self.record.begun and self.record.start_paused)):
                if status == "inmigrate" and (await self.execute("query-migrate")).get("status"):
                    self._fail("Paddock ended while the state was being read")
                    return
                await self.complete(command_line(self.started, self.surroundings.host_view(self.started)))
            else:
                await probe.devices(self)
                await probe.changes(self)
                self.save(begun=True)
                if self.record.stop is None:
                    self.observe(phase="running", detail="")
                self.observe(fault=None)
                self.parts.status.take(status)
                self.arm()
                for work in self.parts.recovery:
                    self.background(self._offered(work))
        except (PaddockError, OSError) as error:
            _LOG.warning("QEMU did not answer a query", extra={"machine": self.id, "error": str(error)})
            self.parts.watcher.unreachable()
            self.run.hang_up()
            self.timers.after("reconnect", 10.0, lambda: self.background(self._reconnect()))

    # While it runs.

    def booted(self) -> None:
        """It is as far as others may start."""
        self.shared.turns.give_back(self.id)

    async def _offered(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with contextlib.suppress(PaddockError):
            await self.inbox.offer(work)

    def arm(self) -> None:
        """Start the periodic checks of a running guest."""
        self.parts.watcher.arm()
        self.timers.after("logs", self.surroundings.times.poll, self._bound_logs)

    def _bound_logs(self) -> None:
        with contextlib.suppress(OSError):
            self.directory.bound_logs()
        self.arm()

    # The end.

    def gone(self, status: int | None) -> None:
        """The machine's process is no more."""
        self.run.process, self.run.status = None, status
        if self.run.starting is not None:
            if not self.run.failure and not self.record.evidence:
                self.run.failure = self.directory.log_tail() or "QEMU ended before the guest ran"
            self.run.starting.cancel()
        else:
            self.finish(status)

    def finish(self, status: int | None, *, same_boot: bool = True) -> None:
        """The run is over, and no process of it is left."""
        self.shared.turns.give_back(self.id)
        self.announce("", {})
        self.inbox.overtake(ended=True)
        self.timers.clear()
        self.run.hang_up()
        self.shared.shares.remove(self.id, self.config)
        record = self.record
        if same_boot:
            startup.end_helpers(record.helpers.values())
            startup.end_beside(record.renewal)
        reason = runends.judge(runends.RunEvidence(record.evidence, record.begun, status, same_boot))
        now, text = self.surroundings.clock.seconds(), runends.text_of(reason, self.run.failure, status, self.directory.log_tail)
        end = RunEnd(reason, text, now, asked=record.stop is not None)
        times = {**record.times, **self.observed.times, "ended": now}
        self.save(active=False, pid=0, ticks=0, stop=None, helpers={}, commits={}, moving=None, renewal=None, times=times, end=end)
        self.observed = startup.clear(self.directory, Observation(run=record.run, end=end, times=times), stopped=record.stop is not None)
        self.tell()

    def release(self) -> None:
        """Paddock goes, the guest stays."""
        self.timers.clear()
        self._tasks.cancel()
        self.run.release()
        self.run = MachineRun()
        self.helpers.release()

    def background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Runs it as long as Paddock does."""
        return self._tasks.start(work)

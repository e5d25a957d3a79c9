"""Backups of disks while the guest runs: QEMU copies them as they were at one moment into files, whole or what changed since a checkpoint.

    prepare      the files are made, and QEMU has them open                  nothing else happened
    quiesce      the guest's file systems stand still
    begin        one transaction: all disks, and the bitmaps of the new checkpoint
    thaw         the guest goes on; what it overwrites is copied before that
    end          all jobs are over, or the first that fails ends all         the files are whole and synchronised, or useless

The bitmaps of the checkpoint that an increment starts from are only read, so a backup that fails costs nothing. A Paddock that comes later
goes on from the record: what was prepared is dropped, and jobs that run or have ended are followed.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import drives, qcow2files, tracking
from paddock.engine.machine.argv import names
from paddock.engine.machine.backupstate import BackupRequest, BackupState
from paddock.engine.machine.config import DiskConfig
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.observation import JobState
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.sessions import GuestSessions

KIND = "backup"
# QEMU drains what is under way, which a slow disk makes long.
_PATIENCE = 60.0
_FREEZE_SECONDS = 60.0
_LOOK_SECONDS = 1.0
# What the bitmap of a checkpoint held when an increment began.
_FROZEN = "increment"
# Tables of a qcow2 file, besides what it holds.
_TABLES = 4 << 20


class DiskBackups:
    """The backup of one machine; there is one at a time."""

    def __init__(self, owner: MachineOwner, sessions: GuestSessions) -> None:
        self._owner = owner
        self._sessions = sessions

    @property
    def state(self) -> BackupState | None:
        """The backup that runs, or that ended and was not forgotten yet."""
        return self._owner.record.backup

    def demand_idle(self, action: str) -> None:
        """Raise while a backup is taken: its disks must stay as they are."""
        if self.state is not None and not self.state.ended:
            what = f"cannot {action} machine {self._owner.id}"
            raise RequestRefused(what, reason="Busy", why=f"backup {self.state.name} is being taken", fix="try again when that is done")

    async def take(self, request: BackupRequest) -> None:
        """Begin a backup; `state` tells the rest. One that has begun goes on."""
        if self.state is not None and self.state.name == request.name and self.state.state != "preparing":
            return
        await self._owner.inbox.offer(lambda: self._prepare(request))
        try:
            await self._quietly(request, lambda: self._owner.inbox.offer(lambda: self._begin(request)))
        except BaseException:
            # Done in any case, also when nobody waits for it.
            end = self._owner.background(self._offered(self._give_up))
            await asyncio.wait([end])
            raise

    async def _prepare(self, request: BackupRequest) -> None:
        owner = self._owner
        if self.state is not None and not self.state.ended and self.state.name != request.name:
            self.demand_idle("back up")
        await self._close()
        known = await tracking.bitmaps(owner)
        disks = [self._demand(name, request, known) for name in request.targets]
        await asyncio.to_thread(_demand_room, await self._needed(disks, request), request)
        owner.save(backup=BackupState(request.name, dict(request.targets), request.checkpoint))
        try:
            for disk in disks:
                size = await tracking.size_of(owner, tracking.top(disk))
                await qcow2files.make(owner, names.backup_target(disk.name), request.targets[disk.name], size)
        except BaseException as error:
            await self._give_up()
            if isinstance(error, OSError):
                why = f"{error.filename or 'its file'}: {error.strerror}"
                raise Unanswered(f"cannot back up machine {owner.id}", why=why, fix="look at the host's disk") from error
            raise

    def _demand(self, name: str, request: BackupRequest, known: Mapping[str, tuple[str, ...]]) -> DiskConfig:
        owner, disk, since = self._owner, drives.find(self._owner, name), request.since.get(name)
        what = f"cannot back up disk {name} of machine {owner.id}"
        if disk.layer is None or disk.role != "disk" or disk.shareable:
            raise RequestRefused(what, reason="NoBackup", why="it is no disk that this machine alone has")
        if (request.checkpoint or since) and not disk.tracked:
            raise RequestRefused(what, reason="NotTracked", why="its changes are not followed")
        if since is not None and since not in known.get(tracking.top(disk), ()):
            raise RequestRefused(what, reason="NoCheckpoint", why=f"not all changes since {since} are known", fix="take a full backup")
        if name in owner.record.commits or owner.record.moving is not None or owner.record.renewal is not None:
            raise RequestRefused(what, reason="Busy", why="its layers are being merged or moved", fix="try again when that is done")
        return disk

    async def _needed(self, disks: list[DiskConfig], request: BackupRequest) -> int:
        """Return the most bytes that the files can take. A full backup of what the host has only in part takes no more than that."""
        nodes = {str(node["node-name"]): node for node in await self._owner.execute("query-named-block-nodes", {"flat": True})}
        total = 0
        for disk in disks:
            image, since = nodes[tracking.top(disk)]["image"], request.since.get(disk.name)
            size = int(image["virtual-size"])
            held, layer = 0, disk.layer
            while layer is not None:
                held += int(nodes[names.format_node(disk.name, layer.path)]["image"].get("actual-size", size))
                layer = layer.backing
            if since is not None:
                bits = nodes[tracking.top(disk)].get("dirty-bitmaps", ())
                held = next((int(each["count"]) for each in bits if each.get("name") == tracking.bitmap(since)), held)
            total += min(size, held) + _TABLES
        return total

    async def _quietly(self, request: BackupRequest, work: Callable[[], Awaitable[None]]) -> None:
        """Do it while the guest's file systems stand still, if they can; whatever happens, they are thawed."""
        if not request.quiesce:
            self._save(quiesced="skipped")
            await work()
            return
        agent, problem = self._sessions.agent, ""
        # First: a Paddock that finds this thaws the guest.
        self._save(quiet=True)
        try:
            if not self._owner.observed.agent or self._owner.observed.paused:
                problem = "the guest is paused" if self._owner.observed.paused else "no agent in the guest answers"
            else:
                try:
                    async with asyncio.timeout(_FREEZE_SECONDS):
                        await agent.freeze()
                except (PaddockError, TimeoutError) as error:
                    problem = str(error) or "the guest did not become quiet in time"
            self._save(quiesced="failed" if problem else "succeeded", problem=problem)
            await work()
        finally:
            await self._thaw()

    async def _thaw(self) -> None:
        # Also after a freeze that failed: it may have gone half the way.
        with contextlib.suppress(PaddockError):
            if self._owner.observed.agent:
                await self._sessions.agent.thaw()
        self._save(quiet=False)

    async def _begin(self, request: BackupRequest) -> None:
        owner, actions = self._owner, list[dict[str, Any]]()
        for name in request.targets:
            disk = drives.find(owner, name)
            node, job = tracking.top(disk), _job(name)
            since = request.since.get(name)
            copied: dict[str, Any] = {"sync": "full"}
            if since is not None:
                frozen = {"node": node, "name": _FROZEN, "disabled": True, "granularity": tracking.GRANULARITY}
                merge = {"node": node, "target": _FROZEN, "bitmaps": [tracking.bitmap(since)]}
                actions += [{"type": "block-dirty-bitmap-add", "data": frozen}, {"type": "block-dirty-bitmap-merge", "data": merge}]
                copied = {"sync": "bitmap", "bitmap": _FROZEN, "bitmap-mode": "never"}
            if request.checkpoint:
                actions.append(tracking.begun(node, request.checkpoint))
            path = disk.layer.path if disk.layer is not None else request.targets[name]
            copied |= {
                "job-id": job,
                "device": node,
                "target": names.backup_target(name),
                "filter-node-name": names.backup_filter(name, path),
                "speed": request.speed,
                # The kernel copies from file to file what it can.
                "x-perf": {"use-copy-range": True},
                # What became of it is still there for a Paddock that was away.
                "auto-dismiss": False,
            }
            actions.append({"type": "blockdev-backup", "data": copied})
        self._save(state="running")
        self._watch()
        try:
            await owner.execute("transaction", {"actions": actions}, patience=_PATIENCE)
        except QemuRefused:
            self._save(state="preparing")
            raise
        owner.observe(jobs={**owner.observed.jobs, **{name: JobState(KIND) for name in request.targets}})

    async def cancel(self) -> None:
        """End the backup; it has failed then. One that has ended stays as it is."""
        if self.state is not None and not self.state.ended:
            await self._end_jobs()
            await self._settle("it was called off")

    async def forget(self, name: str) -> None:
        """Nobody asks for a backup any more that has ended."""
        if self.state is not None and self.state.name == name and self.state.ended:
            self._owner.save(backup=None)

    # --- while it runs ----------------------------------------------------------------------------------------------------

    def follow(self, event: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        state = self.state
        if state is None or state.ended:
            return
        if not event:
            self._owner.save(backup=replace(state, state="failed", quiet=False, error="the machine ended"))
        elif event in ("BLOCK_JOB_COMPLETED", "BLOCK_JOB_CANCELLED") and data.get("device") in {_job(name) for name in state.targets}:
            self._owner.background(self._offered(self._check))
        elif event == "BLOCK_IO_ERROR" and data.get("operation") == "write":
            # The guest waits for what cannot be copied. It goes on, and the backup does not.
            self._owner.background(self._offered(self._yield))

    async def _offered(self, work: Callable[[], Awaitable[None]]) -> None:
        with contextlib.suppress(PaddockError):
            await self._owner.inbox.offer(work)

    def _watch(self) -> None:
        self._owner.timers.after(KIND, _LOOK_SECONDS, lambda: self._owner.background(self._offered(self._check)))

    async def _yield(self) -> None:
        if self.state is not None and self.state.state == "running":
            await self._end_jobs()
            await self._settle("the guest could not write while it ran: the host's disk is full, or failed")
            if self._owner.observed.paused == "io-error":
                await self._owner.attempt("cont")

    async def _check(self) -> None:
        """Update the progress; end the backup if all of it is done, or a part failed."""
        state = self.state
        if state is None or state.state != "running":
            return
        jobs = await self._jobs()
        errors = [str(job["error"]) for job in jobs.values() if job.get("error")]
        if errors:
            await self._end_jobs()
            await self._settle(errors[0])
        elif all(jobs.get(_job(name), {}).get("status") == "concluded" for name in state.targets):
            await self._settle("")
        elif any(_job(name) not in jobs for name in state.targets):
            await self._end_jobs()
            await self._settle("a part of it was lost")
        else:
            seen = {
                name: JobState(KIND, "running", int(jobs[_job(name)]["current-progress"]), int(jobs[_job(name)]["total-progress"]))
                for name in state.targets
            }
            self._owner.observe(jobs={**self._owner.observed.jobs, **seen})
            self._watch()

    async def _jobs(self) -> dict[str, dict[str, Any]]:
        """The jobs of the backup that QEMU knows."""
        wanted = {_job(name) for name in self.state.targets} if self.state is not None else set()
        return {str(job["id"]): job for job in await self._owner.execute("query-jobs") if job["id"] in wanted}

    async def _end_jobs(self) -> None:
        owner = self._owner
        for job, found in (await self._jobs()).items():
            if found["status"] != "concluded":
                with contextlib.suppress(QemuRefused):
                    await owner.execute("job-cancel", {"id": job})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while any(job["status"] != "concluded" for job in (await self._jobs()).values()):
                    await asyncio.sleep(0.01)

    async def _settle(self, error: str) -> None:
        """All jobs are over. The files are closed, and whole if there is no error."""
        state = self.state
        if state is None:
            return
        await self._close()
        if not error:
            try:
                for path in state.targets.values():
                    await asyncio.to_thread(qcow2files.synchronise, path)
            except OSError as failure:
                error = f"{failure.filename}: {failure.strerror}"
        if error:
            await self._drop_checkpoint(state)
        self._save(state="failed" if error else "done", error=error)
        owner = self._owner
        owner.observe(jobs={name: job for name, job in owner.observed.jobs.items() if job.kind != KIND})
        owner.tell()

    async def _give_up(self) -> None:
        """What was prepared goes. A backup that has begun goes on."""
        state = self.state
        if state is not None and state.state == "preparing":
            await self._close()
            self._owner.save(backup=None)

    async def _drop_checkpoint(self, state: BackupState) -> None:
        for name in state.targets if state.checkpoint else ():
            for disk in (each for each in self._owner.config.disks if each.name == name):
                await tracking.drop(self._owner, tracking.top(disk), [state.checkpoint])

    async def _close(self) -> None:
        """QEMU lets go of the files, and of what it knew for the backup alone."""
        owner, state = self._owner, self.state
        for job in await self._jobs():
            with contextlib.suppress(QemuRefused):
                await owner.execute("job-dismiss", {"id": job})
        for name in state.targets if state is not None and not state.ended else ():
            await qcow2files.close(owner, names.backup_target(name))
            for disk in (each for each in owner.config.disks if each.name == name):
                with contextlib.suppress(QemuRefused):
                    await owner.execute("block-dirty-bitmap-remove", {"node": tracking.top(disk), "name": _FROZEN})

    async def adopt(self) -> None:
        """After Paddock was away: a guest whose file systems stand still is thawed, and what runs is followed."""
        state = self.state
        if state is None or state.ended:
            return
        if state.quiet:
            await self._thaw()
        jobs = await self._jobs()
        if not jobs:
            # The transaction was not carried out, or its QEMU is another one.
            self._save(state="preparing")
            await self._give_up()
            return
        self._save(state="running")
        await self._check()

    def _save(self, **changes: Any) -> None:
        if self.state is not None:
            self._owner.save(backup=replace(self.state, **changes))


def _job(name: str) -> str:
    return f"{KIND}-{names.device(name)}"


def _demand_room(needed: int, request: BackupRequest) -> None:
    """Raise if the files may not fit. QEMU writes nothing for the guest while a copy waits for room."""
    for folder in {path.parent for path in request.targets.values()}:
        found = os.statvfs(folder)
        if (free := found.f_bavail * found.f_frsize) < needed:
            why = f"it may take {needed >> 20} MiB, and {folder} has room for {free >> 20} MiB"
            raise RequestRefused(f"cannot take backup {request.name}", reason="NoSpace", why=why, fix="make room there")

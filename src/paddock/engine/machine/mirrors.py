"""Disks that move into other files while the guest runs: QEMU copies them, then the guest stands still for a moment and goes on there.

What is on disk is right at every moment, whoever dies. QEMU writes both files until the disks change over, and the config names the old
ones. The guest stands still from before the first disk changes over until the config names the new files, so both hold the same
meanwhile. QEMU first ends all copies without changing over, which may fail; only then it changes over, all disks one after the other.

    begin --> running --> ready --change over--> pending --> on the new files
                 └─ failed, or called off: on the old files
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import drives, tracking
from paddock.engine.machine.argv import blocks, names
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.directory import MovingDisks
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.observation import JobState
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.users import hand_over

# QEMU drains what is under way, which a slow disk makes long.
_PATIENCE = 60.0
_POLL_SECONDS = 0.02
_LOOK_SECONDS = 1.0
KIND = "mirror"


class DiskMirrors:
    """The disks of a machine that move into other files."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        # why a copy ended, by its job
        self._errors: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None

    def demand_idle(self, action: str, name: str = "") -> None:
        """Raise while the disk, or any disk, moves: nothing else may change it."""
        moving = self._owner.record.moving
        if moving is not None and (not name or name in moving.targets):
            what = f"cannot {action} machine {self._owner.id}"
            raise RequestRefused(what, reason="Busy", why="its disks are being moved to other volumes", fix="try again when that is done")

    async def begin(self, targets: Mapping[str, DiskLayer], speed: int) -> None:
        """Start to copy these disks, each into a file of its size; `speed` in bytes per second, 0: as fast as it goes."""
        owner = self._owner
        wanted = {name: layer for name, layer in targets.items() if self._demand_movable(name) != layer}
        if owner.record.moving is not None:
            if owner.record.moving.targets == wanted:
                return
            self.demand_idle("move disks of")
        if not wanted:
            return
        for layer in wanted.values():
            hand_over(layer.path, owner.record.user)
        sources = {disk.name: disk.layer.path for disk in owner.config.disks if disk.name in wanted and disk.layer is not None}
        owner.save(moving=MovingDisks(wanted, sources))
        owner.observe(jobs={**owner.observed.jobs, **{name: JobState(KIND) for name in wanted}})
        try:
            for name, layer in wanted.items():
                await self._copy(drives.find(self._owner, name), sources[name], layer, speed)
        except BaseException as error:
            await self._drop_copies()
            self._over(str(error))
            raise
        self._watch()

    async def _copy(self, disk: DiskConfig, path: Path, layer: DiskLayer, speed: int) -> None:
        owner = self._owner
        moved = replace(disk, layer=layer)
        node = blocks.on_layer(moved, layer, owner.surroundings.host_view(replace(owner.config, disks=(moved,))))
        await owner.execute("blockdev-add", node)
        source = names.format_node(disk.name, path)
        sizes = {
            str(each["node-name"]): int(each["image"]["virtual-size"])
            for each in await owner.execute("query-named-block-nodes", {"flat": True})
            if each["node-name"] in (source, node["node-name"])
        }
        if sizes[source] != sizes[node["node-name"]]:
            why = f"it has {sizes[source]} bytes, and its new file has {sizes[node['node-name']]}"
            raise RequestRefused(f"cannot move disk {disk.name} of machine {owner.id}", reason="WrongSize", why=why)
        arguments = {
            "job-id": _job(disk.name),
            "device": source,
            "target": node["node-name"],
            "sync": "full",
            "speed": speed,
            # A guest that writes faster than the copy goes on waits for it, and the copy ends.
            "copy-mode": "write-blocking",
            "auto-finalize": False,
            "auto-dismiss": True,
        }
        self._errors.pop(_job(disk.name), None)
        await owner.execute("blockdev-mirror", arguments, patience=_PATIENCE)

    def _demand_movable(self, name: str) -> DiskLayer:
        disk = drives.find(self._owner, name)
        if disk.layer is None or disk.readonly or disk.role != "disk" or disk.shareable:
            why = "it is no disk that this machine alone writes"
            raise RequestRefused(f"cannot move disk {name} of machine {self._owner.id}", reason="NotMovable", why=why)
        if name in self._owner.record.commits:
            why = "layers of it are being merged"
            raise RequestRefused(f"cannot move disk {name} of machine {self._owner.id}", reason="Busy", why=why, fix="try again later")
        return disk.layer

    async def cancel(self) -> None:
        """Call the copies off: the disks stay where they are. What has changed over stays there."""
        if self._owner.record.moving is not None:
            await self._drop_copies()
            self._over("")

    async def change_over(self) -> None:
        """The guest stands still for a moment; then its disks are in the new files, and the config says so before the guest goes on.

        All of them must be `ready`. If one copy cannot be ended, all disks stay where they are.
        """
        if self._owner.record.moving is not None:
            # A stop of the machine does not interrupt it: what QEMU has and what the config says must not part.
            ended: asyncio.Future[PaddockError | None] = asyncio.get_running_loop().create_future()
            self._task = self._owner.background(self._change_over(self._owner.record.moving, ended))
            if (failure := await asyncio.shield(ended)) is not None:
                raise failure

    async def _change_over(self, moving: MovingDisks, ended: "asyncio.Future[PaddockError | None]") -> None:
        owner = self._owner
        still = moving.still if moving.changes_over else not owner.observed.paused
        failure: PaddockError | None = None
        with owner.occupied():
            owner.save(moving=replace(moving, changes_over=True, still=still))
            try:
                if still:
                    await owner.execute("stop")
                await self._end_copies(moving.targets)
                await self._land(moving)
            except PaddockError as error:
                failure = error
                await self._drop_copies()
            finally:
                # Also when it is being stopped: a guest that stands still cannot shut down.
                if still:
                    with contextlib.suppress(PaddockError):
                        await owner.execute("cont")
        self._over(str(failure or ""))
        ended.set_result(failure)

    async def _end_copies(self, targets: Mapping[str, DiskLayer]) -> None:
        """End all copies without changing over, then change over. Each step may have been done before."""
        owner = self._owner
        for job, status in (await self._jobs()).items():
            if status == "ready":
                await owner.execute("job-complete", {"id": job})
        # Before the first one changes over, none must be able to fail.
        present = await self._until(lambda jobs: all(status in ("pending", "concluded") for status in jobs.values()))
        tops_now = await drives.tops(owner)
        for name, layer in targets.items():
            if present.get(_job(name)) != "pending" and tops_now.get(names.device(name)) != names.format_node(name, layer.path):
                why = self._errors.get(_job(name)) or "its copy ended"
                raise Unanswered(f"cannot move disk {name} of machine {owner.id}", why=why, fix="it stays where it is; try again")
        for job in present:
            await owner.execute("job-finalize", {"id": job}, patience=_PATIENCE)
        await self._until(lambda jobs: not jobs)

    async def _until(self, holds: Callable[[Mapping[str, str]], bool]) -> dict[str, str]:
        """Wait for a state of the copies, and return it."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while not holds(found := await self._jobs()):
                    await asyncio.sleep(_POLL_SECONDS)
                return found
        except TimeoutError:
            why = f"it was not done within {_PATIENCE:g} s"
            raise Unanswered(f"cannot move disks of machine {self._owner.id}", why=why, fix="they stay where they are") from None

    async def _land(self, moving: MovingDisks) -> None:
        """Write the config as QEMU has the disks, and let go of what they left."""
        owner, now = self._owner, await drives.tops(self._owner)
        there = {
            name: layer for name, layer in moving.targets.items() if now.get(names.device(name)) == names.format_node(name, layer.path)
        }
        for name, layer in there.items():
            await tracking.carry(owner, names.format_node(name, moving.sources[name]), names.format_node(name, layer.path))
        await drives.change_over(owner, there)
        for name in there:
            with contextlib.suppress(PaddockError):
                await owner.execute("blockdev-del", {"node-name": names.format_node(name, moving.sources[name])})

    async def _drop_copies(self) -> None:
        """End the copies of all disks but those that have changed over."""
        owner, moving = self._owner, self._owner.record.moving
        if moving is None:
            return
        with contextlib.suppress(PaddockError):
            for job, status in (await self._jobs()).items():
                if status != "concluded":
                    with contextlib.suppress(QemuRefused):
                        await owner.execute("block-job-cancel", {"device": job, "force": True})
            await self._until(lambda jobs: not jobs)
            await self._land(moving)
        here = {disk.name: disk.layer for disk in owner.config.disks}
        for name, layer in moving.targets.items():
            if here.get(name) != layer:
                with contextlib.suppress(PaddockError):
                    await owner.execute("blockdev-del", {"node-name": names.format_node(name, layer.path)})

    def _over(self, error: str) -> None:
        """It is done, or it failed. Without a monitor nobody knows what QEMU has, and `adopt` looks when it answers again."""
        owner, moving = self._owner, self._owner.record.moving
        if moving is None or owner.run.qmp is None:
            return
        owner.save(moving=None)
        here = {disk.name: disk.layer for disk in owner.config.disks}
        jobs = {name: job for name, job in owner.observed.jobs.items() if name not in moving.targets}
        if error:
            jobs |= {name: JobState(KIND, "failed", error=error) for name, layer in moving.targets.items() if here.get(name) != layer}
        owner.observe(jobs=jobs)

    async def adopt(self) -> None:
        """After Paddock was away: copies go on, and disks that were changing over do so."""
        owner, moving = self._owner, self._owner.record.moving
        if moving is None:
            return
        if moving.changes_over:
            with contextlib.suppress(PaddockError):
                await self.change_over()
            return
        here = {disk.name: disk.layer for disk in owner.config.disks}
        copied = [name for name, layer in moving.targets.items() if here.get(name) != layer]
        jobs = await self._jobs()
        if any(_job(name) not in jobs for name in copied):
            await self._drop_copies()
            self._over("a copy ended while Paddock was away")
            return
        owner.observe(jobs={**owner.observed.jobs, **{name: JobState(KIND) for name in copied}})
        self._watch()

    def follow(self, event: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        moving = self._owner.record.moving
        if not event:
            self._errors.clear()
            # The next QEMU is not told what was meant for this one.
            if self._task is not None:
                self._task.cancel()
        elif moving is not None and event == "BLOCK_JOB_COMPLETED" and data.get("error"):
            self._errors[str(data.get("device"))] = str(data["error"])
            if not moving.changes_over:
                self._owner.background(self._fail(str(data["error"])))
        elif moving is not None and event == "BLOCK_JOB_READY":
            self._owner.background(self._check())

    async def _fail(self, error: str) -> None:
        async def drop() -> None:
            await self._drop_copies()
            self._over(error)

        with contextlib.suppress(PaddockError):
            await self._owner.inbox.offer(drop)

    def _watch(self) -> None:
        self._owner.timers.after(KIND, _LOOK_SECONDS, lambda: self._owner.background(self._check()))

    async def _check(self) -> None:
        """Update the progress; QEMU tells no part of it."""
        owner, moving = self._owner, self._owner.record.moving
        if moving is None or moving.changes_over:
            return
        with contextlib.suppress(PaddockError):
            found = {str(job.get("device")): job for job in await owner.execute("query-block-jobs")}
            if owner.record.moving != moving:
                return
            jobs = dict(owner.observed.jobs)
            for name in moving.targets:
                if (job := found.get(_job(name))) is not None:
                    done, total = int(job.get("offset", 0)), int(job.get("len", 0))
                    jobs[name] = JobState(KIND, "ready" if job.get("ready") else "running", done, total)
            owner.observe(jobs=jobs)
        self._watch()

    async def _jobs(self) -> dict[str, str]:
        """The copies that QEMU knows, and their status."""
        moving = self._owner.record.moving
        wanted = {_job(name) for name in moving.targets} if moving is not None else set()
        return {str(job["id"]): str(job["status"]) for job in await self._owner.execute("query-jobs") if job["id"] in wanted}


def _job(name: str) -> str:
    return f"{KIND}-{names.device(name)}"

"""Layers of disks that change while the guest runs: new ones on top (snapshots), and some that are merged away.

What is on disk is right at every moment, whoever dies. An overlay is in the config before QEMU writes to it: empty it reads like the
layer below. A merge ends while the guest stands still, so that the layer above and the one below hold the same until the config has
changed.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import drives, tracking
from paddock.engine.machine.argv import blocks, names
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.observation import JobState
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.users import hand_over

# QEMU drains what is under way, which a slow disk makes long.
_PATIENCE = 60.0


class BlockJobs:
    """Layers of a machine's disks."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self._ended: dict[str, asyncio.Future[str]] = {}
        # after a stop of the machine, requests no longer wait for each other
        self._one = asyncio.Lock()
        self._pivots: set[asyncio.Task[None]] = set()

    async def overlay(self, layers: Mapping[str, DiskLayer]) -> None:
        """All disks go on in these layers from the same moment on. Each is empty, and lies over the disk's present one.

        Where the config has one already, QEMU must be on it: whoever asks then takes what is below for unchanging.
        """
        async with self.switching(layers) as switch:
            await switch()
        nodes = await drives.tops(self._owner)
        for name, layer in layers.items():
            if nodes.get(names.device(name)) != names.format_node(name, layer.path):
                what = f"cannot lay {layer.path} over disk {name} of machine {self._owner.id}"
                raise Unanswered(what, why="QEMU is still on the layer below", fix="try again in a moment")

    @contextlib.asynccontextmanager
    async def switching(self, layers: Mapping[str, DiskLayer]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """The config has the layers and QEMU has them open; the function has all disks go on in them.

        Without that call, or when QEMU refuses it, everything becomes as it was. QEMU may have done what it did not answer to, and what a
        guest writes into a layer that the config does not know is lost: then the config stays, and the next `adopt` has QEMU follow.
        """
        owner, added, laid = self._owner, list[str](), False
        wanted = self._overlays(layers)
        before = owner.config
        below = {disk.name: disk for disk in before.disks}

        async def switch() -> None:
            nonlocal laid
            laid = True
            try:
                if wanted:
                    await self._switch(wanted, below)
            except QemuRefused:
                laid = False
                raise

        if wanted:
            await owner.reconfigure(drives.on_layers(wanted))
        try:
            await self._add(wanted, below, added)
            yield switch
        finally:
            if not laid and wanted:
                await self._remove(added)
                await owner.reconfigure(lambda _: before)

    def _overlays(self, layers: Mapping[str, DiskLayer]) -> dict[str, DiskLayer]:
        """Return the layers that disks are not on yet. Raises `RequestRefused` for one that is no overlay of its disk."""
        owner = self._owner
        wanted = {name: layer for name, layer in layers.items() if drives.find(owner, name).layer != layer}
        for name, layer in wanted.items():
            if layer.format != "qcow2" or layer.backing is None or layer.backing != drives.find(owner, name).layer:
                why = "it is not an overlay of the layer that the disk is on"
                raise RequestRefused(f"cannot lay {layer.path} over disk {name} of machine {owner.id}", reason="NotAnOverlay", why=why)
        return wanted

    async def _lay(self, layers: Mapping[str, DiskLayer], below: Mapping[str, DiskConfig]) -> None:
        added: list[str] = []
        try:
            await self._add(layers, below, added)
            await self._switch(layers, below)
        except BaseException:
            await self._remove(added)
            raise

    async def _add(self, layers: Mapping[str, DiskLayer], below: Mapping[str, DiskConfig], added: list[str]) -> None:
        """Have QEMU open layers; `added` gets the names of their nodes."""
        owner = self._owner
        for name, layer in layers.items():
            hand_over(layer.path, owner.record.user)
            # Its backing comes with the transaction.
            alone = replace(below[name], layer=replace(layer, backing=None))
            view = owner.surroundings.host_view(replace(owner.config, disks=(alone,)))
            node = blocks.tree(alone, view)
            if node is None:
                raise RequestRefused(
                    f"cannot lay a layer over drive {name} of machine {owner.id}", reason="NotAnOverlay", why="it is empty"
                )
            await owner.execute("blockdev-add", node)
            added.append(str(node["node-name"]))

    async def _switch(self, layers: Mapping[str, DiskLayer], below: Mapping[str, DiskConfig]) -> None:
        owner, known = self._owner, await tracking.bitmaps(self._owner)
        # First the layers: nothing is written any more when the bitmaps follow.
        actions = [self._action(below[name], layer) for name, layer in layers.items()]
        old = {name: tracking.top(below[name]) for name in layers}
        for name, layer in layers.items():
            actions += tracking.carried(old[name], names.format_node(name, layer.path), known.get(old[name], ()))
        await owner.execute("transaction", {"actions": actions}, patience=_PATIENCE)
        for node in old.values():
            with contextlib.suppress(PaddockError):
                await tracking.drop(owner, node, known.get(node, ()))

    async def _remove(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            with contextlib.suppress(PaddockError):
                await self._owner.execute("blockdev-del", {"node-name": name})

    def _action(self, disk: DiskConfig, layer: DiskLayer) -> dict[str, Any]:
        old = names.format_node(disk.name, disk.layer.path) if disk.layer else ""
        new = names.format_node(disk.name, layer.path)
        return {"type": "blockdev-snapshot", "data": {"node": old, "overlay": new}}

    async def commit(self, name: str, base: Path) -> None:
        """Begins to merge the layers above `base` into it; returns when the disk is on `base`."""
        owner = self._owner
        if (ended := self._ended.get(name)) is None:
            await owner.inbox.offer(lambda: self._begin(name, base))
            ended = self._ended.get(name)
        if ended is not None and (error := await asyncio.shield(ended)):
            what = f"cannot merge the layers of disk {name} of machine {owner.id}"
            raise Unanswered(what, why=error, fix="try again; nothing is lost")

    async def _begin(self, name: str, base: Path) -> None:
        owner, disk = self._owner, drives.find(self._owner, name)
        if disk.layer is None or disk.layer.path == base:
            return
        if _below(disk.layer, base) is None:
            what = f"cannot merge the layers of disk {name} of machine {owner.id}"
            raise RequestRefused(what, reason="NoSuchLayer", why=f"{base} is not below it")
        hand_over(base, owner.record.user)
        owner.save(commits={**owner.record.commits, name: str(base)})
        arguments = {
            "job-id": _job(name),
            "device": names.format_node(name, disk.layer.path),
            "base-node": names.format_node(name, base),
            "auto-dismiss": True,
        }
        self._ended[name] = asyncio.get_running_loop().create_future()
        try:
            await owner.execute("block-commit", arguments, patience=_PATIENCE)
        except QemuRefused as error:
            self._over(name, error.description)
            raise
        self._see(name, JobState("commit"))

    async def adopt(self) -> None:
        """After Paddock was away: overlays that were to be laid are, merges go on, and so does a guest that stood still for one."""
        owner = self._owner
        nodes = await drives.tops(owner)
        for disk in owner.config.disks:
            top = nodes.get(names.device(disk.name), "")
            commit = owner.record.commits.get(disk.name)
            if disk.layer is None or not top:
                continue
            if commit is not None:
                await self._adopt_commit(disk, Path(commit), top)
            elif disk.layer.backing is not None and top == names.format_node(disk.name, disk.layer.backing.path):
                await self._adopt_overlay(disk, disk.layer, disk.layer.backing)
            elif top != names.format_node(disk.name, disk.layer.path):
                what = f"disk {disk.name} is on a layer that its config does not name"
                owner.observe(detail=f"{what}: save what the guest has written from within it, before it ends")
        if owner.record.halted:
            await self._go_on()

    async def _adopt_commit(self, disk: DiskConfig, base: Path, top: str) -> None:
        if top == names.format_node(disk.name, base):
            await self._on_base(disk.name, base)
            self._over(disk.name, "")
            return
        jobs = {str(job.get("device")): job for job in await self._owner.execute("query-block-jobs")}
        job = jobs.get(_job(disk.name))
        if job is None:
            with contextlib.suppress(PaddockError):
                await self._begin(disk.name, base)
            return
        self._ended[disk.name] = asyncio.get_running_loop().create_future()
        self._see(disk.name, JobState("commit", "running", int(job.get("offset", 0)), int(job.get("len", 0))))
        if job.get("ready"):
            self._owner.background(self._complete(disk.name, base))

    async def _adopt_overlay(self, disk: DiskConfig, layer: DiskLayer, below: DiskLayer) -> None:
        owner = self._owner
        try:
            with contextlib.suppress(QemuRefused):
                await owner.execute("blockdev-del", {"node-name": names.format_node(disk.name, layer.path)})
            await self._lay({disk.name: layer}, {disk.name: replace(disk, layer=below)})
        except (QemuRefused, RequestRefused) as error:
            await owner.reconfigure(drives.on_layers({disk.name: below}))
            owner.observe(detail=f"disk {disk.name} is still on its old layer: {error}")

    def follow(self, event: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        if not event:
            for name in tuple(self._ended):
                self._over(name, "the machine ended")
            # The next QEMU is not told what was meant for this one.
            for task in self._pivots:
                task.cancel()
            return
        if not event.startswith("BLOCK_JOB_"):
            return
        name = next((one.name for one in self._owner.config.disks if _job(one.name) == data.get("device")), "")
        if name not in self._owner.record.commits:
            return
        base = Path(self._owner.record.commits[name])
        if event == "BLOCK_JOB_READY":
            self._owner.background(self._complete(name, base))
        elif event == "BLOCK_JOB_CANCELLED":
            self._over(name, "it was called off")
        elif event == "BLOCK_JOB_COMPLETED" and data.get("error"):
            self._over(name, str(data["error"]))

    async def _complete(self, name: str, base: Path) -> None:
        with contextlib.suppress(PaddockError):
            await self._owner.inbox.offer(lambda: self._pivot(name, base))

    async def _pivot(self, name: str, base: Path) -> None:
        # A stop of the machine does not interrupt it: what QEMU has and what the config says must not part.
        task = self._owner.background(self._change_over(name, base))
        self._pivots.add(task)
        task.add_done_callback(self._pivots.discard)
        await asyncio.wait([task])

    async def _change_over(self, name: str, base: Path) -> None:
        """The guest stands still for a moment; then its disk is on the base, and the config says so before the guest goes on."""
        owner, error = self._owner, ""
        async with self._one:
            with owner.occupied():
                # A Paddock that is killed leaves a guest that stands still, and a note of it.
                halts = owner.record.halted or not owner.observed.paused
                try:
                    if halts:
                        owner.save(halted=True)
                        await owner.execute("stop")
                    error = await self._end_job(name)
                    if not error:
                        await self._on_base(name, base)
                except PaddockError as failure:
                    error = str(failure)
                finally:
                    # Also when it is being stopped: a guest that stands still cannot shut down.
                    if halts:
                        with contextlib.suppress(PaddockError):
                            await self._go_on()
            self._over(name, error)

    async def _end_job(self, name: str) -> str:
        """Have QEMU change over, and return the reason when it did not."""

        def completed(event: str, data: Mapping[str, Any]) -> bool:
            return event == "BLOCK_JOB_COMPLETED" and data.get("device") == _job(name)

        with self._owner.events.expect(completed) as event:
            await self._owner.execute("job-complete", {"id": _job(name)})
            try:
                async with asyncio.timeout(_PATIENCE):
                    _, data = await event
            except TimeoutError:
                return f"it was not done within {_PATIENCE:g} s"
        return str(data.get("error", ""))

    async def _on_base(self, name: str, base: Path) -> None:
        owner = self._owner
        old = drives.find(self._owner, name).layer
        layer = _below(old, base) if old else None
        if layer is not None and old is not None and layer != old:
            await tracking.carry(owner, names.format_node(name, old.path), names.format_node(name, layer.path))
            # Before the config forgets it: while it is open, no layer can be laid over the base.
            await self._remove((names.format_node(name, old.path),))
            await drives.change_over(owner, {name: layer})

    async def _go_on(self) -> None:
        """The guest goes on that was halted. Raises `Unanswered`, and then whoever finds it repeats that."""
        with contextlib.suppress(QemuRefused):
            await self._owner.execute("cont")
        self._owner.save(halted=False)

    def _over(self, name: str, error: str) -> None:
        owner = self._owner
        if name in owner.record.commits:
            owner.save(commits={key: value for key, value in owner.record.commits.items() if key != name})
        jobs = {key: value for key, value in owner.observed.jobs.items() if key != name}
        if error:
            jobs[name] = JobState("commit", "failed", error=error)
        owner.observe(jobs=jobs)
        ended = self._ended.pop(name, None)
        if ended is not None and not ended.done():
            ended.set_result(error)

    def _see(self, name: str, state: JobState) -> None:
        self._owner.observe(jobs={**self._owner.observed.jobs, name: state})


def _job(name: str) -> str:
    return "commit-" + names.device(name)


def _below(layer: DiskLayer | None, path: Path) -> DiskLayer | None:
    while layer is not None and layer.path != path:
        layer = layer.backing
    return layer

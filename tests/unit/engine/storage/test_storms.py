"""Storms over volumes: everything at the same time, in an order of chance, and the process may end at each step.

Files are real. What a guest writes are words beside a layer's file, and a merge carries them down. STORMS=first:end says which seeds.
"""

import asyncio
import contextlib
import os
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddock.base.errors import PaddockError
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import files, headers, qemuimg, reverts, volumes
from paddock.engine.storage.chains import names
from paddock.engine.storage.errors import NotAllowed, VolumeMissing
from paddock.engine.storage.paths import VolumePaths
from paddock.engine.storage.pools import MARKER
from paddock.engine.storage.records import FrozenBase, VolumeRecord, read_snapshot
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by

FIRST, END = (int(each) for each in os.environ.get("STORMS", "0:12").split(":"))
LIVES, TASKS, TURNS = 6, 4, 12
MB = 1 << 20


def words(path: Path) -> Path:
    return path.with_name(f"{path.name}.words")


def written(layer: DiskLayer | None) -> frozenset[str]:
    """Return the content of a disk."""
    found: set[str] = set()
    while layer is not None:
        if words(layer.path).exists():
            found |= set(words(layer.path).read_text().split())
        layer = layer.backing
    return frozenset(found)


def check(root: Path) -> None:
    """Fail unless each base that a record names is there by name, and each file of a layer. What nobody needs goes one by one."""
    places = VolumePaths(root, {})
    records = {directory.name: record for directory, record in places.volumes()}
    frozen = filter(None, map(read_snapshot, places.snapshot_records()))
    bases = [FrozenBase(each.volume, each.layer) for each in frozen]
    bases += [base for record in records.values() if not record.deleted for base in record_bases(record)]
    for base in bases:
        assert base.volume in records and any(base.layer in names(chain) for chain in records[base.volume].chains), base
        bases += [each for each in record_bases(records[base.volume]) if each not in bases]
    needed = {volume for volume, record in records.items() if not record.deleted} | {base.volume for base in bases}
    for volume in needed:
        for layer in (layer for chain in records[volume].chains for layer in chain.layers):
            path = root / "volumes" / volume / layer.path
            assert path.exists(), (volume, layer)
            if layer.format == "qcow2" and (below := headers.read(path)) is not None:
                assert (path.parent / below.name).exists(), (volume, layer, below)


def record_bases(record: VolumeRecord) -> list[FrozenBase]:
    return [chain.base for chain in record.chains if isinstance(chain.base, FrozenBase)]


def renamed(path: Path, name: str) -> None:
    """Write another name of what lies below into a header, as `qemu-img rebase -u` does."""
    with path.open("r+b") as file:
        offset = int.from_bytes(file.read(16)[8:], "big")
        file.seek(16)
        file.write(len(name).to_bytes(4, "big"))
        file.seek(offset)
        file.write(name.encode())


class Storm:
    """One storm, of several lives of a process."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self._chance = chance
        self._number = 0
        self._steps = -1
        self._disks: dict[str, frozenset[str]] = {}
        self._held: dict[str, frozenset[str]] = {}
        # what a disk holds when it is reverted
        self._reverting: dict[str, frozenset[str]] = {}
        # what is asked again until it is done, as controllers do: snapshots by their volume
        self._begun: dict[str, str] = {}

    async def live(self, number: int) -> None:
        """Live until the process ends at some step, and see what is there after the next start."""
        self._volumes = Volumes(self.root)
        self._volumes.prepare()
        self._adopt()
        self._steps = self._chance.randrange(20, 150)
        self._next = self.root.with_name(f"life-{number}")
        tasks = [asyncio.create_task(self._run()) for _ in range(TASKS)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if result is not None and not isinstance(result, asyncio.CancelledError | Ended):
                raise result
        if self._next.exists():
            self.root = self._next
        check(self.root)

    def _adopt(self) -> None:
        """Adopt the disks after a lost answer: one that was made is there, or is not; all else is as it was."""
        there = {volume: written(self._volumes._there(volume).layer) for volume in self._volumes.ids()}
        for volume, after in self._reverting.items():
            assert there.get(volume) in (self._disks.get(volume), after), volume
        assert all(there.get(volume) == self._disks[volume] for volume in self._disks.keys() - self._reverting.keys())
        self._reverting = {}
        self._disks = there
        for snapshot, before in self._held.items():
            held = self._volumes.get_snapshot(snapshot)
            assert held is not None and written(held.layer) == before, (snapshot, held)
        self._begun = {snapshot: volume for snapshot, volume in self._begun.items() if volume in there}

    def step(self) -> None:
        """One step on the disk is done, or the process has ended."""
        if self._steps < 0:
            raise Ended
        check(self.root)
        self._steps -= 1
        if self._steps < 0:
            # A thread may be removing what was half made.
            shutil.copytree(self.root, self._next, ignore=shutil.ignore_patterns(".new-*"))
            raise Ended

    async def _run(self) -> None:
        acts: list[Callable[[], Awaitable[Any]]] = [
            *(self._create, self._write, self._write, self._snapshot, self._begin, self._go_on, self._restore, self._restore),
            *(self._restore_while_it_goes, self._revert, self._revert, self._clone),
            *(self._delete, self._forget, self._forget, self._collapse),
        ]
        for _ in range(TURNS):
            with contextlib.suppress(PaddockError):
                await self._chance.choice(acts)()
            await asyncio.sleep(0)

    def _fresh(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}"

    def _any(self, ids: dict[str, Any]) -> str:
        return self._chance.choice(sorted(ids) or ["none"])

    async def _create(self) -> None:
        volume = self._fresh("v")
        await self._volumes.create(volume, MB)
        self._disks[volume] = frozenset()

    async def _write(self) -> None:
        volume = self._any(self._disks)
        async with self._volumes._locks.hold(volume):
            layer = self._volumes._there(volume).layer
            if self._steps < 0:
                raise Ended
            with words(layer.path).open("a") as file:
                file.write(f"{self._fresh('w')}\n")
            if volume in self._disks:
                self._disks[volume] = written(layer)

    async def _snapshot(self) -> None:
        volume, snapshot = self._any(self._disks), self._fresh("s")
        self._begun[snapshot] = volume
        await self._take(snapshot)

    async def _begin(self) -> None:
        """A machine is asked to go on, and ends."""
        volume, snapshot = self._any(self._disks), self._fresh("s")
        self._begun[snapshot] = volume
        await self._volumes.next_layer(volume, snapshot)

    async def _go_on(self) -> None:
        await self._take(self._any(self._begun))

    async def _take(self, snapshot: str) -> None:
        await self._volumes.snapshot(self._begun.get(snapshot, "none"), snapshot)
        held = self._volumes.get_snapshot(snapshot)
        if held is not None and snapshot in self._begun:
            self._held.setdefault(snapshot, written(held.layer))
            del self._begun[snapshot]

    async def _restore(self) -> None:
        snapshot, volume = self._any(self._held), self._fresh("r")
        before = self._held.get(snapshot)
        restored = await self._volumes.restore(snapshot, volume, MB)
        assert written(restored.layer) == before
        self._disks[volume] = written(restored.layer)

    async def _restore_while_it_goes(self) -> None:
        """A snapshot is deleted at some step of its restore."""
        snapshot, volume = self._any(self._held), self._fresh("r")
        before = self._held.pop(snapshot, None)
        for result in await asyncio.gather(
            self._volumes.restore(snapshot, volume, MB), self._volumes.delete_snapshot(snapshot), return_exceptions=True
        ):
            if isinstance(result, BaseException) and not isinstance(result, VolumeMissing):
                raise result
        if self._volumes.get(volume) is not None:
            self._disks[volume] = written(self._volumes._there(volume).layer)
            assert self._disks[volume] == before

    async def _revert(self) -> None:
        """At each step the disk is what it was, or what the snapshot holds. Others may write it afterwards."""
        snapshot, volume = self._any(self._held), self._any(self._disks)
        after, before = self._held.get(snapshot, frozenset()), self._disks.get(volume, frozenset())
        if volume in self._reverting:
            return
        self._reverting[volume] = after
        try:
            await self._volumes.revert(volume, snapshot, MB, self._fresh("m"))
            now = written(self._volumes._there(volume).layer)
            assert after <= now and not now & (before - after), (after, before, now)
        except PaddockError:
            if volume in self._disks:
                self._disks[volume] = written(self._volumes._there(volume).layer)
            del self._reverting[volume]
            raise
        if volume in self._disks:
            self._disks[volume] = now
        del self._reverting[volume]

    async def _clone(self) -> None:
        source, volume = self._any(self._disks), self._fresh("c")
        self._disks[volume] = written((await self._volumes.clone(source, volume, MB)).layer)

    async def _delete(self) -> None:
        volume = self._any(self._disks)
        self._disks.pop(volume, None)
        await self._volumes.delete(volume)

    async def _forget(self) -> None:
        snapshot = self._any(self._held | self._begun)
        self._held.pop(snapshot, None)
        self._begun.pop(snapshot, None)
        await self._volumes.delete_snapshot(snapshot)

    async def _collapse(self) -> None:
        await self._volumes.collapse(self._any(self._disks))

    async def finish(self) -> None:
        """Delete everything and assert that nothing is left."""
        await self.live(LIVES)
        again = Volumes(self.root)
        again.prepare()
        self._steps = 1 << 30
        for volume in again.ids():
            await again.collapse(volume)
        for volume in again.ids():
            record = again._record(again.place(volume))
            assert {each.name for each in again.place(volume).glob("[!.]*.img")} == record.files, volume
        for volume in again.ids():
            await again.delete(volume)
        for path in sorted((self.root / "snapshots").glob("*.json")):
            await again.delete_snapshot(path.stem)
        assert [each.name for each in (self.root / "volumes").iterdir()] == [MARKER] and list((self.root / "snapshots").iterdir()) == []


class Ended(BaseException):
    """The process ends here."""


@pytest.mark.spec("kubevirt", 130)
@pytest.mark.parametrize("seed", range(FIRST, END))
@run_by(asyncio.run)
async def test_no_layer_goes_that_somebody_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    (tmp_path / "life").mkdir()
    storm = Storm(tmp_path / "life", chance)
    copy = files.copy

    async def pause() -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)

    async def blocking(what: str, place: Path, do: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        await pause()
        storm.step()
        found = do(*arguments, **named)
        storm.step()
        await pause()
        return found

    async def commit(layer: DiskLayer) -> None:
        assert layer.backing is not None
        lower = words(layer.backing.path)
        await pause()
        held = written(DiskLayer(layer.path, "qcow2")) | written(DiskLayer(layer.backing.path, "raw"))
        lower.write_text("".join(f"{each}\n" for each in sorted(held)))
        storm.step()
        await pause()

    async def rename_below(layer: DiskLayer, name: str, format: str) -> None:
        await pause()
        storm.step()
        renamed(layer.path, name)
        await pause()

    def copied(source: Path, target: Path, tell: Any = None) -> bool:
        words(target).write_text(words(source).read_text() if words(source).exists() else "")
        return copy(source, target, tell)

    monkeypatch.setattr(volumes, "blocking", blocking)
    monkeypatch.setattr(reverts, "blocking", blocking)
    monkeypatch.setattr(qemuimg, "commit", commit)
    monkeypatch.setattr(qemuimg, "rename_below", rename_below)
    monkeypatch.setattr(files, "copy", copied)
    for number in range(LIVES):
        await storm.live(number)
    await storm.finish()


@run_by(asyncio.run)
async def test_a_snapshot_that_was_begun_before_the_process_ended_is_taken_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged: list[Path] = []

    async def commit(layer: DiskLayer) -> None:
        merged.append(layer.path)

    monkeypatch.setattr(qemuimg, "commit", commit)
    before = Volumes(tmp_path)
    before.prepare()
    volume = await before.create("a", MB)
    await before.next_layer("a", "s")
    after = Volumes(tmp_path)
    after.prepare()
    await after.collapse("a")
    assert merged == [] and after.get_snapshot("s") is None
    await after.snapshot("a", "s")
    held = after.get_snapshot("s")
    assert held is not None and held.layer == volume.layer
    await after.delete_snapshot("s")
    assert merged == [tmp_path / "volumes" / "a" / "after-s.img"]


@run_by(asyncio.run)
async def test_a_volume_does_not_take_the_place_of_a_deleted_one_that_others_lie_over(tmp_path: Path) -> None:
    made = Volumes(tmp_path)
    made.prepare()
    await made.create("a", MB)
    await made.snapshot("a", "s")
    copy = await made.restore("s", "b", MB)
    await made.delete("a")
    with pytest.raises(NotAllowed, match="others have layers"):
        await made.create("a", MB)
    assert copy.layer.backing is not None and copy.layer.backing.path.exists()

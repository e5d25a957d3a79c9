"""Volumes without QEMU: what is there after each step fails, and what a record may say."""

import asyncio
import errno
import io
import os
import shutil
import tarfile
import threading
import types
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import errors, files, qemuimg, records
from paddock.engine.storage.errors import (
    NotAllowed,
    SizeTooLarge,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    TooSmall,
    VolumeBroken,
    VolumeBusy,
    VolumeMissing,
)
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by

MB = 1 << 20


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    made = Volumes(tmp_path)
    made.prepare()
    return made


def left(volumes: Volumes) -> list[str]:
    return sorted(each.name for each in volumes.place("x").parent.iterdir() if each.name != "paddock-pool")


@pytest.mark.parametrize("step", ["make_blank", "write_whole", "sync_directory"])
def test_a_step_that_fails_leaves_nothing_and_can_be_repeated(volumes: Volumes, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(files, step, full)
        with pytest.raises(StoreFull, match="free space there"):
            asyncio.run(volumes.create("a", MB))
    # What was renamed before the last step failed is whole.
    assert left(volumes) == (["a"] if step == "sync_directory" and volumes.get("a") else [])
    assert asyncio.run(volumes.create("a", MB)).size == MB
    assert left(volumes) == ["a"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EROFS, StoreReadOnly),
        (errno.EACCES, StoreReadOnly),
        (errno.EIO, StoreFailed),
        (errno.EFBIG, SizeTooLarge),
    ],
)
def test_errors_of_the_file_system_have_types(number: int, expected: type[Exception]) -> None:
    with pytest.raises(expected), errors.spoken("cannot do it", Path("/here")):
        raise OSError(number, "so")


@run_by(asyncio.run)
async def test_repeated_is_the_same(volumes: Volumes) -> None:
    first = await volumes.create("a", 1_000_001)
    assert await volumes.create("a", 5 * MB) == first and first.size == 1_000_448
    await volumes.delete("a")
    await volumes.delete("a")
    assert volumes.ids() == set()
    with pytest.raises(VolumeMissing):
        await volumes.grow("a", MB)


@run_by(asyncio.run)
async def test_a_blank_volume_becomes_one_of_files_and_one_that_was_written_does_not(volumes: Volumes) -> None:
    await volumes.create("a", MB)
    place = await volumes.as_files("a")
    (place / "x").write_text("hello")
    assert await volumes.as_files("a") == place and volumes.get("a") is not None
    found = volumes.get("a")
    assert found is not None and found.files == place and (place / "x").read_text() == "hello"
    disk = (await volumes.create("b", MB)).layer.path
    disk.write_bytes(b"data".ljust(MB, b"."))
    with pytest.raises(NotAllowed, match="holds a disk"):
        await volumes.as_files("b")


@pytest.mark.parametrize("id", ["", "..", "a/b", ".hidden", "-x", "a" * 300, "a\nb"])
def test_an_id_is_a_name_of_a_file(volumes: Volumes, id: str) -> None:
    with pytest.raises(NotAllowed):
        volumes.get(id)


@pytest.mark.parametrize("spoil", [lambda text: text[:5], lambda text: text.replace('"version":1', '"version":3')])
def test_a_record_that_cannot_be_read_is_not_guessed_at(volumes: Volumes, spoil: Callable[[str], str]) -> None:
    asyncio.run(volumes.create("a", MB))
    record = volumes.place("a") / "volume.json"
    record.write_text(spoil(record.read_text()))
    with pytest.raises(VolumeBroken):
        volumes.get("a")


def test_volumes_are_in_the_pool_that_was_named(tmp_path: Path) -> None:
    made = Volumes(tmp_path / "root", {"fast": tmp_path / "fast"})
    made.prepare()
    volume = asyncio.run(made.create("a", MB, pool="fast"))
    assert volume.directory == tmp_path / "fast" / "a" and made.get("a") == volume
    with pytest.raises(NotAllowed):
        asyncio.run(made.create("b", MB, pool="slow"))


@run_by(asyncio.run)
async def test_a_volume_of_files(volumes: Volumes) -> None:
    def fill(directory: Path) -> None:
        (directory / "x").write_text("hello")

    made = await volumes.create_files("a", MB, fill)
    assert made.files is not None and (made.files / "x").read_text() == "hello"
    copy = await volumes.clone("a", "b", MB)
    assert copy.files is not None and (copy.files / "x").read_text() == "hello"
    with pytest.raises(NotAllowed):
        await volumes.snapshot("a", "s")
    (made.files / ".part").write_text("half")
    packed = b"".join([piece async for piece in volumes.export("a", "tar.gz")])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == ["x"]
    with pytest.raises(NotAllowed, match=r"use tar\.gz"):
        await anext(volumes.export("a", "raw"))


@run_by(asyncio.run)
async def test_who_is_cancelled_leaves_nothing_that_comes_later(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be stopped: what it does is waited for, so that whoever comes next sees the end of it."""
    begun, may_end = threading.Event(), threading.Event()
    make = files.make_blank

    def slowly(path: Path, size: int, *, allocate: bool) -> None:
        begun.set()
        may_end.wait(10)
        make(path, size, allocate=allocate)

    monkeypatch.setattr(files, "make_blank", slowly)
    task = asyncio.create_task(volumes.create("a", MB))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left(volumes) == []


@pytest.mark.parametrize("size", [1 << 63, (1 << 63) - 1, 10**20])
def test_a_size_that_no_disk_has_is_refused_for_good(volumes: Volumes, size: int) -> None:
    with pytest.raises(SizeTooLarge, match=f"{size} bytes were asked for, and a disk has at most 2Pi"):
        asyncio.run(volumes.create("a", size))
    assert left(volumes) == []
    asyncio.run(volumes.create("a", 512))
    with pytest.raises(SizeTooLarge):
        asyncio.run(volumes.grow("a", size))


def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that grows by each record that is read."""
    found: list[Path] = []

    def counted(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def noted(path: Path) -> object:
            found.append(path)
            return read(path)

        return noted

    monkeypatch.setattr(records, "read", counted(records.read))
    monkeypatch.setattr(records, "read_snapshot", counted(records.read_snapshot))
    return found


def test_a_merge_and_a_removal_read_no_records_of_other_volumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(others: int) -> int:
        volumes = Volumes(tmp_path / str(others))
        volumes.prepare()

        async def script() -> int:
            for number in range(others):
                await volumes.create(f"other-{number}", MB)
                await volumes.snapshot(f"other-{number}", f"of-{number}")
            await volumes.create("a", MB)
            await volumes.snapshot("a", "s")
            await volumes.restore("s", "over-a", MB)
            with monkeypatch.context() as counting:
                read = reads(counting)
                await volumes.collapse("a")
                await volumes.delete("over-a")
                return len(read)

        return asyncio.run(script())

    assert count(30) == count(1)


@run_by(asyncio.run)
async def test_each_volume_over_another_has_its_turn_after_a_merge(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of copies may lie over one volume: other work goes on between them."""
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    for number in range(20):
        await volumes.restore("s", f"copy-{number}", MB)
    read, most, before = reads(monkeypatch), 0, 0
    task = asyncio.create_task(volumes.collapse("a"))
    while not task.done():
        await asyncio.sleep(0)
        most, before = max(most, len(read) - before), len(read)
    assert len(read) > 40 and most < 10


@dataclass(frozen=True)
class Meanwhile:
    """Has something done by another task while a thread is about to call a function."""

    module: object
    name: str

    def then(self, monkeypatch: pytest.MonkeyPatch, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
        call, loop, begun = getattr(self.module, self.name), asyncio.get_running_loop(), threading.Event()

        def late(*arguments: object) -> object:
            if not begun.is_set():
                begun.set()
                asyncio.run_coroutine_threadsafe(do(), loop).result(10)
            return call(*arguments)

        monkeypatch.setattr(self.module, self.name, late)


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The layers that were merged into those below them; their files stay as they are."""
    found: list[Path] = []

    async def commit(layer: DiskLayer) -> None:
        found.append(layer.path)

    monkeypatch.setattr(qemuimg, "commit", commit)
    return found


@run_by(asyncio.run)
async def test_a_snapshot_that_is_deleted_while_its_copy_is_made(
    volumes: Volumes, monkeypatch: pytest.MonkeyPatch, merges: list[Path]
) -> None:
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    Meanwhile(files, "make_layer").then(monkeypatch, lambda: volumes.delete_snapshot("s"))
    with pytest.raises(VolumeMissing, match="snapshot s was deleted while it was restored"):
        await volumes.restore("s", "b", MB)
    assert left(volumes) == ["a"] and len(merges) == 1


@run_by(asyncio.run)
async def test_a_layer_is_kept_for_a_copy_that_is_being_written_down(
    volumes: Volumes, monkeypatch: pytest.MonkeyPatch, merges: list[Path]
) -> None:
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    Meanwhile(records, "write").then(monkeypatch, lambda: volumes.delete_snapshot("s"))
    restored = await volumes.restore("s", "b", MB)
    assert merges == [] and volumes.get_snapshot("s") is None
    # With the copy goes what it needed.
    await volumes.delete("b")
    await volumes.collapse("a")
    assert merges == [volumes.place("a") / "after-s.img"] and restored.layer.backing is not None


@run_by(asyncio.run)
async def test_a_layer_is_kept_until_its_snapshot_is_written_down(volumes: Volumes, merges: list[Path]) -> None:
    volume = await volumes.create("a", MB)
    await volumes.next_layer("a", "s")
    await volumes.collapse("a")
    await volumes.frozen("a", "s")
    held = volumes.get_snapshot("s")
    assert held is not None and held.layer == volume.layer and merges == []


@run_by(asyncio.run)
async def test_layers_that_others_use_are_known_after_a_restart(volumes: Volumes, tmp_path: Path, merges: list[Path]) -> None:
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    await volumes.restore("s", "b", MB)
    await volumes.delete_snapshot("s")
    await volumes.delete("a")
    again = Volumes(tmp_path)
    again.prepare()
    assert left(again) == ["a", "b"] and again.ids() == {"b"} and merges == []
    await again.delete("b")
    assert left(again) == []


@run_by(asyncio.run)
async def test_a_removal_that_failed_is_done_by_the_next(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    await volumes.create("a", MB)
    with monkeypatch.context() as broken:
        broken.setattr(shutil, "rmtree", refused)
        with pytest.raises(StoreFailed):
            await volumes.delete("a")
    assert left(volumes) == [".gone-a"] and volumes.get("a") is None
    await volumes.delete("a")
    assert left(volumes) == []


@pytest.mark.spec("kubevirt", 231)
@run_by(asyncio.run)
async def test_a_volume_is_emptied_for_a_disk_that_moves_into_it(volumes: Volumes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await volumes.create("base", MB)
    await volumes.snapshot("base", "s")
    made = await volumes.restore("s", "a", 2 * MB)
    assert made.layer.backing is not None
    emptied = await volumes.vacate("a", MB)
    # The disk has the size of the one that comes; the volume keeps its own, to which the disk grows.
    assert emptied.layer == DiskLayer(emptied.layer.path, "raw") and emptied.layer.path.stat().st_size == MB and emptied.size == 2 * MB
    emptied.layer.path.write_bytes(b"x" * MB)
    again = await volumes.vacate("a", MB)
    assert again.layer.path.read_bytes() == bytes(MB)
    assert [path.name for path in again.directory.glob("*.img")] == [again.layer.path.name]
    # A step that fails leaves what was there.
    again.layer.path.write_bytes(b"y" * MB)
    with monkeypatch.context() as broken:
        broken.setattr(records, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(StoreFailed):
            await volumes.vacate("a", MB)
    held = volumes.get("a")
    assert held is not None and held.layer.path.read_bytes() == b"y" * MB
    # It forgets what lay below it, which may go.
    await volumes.vacate("a", MB)
    await volumes.delete_snapshot("s")
    await volumes.delete("base")
    assert left(volumes) == ["a"]
    after = Volumes(tmp_path)
    after.prepare()
    assert after.get("a") is not None


@pytest.mark.spec("kubevirt", 231)
@run_by(asyncio.run)
async def test_a_volume_that_is_not_emptied(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    await volumes.create("a", MB)
    with pytest.raises(TooSmall):
        await volumes.vacate("a", 2 * MB)
    with monkeypatch.context() as full:
        found = types.SimpleNamespace(f_bavail=1, f_frsize=4096)
        full.setattr(os, "statvfs", lambda path: found)
        (volumes.place("a") / "disk.img").write_bytes(b"x" * MB)
        held = volumes.get("a")
        assert held is not None
        with pytest.raises(StoreFull, match="has 4096 free"):
            await volumes.vacate("a", MB, content=held.layer)
    with monkeypatch.context() as used:
        used.setattr(files, "in_use", lambda path: True)
        with pytest.raises(VolumeBusy):
            await volumes.vacate("a", MB)
    await volumes.snapshot("a", "s")
    with pytest.raises(NotAllowed, match="snapshots or clones need what it holds"):
        await volumes.vacate("a", MB)

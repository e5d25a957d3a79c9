"""Volumes without QEMU: what is there after each step fails, and what a record may say."""

import asyncio
import errno
import io
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.engine.storage import errors, files
from paddock.engine.storage.errors import NotAllowed, SizeTooLarge, StoreFailed, StoreFull, StoreReadOnly, VolumeBroken, VolumeMissing
from paddock.engine.storage.volumes import Volumes

MB = 1 << 20


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    made = Volumes(tmp_path)
    made.prepare()
    return made


def left(volumes: Volumes) -> list[str]:
    return sorted(each.name for each in volumes.place("x").parent.iterdir())


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


def test_repeated_is_the_same(volumes: Volumes) -> None:
    async def script() -> None:
        first = await volumes.create("a", 1_000_001)
        assert await volumes.create("a", 5 * MB) == first and first.size == 1_000_448
        await volumes.delete("a")
        await volumes.delete("a")
        assert volumes.ids() == set()
        with pytest.raises(VolumeMissing):
            await volumes.grow("a", MB)

    asyncio.run(script())


def test_a_blank_volume_becomes_one_of_files_and_one_that_was_written_does_not(volumes: Volumes) -> None:
    async def script() -> None:
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

    asyncio.run(script())


@pytest.mark.parametrize("id", ["", "..", "a/b", ".hidden", "-x", "a" * 300, "a\nb"])
def test_an_id_is_a_name_of_a_file(volumes: Volumes, id: str) -> None:
    with pytest.raises(NotAllowed):
        volumes.get(id)


@pytest.mark.parametrize("spoil", [lambda text: text[:5], lambda text: text.replace('"version":1', '"version":2')])
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


def test_a_volume_of_files(volumes: Volumes) -> None:
    def fill(directory: Path) -> None:
        (directory / "x").write_text("hello")

    async def script() -> None:
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

    asyncio.run(script())


def test_who_is_cancelled_leaves_nothing_that_comes_later(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be stopped: what it does is waited for, so that whoever comes next sees the end of it."""
    begun, may_end = threading.Event(), threading.Event()
    make = files.make_blank

    def slowly(path: Path, size: int, *, allocate: bool) -> None:
        begun.set()
        may_end.wait(10)
        make(path, size, allocate=allocate)

    monkeypatch.setattr(files, "make_blank", slowly)

    async def script() -> None:
        task = asyncio.create_task(volumes.create("a", MB))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert left(volumes) == []

    asyncio.run(script())


@pytest.mark.parametrize("size", [1 << 63, (1 << 63) - 1, 10**20])
def test_a_size_that_no_disk_has_is_refused_for_good(volumes: Volumes, size: int) -> None:
    with pytest.raises(SizeTooLarge, match=f"{size} bytes were asked for, and a disk has at most 2Pi"):
        asyncio.run(volumes.create("a", size))
    assert left(volumes) == []
    asyncio.run(volumes.create("a", 512))
    with pytest.raises(SizeTooLarge):
        asyncio.run(volumes.grow("a", size))

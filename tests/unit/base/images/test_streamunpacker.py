"""Packed files are unpacked while they arrive; whatever happens to the download, the disk is that of the whole file."""

import asyncio
import gzip
import io
import lzma
import tarfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from paddock.base.images import zstd
from paddock.base.images.arriving import AbandonedError, Arrival, ArrivingFile
from paddock.base.images.library import ImageError, ImageLibrary, ImageSettings
from paddock.base.images.sources import Http
from tests.coroutines import run_by
from tests.kit.servers.imageserver import Fault, Served, Server
from tests.unit.base.images.conftest import Fetch, disk
from tests.unit.base.images.test_ranges import cut

BODY = disk(3 << 20)


def tarred(data: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        info = tarfile.TarInfo("disk.raw")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": partial(zstd.compress, options={zstd.CompressionParameter.checksum_flag: 1}),
    "tar": tarred,
    "tar.gz": lambda data: gzip.compress(tarred(data)),
}


def streamed(root: Path) -> int:
    """Bytes that were unpacked so far."""
    return sum(path.stat().st_size for path in root.glob("work/*/streamed"))


@pytest.mark.parametrize("name", PACK)
@run_by(asyncio.run)
async def test_it_is_unpacked_before_all_of_it_is_there(name: str, server: Server, root: Path, settings: ImageSettings) -> None:
    packed = PACK[name](BODY)
    url = server.put("/disk", packed)
    server.faults["/disk"] = [Fault(after=len(packed) * 2 // 3, then="stall")]
    images = ImageLibrary(root, settings)
    task = asyncio.ensure_future(images.fetch(Http(url)))
    while streamed(root) < 1 << 19:
        assert not task.done()
        await asyncio.sleep(0.01)
    # The connection ends now, and the download goes on with another.
    server.released.set()
    image = await task
    await images.close()
    assert image.path.read_bytes() == BODY
    assert server.seen[-1].headers["range"].startswith("bytes=")
    assert not list((root / "work").iterdir())


@run_by(asyncio.run)
async def test_a_file_that_changes_meanwhile_is_unpacked_anew(server: Server, root: Path, settings: ImageSettings) -> None:
    first, second = gzip.compress(BODY), gzip.compress(disk(3 << 20, seed=7))
    url = server.put("/disk", first)
    server.faults["/disk"] = [Fault(after=len(first) // 2, then="stall")]
    images = ImageLibrary(root, settings)
    task = asyncio.ensure_future(images.fetch(Http(url)))
    while streamed(root) < 1 << 19:
        await asyncio.sleep(0.01)
    server.files["/disk"] = Served(second, etag='"two"')
    server.released.set()
    image = await task
    await images.close()
    assert image.path.read_bytes() == gzip.decompress(second)


def test_a_download_that_goes_on_after_a_crash(server: Server, root: Path, settings: ImageSettings, fetch: Fetch) -> None:
    packed = gzip.compress(BODY)
    url = server.put("/disk", packed)
    server.faults["/disk"] = [Fault(after=len(packed) // 2, then="stall")]
    asyncio.run(cut(ImageLibrary(root, settings), url, lambda: streamed(root) >= 1 << 19))
    assert not list((root / "work").iterdir())
    assert not [thread for thread in threading.enumerate() if thread.name == "image unpacker"]
    assert fetch(Http(url)).path.read_bytes() == BODY
    assert "range" in server.seen[-1].headers


@run_by(asyncio.run)
async def test_a_bomb_ends_its_download(server: Server, root: Path, settings: ImageSettings) -> None:
    packed = gzip.compress(bytes(64 << 20)) + gzip.compress(BODY)
    url = server.put("/disk", packed)
    # What follows never comes.
    server.faults["/disk"] = [Fault(after=len(packed) - 1000, then="stall")]
    images = ImageLibrary(root, msgspec.structs.replace(settings, stall_seconds=0.5))
    try:
        with pytest.raises(ImageError) as caught:
            await images.fetch(Http(url), limit=16 << 20)
    finally:
        await images.close()
    assert caught.value.code == "TooLarge"


@pytest.mark.parametrize("name", ["gz", "xz", "zst"])
def test_a_damaged_file_with_a_wrong_checksum_is_reported_by_its_checksum(name: str, server: Server, fetch: Fetch) -> None:
    packed = PACK[name](BODY)[:-100]
    with pytest.raises(ImageError) as caught:
        fetch(Http(server.put("/disk", packed), checksum=f"sha256:{'0' * 64}"))
    assert caught.value.code == "Checksum"
    with pytest.raises(ImageError) as caught:
        fetch(Http(server.put("/other", packed)))
    assert caught.value.code == "Truncated"


@run_by(asyncio.run)
async def test_when_no_turn_is_free_it_is_unpacked_afterwards(server: Server, root: Path, settings: ImageSettings) -> None:
    packed = gzip.compress(BODY)
    slow = server.put("/slow", packed)
    server.faults["/slow"] = [Fault(after=len(packed) // 2, then="stall")]
    quick = server.put("/quick", gzip.compress(disk(seed=3)))
    images = ImageLibrary(root, msgspec.structs.replace(settings, converters=1))
    waiting = asyncio.ensure_future(images.fetch(Http(slow)))
    while streamed(root) < 1 << 19:
        await asyncio.sleep(0.01)
    assert (await images.fetch(Http(quick))).path.read_bytes() == disk(seed=3)
    assert not waiting.done()
    server.released.set()
    assert (await waiting).path.read_bytes() == BODY
    await images.close()


def test_a_reader_waits_for_what_comes_and_sees_holes_as_zeros(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"abc")
    arrival = Arrival()
    arrival.arrived(3)
    with ArrivingFile(path, arrival) as file:
        assert file.read(2) == b"ab"
        assert file.read(100) == b"c"
        # A hole behind the end of the file that is written.
        arrival.arrived(5)
        assert file.read(100) == b"\0\0"
        later = threading.Timer(0.01, arrival.complete)
        later.start()
        assert file.read(1) == b""
        later.join()
        arrival.abandon()
        with pytest.raises(AbandonedError):
            file.read(1)

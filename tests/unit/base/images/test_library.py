"""The library itself: files, uploads, what is kept and what goes, and what a sudden end leaves."""

import asyncio
import errno
import hashlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddock.base.images import download, sparse
from paddock.base.images.cleanup import ImageUpkeep
from paddock.base.images.library import ImageError, ImageLibrary, ImageSettings, Progress
from paddock.base.images.progress import Meter
from paddock.base.images.sources import File, Http, RegistryImage, Upload, header_line, library_name, library_url
from paddock.base.images.sparse import SparseWriter
from tests.coroutines import run_by
from tests.kit.servers import imageserver
from tests.kit.servers.imageserver import Server, running
from tests.unit.base.images.conftest import Fetch, disk

BODY = disk()


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_a_file_of_this_host(fetch: Fetch, tmp_path: Path) -> None:
    path = tmp_path / "disk.raw"
    path.write_bytes(BODY)
    path.chmod(0o600)
    first = fetch(File(path))
    assert first.path.read_bytes() == BODY
    assert path.stat().st_mode & 0o777 == 0o600
    inode = first.path.stat().st_ino
    assert fetch(File(path)).path.stat().st_ino == inode
    path.write_bytes(disk(seed=2))
    assert fetch(File(path)).digest == hashlib.sha256(disk(seed=2)).hexdigest()


def test_an_image_that_has_a_name_needs_no_network(fetch: Fetch, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "disk.raw"
    path.write_bytes(BODY)
    first = fetch(File(path))
    with pytest.raises(ImageError, match='no image called "tiny"'):
        fetch(Http(library_url("tiny")))
    ImageLibrary(root).name("tiny", first)
    assert fetch(Http(library_url("tiny"))) == first == ImageLibrary(root).named("tiny")
    assert "tiny" in ImageLibrary(root).records()[0].sources
    with pytest.raises(ImageError, match="has the digest"):
        fetch(Http(library_url("tiny"), checksum=f"sha256:{'0' * 64}"))
    ImageLibrary(root).remove(first.digest)
    assert ImageLibrary(root).named("tiny") is None


@pytest.mark.parametrize("name", ["", "../index", "a b", "-a", "A", "a" * 64])
def test_a_bad_name_of_an_image(name: str) -> None:
    with pytest.raises(ImageError, match="cannot be the name"):
        library_url(name)


@pytest.mark.parametrize("url", ["https://images.paddock.internal.example/tiny", "http://images.paddock.internal/tiny"])
def test_other_addresses_are_no_names(url: str) -> None:
    assert library_name(url) == ""


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe"])
def test_what_is_no_file(kind: str, fetch: Fetch, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ImageError) as caught:
        fetch(File(path))
    assert caught.value.fatal


def test_an_upload(fetch: Fetch, root: Path) -> None:
    image = fetch(Upload(chunks(BODY[:7], BODY[7:200_000], BODY[200_000:]), len(BODY)))
    assert image.path.read_bytes() == BODY
    assert not list((root / "work").iterdir())


async def broken() -> AsyncIterator[bytes]:
    yield BODY[:100_000]
    raise ConnectionResetError(errno.ECONNRESET, "reset")


def test_a_broken_upload_leaves_nothing(fetch: Fetch, root: Path) -> None:
    for source, code in (
        (Upload(broken()), "Storage"),
        (Upload(chunks(BODY[:100]), len(BODY)), "Truncated"),
        (Upload(chunks(BODY), checksum=f"sha256:{'0' * 64}"), "Checksum"),
        (Upload(chunks()), "NotAnImage"),
    ):
        with pytest.raises(ImageError) as caught:
            fetch(source)
        assert caught.value.code == code
    assert not list((root / "work").iterdir())
    assert not list((root / "sha256").iterdir())


def test_the_same_bytes_from_everywhere_are_one_image(fetch: Fetch, server: Server, root: Path) -> None:
    one = fetch(Http(server.put("/a", BODY)))
    two = fetch(Http(server.put("/b", BODY)))
    three = fetch(Upload(chunks(BODY)))
    assert one == two == three
    assert len(list((root / "sha256").iterdir())) == 1
    (record,) = ImageLibrary(root).records()
    assert record.sources == (f"{server.url}/a", f"{server.url}/b")


def test_what_is_not_used_goes_after_its_time(fetch: Fetch, server: Server, root: Path) -> None:
    used, idle, fresh = (fetch(Http(server.put(f"/{seed}", disk(seed=seed)))) for seed in (1, 2, 3))
    for image in (used, idle):
        os.utime(image.path.parent / "image.json", (0, 0))
    assert asyncio.run(ImageLibrary(root).collect({f"sha256:{used.digest}"}, 3600.0)) == [idle.digest]
    images = ImageLibrary(root)
    assert {image.digest for image in images} == {used.digest, fresh.digest}
    assert images.get(idle.digest) is None
    assert images.get(f"sha256:{used.digest}") == used
    # The source of what went is not taken for known.
    assert fetch(Http(f"{server.url}/2")) == idle
    assert "if-none-match" not in server.seen[-1].headers


def test_asking_again_is_a_use(fetch: Fetch, server: Server, root: Path) -> None:
    source = Http(server.put("/a", BODY))
    image = fetch(source)
    os.utime(image.path.parent / "image.json", (0, 0))
    fetch(source)
    assert asyncio.run(ImageLibrary(root).collect((), 3600.0)) == []


def test_what_dead_processes_left_is_cleared_away(root: Path, fetch: Fetch, server: Server) -> None:
    ImageLibrary(root)
    left = root / "work" / "0123456789abcdef"
    left.mkdir()
    (left / "disk.img").write_bytes(BODY)
    broken = root / "sha256" / hashlib.sha256(BODY).hexdigest()
    broken.mkdir()
    (broken / "disk.img").write_bytes(b"half")
    images = ImageLibrary(root)
    assert not left.exists()
    assert images.get(broken.name) is None
    assert fetch(Http(server.put("/a", BODY))).path.read_bytes() == BODY


def test_a_damaged_index_is_no_reason_to_fail(fetch: Fetch, server: Server, root: Path) -> None:
    source = Http(server.put("/a", BODY))
    fetch(source)
    (entry,) = (root / "index").iterdir()
    for text in ("", "[]", '{"known": 1}', json.dumps({"source": source.url, "known": {"digest": "../../x"}})):
        entry.write_text(text)
        assert fetch(source).path.read_bytes() == BODY


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "NoSpace"), (errno.EROFS, "Storage"), (errno.EIO, "Storage")])
def test_a_full_or_broken_disk(number: int, code: str, fetch: Fetch, server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Http(server.put("/a", BODY))

    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(ImageError) as caught:
            fetch(source)
    assert (caught.value.code, caught.value.fatal) == (code, False)
    if code == "NoSpace":
        assert not list((root / "partial").iterdir())
    # It works again as soon as the disk does.
    assert fetch(source).path.read_bytes() == BODY


@run_by(asyncio.run)
async def test_a_file_that_cannot_fit_is_not_begun(server: Server, root: Path) -> None:
    source = Http(server.put("/a", BODY))
    settings = ImageSettings(allow=("127.0.0.1",), proxies={}, reserve_bytes=1 << 60)
    with pytest.raises(ImageError, match="no room") as caught:
        await ImageLibrary(root, settings).fetch(source)
    assert (caught.value.code, caught.value.fatal) == ("NoSpace", False)


def test_a_disk_goes_into_a_registry_and_comes_back(fetch: Fetch, server: Server, root: Path) -> None:
    body = BODY + bytes(1 << 20) + BODY
    image = fetch(Http(server.put("/a", body)))
    with running(imageserver.Registry("bearer")) as registry:
        settings = ImageSettings(allow=("127.0.0.1",), proxies={}, insecure_registries=frozenset({registry.host}))
        target = RegistryImage(f"docker://{registry.host}/disks/mine:1", username="me", password="secret")

        async def run() -> str:
            images = ImageLibrary(root, settings)
            first = await images.push(image, target)
            count = len(registry.seen)
            assert await images.push(image, target) == first
            # What is there is not uploaded again.
            assert sum(seen.path.endswith("/uploads/") for seen in registry.seen[count:]) == 0
            assert images.remove(image.digest)
            assert (await images.fetch(target)).path.read_bytes() == body
            return first

        digest = asyncio.run(run())
        assert ("disks/mine", digest) in registry.manifests
        with pytest.raises(ImageError, match="failed to push"):
            asyncio.run(ImageLibrary(root, settings).push(image, RegistryImage(target.reference)))


def test_progress_never_falls_and_knows_its_speed() -> None:
    told: list[Progress] = []
    now = [0.0]
    meter = Meter(told.append, lambda: now[0])
    meter.begin("downloading", 1000)
    for done in (100, 400, 200, 1000):
        now[0] += 1
        meter.at(done)
    meter.begin("unpacking", None)
    meter.begin("converting", 10)
    meter.finish()
    fractions = [progress.fraction for progress in told if progress.fraction is not None]
    assert fractions == sorted(fractions)
    assert told[1].bytes_per_second == 100
    assert told[1].seconds_left == 9
    assert (Progress().percent, Progress(fraction=0.4534).percent, told[-1].percent) == ("N/A", "45.34%", "100.0%")


def test_holes_are_where_zeros_are(tmp_path: Path) -> None:
    path = tmp_path / "x"
    data = BODY[:65536] + bytes(65536 * 8) + BODY[:1000] + bytes(65536 * 4)
    with SparseWriter(path) as file:
        for at in range(0, len(data), 200_001):
            file.write(data[at : at + 200_001])
        before = path.stat().st_size
        assert before <= len(data)
    assert path.read_bytes() == data
    # Two grains have data; where a piece ends in the middle of one, nothing is written either.
    assert path.stat().st_blocks * 512 <= 3 * 65536


@pytest.mark.parametrize("line", ["X-A: b", "X-A:b", " X-A :  b "])
def test_header_lines(line: str) -> None:
    assert header_line(line) == ("X-A", "b")


@pytest.mark.parametrize("line", ["", "X-A", ": b", "X A: b", "X-A: b\r\nX-B: c", "X-A: \0"])
def test_no_header_lines(line: str) -> None:
    with pytest.raises(ImageError):
        header_line(line)


async def upkept(root: Path, state: Path, pool: Path) -> list[str]:
    """Clean up once; returns what was removed."""
    upkeep = ImageUpkeep(ImageLibrary(root), state, (pool,), 3600.0)
    upkeep.start()
    removed = await upkeep.round()
    await upkeep.stop()
    return removed


def test_upkeep_removes_what_no_record_names(fetch: Fetch, server: Server, root: Path, tmp_path: Path) -> None:
    found = [fetch(Http(server.put(f"/{seed}", disk(seed=seed)))) for seed in range(6)]
    for image in found[:5]:
        os.utime(image.path.parent / "image.json", (0, 0))
    pool = tmp_path / "pool"
    for path, image in (
        (tmp_path / "volumes" / "a" / "volume.json", found[0]),
        (tmp_path / "machines" / "b" / "machine.json", found[1]),
        (tmp_path / "snapshots" / "c.json", found[2]),
        (pool / "d" / "volume.json", found[3]),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"base": f"sha256/{image.digest}/disk.img"}))
    assert asyncio.run(upkept(root, tmp_path, pool)) == [found[4].digest]


def test_a_disk_that_fills_up_on_the_way_is_given_back(fetch: Fetch, server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = disk(3 << 20)
    source = Http(server.put("/a", body, chunked=True))
    asked = iter([1 << 40, 1 << 40])
    with monkeypatch.context() as patch:
        for each in (download, sparse):
            patch.setattr(each, "free_bytes", lambda _: next(asked, -1))
        with pytest.raises(ImageError) as caught:
            fetch(source)
    assert (caught.value.code, caught.value.fatal) == ("NoSpace", False)
    assert not list((root / "partial").iterdir())
    assert fetch(source).path.read_bytes() == body

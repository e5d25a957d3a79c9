"""Wrappers: what comes out, and what is stopped."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base.images import headers, zstd
from paddock.base.images.errors import ImageError
from paddock.base.images.library import Image
from paddock.base.images.progress import Meter
from paddock.base.images.sources import Http
from paddock.base.images.stopflag import StopFlag
from paddock.base.images.tar import Tar
from paddock.base.images.unpack import PackedFile, unpack
from tests.kit.engine.diskimages import qcow2
from tests.kit.servers.imageserver import Server, layer, special
from tests.unit.base.images.conftest import Fetch, disk

BODY = disk()
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": partial(zstd.compress, options={zstd.CompressionParameter.checksum_flag: 1}),
}


def unpacked(tmp_path: Path, data: bytes, limit: int = 1 << 40) -> bytes:
    path = tmp_path / "body"
    path.write_bytes(data)
    return unpack(path, lambda: limit, (Meter(lambda _: None), StopFlag())).read_bytes()


@pytest.mark.spec("kubermatic", 35)
@pytest.mark.parametrize("name", PACK)
def test_wrappers_by_their_content_whatever_they_are_called(name: str, fetch: Fetch, server: Server) -> None:
    image: Image = fetch(Http(server.put("/disk.qcow2", PACK[name](BODY))))
    assert image.path.read_bytes() == BODY


@pytest.mark.parametrize("name", PACK)
def test_several_streams_in_one_file(name: str, tmp_path: Path) -> None:
    pack = PACK[name]
    assert unpacked(tmp_path, pack(BODY[:1000]) + pack(BODY[1000:])) == BODY


@pytest.mark.parametrize("name", ["gz", "xz"])
def test_zeros_behind_the_last_stream(name: str, tmp_path: Path) -> None:
    assert unpacked(tmp_path, PACK[name](BODY) + bytes(1024)) == BODY


def test_twice_and_no_deeper(tmp_path: Path) -> None:
    twice = gzip.compress(lzma.compress(BODY))
    assert unpacked(tmp_path, twice) == BODY
    with pytest.raises(ImageError, match="packed more than 2 times"):
        unpacked(tmp_path, zstd.compress(twice))


@pytest.mark.parametrize("name", PACK)
def test_a_cut_or_damaged_file(name: str, tmp_path: Path) -> None:
    packed = PACK[name](BODY)
    for broken in (packed[: len(packed) // 2], packed[:100] + bytes(50) + packed[150:]):
        with pytest.raises(ImageError) as caught:
            unpacked(tmp_path, broken)
        assert (caught.value.code, caught.value.fatal) == ("Truncated", True)


@pytest.mark.parametrize("name", PACK)
def test_a_bomb_is_stopped_at_the_limit(name: str, tmp_path: Path) -> None:
    bomb = PACK[name](bytes(64 << 20))
    with pytest.raises(ImageError) as caught:
        unpacked(tmp_path, bomb, limit=16 << 20)
    assert (caught.value.code, caught.value.fatal) == ("TooLarge", True)
    assert (tmp_path / "unpacked.0").stat().st_size <= 16 << 20


def test_zeros_take_no_room(tmp_path: Path) -> None:
    unpacked(tmp_path, gzip.compress(BODY + bytes(8 << 20)))
    status = (tmp_path / "unpacked.0").stat()
    assert status.st_size == len(BODY) + (8 << 20)
    assert status.st_blocks * 512 < 1 << 20


def test_an_archive_with_one_file(tmp_path: Path) -> None:
    assert unpacked(tmp_path, layer({"d/": special(tarfile.DIRTYPE), "d/disk.raw": BODY})) == BODY


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"a": b"a", "b": b"b"}, "more than one file"),
        ({"a": special(tarfile.SYMTYPE, "/etc/shadow")}, "symlink"),
        ({"a": special(tarfile.BLKTYPE)}, "device"),
        ({"a/": special(tarfile.DIRTYPE)}, "no file"),
    ],
)
def test_other_archives(files: dict[str, bytes | tarfile.TarInfo], text: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=text):
        unpacked(tmp_path, layer(files))


def test_bzip2_is_not_known(tmp_path: Path) -> None:
    data = bz2.compress(BODY)
    assert unpacked(tmp_path, data) == data


def entries(data: bytes) -> list[tuple[str, str, int]]:
    stream = io.BytesIO(data)
    return [(entry.name, entry.kind, entry.size) for entry in Tar(stream.read)]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_all_forms_are_read_as_the_standard_library_writes_them(form: int) -> None:
    stream = io.BytesIO()
    names = ["short", "d/" + "l" * 90, "ü" * 30, "p" * 60 + "/" + "q" * 60]
    if form != tarfile.USTAR_FORMAT:
        names.append("x/" * 300 + "y")
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        for number, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size = number * 300
            tar.addfile(info, io.BytesIO(bytes(info.size)))
    assert entries(stream.getvalue()) == [(name, "file", number * 300) for number, name in enumerate(names)]


def test_a_name_of_gigabytes_is_not_read() -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    with pytest.raises(ImageError, match="too long"):
        entries(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))


@given(st.integers(0, 1 << 32), st.integers(0, 30))
def test_no_archive_leads_to_any_other_error(seed: int, changes: int) -> None:
    chance = random.Random(seed)
    data = bytearray(layer({"disk/a": b"a" * 700, "x" * 150: b"", "l": special(tarfile.SYMTYPE, "t" * 200)}, pack=bytes))
    for _ in range(changes):
        at = chance.randrange(len(data) // 512) * 512
        header = data[at : at + 512]
        header[chance.choice((0, 124, 135, 156, 257, 345, chance.randrange(512)))] = chance.randrange(256)
        # With its checksum right again, so that the change is looked at.
        header[148:156] = b"%06o\0 " % (sum(header[:148]) + 256 + sum(header[156:]))
        data[at : at + 512] = header
    try:
        for _, _, size in entries(bytes(data)):
            assert size >= 0
    except ImageError:
        pass


@pytest.mark.parametrize("name", PACK)
def test_empty_members_without_an_end_are_refused(name: str, tmp_path: Path) -> None:
    """One read would go through all of them, without a look at the flag that ends it."""
    pack = PACK[name]
    assert unpacked(tmp_path, pack(b"") * 4000 + pack(BODY)) == BODY
    with pytest.raises(ImageError, match="more than 4096 empty parts in a row"):
        unpacked(tmp_path, pack(b"") * 5000 + pack(BODY))


def test_a_frame_that_is_skipped_ends_with_the_flag(tmp_path: Path) -> None:
    """Nothing comes out of it, however long it is."""
    skipped = b"\x50\x2a\x4d\x18" + (1 << 20).to_bytes(4, "little") + bytes(1 << 20)
    (tmp_path / "body").write_bytes(skipped + PACK["zst"](BODY))
    checked = 0

    def check() -> None:
        nonlocal checked
        checked += 1

    with PackedFile(FileIO(tmp_path / "body"), "zstd", check) as packed:
        assert BODY.startswith(packed.read(1 << 20))
        assert checked >= 8


def test_the_tables_of_a_header_end_with_the_flag(tmp_path: Path) -> None:
    stop = StopFlag()
    stop.set()
    (tmp_path / "disk").write_bytes(qcow2())
    with pytest.raises(ImageError) as caught:
        headers.inspect(tmp_path / "disk", "qcow2", stop.check)
    assert caught.value.code == "Cancelled"

"""The form of VMDK that exports are shipped in, unpacked by ourselves."""

import random
import struct
import zlib
from pathlib import Path

import pytest

from paddock.base.images import headers, vmdkgrains
from paddock.base.images.errors import ImageRefused, ImageUnavailable
from paddock.base.images.progress import Meter
from paddock.base.images.stopflag import StopFlag
from tests.kit.engine.diskimages import streamed

GRAIN = 64 * 1024
DATA = random.Random(1).randbytes(GRAIN)
# Two grains and a part of a third.
SECTORS = 2 * 128 + 8


def unpacked(tmp_path: Path, image: bytes, reserve: int = 0) -> Path:
    (tmp_path / "image").write_bytes(image)
    facts = headers.inspect(tmp_path / "image", "vmdk")
    assert facts.compressed
    vmdkgrains.unpack(tmp_path / "image", tmp_path / "disk", reserve, (Meter(lambda _: None), StopFlag()))
    assert (tmp_path / "disk").stat().st_size == facts.virtual_size
    return tmp_path / "disk"


def test_grains_are_where_they_belong_and_the_rest_are_holes(tmp_path: Path) -> None:
    disk = unpacked(tmp_path, streamed({1: DATA, 2: DATA[::-1]}, sectors=SECTORS))
    assert disk.read_bytes() == bytes(GRAIN) + DATA + DATA[::-1][: 8 * 512]
    assert disk.stat().st_blocks * 512 < GRAIN + 16 * 1024


def test_a_disk_of_nothing(tmp_path: Path) -> None:
    disk = unpacked(tmp_path, streamed({0: bytes(GRAIN)}, sectors=SECTORS))
    assert disk.read_bytes() == bytes(SECTORS * 512) and disk.stat().st_blocks == 0


@pytest.mark.parametrize(
    ("image", "code"),
    [
        (streamed({0: DATA}, sectors=SECTORS, moved=128), "NotAnImage"),
        (streamed({0: DATA}, sectors=SECTORS, packed=lambda data: data), "NotAnImage"),
        (streamed({0: DATA[:-1]}, sectors=SECTORS), "NotAnImage"),
        (streamed({0: bytes(1 << 24)}, sectors=SECTORS), "NotAnImage"),
        (streamed({0: DATA}, sectors=SECTORS, packed=lambda data: zlib.compress(data)[:-9]), "NotAnImage"),
        (streamed({0: DATA}, sectors=SECTORS)[: -GRAIN // 2], "Truncated"),
        (streamed({0: DATA}, sectors=SECTORS)[:13824].ljust(13833, b"x"), "Truncated"),
    ],
    ids=["another place", "not packed", "too short", "too long", "cut off", "truncated", "truncated in its mark"],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, image: bytes, code: str) -> None:
    with pytest.raises(ImageRefused) as caught:
        unpacked(tmp_path, image)
    assert caught.value.code == code


def test_the_disk_must_have_room(tmp_path: Path) -> None:
    with pytest.raises(ImageUnavailable, match="does not fit"):
        unpacked(tmp_path, streamed({0: DATA}, sectors=SECTORS), reserve=1 << 62)


def test_grains_that_are_large_or_packed_otherwise_are_left_to_qemu(tmp_path: Path) -> None:
    image = bytearray(streamed({0: DATA}, sectors=SECTORS))
    changes: list[tuple[str, int, int]] = [("<H", 77, 2), ("<Q", 20, 4096)]
    for layout, place, value in changes:
        struct.pack_into(layout, image, place, value)
        (tmp_path / "image").write_bytes(image)
        assert not headers.inspect(tmp_path / "image", "vmdk").compressed

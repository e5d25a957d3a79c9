"""The compressed stream of a disk: whole for every decompressor, and without work for its holes."""

import asyncio
import gzip
import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import exports

MIB = 1 << 20


def streamed(file: Path) -> list[bytes]:
    async def read() -> list[bytes]:
        return [each async for each in exports.stream(DiskLayer(path=file, format="raw"), "gzip", file.parent)]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("size", "written"),
    [
        (0, ()),
        (1, ()),
        (5 * MIB, ()),
        (5 * MIB + 17, ()),
        (5 * MIB, (0,)),
        (9 * MIB + 4096, (3 * MIB - 4096, 9 * MIB)),
        (40 * MIB, (MIB, 2 * MIB, 30 * MIB + 512)),
        # what follows the hole could refer to what is before it
        (5 * MIB, (MIB - 4096, 4 * MIB)),
    ],
)
def test_a_disk_with_holes_is_one_member_of_gzip(tmp_path: Path, size: int, written: Sequence[int]) -> None:
    file, block = tmp_path / "disk.img", os.urandom(4096)
    with file.open("wb") as opened:
        opened.truncate(size)
        for place in written:
            opened.seek(place)
            opened.write(block[: size - place])
    packed = b"".join(streamed(file))
    assert gzip.decompress(packed) == file.read_bytes()
    # Not every program reads further members.
    inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    inflater.decompress(packed)
    assert inflater.eof and not inflater.unused_data


def test_holes_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "disk.img"
    with file.open("wb") as opened:
        opened.truncate(64 << 30)
        opened.seek(32 << 30)
        opened.write(b"data")
    began = time.process_time()
    pieces = streamed(file)
    # It takes minutes to compress so many zeros.
    assert time.process_time() - began < 10
    assert sum(map(len, pieces)) < 128 * MIB and all(pieces) and max(map(len, pieces)) < 2 * MIB

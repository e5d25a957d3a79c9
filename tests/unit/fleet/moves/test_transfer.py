"""The sum of a disk, while its bytes pass."""

import asyncio
import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator

import pytest

from paddock.fleet.moves.transfer import DiskSum, RawSums
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubevirt.disklinks import DiskLink
from tests.coroutines import run_by

RAW = bytes(64 << 20) + b"data"


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data


@pytest.mark.parametrize("packed", [True, False])
@run_by(asyncio.run)
async def test_a_disk_passes_in_small_pieces_whatever_comes_at_once(packed: bool) -> None:
    """A server that gets nothing for half a minute gives up, and a megabyte of gzip can stand for a gigabyte."""
    done: list[float] = []
    sums = RawSums(len(RAW), lambda size, _: done.append(size))
    link = DiskLink("https://x/disk.img.gz", "", "", packed=packed)
    pieces = [each async for each in sums.packed(once(gzip.compress(RAW, 1) if packed else RAW), link)]
    assert sums.result == DiskSum(len(RAW), hashlib.sha256(RAW).hexdigest())
    assert zlib.decompress(b"".join(pieces), 16 + zlib.MAX_WBITS) == RAW
    assert max(map(len, pieces)) <= 64 << 10 and len(done) > 3


@run_by(asyncio.run)
async def test_a_compressed_disk_that_breaks_off_names_its_server() -> None:
    link = DiskLink("https://x/disk.img.gz", "", "", packed=True, owner="the source https://here")
    with pytest.raises(Unreachable, match="the export server x of the source https://here ended the export too early"):
        async for _ in RawSums(len(RAW), lambda *_: None).packed(once(gzip.compress(RAW, 1)[:-1]), link):
            pass

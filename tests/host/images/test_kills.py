"""Paddock killed at any moment of an import: whole images or none, nothing left behind, and the next run goes on."""

import gzip
import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paddock.base.images.library import ImageLibrary
from paddock.base.images.sources import Http
from tests.host.images.conftest import Fetch
from tests.kit.servers.imageserver import Server

pytestmark = pytest.mark.long

KILLS = 12
CHILD = """
import asyncio, sys
from pathlib import Path
import paddock.base.images.importer
from paddock.base.images.library import ImageLibrary, ImageSettings
from paddock.base.images.sources import Http
async def run():
    images = ImageLibrary(Path(sys.argv[1]), ImageSettings(allow=("127.0.0.1",), proxies={}, reserve_bytes=0))
    print("ready", flush=True)
    for url in sys.argv[2:]:
        await images.fetch(Http(url))
asyncio.run(run())
print("done", flush=True)
"""


def child(root: Path, *urls: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(root), *urls], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def whole(root: Path) -> None:
    """Assert that each image is whole: its bytes are those that its digest names."""
    for directory in (root / "sha256").iterdir():
        told = json.loads((directory / "image.json").read_text())
        raw = (directory / "disk.img").read_bytes()
        assert len(raw) == told["virtualSize"]
        assert directory.name in (hashlib.sha256(raw).hexdigest(), hashlib.sha256(gzip.compress(raw, 1, mtime=0)).hexdigest())


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_kill_leaves_whole_images_or_none(seed: int, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    chance = random.Random(seed)
    plain, packed = chance.randbytes(16 << 20), chance.randbytes(8 << 20)
    urls = (server.put("/plain", plain), server.put("/packed", gzip.compress(packed, 1, mtime=0)))
    root = tmp_path / "images"
    # How long all of it takes, so that the moments of the kills are spread over it.
    start = time.monotonic()
    first = child(tmp_path / "calibration", *urls)
    assert first.communicate()[0] == b"done\n"
    longest = time.monotonic() - start
    process = child(root, *urls)
    time.sleep(chance.random() * longest)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ImageLibrary(root)
    assert not list((root / "work").iterdir())
    whole(root)
    assert fetch(Http(urls[0])).path.read_bytes() == plain
    assert fetch(Http(urls[1])).path.read_bytes() == packed
    whole(root)
    assert not list((root / "work").iterdir())
    assert not list((root / "partial").iterdir())

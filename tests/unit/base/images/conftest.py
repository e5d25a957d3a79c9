"""A library with rules that make a test quick, and servers to import from."""

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.base.backoff import Backoff
from paddock.base.images.library import Image, ImageLibrary, ImageSettings, Progress
from paddock.base.images.sources import Source
from tests.kit.servers.imageserver import Server, running

QUICK = Backoff(first=0.0, longest=0.0)
Fetch = Callable[..., Image]


def disk(size: int = 300_032, seed: int = 1) -> bytes:
    """A raw disk that is nothing else."""
    return random.Random(seed).randbytes(size)


@pytest.fixture
def server() -> Iterator[Server]:
    with running(Server()) as one:
        yield one


@pytest.fixture
def settings() -> ImageSettings:
    return ImageSettings(allow=("127.0.0.0/8",), proxies={}, attempts=4, backoff=QUICK, stall_seconds=5.0, reserve_bytes=0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "images"


@pytest.fixture
def fetch(root: Path, settings: ImageSettings) -> Fetch:
    """Fetch one source, as a program that starts, fetches and ends."""

    def one(source: Source, tell: Callable[[Progress], None] = lambda _: None, **more: int) -> Image:
        async def run() -> Image:
            images = ImageLibrary(root, settings)
            try:
                return await images.fetch(source, tell, limit=more.get("limit"))
            finally:
                await images.close()

        return asyncio.run(run())

    return one

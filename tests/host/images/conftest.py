"""Disks of every format, and what watches who opens a file."""

import asyncio
import ctypes
import os
import select
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddock.base.backoff import Backoff
from paddock.base.images.library import Image, ImageLibrary, ImageSettings, Progress
from paddock.base.images.sources import Source
from tests.kit.servers.imageserver import Server, running

Fetch = Callable[..., Image]


@pytest.fixture
def settings() -> ImageSettings:
    return ImageSettings(allow=("127.0.0.0/8",), proxies={}, attempts=3, backoff=Backoff(first=0.0, longest=0.0), reserve_bytes=0)


@pytest.fixture
def server() -> Iterator[Server]:
    with running(Server()) as one:
        yield one


@pytest.fixture
def fetch(tmp_path: Path, settings: ImageSettings) -> Fetch:
    """Fetch one source, as a program that starts, fetches and ends."""

    def one(source: Source, tell: Callable[[Progress], None] = lambda _: None, limit: int | None = None) -> Image:
        async def run() -> Image:
            images = ImageLibrary(tmp_path / "images", settings)
            try:
                return await images.fetch(source, tell, limit=limit)
            finally:
                await images.close()

        return asyncio.run(run())

    return one


@contextmanager
def opened(path: Path) -> Iterator[Callable[[], int]]:
    """Count the openings of this file."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    open_or_access = 0x20 | 0x01
    if handle < 0 or libc.inotify_add_watch(handle, os.fsencode(path), open_or_access) < 0:
        raise OSError(ctypes.get_errno(), "inotify")

    def count() -> int:
        found = 0
        while select.select([handle], [], [], 0)[0]:
            data = os.read(handle, 65536)
            at = 0
            while at < len(data):
                (length,) = struct.unpack_from("I", data, at + 12)
                found += 1
                at += 16 + length
        return found

    try:
        yield count
    finally:
        os.close(handle)

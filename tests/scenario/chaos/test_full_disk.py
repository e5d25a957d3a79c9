"""The disk is full under the real server: writes are refused with a reason, everything else goes on, and it heals by itself."""

import asyncio
import contextlib
import ctypes
import errno
import os
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coroutines import run_by
from tests.scenario.chaos.client import Client, Lines
from tests.scenario.chaos.ledger import TOKEN
from tests.scenario.chaos.life import MAPS
from tests.scenario.chaos.server import Server

_PATIENCE = 30.0


class Small:
    """A file system of a few megabytes, which only root can make."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)
        if self._libc.mount(b"none", str(folder).encode(), b"tmpfs", 0, b"size=8m") != 0:
            pytest.skip(f"cannot mount a small file system here: {os.strerror(ctypes.get_errno())}")

    def fill(self, server: Server) -> None:
        with (self.folder / "ballast").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def empty(self, server: Server) -> None:
        (self.folder / "ballast").unlink()

    def close(self) -> None:
        self._libc.umount2(str(self.folder).encode(), 2)


class Limited:
    """A limit on the size of files, as a quota would set it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: Server) -> None:
        assert server.process is not None
        largest = server.places.store.with_name("store.db-wal").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

    def empty(self, server: Server) -> None:
        assert server.process is not None
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def close(self) -> None:
        """Nothing was made."""


Disk = Small | Limited


@pytest.fixture(params=[Small, Limited])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with contextlib.closing(request.param(folder)) as made:
        yield made


async def create(client: Client, name: str) -> tuple[int, str]:
    body = {"metadata": {"name": name, "annotations": {TOKEN: name}}, "data": {"text": "x" * 20_000}}
    status, said = await client.ask("POST", MAPS, body)
    return status, said.get("message", "")


async def next_name(lines: Lines) -> str:
    async with asyncio.timeout(_PATIENCE):
        event = await lines.next()
    assert event is not None
    name: str = event["object"]["metadata"]["name"]
    return name


async def play(server: Server, disk: Disk) -> list[str]:
    await server.start()
    there = ["before"]
    async with server.client() as client, server.client() as watching, server.client() as late:
        _, listed = await client.ask("GET", MAPS)
        lines = await watching.watch(f"{MAPS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
        assert (await create(client, "before"))[0] == 201
        disk.fill(server)
        for number in range(1000):
            status, message = await create(client, f"full{number}")
            if status != 201:
                break
            there.append(f"full{number}")
        assert status == 503
        assert "cannot write" in message
        assert "store.db" in message
        # Reading goes on, and so do watches, old and new.
        status, listed = await client.ask("GET", MAPS)
        assert [item["metadata"]["name"] for item in listed["items"] if TOKEN in (item["metadata"].get("annotations") or {})] == sorted(
            there
        )
        assert [await next_name(lines) for _ in there] == there
        again = await late.watch(f"{MAPS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
        assert (await client.ask("GET", "/readyz"))[0] == 500
        assert (await client.ask("GET", "/livez"))[0] == 200
        for number in range(20):
            assert (await create(client, f"still{number}"))[0] == 503
        disk.empty(server)
        async with asyncio.timeout(_PATIENCE):
            while (await create(client, "after"))[0] != 201:
                await asyncio.sleep(0.05)
        assert await next_name(again) == await next_name(lines) == "after"
        assert (await client.ask("GET", "/readyz"))[0] == 200
    server.kill()
    return [*there, "after"]


@pytest.mark.spec("kube-api", 134)
@run_by(asyncio.run)
async def test_writes_fail_and_all_else_goes_on(disk: Disk) -> None:
    server = Server(disk.folder)
    try:
        there = await play(server, disk)
        await server.start()
        async with server.client() as client:
            _, listed = await client.ask("GET", MAPS)
        named = [item["metadata"]["name"] for item in listed["items"] if TOKEN in (item["metadata"].get("annotations") or {})]
        assert named == sorted(there)
        assert await server.stop() == 0
    finally:
        server.finish()
    with sqlite3.connect(server.places.store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@run_by(asyncio.run)
async def test_a_server_on_a_full_disk_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with contextlib.closing(Small(folder)) as disk:
        server = Server(folder)

        await server.start()
        assert await server.stop() == 0
        disk.fill(server)
        assert server.spawn().wait(_PATIENCE) == 2
        assert "store.db cannot be opened" in server.said()
        assert "free space" in server.said()
        assert "Traceback" not in server.said()
        disk.empty(server)
        await server.start()
        assert await server.stop() == 0

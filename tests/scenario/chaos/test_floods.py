"""Clients that send more than anybody reads: the real server keeps its memory, and answers a newcomer meanwhile.

The bounds are generous: without the limits, each of these floods takes several times as much.
"""

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.kit.hostile import hostilebodies
from tests.scenario.chaos.server import Server

_PATIENCE = 300.0
_MIB = 1024 * 1024
MAPS = "/api/v1/namespaces/default/configmaps"
# A connection sends no more than this, read or not.
_MOST = 4 * hostilebodies.BODY
# What the process may take for its own work, for the bodies of one user, and for what TLS keeps of a connection that is not read.
_WORK, _SHARE, _UNREAD = 16 * _MIB, 32 * _MIB, _MIB // 2


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


class Kind(msgspec.Struct, frozen=True):
    """A kind of flood."""

    pieces: hostilebodies.Pour
    has_credentials: bool
    allowed: int


FLOODS = {
    "pipelines behind watches": Kind(hostilebodies.pipeline, True, _WORK),
    "unfinished bodies of a user": Kind(hostilebodies.unfinished, True, _WORK + _SHARE),
    "unfinished bodies of anybody": Kind(hostilebodies.unfinished, False, _WORK),
    "endless bodies of a user": Kind(hostilebodies.endless, True, _WORK + _SHARE),
    "endless bodies of anybody": Kind(hostilebodies.endless, False, _WORK),
}


class _Flood:
    """Connections that send until they are refused or nobody reads them."""

    def __init__(self, server: Server, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
        self._place = urlsplit(server.address)
        self._known, self._stranger = contexts
        self.tasks: list[asyncio.Task[None]] = []
        self.sent = self.connected = 0

    def begin(self, name: str, count: int, seed: int) -> None:
        kind = FLOODS[name]
        context = self._known if kind.has_credentials else self._stranger
        for number in range(count):
            chance = random.Random(seed * 100_000 + number)
            self.tasks.append(asyncio.create_task(self._send(kind.pieces(chance, MAPS, ()), context)))

    async def _send(self, pieces: Iterator[bytes], context: ssl.SSLContext) -> None:
        with contextlib.suppress(OSError):
            try:
                _, writer = await asyncio.open_connection(self._place.hostname, self._place.port, ssl=context)
            finally:
                self.connected += 1
            try:
                sent = 0
                while sent < _MOST and (piece := next(pieces, b"")):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                    sent += len(piece)
                    self.sent += len(piece)
                # Nothing more is sent, and the connection stays.
                await asyncio.Event().wait()
            finally:
                writer.transport.abort()

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def _settled(flood: _Flood) -> AsyncIterator[None]:
    """Yield now and then, until the flood comes no further."""
    before, still = -1, 0
    while still < 4:
        await asyncio.sleep(0.25)
        still = still + 1 if flood.sent == before and flood.connected == len(flood.tasks) else 0
        before = flood.sent
        yield


class _Host:
    """A real server, and its memory."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder / "server")

    async def start(self) -> None:
        await self.server.start()
        await self.be_a_newcomer()
        self.before = self.resident

    @property
    def resident(self) -> int:
        assert self.server.process is not None
        return _resident(self.server.process.pid)

    async def be_a_newcomer(self) -> None:
        async with self.server.client() as newcomer:
            assert (await newcomer.ask("GET", MAPS))[0] == 200
            assert (await newcomer.ask("POST", MAPS, {"metadata": {"generateName": "a"}}))[0] == 201

    async def flood(self, name: str, count: int, seed: int) -> None:
        stranger = ssl.create_default_context()
        stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
        flood = _Flood(self.server, (self.server.context, stranger))
        flood.begin(name, count, seed)
        most = 0
        async with asyncio.timeout(_PATIENCE):
            async for _ in _settled(flood):
                most = max(most, self.resident)
                await self.be_a_newcomer()
        await flood.end()
        sizes = f"{count} connections sent {flood.sent // _MIB} MiB; {self.before // _MIB} -> {most // _MIB} MiB"
        print(f"{name}: {sizes}")
        assert most - self.before < FLOODS[name].allowed + count * _UNREAD, sizes


def play(folder: Path, names: Iterable[str], count: int, seed: int) -> None:
    host = _Host(folder)

    async def script() -> None:
        await host.start()
        for name in names:
            await host.flood(name, count, seed)
        assert await host.server.stop() == 0

    try:
        asyncio.run(script())
    finally:
        host.server.finish()


@pytest.mark.spec("kube-api", 156, 157)
def test_floods_of_bodies_do_not_take_the_memory(tmp_path: Path) -> None:
    # Those that may have least come first: freed memory is used again.
    play(tmp_path, sorted(FLOODS, key=lambda name: FLOODS[name].allowed), 24, 1)


@pytest.mark.soak
@pytest.mark.parametrize("name", FLOODS)
def test_a_large_flood_of_bodies_does_not_take_the_memory(name: str, tmp_path: Path) -> None:
    play(tmp_path, [name], 400, 2)

"""Many watchers of the real server, some of which read late or are cut off, while many write: all see one sequence."""

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from tests.scenario.chaos.client import Client, Lost
from tests.scenario.chaos.ledger import Ledger, Watched
from tests.scenario.chaos.life import MAPS, Writer
from tests.scenario.chaos.server import Server

_PATIENCE = 300.0


class Crowd:
    """Watchers of one collection; every tenth reads nothing until the end, every tenth is cut off again and again."""

    def __init__(self, server: Server, count: int) -> None:
        self.server = server
        self.ledger = Ledger(MAPS)
        self.count = count
        self.over = asyncio.Event()

    async def watch(self, number: int, watched: Watched) -> None:
        chance = random.Random(number)
        while True:
            with contextlib.suppress(Lost):
                async with self.server.client() as client:
                    await self._read(client, number % 10, watched, chance)

    async def _read(self, client: Client, kind: int, watched: Watched, chance: random.Random) -> None:
        lines = await client.watch(f"{MAPS}?watch=1&resourceVersion={watched.last}")
        if kind == 1:
            await self.over.wait()
        left = chance.randrange(1, 40) if kind == 2 else -1
        while left and (event := await lines.next()) is not None:
            assert event["type"] != "ERROR", event
            watched.take(event)
            left -= 1

    async def run(self, writers: int, writes: int) -> None:
        async with self.server.client() as client:
            _, listed = await client.ask("GET", MAPS)
        begin = int(listed["metadata"]["resourceVersion"])
        self.ledger.watchers = [Watched(begin, begin) for _ in range(self.count)]
        tasks = [asyncio.create_task(self.watch(number, watched)) for number, watched in enumerate(self.ledger.watchers)]
        async with asyncio.timeout(_PATIENCE):
            await asyncio.gather(*(self._write(number, writes) for number in range(writers)))
            async with self.server.client() as client:
                # The last one of all is the end for everybody.
                await self._written(client, Writer(writers, self.ledger, random.Random(0)), 1)
            self.over.set()
            end = max(self.ledger.acknowledged)
            while any(watched.last < end for watched in self.ledger.watchers):
                await asyncio.sleep(0.02)
                assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, number: int, writes: int) -> None:
        async with self.server.client() as client:
            await self._written(client, Writer(number, self.ledger, random.Random(number)), writes)

    async def _written(self, client: Client, writer: Writer, writes: int) -> None:
        while writer.answers < writes:
            await writer.step(client)


def play(folder: Path, watchers: int, writers: int, writes: int) -> None:
    server = Server(folder / "server")

    async def script() -> None:
        await server.start()
        crowd = Crowd(server, watchers)
        await crowd.run(writers, writes)
        assert len(crowd.ledger.watchers[0].seen) > writes * writers // 2
        crowd.ledger.hold_watchers()
        assert await server.stop() == 0

    try:
        asyncio.run(script())
    finally:
        server.finish()


@pytest.mark.spec("kube-api", 64, 65)
def test_many_watchers_see_one_sequence(tmp_path: Path) -> None:
    play(tmp_path, 100, 10, 12)


@pytest.mark.soak
def test_a_thousand_watchers_see_one_sequence(tmp_path: Path) -> None:
    play(tmp_path, 1000, 10, 60)

"""A clock that is set back and forth by hours: hours of a server's life, in virtual time (docs/spec/kube-api.md item 135)."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from paddock.server.housekeeping import compaction
from paddock.server.housekeeping.background import BackgroundControllers
from paddock.server.housekeeping.eventexpiry import EventExpiry
from paddock.server.security.tokens import AccountTokens, own_keyring
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.servers.apiharness import Clock, Events, Harness

DEFAULT = "/api/v1/namespaces/default"
MAPS, EVENTS = f"{DEFAULT}/configmaps", f"{DEFAULT}/events"
HOUR = 3600.0


class SkewedClock(Clock):
    """Shows virtual time and how wrong the clock is set."""

    def __init__(self) -> None:
        super().__init__()
        self.skew = 0.0

    def seconds(self) -> float:
        return self.time + self.skew + asyncio.get_running_loop().time()

    def now(self) -> str:
        self.time, kept = self.seconds(), self.time
        try:
            return super().now()
        finally:
            self.time = kept


class Server(Harness):
    """A server with its chores, and a clock that can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: SkewedClock = SkewedClock()

    async def __aenter__(self) -> "Server":
        await super().__aenter__()
        self.house = BackgroundControllers(self.parts, "authority")
        self.house.start()
        await self.house.settled()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.house.stop()
        await super().__aexit__()

    def time(self) -> float:
        return asyncio.get_running_loop().time()


def play(script: Callable[[Server], Awaitable[Any]]) -> None:
    async def inside() -> None:
        async with Server() as server:
            await script(server)

    virtualtime.run(inside())


@asynccontextmanager
async def setting_the_clock(server: Server, seed: int) -> AsyncIterator[None]:
    """Set the clock back and forth by up to five hours, every few minutes."""

    async def turn() -> None:
        chance = random.Random(seed)
        while True:
            await asyncio.sleep(chance.uniform(10, 900))
            server.clock.skew = chance.uniform(-5, 5) * HOUR

    task = asyncio.create_task(turn())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def all_of(events: Events, found: list[tuple[float, str, int]], time: Callable[[], float]) -> None:
    """Note everything a watch sends, and when."""
    while True:
        event = await events.next(10 * HOUR)
        found.append((time(), event["type"], int(event["object"]["metadata"]["resourceVersion"])))


@pytest.mark.spec("kube-api", 135)
@pytest.mark.parametrize("seed", range(3))
@played_by(play)
async def test_revisions_and_watches_do_not_care(server: Server, /, seed: int) -> None:
    found: list[tuple[float, str, int]] = []
    begin = server.store.revision
    async with (
        setting_the_clock(server, seed),
        server.watch(f"{MAPS}?watch=1&resourceVersion={begin}&allowWatchBookmarks=true&timeoutSeconds=7200") as events,
    ):
        noting = asyncio.create_task(all_of(events, found, server.time))
        revisions = []
        for number in range(12):
            made = await server.post(MAPS, {"metadata": {"name": f"m{number}"}})
            assert made.status == 201
            revisions.append(int(made.data["metadata"]["resourceVersion"]))
            changed = await server.merge(f"{MAPS}/m{number}", {"data": {"x": "1"}})
            revisions.append(int(changed.data["metadata"]["resourceVersion"]))
            await asyncio.sleep(550)
            assert not events.ended.is_set()
        await asyncio.sleep(7200 - server.time() - 1)
        assert not events.ended.is_set()
        await asyncio.sleep(2)
        assert events.ended.is_set()
        noting.cancel()
    assert revisions == sorted(set(revisions))
    assert [revision for _, kind, revision in found if kind != "BOOKMARK"] == revisions
    times = [time for time, _, _ in found]
    assert max(after - before for before, after in itertools.pairwise(times)) <= 60


@pytest.mark.spec("kube-api", 135)
@pytest.mark.parametrize("skew", [-3 * HOUR, 0.0, 3 * HOUR])
@played_by(play)
async def test_events_live_an_hour_whatever_the_clock_says(server: Server, /, skew: float) -> None:
    body = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "r",
        "type": "Normal",
    }
    assert (await server.post(EVENTS, body)).status == 201
    begun = server.time()
    await asyncio.sleep(600)
    server.clock.skew = skew
    await asyncio.sleep(1200)
    # A repetition begins the hour anew.
    assert (await server.merge(f"{EVENTS}/e", {"count": 2})).status == 200
    while (await server.get(f"{EVENTS}/e")).status == 200:
        assert server.time() - begun <= 3 * HOUR
        await asyncio.sleep(10)
    assert 1800 + HOUR <= server.time() - begun <= 1800 + HOUR + 80


@pytest.mark.parametrize(("skew", "lives"), [(-3 * HOUR, HOUR), (0.0, HOUR - 600), (600.0, HOUR - 1200), (3 * HOUR, 0.0)])
@played_by(play)
async def test_events_of_an_earlier_start_are_judged_by_their_dates(server: Server, /, skew: float, lives: float) -> None:
    body = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "r",
        "type": "Normal",
    }
    await server.post(EVENTS, body)
    await asyncio.sleep(600)
    server.clock.skew = skew
    await server.house.stop()
    begun = server.time()
    life = EventExpiry(server.parts, server.time)
    while not await life.forget_old():
        assert server.time() - begun <= lives
        await asyncio.sleep(10)
    assert lives <= server.time() - begun <= lives + 20


@pytest.mark.spec("kube-api", 135)
@patch.object(compaction, "compact", partial(compaction.compact, kept=20))
@played_by(play)
async def test_history_is_forgotten_by_count_and_not_by_date(server: Server, /) -> None:
    async with setting_the_clock(server, 7):
        for number in range(100):
            await server.post(MAPS, {"metadata": {"name": f"m{number}"}})
            await asyncio.sleep(7)
            assert server.store.revision - server.store.compacted <= 20 + 20 // 2 + 1
        assert server.store.compacted > 0
        async with server.watch(f"{MAPS}?watch=1&resourceVersion={server.store.compacted - 1}") as events:
            assert (await events.next())["object"]["code"] == 410
        async with server.watch(f"{MAPS}?watch=1&resourceVersion={server.store.revision - 10}") as events:
            assert len(await events.take(10)) == 10


@pytest.mark.spec("kube-api", 135)
@played_by(play)
async def test_tokens_degrade_and_come_back(server: Server, /, tmp_path: Path) -> None:
    tokens = AccountTokens(own_keyring(tmp_path), server.parts.view, server.clock)
    account = (await server.get(f"{DEFAULT}/serviceaccounts/default")).data
    token, _ = tokens.issue(account, [], 3600, None)
    known = []
    for skew in (0.0, 2 * HOUR, -2 * HOUR, 0.0):
        server.clock.skew = skew
        known.append(tokens.user(token) is not None)
    # One that is over by the clock is refused; nothing is remembered of it when the clock is right again.
    assert (known[0], known[1], known[3]) == (True, False, True)
    server.clock.skew = -2 * HOUR
    fresh, _ = tokens.issue(account, [], 3600, None)
    assert tokens.user(fresh) is not None


@played_by(play)
async def test_lifetimes_that_nobody_sets(server: Server, /) -> None:
    """A watch that names no time lives half an hour at least, on the loop's clock."""
    async with setting_the_clock(server, 3), server.watch(f"{MAPS}?watch=1") as events:
        await asyncio.sleep(1795)
        assert not events.ended.is_set()
        await asyncio.sleep(1900)
        assert events.ended.is_set()

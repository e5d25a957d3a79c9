"""Informers against the server in memory: the cache is the server's state after whatever happens in between."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddock.app.localtransport import door
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.retrying import Retries
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.informer import Informer, ListGate
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.server.store.memory import MemoryStore
from tests import virtualtime
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness
from tests.unit.kubernetes.runtime.conftest import World

MAPS = plain("", "v1", "configmaps", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"


class Line:
    """A transport to a server that comes and goes, over a line that can be cut."""

    def __init__(self, *, minor: str = "") -> None:
        self.inner: LocalTransport | None = None
        self.flows: list[_Cut] = []
        self.asked: list[TransportRequest] = []
        self.refuse_streams = False
        self._minor = minor

    def connect(self, api: Harness | None) -> None:
        """Lead to this server, or to none."""
        self.inner = None if api is None else LocalTransport(door(api.api, "controller"))
        self.cut()

    def cut(self) -> None:
        """Break every stream."""
        for flow in self.flows:
            flow.cut()
        self.flows.clear()

    async def send(self, ask: TransportRequest) -> TransportResponse:
        self.asked.append(ask)
        if ask.target == "/version" and self._minor:
            return TransportResponse(200, {}, orjson.dumps({"minor": self._minor}))
        return await self._there().send(ask)

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        self.asked.append(ask)
        if self.refuse_streams and "sendInitialEvents" in ask.target:
            said = {"reason": "Invalid", "code": 422, "message": "sendInitialEvents is forbidden"}
            return await _answered(TransportResponse(422, {}, orjson.dumps(said)))
        flow = _Cut(await self._there().stream(ask))
        self.flows.append(flow)
        return flow

    async def close(self) -> None:
        if self.inner is not None:
            await self.inner.close()

    def lists(self) -> int:
        """Return how often everything was listed."""
        return sum("sendInitialEvents" in ask.target or ask.target.startswith("/api/v1/configmaps?limit") for ask in self.asked)

    def _there(self) -> LocalTransport:
        if self.inner is None:
            raise Unreachable("nobody is there", sent=False)
        return self.inner


async def _answered(reply: TransportResponse) -> ResponseStream:
    async def carry(_: TransportRequest) -> TransportResponse:
        return reply

    return await LocalTransport(carry).stream(TransportRequest(method="GET", target="/"))


class _Cut:
    """A stream that can be cut from outside."""

    def __init__(self, inner: ResponseStream) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._cut = False

    async def read(self) -> bytes:
        data = await self._inner.read()
        if self._cut:
            raise Unreachable("the line was cut", sent=True)
        return data

    def cut(self) -> None:
        self._cut = True
        self._inner.close()

    def close(self) -> None:
        self._inner.close()


def one_try(line: Line) -> Client:
    return Client(line, ClientSettings(retries=Retries(attempts=1)), chance=random.Random(0))


@asynccontextmanager
async def informing(client: Client, machinery: Machinery) -> AsyncIterator[Informer]:
    informer = Informer(client, MAPS, machinery=machinery, gate=ListGate())
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def config(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def server_state(api: Harness) -> dict[str, dict[str, Any]]:
    items = (await api.get("/api/v1/configmaps")).data["items"]
    return {each["metadata"]["name"]: {"kind": "ConfigMap", "apiVersion": "v1", **each} for each in items}


def cache_state(informer: Informer) -> dict[str, dict[str, Any]]:
    return {each.meta.name: each.read(MAPS) for each in informer.cache}


@played
async def test_everybody_hears_of_every_change(world: World, /) -> None:
    await world.api.post(PATH, config("old"))
    informers = Informers(world.client, world.machinery)
    heard: list[tuple[str, str]] = []

    def handler(change: CacheChange) -> None:
        kind = "came" if change.old is None else "went" if change.new is None else "changed"
        heard.append((kind, change.seen.meta.name))

    informer = informers.of(MAPS)
    assert informers.of(msgspec.structs.replace(MAPS)) is informer
    assert informers.unready() == "waiting for configmaps (not started)"
    informer.handle(handler)
    informers.start()
    await informers.wait_synced()
    assert informers.unready() == ""
    await world.api.post(PATH, config("a"))
    await world.api.merge(f"{PATH}/a", {"data": {"x": "1"}})
    await world.api.delete(f"{PATH}/a")
    await asyncio.sleep(1)
    assert heard == [("came", "old"), ("came", "a"), ("changed", "a"), ("went", "a")]
    late: list[str] = []
    informer.handle(lambda change: late.append(change.seen.meta.name))
    assert late == ["old"]
    assert world.api.parts.following.count == 1
    await informers.stop()
    await asyncio.sleep(0.1)
    assert world.api.parts.following.count == 0


@played
async def test_a_selection_has_a_watch_of_its_own(world: World, /) -> None:
    informers = Informers(world.client, world.machinery)
    chosen = informers.of(MAPS, Selection(labels="app=x"))
    assert chosen is not informers.of(MAPS)
    informers.start()
    await informers.wait_synced()
    await world.api.post(PATH, {"metadata": {"name": "a", "labels": {"app": "x"}}})
    await world.api.post(PATH, config("b"))
    await asyncio.sleep(1)
    assert [each.meta.name for each in chosen.cache] == ["a"]
    await world.api.merge(f"{PATH}/a", {"metadata": {"labels": None}})
    await asyncio.sleep(1)
    assert len(chosen.cache) == 0
    await informers.stop()


@played
async def test_a_defect_of_one_listener_hurts_nobody_else(world: World, /) -> None:
    async with informing(world.client, world.machinery) as informer:
        heard: list[str] = []

        def broken(change: CacheChange) -> None:
            raise KeyError(change.seen.meta.name)

        informer.handle(broken)
        informer.handle(lambda change: heard.append(change.seen.meta.name))
        await informer.wait_synced()
        await world.api.post(PATH, config("a"))
        await asyncio.sleep(1)
        assert heard == ["a"]


@run_by(virtualtime.run)
async def test_a_cut_line_costs_no_list() -> None:
    line = Line()
    async with Harness() as api:
        line.connect(api)
        machinery = Machinery(chance=random.Random(3))
        async with one_try(line) as client, informing(client, machinery) as informer:
            await informer.wait_synced()
            for number in range(10):
                line.cut()
                await api.post(PATH, config(f"m{number}"))
                await asyncio.sleep(60)
            assert cache_state(informer) == await server_state(api)
            assert line.lists() == 1
            assert informer.problem == ""


@run_by(virtualtime.run)
async def test_what_went_while_nobody_remembered_is_told_after_the_list() -> None:
    line = Line()
    async with Harness() as api:
        line.connect(api)
        for name in ("stays", "goes", "changes", "is another"):
            await api.post(PATH, config(name.replace(" ", "-")))
        async with one_try(line) as client, informing(client, Machinery(chance=random.Random(3))) as informer:
            await informer.wait_synced()
            heard: list[tuple[bool, bool, str]] = []
            informer.handle(lambda change: heard.append((change.old is not None, change.new is not None, change.seen.meta.name)))
            heard.clear()
            line.cut()
            for name in ("goes", "is-another"):
                await api.delete(f"{PATH}/{name}")
            await api.post(PATH, config("is-another"))
            await api.post(PATH, config("comes"))
            await api.merge(f"{PATH}/changes", {"data": {"x": "1"}})
            await api.store.compact(api.store.revision)
            api.parts.following.trim()
            await asyncio.sleep(60)
            assert sorted(heard) == [
                (False, True, "comes"),
                (True, False, "goes"),
                (True, True, "changes"),
                (True, True, "is-another"),
            ]
            assert (line.lists(), cache_state(informer)) == (2, await server_state(api))


@run_by(virtualtime.run)
async def test_a_server_that_always_says_410_is_not_stormed() -> None:
    """The worst there is: every watch ends at once with 410. The lists of an hour can be counted."""
    line = Line()
    async with Harness() as api:
        line.connect(api)
        machinery = Machinery(chance=random.Random(3))
        async with one_try(line) as client, informing(client, machinery) as informer:
            await informer.wait_synced()
            for _ in range(3600 * 2):
                # Something is written and forgotten at once, so that every resumed watch is too late.
                line.cut()
                await api.post(PATH, config("a"))
                await api.delete(f"{PATH}/a")
                await api.store.compact(api.store.revision)
                api.parts.following.trim()
                await asyncio.sleep(0.5)
            assert 40 < line.lists() < 120
            await asyncio.sleep(120)
            assert cache_state(informer) == await server_state(api)
    assert asyncio.get_running_loop().time() < 3800


@run_by(virtualtime.run)
async def test_many_informers_list_a_few_at_a_time() -> None:
    at_once, most = 0, 0

    async def carry(ask: TransportRequest) -> TransportResponse:
        nonlocal at_once, most
        if ask.target == "/version":
            return TransportResponse(200, {}, b'{"minor": "20"}')
        if "watch=true" in ask.target:
            await asyncio.sleep(3600)
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(1)
        at_once -= 1
        return TransportResponse(200, {}, b'{"metadata": {"resourceVersion": "1"}, "items": []}')

    informers = Informers(Client(LocalTransport(carry)), Machinery(chance=random.Random(0)), lists_at_a_time=3)
    for number in range(12):
        informers.of(plain("example.com", "v1", f"kind{number}s", "Kind"))
    informers.start()
    await informers.wait_synced()
    assert most == 3
    await informers.stop()


@run_by(virtualtime.run)
async def test_old_servers_and_those_that_refuse_streaming_are_listed() -> None:
    refusing = Line()
    refusing.refuse_streams = True
    for line in (Line(minor="26+"), refusing):
        async with Harness() as api:
            line.connect(api)
            await api.post(PATH, config("a"))
            async with one_try(line) as client, informing(client, Machinery(chance=random.Random(0))) as informer:
                await informer.wait_synced()
                await api.post(PATH, config("b"))
                await asyncio.sleep(10)
                assert cache_state(informer) == await server_state(api)
                assert any("limit=500" in ask.target for ask in line.asked)


@run_by(virtualtime.run)
async def test_a_watch_that_nobody_ends_is_given_up() -> None:
    """A server that has forgotten a watch, or a network that swallows it: it is opened again after its time."""
    line = Line()
    async with Harness() as api:
        line.connect(api)
        async with one_try(line) as client, informing(client, Machinery(chance=random.Random(0))) as informer:
            await informer.wait_synced()
            (flow,) = line.flows
            never = asyncio.Event()
            flow.read = never.wait  # type: ignore[assignment,method-assign]
            await api.post(PATH, config("a"))
            await asyncio.sleep(700)
            assert [each.meta.name for each in informer.cache] == ["a"]


STEP = st.one_of(
    st.tuples(st.sampled_from(["put", "delete", "label"]), st.integers(0, 4)),
    st.tuples(st.sampled_from(["cut", "compact", "restart", "outage", "wait", "blink", "gap", "gap"]), st.integers(0, 40)),
)


class Scene:
    """A server with a store that outlives it, an informer, and everything that may happen to them."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.store = MemoryStore()
        self.api: Harness | None = None
        self.count = 0

    async def up(self) -> Harness:
        """The server comes up, on the same store."""
        self.api = Harness(store=self.store)
        await self.api.__aenter__()
        self.line.connect(self.api)
        return self.api

    async def down(self) -> None:
        """The server goes; its store stays."""
        api = self.api
        assert api is not None
        self.line.connect(None)
        api._ending.cancel()
        await asyncio.gather(api._ending, return_exceptions=True)
        await api.parts.following.close()

    async def step(self, what: str, number: int) -> None:
        api = self.api
        assert api is not None
        self.count += 1
        name = f"m{number}"
        if what == "put":
            made = await api.post(PATH, config(name, n=str(self.count)))
            if made.status == 409:
                await api.merge(f"{PATH}/{name}", {"data": {"n": str(self.count)}})
        elif what == "label":
            await api.merge(f"{PATH}/{name}", {"metadata": {"labels": {"count": str(self.count)}}})
        elif what == "delete":
            await api.delete(f"{PATH}/{name}")
        elif what == "cut":
            self.line.cut()
        elif what == "gap":
            # The line is cut, things happen, and nobody remembers them.
            self.line.cut()
            await self.step("delete", number % 5)
            await self.step("put", number % 3)
            await self.step("compact", 0)
        elif what == "compact":
            await self.store.compact(max(0, self.store.revision - number % 4))
            api.parts.following.trim()
        elif what in ("restart", "outage"):
            await self.down()
            await asyncio.sleep(number if what == "outage" else 0)
            await self.up()
        elif what == "blink":
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(number / 4)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps=st.lists(STEP, max_size=40), seed=st.integers(0, 3), streams=st.booleans())
@run_by(virtualtime.run)
async def test_the_cache_becomes_the_servers_state_whatever_happens(steps: list[tuple[str, int]], seed: int, streams: bool) -> None:
    scene = Scene(Line(minor="" if streams else "20"))
    await scene.up()
    replayed: dict[Key, str] = {}
    surprises: list[CacheChange] = []

    def handler(change: CacheChange) -> None:
        """Record the state of a listener: no change may come twice or be missed."""
        key = change.seen.key
        if change.new is None:
            del replayed[key]
        else:
            if (change.old.meta.resourceVersion if change.old is not None else None) != replayed.get(key):
                surprises.append(change)
            replayed[key] = change.new.meta.resourceVersion

    machinery = Machinery(chance=random.Random(seed))
    async with one_try(scene.line) as client, informing(client, machinery) as informer:
        informer.handle(handler)
        for what, number in steps:
            await scene.step(what, number)
        await asyncio.sleep(400)
        assert scene.api is not None
        assert cache_state(informer) == await server_state(scene.api)
        assert replayed == {each.key: each.meta.resourceVersion for each in informer.cache}
        assert (informer.problem, surprises) == ("", [])
    await scene.down()

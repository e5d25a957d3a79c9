"""The live set over a server in this process: what pages get, and what ends when they leave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.app import localtransport
from paddock.fleet.diagnosis.explain import explain
from paddock.fleet.diagnosis.scene import ObjectPlace
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock.web.live.page import LivePage
from paddock.web.live.topicnames import WebTopic
from paddock.web.live.watches import WatchedSet
from tests.coroutines import timeless
from tests.kit.servers.apiharness import GuardedHarness, Harness

MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"


def machine(name: str = "web") -> dict[str, Any]:
    template = {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}
    head = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}}
    return {**head, "spec": {"runStrategy": "Halted", "template": template}}


async def create(api: Harness, name: str = "web") -> None:
    assert (await api.post(MACHINES, machine(name))).status == 201


class Road:
    """The transport of a client. It can be cut, and counts the watches that are open."""

    def __init__(self, client: Client) -> None:
        self._inner = client._transport
        self.is_cut = False
        self.watches: list[str] = []
        self._streams: list[ResponseStream] = []

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if self.is_cut:
            raise Unreachable("cannot connect to the server", sent=False)
        return await self._inner.send(ask)

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        if self.is_cut:
            raise Unreachable("cannot connect to the server", sent=False)
        self.watches.append(ask.target.partition("?")[0])
        found = await self._inner.stream(ask)
        self._streams.append(found)
        return found

    def cut(self) -> None:
        self.is_cut = True
        for each in self._streams:
            each.close()

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def watched(api: Harness, client: Client | None = None) -> AsyncIterator[tuple[WatchedSet, Road]]:
    road = Road(client or api.client())
    live = WatchedSet(Client(road), "default", api.clock)
    try:
        yield live, road
    finally:
        await live.close()
        await road.close()


async def next_of(page: LivePage, name: str, fits: Callable[[Any], bool] = lambda data: True) -> Any:
    """The next message of a name that fits; others pass."""
    async with asyncio.timeout(600):
        while True:
            await page.wait()
            for event, data in page.take():
                decoded = msgspec.json.decode(data)
                if event == name and fits(decoded):
                    return decoded


@timeless
async def test_a_page_gets_everything_and_then_what_changes() -> None:
    async with Harness() as api, watched(api) as (live, _):
        await create(api)
        with live.listening(["machines"]) as page:
            reset = await next_of(page, "reset")
            assert [each["id"] for each in reset["rows"]] == ["vm/default/web"]
            await create(api, "db")
            change = await next_of(page, "change")
            assert ([each["id"] for each in change["set"]], change["gone"]) == (["vm/default/db"], [])
            await api.delete(f"{MACHINES}/web")
            assert [each["status"] for each in (await next_of(page, "change"))["set"]] == ["Terminating"]
            await api.merge(f"{MACHINES}/web", {"metadata": {"finalizers": None}})
            change = await next_of(page, "change")
            assert change["gone"] == ["vm/default/web"]


@timeless
async def test_the_reason_of_a_machine_is_its_cause() -> None:
    async with Harness() as api, watched(api) as (live, _):
        wanted = {**machine(), "spec": {**machine()["spec"], "runStrategy": "Always", "instancetype": {"name": "huge"}}}
        wanted["spec"]["template"] = {"spec": {"domain": {"devices": {}}}}
        assert (await api.post(MACHINES, wanted)).status == 201
        with live.listening(["machines"]) as page:
            row = (await next_of(page, "reset"))["rows"][0]
            assert (row["state"], row["reason"]) == ("waits", "")
            (row,) = (await next_of(page, "change"))["set"]
            ref = ObjectPlace("kubevirt.io", "VirtualMachine", "default", "web")
            cause = explain(await ServerReader(api.client(), api.clock).gather(ref), ref).cause
            assert cause is not None and row["reason"] == cause.cause
            assert "huge does not exist" in row["reason"]
            # What is well has none.
            await api.merge(f"{MACHINES}/web", {"spec": {"runStrategy": "Halted"}})
            await api.merge(f"{MACHINES}/web/status", {"status": {"printableStatus": "Stopped"}})
            (row,) = (await next_of(page, "change"))["set"]
            assert row["reason"] == ""


@timeless
async def test_changes_of_one_moment_are_one_message() -> None:
    async with Harness() as api, watched(api) as (live, _):
        with live.listening(["machines"]) as page:
            await next_of(page, "reset")
            for number in range(20):
                await create(api, f"m{number}")
            change = await next_of(page, "change")
            assert len(change["set"]) == 20


@timeless
async def test_pages_share_one_watch_for_each_kind() -> None:
    async with Harness() as api, watched(api) as (live, road):
        with (
            live.listening(["machines"]) as first,
            live.listening(["machines", "volumes"]) as second,
            live.listening(["machines"]) as third,
        ):
            for page in (first, second, third):
                await next_of(page, "reset", lambda data: data["topic"] == "machines")
            assert sorted(set(road.watches)) == sorted(road.watches)
            await create(api)
            for page in (first, second, third):
                assert (await next_of(page, "change"))["set"][0]["id"] == "vm/default/web"


@timeless
async def test_a_page_that_comes_later_gets_everything_at_once() -> None:
    async with Harness() as api, watched(api) as (live, road):
        await create(api)
        with live.listening(["machines"]) as first:
            await next_of(first, "reset")
            before = len(road.watches)
            with live.listening(["machines"]) as second:
                ((name, data),) = second.take()
                assert (name, len(msgspec.json.decode(data)["rows"])) == ("reset", 1)
            assert len(road.watches) == before


@timeless
async def test_watches_end_a_minute_after_the_last_page() -> None:
    async with Harness() as api, watched(api) as (live, _):
        with live.listening(["machines", "events"]) as page:
            await next_of(page, "reset")
            await asyncio.sleep(600)
            assert len(live._feeds) == 6
        await asyncio.sleep(50)
        assert len(live._feeds) == 6
        await asyncio.sleep(60)
        assert (live._feeds, live._topics) == ({}, {})


@timeless
async def test_a_server_that_goes_is_lost_and_everything_comes_anew_when_it_is_back() -> None:
    async with Harness() as api, watched(api) as (live, road):
        await create(api)
        with live.listening(["machines"]) as page:
            await next_of(page, "reset")
            road.cut()
            lost = await next_of(page, "lost")
            assert (lost["why"], lost["since"][:4]) == ("cannot connect to the server", "2027")
            with live.listening(["machines"]) as late:
                assert [name for name, _ in late.take()] == ["reset", "lost"]
            await create(api, "db")
            road.is_cut = False
            reset = await next_of(page, "reset")
            rows = {each["id"] for each in reset["rows"]}
            while rows != {"vm/default/web", "vm/default/db"}:
                rows |= {each["id"] for each in (await next_of(page, "change"))["set"]}


@timeless
async def test_handlers_read_the_same_rows() -> None:
    async with Harness() as api, watched(api) as (live, road):
        await create(api)
        assert [str(each) for each in await live.machines()] == ["vm/web"]
        before = len(road.watches)
        (row,) = await live.rows("machines")
        assert row.id == "vm/default/web"  # type: ignore[attr-defined]  # it is one of machines
        assert len(road.watches) == before


async def _bind(api: GuardedHarness, user: str, namespace: str) -> None:
    rbac = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "Role",
        "metadata": {"name": "look"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    }
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "look"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "look"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    assert (await api.post(f"{base}/roles", role, authorization="Bearer root")).status == 201
    assert (await api.post(f"{base}/rolebindings", binding, authorization="Bearer root")).status == 201


@pytest.mark.parametrize("topic", ["machines", "events", "volumes"])
@timeless
async def test_users_see_what_they_may(topic: WebTopic, tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        await api.namespace("other")
        await _bind(api, "ada", "default")
        for namespace, name in (("default", "web"), ("other", "hidden")):
            made = await api.post(MACHINES.replace("default", namespace), machine(name), authorization="Bearer root")
            assert made.status == 201
        async with watched(api, _as(api, "ada")) as (live, _):
            rows = await live.rows(topic)
            assert [each.id for each in rows] == (["vm/default/web"] if topic == "machines" else [])  # type: ignore[attr-defined]  # rows have one
            assert live.missing() == {}
        async with watched(api, _as(api, "eve")) as (live, _):
            assert await live.rows(topic) == []
            assert live.missing()
            assert all("eve" in why for why in live.missing().values())


def _as(api: Harness, user: str) -> Client:
    return Client(LocalTransport(localtransport.door(api.api, user, ("system:authenticated",))))

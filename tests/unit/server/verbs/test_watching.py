"""Watches, as docs/spec/kube-api.md section 3 says."""

import asyncio
import contextlib
import random
from typing import Any
from unittest.mock import patch

import pytest

from paddock.server.objects import watches as following
from tests.coroutines import played, timeless
from tests.kit.servers.apiharness import Events, Harness
from tests.kit.servers.slowstore import SlowStore

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if labels is not None:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def short(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def revision(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


async def shorts(events: Events, count: int) -> list[tuple[str, str]]:
    return [short(event) for event in await events.take(count)]


@pytest.mark.spec("kube-api", 54, 55)
@played
async def test_every_write_once_and_in_order(api: Harness, /) -> None:
    start = (await api.get(MAPS)).data["metadata"]["resourceVersion"]
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={start}") as events:
        made = (await api.post(MAPS, config_map("a"))).data
        changed = (await api.merge(f"{MAPS}/a", {"data": {"x": "1"}})).data
        await api.delete(f"{MAPS}/a")
        first, second, third = await events.take(3)
    assert (first["type"], first["object"]) == ("ADDED", made)
    assert (second["type"], second["object"]) == ("MODIFIED", changed)
    assert third["type"] == "DELETED"
    assert third["object"]["data"] == {"x": "1"}
    assert revision(third) == revision(second) + 1 == api.store.revision


@played
async def test_a_writer_is_answered_before_any_watcher(api: Harness, /, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    write = Events.write

    def noted(events: Events, data: bytes) -> None:
        order.append("event")
        write(events, data)

    monkeypatch.setattr(Events, "write", noted)
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={api.store.revision}") as events:
        await api.post(MAPS, config_map("a"))
        order.append("answer")
        await events.next()
    assert order == ["answer", "event"]


@pytest.mark.parametrize("place", ["configmaps", "namespaces/default/configmaps", "namespaces/default/configmaps/b"])
@played
async def test_the_old_paths_of_watches(api: Harness, /, place: str) -> None:
    for name in ("a", "b"):
        await api.post(MAPS, config_map(name))
    async with api.watch(f"/api/v1/watch/{place}") as events:
        wanted = [("ADDED", name) for name in ("a", "b") if name == "b" or not place.endswith("/b")]
        assert await shorts(events, len(wanted)) == wanted
    assert (await api.post("/api/v1/watch/namespaces/default/configmaps", config_map("c"))).status == 404


@pytest.mark.parametrize("target", [f"/api/v1/{'watch/' * 5000}pods", f"{MAPS}?{'a=1&' * 20_000}", f"/api/v1/{'namespaces/a/' * 5000}pods"])
@played
async def test_a_request_of_any_length_has_an_answer(api: Harness, /, target: str) -> None:
    assert (await api.get(target)).status in (200, 404)


@pytest.mark.spec("kube-api", 56)
@pytest.mark.parametrize("start", ["", "&resourceVersion=0"])
@played
async def test_without_a_revision_everything_comes_first(api: Harness, /, start: str) -> None:
    for name in ("b", "a"):
        await api.post(MAPS, config_map(name))
    async with api.watch(f"{MAPS}?watch=1{start}") as events:
        assert await shorts(events, 2) == [("ADDED", "a"), ("ADDED", "b")]
        await api.post(MAPS, config_map("c"))
        assert await shorts(events, 1) == [("ADDED", "c")]


@pytest.mark.spec("kube-api", 57)
@played
async def test_initial_events_are_announced(api: Harness, /) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{MAPS}?{query}") as events:
        mark = await events.next()
        assert (mark["type"], mark["object"]["kind"], mark["object"]["apiVersion"]) == ("BOOKMARK", "ConfigMap", "v1")
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    await api.post(MAPS, config_map("a"))
    async with api.watch(f"{MAPS}?{query}&resourceVersion={api.store.revision}") as events:
        first, mark = await events.take(2)
        assert short(first) == ("ADDED", "a")
        assert revision(mark) >= revision(first)


@pytest.mark.spec("kube-api", 58)
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sendInitialEvents=true", 422),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("resourceVersion=x", 400),
        ("resourceVersion=" + "9" * 5000, 400),
        ("timeoutSeconds=" + "9" * 5000, 400),
        ("timeoutSeconds=x", 400),
        ("labelSelector=a%20b", 400),
        ("fieldSelector=data.x=1", 400),
    ],
)
@played
async def test_parameters_that_mean_nothing(api: Harness, /, query: str, code: int) -> None:
    assert (await api.get(f"{MAPS}?watch=1&{query}")).status == code


@pytest.mark.spec("kube-api", 59, 60)
@played
async def test_revisions_that_are_gone_or_not_there_yet(api: Harness, /) -> None:
    first = (await api.post(MAPS, config_map("a"))).data["metadata"]["resourceVersion"]
    await api.merge(f"{MAPS}/a", {"data": {"x": "1"}})
    await api.merge(f"{MAPS}/a", {"data": {"x": "2"}})
    await api.store.compact(int(first) + 1)
    for wrong in (first, str(api.store.revision + 5)):
        async with api.watch(f"{MAPS}?watch=1&resourceVersion={wrong}") as events:
            error = await events.next()
            assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
            await asyncio.wait_for(events.ended.wait(), 5)


@pytest.mark.spec("kube-api", 61, "Label change", "metadata.name watches")
@played
async def test_objects_come_into_and_go_out_of_a_selector(api: Harness, /) -> None:
    async with api.watch(f"{MAPS}?watch=1&labelSelector=app=x") as events:
        await api.post(MAPS, config_map("a", {"app": "y"}, v="1"))
        await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"app": "x"}}})
        await api.merge(f"{MAPS}/a", {"data": {"v": "2"}})
        await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"app": "z"}}, "data": {"v": "3"}})
        await api.delete(f"{MAPS}/a")
        added, modified, deleted = await events.take(3)
        assert (added["type"], modified["type"], deleted["type"]) == ("ADDED", "MODIFIED", "DELETED")
        # The object as it was when it was last selected, at the revision of the change.
        assert deleted["object"]["data"] == {"v": "2"}
        assert deleted["object"]["metadata"]["labels"] == {"app": "x"}
        assert revision(deleted) == revision(modified) + 1
        assert await events.quiet()
    async with api.watch(f"{MAPS}?watch=1&fieldSelector=metadata.name=b") as events:
        await api.post(MAPS, config_map("c"))
        await api.post(MAPS, config_map("b"))
        assert await shorts(events, 1) == [("ADDED", "b")]
        assert await events.quiet()


@pytest.mark.spec("kube-api", 62)
@patch.object(following, "BOOKMARK_SECONDS", 0.0)
@played
async def test_bookmarks_only_for_those_who_ask(api: Harness, /) -> None:
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    async with api.watch(f"{MAPS}?watch=1&allowWatchBookmarks=true") as asked, api.watch(f"{MAPS}?watch=1") as silent:
        await asyncio.sleep(0.01)
        api.parts.following.tell_time()
        mark = await asked.next()
        assert mark == {
            "type": "BOOKMARK",
            "object": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"resourceVersion": str(api.store.revision), "creationTimestamp": None},
            },
        }
        assert await silent.quiet()


def test_bookmarks_are_due_well_within_a_minute() -> None:
    assert following.BOOKMARK_SECONDS <= 50


@pytest.mark.spec("kube-api", 63)
@played
async def test_a_watch_ends_when_its_time_is_over(api: Harness, /) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    async with api.watch(f"{MAPS}?watch=1&timeoutSeconds=1") as events, api.watch(f"{MAPS}?watch=1") as patient:
        await asyncio.wait_for(events.ended.wait(), 10)
        assert loop.time() - begin >= 0.9
        assert not patient.ended.is_set()


@pytest.mark.spec("kube-api", 64)
@played
async def test_a_hundred_watchers_see_one_sequence(api: Harness, /) -> None:
    chance = random.Random(7)

    async def write(writer: int) -> None:
        for turn in range(10):
            await api.post(MAPS, config_map(f"w{writer}-{turn}"))
            await asyncio.sleep(0)
            if chance.random() < 0.5:
                await api.merge(f"{MAPS}/w{writer}-{turn}", {"data": {"x": str(turn)}})
            if chance.random() < 0.3:
                await api.delete(f"{MAPS}/w{writer}-{turn}")

    async with contextlib.AsyncExitStack() as stack:
        start = api.store.revision
        watches = [await stack.enter_async_context(api.watch(f"{MAPS}?watch=1&resourceVersion={start}")) for _ in range(100)]
        await asyncio.gather(*(write(writer) for writer in range(10)))
        count = api.store.revision - start
        seen = [[(event["type"], short(event)[1], revision(event)) for event in await watch.take(count)] for watch in watches]
    assert all(each == seen[0] for each in seen)
    assert [at for _, _, at in seen[0]] == list(range(start + 1, start + count + 1))


@pytest.mark.spec("kube-api", 65)
@patch.object(following, "STALLED_SECONDS", 0.05)
@patch.object(following, "BACKLOG_BYTES", 100)
@played
async def test_a_watcher_that_does_not_read_is_dropped_and_loses_nothing(api: Harness, /) -> None:
    start = api.store.revision
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={start}") as events:
        stuck = asyncio.Event()
        events.backlog = 10_000
        events.drained = stuck.wait  # type: ignore[method-assign,assignment]
        for name in "abc":
            await api.post(MAPS, config_map(name))
        await asyncio.wait_for(events.ended.wait(), 5)
        last = start
        while not await events.quiet():
            last = revision(await events.next())
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={last}") as events:
        missed = api.store.revision - last
        assert [revision(event) for event in await events.take(missed)] == list(range(last + 1, api.store.revision + 1))


@pytest.mark.spec("kube-api", 69)
@played
async def test_tables_tell_their_columns_once(api: Harness, /) -> None:
    async with api.watch(f"{MAPS}?watch=1", accept=TABLE) as events:
        await api.post(MAPS, config_map("a"))
        await api.post(MAPS, config_map("b"))
        first, second = await events.take(2)
    assert first["object"]["kind"] == second["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert [each["object"]["rows"][0]["cells"][0] for each in (first, second)] == ["a", "b"]


@pytest.mark.spec("kube-api", 43)
@played
async def test_metadata_only(api: Harness, /) -> None:
    partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    async with api.watch(f"{MAPS}?watch=1", accept=partial) as events:
        await api.post(MAPS, config_map("a", x="1"))
        seen = (await events.next())["object"]
    one = (await api.get(f"{MAPS}/a", accept=partial)).data
    many = (await api.get(MAPS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")).data["items"]
    for each in (seen, one, *many):
        assert each["kind"] == "PartialObjectMetadata"
        assert set(each) == {"kind", "apiVersion", "metadata"}


@pytest.mark.spec("kube-api", 71)
@timeless
async def test_what_was_written_is_seen_at_once() -> None:
    # A commit takes longer than a read would wait for a revision.
    async with Harness(store=SlowStore(10.0)) as api:
        for turn in range(20):
            made = (await api.post(MAPS, config_map(f"m{turn}"))).data["metadata"]["resourceVersion"]
            assert (await api.get(f"{MAPS}/m{turn}")).data["metadata"]["resourceVersion"] == made
            assert (await api.get(f"{MAPS}/m{turn}?resourceVersion={made}")).status == 200
            for query in ("", f"?resourceVersion={made}&resourceVersionMatch=NotOlderThan"):
                listed = (await api.get(MAPS + query)).data
                assert f"m{turn}" in [item["metadata"]["name"] for item in listed["items"]]


@pytest.mark.spec("kube-api", 48, "future N", "504 with ResourceVersionTooLarge cause", "within 4 s")
@timeless
async def test_a_future_revision_is_waited_for_and_then_refused() -> None:
    async with Harness() as api:
        soon = asyncio.create_task(api.get(f"{MAPS}?resourceVersion={api.store.revision + 1}&resourceVersionMatch=NotOlderThan"))
        await asyncio.sleep(0.05)
        await api.post(MAPS, config_map("a"))
        assert (await soon).status == 200
        loop = asyncio.get_running_loop()
        begun = loop.time()
        never = await api.get(f"{MAPS}?resourceVersion={api.store.revision + 100}")
        assert loop.time() - begun <= 4
        assert (never.status, never.reason) == (504, "Timeout")
        assert never.data["details"]["causes"] == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        assert (never.data["details"]["retryAfterSeconds"], never.headers["retry-after"]) == (1, "1")


@played
async def test_the_end_of_the_present_is_marked_in_a_row_of_a_table(api: Harness, /) -> None:
    await api.post(MAPS, config_map("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{MAPS}?{query}", accept=TABLE) as events:
        _, marked = await events.take(2)
    (row,) = marked["object"]["rows"]
    assert (marked["type"], row["object"]["kind"]) == ("BOOKMARK", "PartialObjectMetadata")
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

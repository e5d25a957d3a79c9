"""An answered write is durable: also answers that write nothing themselves rest on committed writes only."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from paddock.server.store.contract import CommittedWrite, StoreKey, StoreUnavailable
from paddock.server.store.memory import MemoryStore
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

MAPS = "/api/v1/namespaces/default/configmaps"


class SlowStore(MemoryStore):
    """Commits when it is told to, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = ""

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        await self.gate.wait()
        if self.fails:
            raise StoreUnavailable("cannot write", why=self.fails)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


Ask = Callable[[Harness], Any]
CASES: dict[str, tuple[Ask, Ask, int]] = {
    "update without a change": (
        lambda api: api.merge(f"{MAPS}/a", {"data": {"x": "2"}}),
        lambda api: api.merge(f"{MAPS}/a", {"data": {"x": "2"}}),
        200,
    ),
    "apply without a change": (
        lambda api: api.apply(f"{MAPS}/b", config_map("b", x="1")),
        lambda api: api.apply(f"{MAPS}/b", config_map("b", x="1")),
        200,
    ),
    "create of what is being created": (lambda api: api.post(MAPS, config_map("b")), lambda api: api.post(MAPS, config_map("b")), 409),
    "delete of what is being deleted": (lambda api: api.delete(f"{MAPS}/a"), lambda api: api.delete(f"{MAPS}/a"), 404),
    "update of what is being deleted": (lambda api: api.delete(f"{MAPS}/a"), lambda api: api.merge(f"{MAPS}/a", {"data": None}), 404),
    "delete of what waits already": (lambda api: api.delete(f"{MAPS}/held"), lambda api: api.delete(f"{MAPS}/held"), 200),
}


@pytest.mark.parametrize("fails", ["", "the disk is full"])
@pytest.mark.parametrize("case", CASES)
@run_by(asyncio.run)
async def test_no_answer_rests_on_what_is_not_committed(case: str, fails: str) -> None:
    first, second, code = CASES[case]
    store = SlowStore()
    async with Harness(store=store) as api:
        await api.post(MAPS, config_map("a", x="1"))
        held = config_map("held")
        held["metadata"]["finalizers"] = ["test/held"]
        await api.post(MAPS, held)
        store.gate.clear()
        asked = [asyncio.create_task(first(api)), asyncio.create_task(second(api))]
        for _ in range(50):
            await asyncio.sleep(0)
        early = [task.done() for task in asked]
        store.fails = fails
        store.gate.set()
        assert not any(early)
        answers = await asyncio.gather(*asked)
        store.fails = ""
        assert [answer.status for answer in answers][1] == (503 if fails else code)
        if fails:
            assert answers[0].status == 503
            assert "the disk is full" in answers[1].data["message"]


@run_by(asyncio.run)
async def test_a_group_that_cannot_be_committed_was_seen_by_nobody() -> None:
    """All its writers are told, no watcher hears of it, and its revisions are given to the next group."""
    store = SlowStore()
    async with Harness(store=store) as api:
        start = store.revision
        async with api.watch(f"{MAPS}?watch=1&resourceVersion={start}") as events:
            store.gate.clear()
            store.fails = "the disk is full"
            lost = [asyncio.create_task(api.post(MAPS, config_map(f"lost{number}"))) for number in range(20)]
            for _ in range(50):
                await asyncio.sleep(0)
            store.gate.set()
            answers = await asyncio.gather(*lost)
            assert {(answer.status, answer.reason) for answer in answers} == {(503, "ServiceUnavailable")}
            assert all(answer.headers["retry-after"] == "1" for answer in answers)
            assert await events.quiet()
            assert store.revision == start
            assert (await api.get(MAPS)).data["items"] == []
            store.fails = ""
            kept = await api.post(MAPS, config_map("kept"))
            assert kept.data["metadata"]["resourceVersion"] == str(start + 1)
            assert (await events.next())["object"] == kept.data


@run_by(asyncio.run)
async def test_a_commit_that_breaks_in_an_unknown_way_is_answered_too() -> None:
    class Broken(MemoryStore):
        async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
            raise ZeroDivisionError("a defect")

    store = Broken()
    write = store.put(StoreKey("things", "", "a"), 0, lambda _: b"x")
    with pytest.raises(StoreUnavailable, match="a defect"):
        await write.committed()
    assert store.decided(StoreKey("things", "", "a")) is None


@run_by(asyncio.run)
async def test_a_follower_that_breaks_takes_nobody_with_it() -> None:
    store = MemoryStore()
    heard: list[int] = []

    def broken(changes: tuple[CommittedWrite, ...]) -> None:
        raise ZeroDivisionError("a defect")

    store.follow(broken)
    store.follow(lambda changes: heard.extend(change.revision for change in changes))
    assert await store.put(StoreKey("things", "", "a"), 0, lambda _: b"x").committed() == 1
    assert heard == [1]

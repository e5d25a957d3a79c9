"""The deletion of a collection."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.meta import failure
from paddock.server.store.contract import CommittedWrite, StoreKey
from paddock.server.store.memory import MemoryStore
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

MAPS = "/api/v1/namespaces/default/configmaps"


class CountingStore(MemoryStore):
    """Counts its commits."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        self.commits += 1
        await asyncio.sleep(0)


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


@pytest.mark.spec("kube-api", 155)
@run_by(asyncio.run)
async def test_deletions_of_a_collection_share_commits() -> None:
    store = CountingStore()
    async with Harness(store=store) as api:
        for number in range(100):
            await api.post(MAPS, config_map(f"m{number:03}", labels={"batch": "yes"}))
        await api.post(MAPS, config_map("kept"))
        before = store.commits
        answer = await api.delete(f"{MAPS}?labelSelector=batch%3Dyes")
        assert answer.status == 200
        assert [each["metadata"]["name"] for each in answer.data["items"]] == [f"m{number:03}" for number in range(100)]
        assert store.commits - before <= 10
        assert [each["metadata"]["name"] for each in (await api.get(MAPS)).data["items"]] == ["kept"]


@run_by(asyncio.run)
async def test_an_object_that_another_client_deletes_meanwhile_is_left_out() -> None:
    async with Harness(store=CountingStore()) as api:
        for number in range(40):
            await api.post(MAPS, config_map(f"m{number:02}"))
        collection = asyncio.create_task(api.delete(MAPS))
        others = [asyncio.create_task(api.delete(f"{MAPS}/m{number:02}")) for number in (3, 39)]
        assert (await collection).status == 200
        assert {(await other).status for other in others} <= {200, 404}
        assert (await api.get(MAPS)).data["items"] == []


@run_by(asyncio.run)
async def test_an_object_with_a_finalizer_waits_and_the_rest_goes() -> None:
    async with Harness(store=CountingStore()) as api:
        for number in range(20):
            await api.post(MAPS, config_map(f"m{number:02}", finalizers=["test/held"] if number == 7 else []))
        assert (await api.delete(MAPS)).status == 200
        (left,) = (await api.get(MAPS)).data["items"]
        assert left["metadata"]["name"] == "m07" and left["metadata"]["deletionTimestamp"]


class HeldStore(CountingStore):
    """Its commits wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()
        self.let.set()

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        await super()._commit(changes)
        await self.let.wait()


@pytest.mark.spec("kube-api", 155)
@run_by(asyncio.run)
async def test_all_deletions_are_decided_before_anybody_hears_of_the_first() -> None:
    """What follows from the first, such as the ends of machines, would otherwise go before the last."""
    store = HeldStore()
    async with Harness(store=store) as api:
        keys = [StoreKey("configmaps", "default", f"m{number:03}") for number in range(150)]
        for key in keys:
            await api.post(MAPS, config_map(key.name))
        store.let.clear()
        collection = asyncio.create_task(api.delete(MAPS))
        for _ in range(200):
            await asyncio.sleep(0)
        undecided = [key for key in keys if store.decided(key) is not None]
        answered = collection.done()
        store.let.set()
        assert (await collection).status == 200
        assert not answered and undecided == []


@run_by(asyncio.run)
async def test_a_refused_deletion_is_the_answer_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(store=CountingStore()) as api:
        for number in range(400):
            await api.post(MAPS, config_map(f"m{number:03}"))
        real = api.parts.writer.delete

        async def delete(resource: Any, namespace: str, name: str, options: Any) -> Any:
            if name == "m020":
                raise failure.bad_request("not this one")
            return await real(resource, namespace, name, options)

        monkeypatch.setattr(api.parts.writer, "delete", delete)
        assert (await api.delete(MAPS)).status == 400
        left = [each["metadata"]["name"] for each in (await api.get(MAPS)).data["items"]]
        assert "m020" in left and len(left) > 300

"""The objects that are deleted with their owner, and those that are not (docs/spec/kube-api.md section 5.2)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.kubernetes.meta.adoption import UNCONFIRMED
from paddock.server.housekeeping.collector import GarbageCollector
from paddock.server.objects.requests import Deleted, DeleteOptions
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import Store
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.slowstore import SlowStore

MAPS = "/api/v1/namespaces/default/configmaps"
Script = Callable[["Family"], Awaitable[None]]


class Family:
    """Objects that own each other."""

    def __init__(self, api: Harness, collector: GarbageCollector) -> None:
        self.api = api
        self.collector = collector

    async def make(self, name: str, *owners: dict[str, Any], finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
        """An object, returned as a reference to it."""
        metadata = {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}
        made = await self.api.post(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        assert made.status == 201, made.raw
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made.data["metadata"]["uid"]}

    async def delete(self, name: str, policy: str = "Background") -> None:
        assert (await self.api.delete(f"{MAPS}/{name}", {"propagationPolicy": policy})).status == 200
        await self.settle()

    async def settle(self) -> None:
        await self.collector.chores.settled()

    async def left(self) -> list[str]:
        await self.settle()
        return [item["metadata"]["name"] for item in (await self.api.get(MAPS)).data["items"]]

    async def metadata(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api.get(f"{MAPS}/{name}")).data["metadata"]
        return found


@asynccontextmanager
async def collected(store: Store | None = None) -> AsyncIterator[Family]:
    """Start a server with a garbage collector."""
    async with Harness(store=store) as api:
        collector = GarbageCollector(api.parts)
        collector.start()
        try:
            async with asyncio.timeout(100):
                yield Family(api, collector)
        finally:
            await collector.chores.stop()


def play(script: Script, store: Store | None = None) -> None:
    async def inside() -> None:
        async with collected(store) as family:
            await script(family)

    virtualtime.run(inside())


@pytest.mark.spec("kube-api", 96)
@played_by(play)
async def test_background_takes_the_whole_line(family: Family, /) -> None:
    owner = await family.make("owner")
    child = await family.make("child", owner)
    await family.make("grandchild", child)
    await family.make("stranger")
    await family.delete("owner")
    assert await family.left() == ["stranger"]


@pytest.mark.spec("kube-api", 96)
@played_by(play)
async def test_foreground_waits_for_those_that_block(family: Family, /) -> None:
    owner = await family.make("owner")
    await family.make("blocks", owner | {"blockOwnerDeletion": True}, finalizers=("example.com/hold",))
    await family.make("does-not", owner, finalizers=("example.com/hold",))
    await family.delete("owner", "Foreground")
    assert await family.left() == ["blocks", "does-not", "owner"]
    for name in ("blocks", "does-not"):
        assert "deletionTimestamp" in await family.metadata(name)
    await family.api.merge(f"{MAPS}/blocks", {"metadata": {"finalizers": None}})
    assert await family.left() == ["does-not"]


@pytest.mark.spec("kube-api", 96)
@played_by(play)
async def test_orphans_live_without_the_reference(family: Family, /) -> None:
    owner = await family.make("owner")
    await family.make("child", owner)
    await family.delete("owner", "Orphan")
    assert await family.left() == ["child"]
    assert "ownerReferences" not in await family.metadata("child")


@pytest.mark.spec("kube-api", 97)
@played_by(play)
async def test_one_of_two_owners_is_enough(family: Family, /) -> None:
    first, second = await family.make("first"), await family.make("second")
    await family.make("child", first, second)
    await family.delete("first")
    assert await family.left() == ["child", "second"]
    assert [owner["name"] for owner in (await family.metadata("child"))["ownerReferences"]] == ["second"]
    await family.delete("second")
    assert await family.left() == []


@pytest.mark.spec("kube-api", 99)
@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"uid": "00000000-0000-4000-8000-999999999999"}, ["owner"]),
        ({"name": "another"}, ["owner"]),
        ({"kind": "Gadget", "apiVersion": "gadgets.example.com/v1"}, ["child", "owner"]),
        ({}, ["child", "owner"]),
    ],
)
@played_by(play)
async def test_references_that_lead_nowhere(family: Family, /, change: dict[str, Any], left: list[str]) -> None:
    await family.make("child", await family.make("owner") | change)
    assert await family.left() == left


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
@pytest.mark.parametrize("confirmed", [True, False], ids=["confirmed", "unconfirmed"])
@played_by(play)
async def test_an_adoption_that_nobody_confirmed_ends_with_the_owner(family: Family, /, policy: str, confirmed: bool) -> None:
    owner = await family.make("owner", finalizers=("example.com/holds",))
    await family.make("child", owner | {"blockOwnerDeletion": True})
    if not confirmed:
        await family.api.merge(f"{MAPS}/child", {"metadata": {"labels": {UNCONFIRMED: owner["uid"], "app": "web"}}})
    await family.delete("owner", policy)
    await family.api.merge(f"{MAPS}/owner", {"metadata": {"finalizers": None}})
    assert await family.left() == ([] if confirmed else ["child"])
    if not confirmed:
        left = await family.metadata("child")
        assert "ownerReferences" not in left and left["labels"] == {"app": "web"}


@played_by(play)
async def test_what_somebody_lets_go_of_while_it_is_judged_stays(family: Family, /) -> None:
    await family.make("child", await family.make("owner", finalizers=("example.com/holds",)))
    writer = family.api.parts.writer
    delete = writer.delete

    async def slowly(resource: ServedResource, namespace: str, name: str, options: DeleteOptions) -> Deleted:
        # Between the verdict and the deletion.
        await family.api.merge(f"{MAPS}/child", {"metadata": {"ownerReferences": None}})
        return await delete(resource, namespace, name, options)

    await family.delete("owner")
    writer.delete = slowly  # type: ignore[method-assign]
    await family.api.merge(f"{MAPS}/owner", {"metadata": {"finalizers": None}})
    assert await family.left() == ["child"]


@pytest.mark.parametrize("left", ["unconfirmed", "other"])
@run_by(virtualtime.run)
async def test_what_changes_while_it_is_judged_is_judged_anew(left: str) -> None:
    """The change is decided before the verdict and committed after it."""
    store = SlowStore()

    async with collected(store) as family:
        owner, other = await family.make("owner"), await family.make("other")
        await family.make("child", owner, *([other] if left == "other" else []))
        if left == "unconfirmed":
            await family.api.merge(f"{MAPS}/child", {"metadata": {"labels": {UNCONFIRMED: owner["uid"]}}})
        store.seconds = 1.0
        deletion = asyncio.create_task(family.api.delete(f"{MAPS}/owner", {"propagationPolicy": "Background"}))
        await asyncio.sleep(0.5)
        # The owner is still there for whoever reads it.
        revision = (await family.metadata("child"))["resourceVersion"]
        change = {"labels": {UNCONFIRMED: None}} if left == "unconfirmed" else {"ownerReferences": [owner]}
        await family.api.merge(f"{MAPS}/child", {"metadata": {"resourceVersion": revision, **change}})
        await deletion
        await asyncio.sleep(30)
        store.seconds = 0.0
        assert await family.left() == ["other"]


@pytest.mark.spec("kube-api", 99)
@played_by(play)
async def test_a_circle_of_owners_goes(family: Family, /) -> None:
    first = await family.make("first")
    second = await family.make("second", first | {"blockOwnerDeletion": True})
    await family.api.merge(f"{MAPS}/first", {"metadata": {"ownerReferences": [second | {"blockOwnerDeletion": True}]}})
    assert await family.left() == ["first", "second"]
    await family.delete("first", "Foreground")
    assert await family.left() == []


@pytest.mark.spec("kube-api", 98)
@run_by(asyncio.run)
async def test_owners_that_went_while_nobody_looked() -> None:
    async with Harness() as api:
        idle = Family(api, GarbageCollector(api.parts))
        owner = await idle.make("owner")
        await idle.make("child", owner)
        assert (await api.delete(f"{MAPS}/owner")).status == 200
        collector = GarbageCollector(api.parts)
        collector.start()
        assert await Family(api, collector).left() == []
        await collector.chores.stop()

"""Writing a status: the difference alone, for the object that was seen, and expected in the cache."""

import asyncio
from typing import Any

import orjson
import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.client.options import Patch, WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.kinds import datasource, virtualmachine
from paddock.kubevirt.kinds.virtualmachine import VirtualMachineStatus
from tests.coroutines import played
from tests.unit.kubernetes.runtime.conftest import World

MACHINES: Target[Data] = declared(next(kind for kind in virtualmachine.KINDS if kind.kind == "VirtualMachine"), dict)
KEY = Key("default", "web")
BODY: Data = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}}},
}


class Site:
    """A machine and the cache in which it is seen."""

    def __init__(self, world: World) -> None:
        self.client = world.client
        self.informers = Informers(world.client, world.machinery)
        self.informer = self.informers.of(MACHINES)
        self.statuses = StatusWriter(world.client, MACHINES, self.informer.expectations)

    async def start(self) -> None:
        self.informers.start()
        await self.client.create(MACHINES, BODY)
        await asyncio.sleep(1)

    @property
    def seen(self) -> CachedObject:
        found = self.informer.cache.get(KEY)
        assert found is not None
        return found

    async def write(self, status: Data | VirtualMachineStatus) -> bool:
        written = await self.statuses.write(self.seen, status)
        await asyncio.sleep(1)
        assert written is None or written.raw == self.seen.raw
        return written is not None

    async def status(self) -> Any:
        return (await self.client.get(MACHINES, KEY)).get("status")


@played
async def test_a_status_is_written_whole_and_only_when_it_differs(world: World, /) -> None:
    site = Site(world)
    await site.start()
    assert await site.write({"printableStatus": "Stopped", "ready": False, "created": True})
    assert not await site.write({"printableStatus": "Stopped", "ready": False, "created": True})
    revision = site.seen.meta.resourceVersion
    assert await site.write({"printableStatus": "Running"})
    assert site.seen.meta.resourceVersion != revision
    assert await site.status() == {"printableStatus": "Running"}
    await site.informers.stop()


@played
async def test_what_moved_meanwhile_is_looked_at_again_and_what_went_is_let_go(world: World, /) -> None:
    site = Site(world)
    await site.start()
    old = site.seen
    await site.client.patch(MACHINES, KEY, merge_patch({"metadata": {"labels": {"a": "b"}, "finalizers": None}}))
    with pytest.raises(Conflict):
        await site.statuses.write(old, {"ready": True})
    await site.client.delete(MACHINES, KEY)
    assert not await site.statuses.write(old, {"ready": True})
    await site.informers.stop()


@played
async def test_a_sure_write_outlives_changes_of_others(world: World, /) -> None:
    site = Site(world)
    await site.start()
    old = site.seen
    await site.client.patch(MACHINES, KEY, merge_patch({"metadata": {"labels": {"a": "b"}, "finalizers": None}}))
    with pytest.raises(Conflict):
        await site.statuses.write_surely(old, VirtualMachineStatus(ready=True), agrees=lambda fresh: not fresh.meta.labels)
    written = await site.statuses.write_surely(old, VirtualMachineStatus(ready=True))
    assert written is not None
    assert written.meta.labels == {"a": "b"}
    assert (await site.status())["ready"] is True
    assert await site.statuses.write_surely(written, VirtualMachineStatus(ready=True)) is None
    await site.client.delete(MACHINES, KEY)
    assert await site.statuses.write_surely(old, VirtualMachineStatus(printableStatus="Running")) is None
    await site.client.create(MACHINES, BODY)
    with pytest.raises(Conflict):
        await site.statuses.write_surely(old, VirtualMachineStatus(printableStatus="Running"))
    await site.informers.stop()


@played
async def test_a_sure_write_gives_up_after_ten_conflicts(world: World, /) -> None:
    site = Site(world)
    await site.start()
    tries = 0

    def touched(fresh: CachedObject) -> bool:
        nonlocal tries
        tries += 1
        return True

    patch_raw = site.client.patch_raw

    async def late(target: Target[Any], key: Key, patch: Patch, options: WriteOptions) -> bytes:
        await patch_raw(target, key, merge_patch({"metadata": {"labels": {"try": str(tries)}}}), WriteOptions())
        return await patch_raw(target, key, patch, options)

    site.client.patch_raw = late  # type: ignore[method-assign,assignment]
    with pytest.raises(Conflict):
        await site.statuses.write_surely(site.seen, {"ready": True}, agrees=touched)
    assert tries == 9
    await site.informers.stop()


@played
async def test_a_declared_status_differs_by_what_its_class_knows(world: World, /) -> None:
    site = Site(world)
    await site.start()
    assert await site.write({"printableStatus": "Stopped"})
    # Its default is left out, and is no difference.
    assert not await site.write(VirtualMachineStatus(printableStatus="Stopped"))
    assert await site.write(VirtualMachineStatus(printableStatus="Running", ready=True))
    assert await site.write(VirtualMachineStatus(printableStatus="Running"))
    assert await site.status() == {"printableStatus": "Running"}
    await site.informers.stop()


@played
async def test_some_members_are_changed_and_the_others_stay(world: World, /) -> None:
    site = Site(world)
    await site.start()
    assert await site.write({"printableStatus": "Stopped", "created": True})
    assert await site.statuses.change(site.seen, {"restoreInProgress": "back"}) is not None
    await asyncio.sleep(1)
    assert await site.status() == {"printableStatus": "Stopped", "created": True, "restoreInProgress": "back"}
    assert await site.statuses.change(site.seen, {"restoreInProgress": "back"}) is None
    assert await site.statuses.change(site.seen, {"restoreInProgress": None}) is not None
    await asyncio.sleep(1)
    assert await site.status() == {"printableStatus": "Stopped", "created": True}
    await site.informers.stop()


@played
async def test_what_was_written_is_expected_until_the_cache_shows_it(world: World, /) -> None:
    site = Site(world)
    await site.start()
    written = await site.statuses.write(site.seen, {"printableStatus": "Stopped"})
    assert written is not None
    assert site.informer.expectations.is_stale(KEY)
    assert site.informer.expectations.latest(KEY) is written
    await asyncio.sleep(1)
    assert not site.informer.expectations.is_stale(KEY)
    await site.informers.stop()


@played
async def test_the_status_of_a_kind_without_a_subresource_is_written_with_the_object(world: World, /) -> None:
    sources: Target[Data] = declared(datasource.KINDS[0], dict)
    identity = {"apiVersion": sources.api_version, "kind": sources.kind}
    made = await world.client.create(
        sources,
        {
            **identity,
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"source": {"pvc": {"name": "web", "namespace": "default"}}},
        },
    )
    asked: list[WriteOptions] = []
    patch_raw = world.client.patch_raw

    async def patched(target: Target[Any], key: Key, patch: Patch, options: WriteOptions) -> bytes:
        asked.append(options)
        return await patch_raw(target, key, patch, options)

    world.client.patch_raw = patched  # type: ignore[method-assign, assignment]
    seen = CachedObject.of(orjson.dumps(made))
    written = await StatusWriter(world.client, sources).write(seen, {"conditions": []}, labels={"a": "b"})
    assert written is not None
    assert written.meta.labels == {"a": "b"}
    assert [each.subresource for each in asked] == [""]
    assert await StatusWriter(world.client, sources).write(written, {"conditions": []}) is None

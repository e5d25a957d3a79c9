"""Own writes that a cache does not show yet: what is stale, what is expected, and that nothing is remembered for longer than needed."""

import asyncio

import orjson

from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime.cache import Cache, CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.expectations import Expectations
from paddock.kubernetes.runtime.informers import Informers
from tests.coroutines import played
from tests.unit.kubernetes.runtime.conftest import World

KEY = Key("default", "web")
OWNER = "owner-uid"
MAPS = plain("", "v1", "configmaps", "ConfigMap")


def web(revision: int, uid: str = "one") -> CachedObject:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": uid, "resourceVersion": str(revision)}
    return CachedObject.of(orjson.dumps({"metadata": {**metadata, "ownerReferences": [{"uid": OWNER}]}}))


class Watched:
    """A cache that changes as an informer changes it."""

    def __init__(self, *cached: CachedObject) -> None:
        self.cache = Cache()
        self.at = 0
        self.expectations = Expectations(self.cache, lambda revision: self.at >= int(revision))
        for each in cached:
            self.bring(each)

    def bring(self, seen: CachedObject) -> None:
        self.at = int(seen.meta.resourceVersion)
        self.expectations.observe(CacheChange(self.cache.put(seen), seen))

    def remove(self, revision: int) -> None:
        self.at = revision
        self.expectations.observe(CacheChange(self.cache.remove(KEY), None))

    def list(self, revision: int, *listed: CachedObject) -> list[CachedObject]:
        self.at = revision
        changes = [CacheChange(self.cache.put(each), each) for each in listed]
        gone = [each.key for each in self.cache if each.key not in {each.key for each in listed}]
        changes += [CacheChange(self.cache.remove(key), None) for key in gone]
        vanished = self.expectations.settle()
        for each in changes:
            self.expectations.observe(each)
        return vanished

    @property
    def entries(self) -> int:
        return len(self.expectations._written) + len(self.expectations._leaving)


def test_a_cache_is_stale_from_the_write_to_its_echo() -> None:
    watched = Watched(web(5))
    assert not watched.expectations.is_stale(KEY)
    watched.expectations.wrote(web(7))
    assert watched.expectations.is_stale(KEY)
    watched.bring(web(6))
    assert watched.expectations.is_stale(KEY)
    watched.bring(web(7))
    assert not watched.expectations.is_stale(KEY)
    assert watched.entries == 0


def test_a_write_that_came_back_before_its_answer_is_not_expected() -> None:
    watched = Watched(web(7))
    watched.expectations.wrote(web(7))
    watched.expectations.wrote(web(6))
    assert not watched.expectations.is_stale(KEY)
    assert watched.entries == 0


def test_the_last_of_several_writes_counts_in_whatever_order_they_are_answered() -> None:
    watched = Watched(web(5))
    for revision in (6, 8, 7):
        watched.expectations.wrote(web(revision))
    watched.bring(web(7))
    assert watched.expectations.is_stale(KEY)
    watched.bring(web(8))
    assert not watched.expectations.is_stale(KEY)


def test_a_write_by_somebody_else_in_between_changes_nothing() -> None:
    watched = Watched(web(5))
    watched.expectations.wrote(web(7))
    watched.bring(web(6))
    assert watched.expectations.is_stale(KEY)
    watched.list(9, web(9))
    assert not watched.expectations.is_stale(KEY)
    assert watched.entries == 0


def test_a_deletion_ends_what_was_expected_of_an_object() -> None:
    watched = Watched(web(5))
    watched.expectations.wrote(web(7))
    watched.expectations.deleted(web(5))
    assert watched.expectations.is_leaving("one")
    watched.remove(8)
    assert not watched.expectations.is_leaving("one")
    assert not watched.expectations.is_stale(KEY)
    assert watched.entries == 0


def test_the_cache_is_stale_when_the_written_object_has_the_name_of_one_that_goes() -> None:
    watched = Watched(web(5))
    watched.expectations.wrote(web(9, "two"))
    latest = watched.expectations.latest(KEY)
    assert latest is not None
    assert latest.meta.uid == "two"
    assert [each.meta.uid for each in watched.expectations.created_for(OWNER)] == ["two"]
    watched.remove(8)
    assert watched.expectations.is_stale(KEY)
    watched.bring(web(9, "two"))
    assert not watched.expectations.is_stale(KEY)
    assert watched.entries == 0


def test_an_object_that_went_before_its_deletion_was_answered_is_not_remembered() -> None:
    watched = Watched(web(5))
    watched.bring(web(8, "two"))
    watched.expectations.deleted(web(5))
    watched.remove(9)
    watched.expectations.deleted(web(8, "two"))
    assert watched.entries == 0


def test_another_object_under_the_name_ends_the_deletion() -> None:
    watched = Watched(web(5))
    watched.expectations.deleted(web(5))
    watched.bring(web(6))
    assert watched.expectations.is_leaving("one")
    watched.list(9, web(9, "two"))
    assert not watched.expectations.is_leaving("one")
    assert watched.entries == 0


def test_what_was_created_is_the_latest_and_belongs_to_its_owner() -> None:
    watched = Watched()
    watched.expectations.wrote(web(3))
    assert watched.expectations.latest(KEY) is not None
    assert len(watched.expectations.created_for(OWNER)) == 1
    assert not watched.expectations.created_for("another")
    watched.bring(web(3))
    assert not watched.expectations.created_for(OWNER)
    assert watched.expectations.latest(KEY) is watched.cache.get(KEY)


def test_a_change_of_a_cached_object_creates_none() -> None:
    watched = Watched(web(3))
    watched.expectations.wrote(web(4))
    assert not watched.expectations.created_for(OWNER)


def test_a_list_from_before_the_write_leaves_it_expected_and_one_after_it_tells_what_came_and_went() -> None:
    watched = Watched()
    watched.expectations.wrote(web(7))
    assert watched.list(6) == []
    assert watched.expectations.is_stale(KEY)
    assert [each.meta.uid for each in watched.list(9)] == ["one"]
    assert watched.entries == 0


# --- with an informer -------------------------------------------------------------------------------------------------------


class Held:
    """An informer of a server whose watch brings nothing until it is let."""

    def __init__(self, world: World) -> None:
        self.client = world.client
        self.informers = Informers(world.client, world.machinery)
        self.informer = self.informers.of(MAPS)
        self._frames, self._free = world.client.frames, asyncio.Event()
        world.client.frames = self._held  # type: ignore[method-assign, assignment]
        self._free.set()

    async def _held(self, *arguments: object) -> object:
        async for frames in self._frames(*arguments):  # type: ignore[arg-type]
            await self._free.wait()
            yield frames

    def hold(self) -> None:
        self._free.clear()

    def free(self) -> None:
        self._free.set()


@played
async def test_a_controller_waits_for_the_echo_of_a_write_and_comes_back_with_it(world: World, /) -> None:
    held, seen = Held(world), []

    async def reconcile(key: Key) -> Outcome:
        cached = held.informer.cache.get(key)
        assert cached is not None
        seen.append(orjson.loads(cached.raw).get("data"))
        return DONE

    controller = Controller("maps", held.informer, reconcile, machinery=world.machinery)
    held.informers.start()
    await held.client.create(MAPS, {"metadata": {"name": "web", "namespace": "default"}, "data": {"a": "1"}})
    running = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    held.hold()
    written = await held.client.patch_raw(MAPS, KEY, merge_patch({"data": {"a": "2"}}))
    held.informer.expectations.wrote(CachedObject.of(written))
    controller.offer(KEY)
    await asyncio.sleep(1)
    assert seen == [{"a": "1"}]
    held.free()
    await asyncio.sleep(1)
    assert seen == [{"a": "1"}, {"a": "2"}]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await held.informers.stop()


@played
async def test_an_expired_watch_is_behind_until_its_list_and_tells_of_what_came_and_went(world: World, /) -> None:
    held, told = Held(world), []
    held.informers.start()
    await held.informer.wait_synced()
    await asyncio.sleep(1)
    held.informer.handle(lambda change: told.append((change.old is not None, change.new is not None)))
    held.hold()
    made = await held.client.create(MAPS, {"metadata": {"name": "web", "namespace": "default"}})
    held.informer.expectations.wrote(CachedObject.from_data(made))
    await held.client.delete(MAPS, KEY)
    # As after 410.
    held.informer._revision = ""
    assert not held.informer.has_reached("1")
    held.informer._replace((), str(int(made["metadata"]["resourceVersion"]) + 1))
    assert told == [(True, False)]
    assert not held.informer.expectations.is_stale(KEY)
    held.free()
    await held.informers.stop()

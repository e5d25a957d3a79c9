"""The frame of a reconciler: which part of a subclass a pass reaches, and what it finds remembered there."""

import asyncio
from typing import Any

from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer, ObjectMemories
from tests.coroutines import played
from tests.unit.kubernetes.runtime.conftest import World

MAPS = plain("", "v1", "configmaps", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"
FINALIZER = "paddock.test/map"


class MapReconciler(KindReconciler):
    """Counts how often it worked on an object, and lets one go at its second look."""

    def __init__(self, world: World, informers: Informers) -> None:
        super().__init__(informers.of(MAPS), ObjectFinalizer(world.client, FINALIZER))
        self.steps: list[str] = []
        self._client = world.client
        self._memories = ObjectMemories(lambda seen: [seen.meta.name])

    async def work(self, seen: CachedObject) -> Outcome:
        found = self._memories.of(seen)
        self.steps.append(f"work {' '.join(found)} {'held' if FINALIZER in (seen.meta.finalizers or ()) else 'free'}")
        found.append("again")
        return DONE

    async def finalize(self, seen: CachedObject) -> Outcome:
        self.steps.append(f"finalize {' '.join(self._memories.of(seen))}")
        await finalizers.take_off(self._client, MAPS, seen.meta, FINALIZER)
        return DONE

    def needs_finalizer(self, seen: CachedObject) -> bool:
        return seen.meta.name != "free"

    async def forget(self, key: Key) -> None:
        self.steps.append(f"forget {key.name}")
        self._memories.forget(key)


async def _steps(world: World, *changes: Any) -> list[str]:
    informers = Informers(world.client, world.machinery)
    reconciler = MapReconciler(world, informers)
    controller = Controller("maps", informers.of(MAPS), reconciler.reconcile, machinery=world.machinery)
    informers.start()
    task = asyncio.create_task(controller.run())
    for change in changes:
        await change()
        await asyncio.sleep(10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await informers.stop()
    return reconciler.steps


@played
async def test_the_steps_of_a_life(world: World, /) -> None:
    found = await _steps(
        world,
        lambda: world.api.post(PATH, {"metadata": {"name": "a"}}),
        lambda: world.api.merge(f"{PATH}/a", {"data": {"x": "1"}}),
        lambda: world.api.delete(f"{PATH}/a"),
        lambda: world.api.post(PATH, {"metadata": {"name": "a"}}),
    )
    life = ["work a held", "work a again held", "finalize a again again", "forget a"]
    assert found == [*life, "work a held"]


@played
async def test_one_that_needs_no_finalizer_gets_none(world: World, /) -> None:
    found = await _steps(
        world,
        lambda: world.api.post(PATH, {"metadata": {"name": "free"}}),
        lambda: world.api.delete(f"{PATH}/free"),
    )
    assert found == ["work free free", "forget free"]


def test_another_object_of_the_same_name_begins_with_nothing() -> None:
    memories = ObjectMemories(lambda seen: object(), lambda seen: (seen.meta.uid, seen.meta.generation))
    one, other, later = (
        CachedObject.of(b'{"metadata":{"name":"a","namespace":"default","uid":"%s","generation":%d}}' % each)
        for each in ((b"one", 1), (b"other", 1), (b"other", 2))
    )
    first = memories.of(one)
    assert memories.of(one) is first
    second = memories.of(other)
    assert second is not first and memories.of(later) is not second

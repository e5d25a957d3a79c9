"""Writing a status: when something differs, whole, and never over somebody else's newer one."""

import asyncio
from typing import Any

import pytest

from paddock.client.errors import Conflict
from paddock.client.options import merge_patch
from paddock.client.target import Data, Key, Target, declared
from paddock.dialects.kubevirt import virtualmachine
from paddock.runtime.cache import CachedObject
from paddock.runtime.informers import Informers
from paddock.runtime.statuses import write_status
from tests.unit.runtime.conftest import Play, World

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

    async def start(self) -> None:
        self.informers.start()
        await self.client.create(MACHINES, BODY)
        await asyncio.sleep(1)

    @property
    def seen(self) -> CachedObject:
        found = self.informer.cache.get(KEY)
        assert found is not None
        return found

    async def write(self, status: Data) -> bool:
        written = await write_status(self.client, MACHINES, self.seen, status)
        await asyncio.sleep(1)
        assert written is None or written.raw == self.seen.raw
        return written is not None

    async def status(self) -> Any:
        return (await self.client.get(MACHINES, KEY)).get("status")


def test_a_status_is_written_whole_and_only_when_it_differs(play: Play) -> None:
    async def script(world: World) -> None:
        site = Site(world)
        await site.start()
        assert await site.write({"printableStatus": "Stopped", "ready": False, "created": True})
        assert not await site.write({"printableStatus": "Stopped", "ready": False, "created": True})
        revision = site.seen.meta.resourceVersion
        assert await site.write({"printableStatus": "Running"})
        assert site.seen.meta.resourceVersion != revision
        assert await site.status() == {"printableStatus": "Running"}
        await site.informers.stop()

    play(script)


def test_what_moved_meanwhile_is_looked_at_again_and_what_went_is_let_go(play: Play) -> None:
    async def script(world: World) -> None:
        site = Site(world)
        await site.start()
        old = site.seen
        await site.client.patch(MACHINES, KEY, merge_patch({"metadata": {"labels": {"a": "b"}, "finalizers": None}}))
        with pytest.raises(Conflict):
            await write_status(site.client, MACHINES, old, {"ready": True})
        await site.client.delete(MACHINES, KEY)
        assert not await write_status(site.client, MACHINES, old, {"ready": True})
        await site.informers.stop()

    play(script)

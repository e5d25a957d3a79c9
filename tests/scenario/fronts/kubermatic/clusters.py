"""A cluster with a front: what users write is in a server of its own, and a whole host plays KubeVirt and CDI.

async with Cluster(tmp_path) as it:
    await it.write(machine())                       # what a user applies, in the front
    await it.front_get("VirtualMachine", ...)       # what he sees there
    await it.host.vm("web")                         # what the cluster got
"""

import asyncio
import random
from pathlib import Path

from paddock.dialects.kubermatic.controllers.controller import wire
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.server.housekeeping.background import BackgroundControllers
from tests.kit.engine.fakehost import Clock, FakeHost
from tests.kit.servers.apiharness import Harness
from tests.scenario.fronts.kubermatic.making import Data

MANAGER = "paddock-kubermatic"


class Cluster:
    """Both sides, and the controllers between them."""

    def __init__(self, root: Path) -> None:
        self.front = Harness()
        self.host = FakeHost(root)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Cluster":
        await self.front.__aenter__()
        await self.host.__aenter__()
        self._house = BackgroundControllers(self.front.parts, "authority")
        self._house.collector.start()
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()
        await self._house.stop()
        await self.host.__aexit__(*_)
        await self.front.__aexit__(*_)

    async def begin(self) -> None:
        """Start the controllers."""
        front, back = (
            ControllerManager(
                each.client(), component="paddock", instance="operator", machinery=Machinery(clock=Clock(), chance=random.Random(1))
            )
            for each in (self.front, self.host.api)
        )
        wire(front, back)

        async def both() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(front.run())
                group.create_task(back.run())

        self._task = asyncio.create_task(both())
        await asyncio.sleep(2)

    async def end(self) -> None:
        """Stop them, as the end of the process would."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def write(self, *documents: Data) -> None:
        """Apply in the front, as a user does."""
        for each in documents:
            namespace = each["metadata"].get("namespace", "default")
            place = self.host.place(each["kind"], each["apiVersion"], namespace, each["metadata"]["name"])
            reply = await self.front.apply(place, each)
            assert reply.status in (200, 201), reply.data

    async def change(self, kind: str, version: str, name: str, document: Data) -> None:
        """A merge patch in the front."""
        reply = await self.front.merge(self.host.place(kind, version, name=name), document)
        assert reply.status == 200, reply.data

    async def seen(self, kind: str, version: str, name: str) -> Data:
        """An object of the front; empty when it is not there."""
        reply = await self.front.get(self.host.place(kind, version, name=name))
        return dict(reply.data) if reply.status == 200 else {}

    async def condition(self, kind: str, version: str, name: str, type: str) -> tuple[str, str]:
        """Return the status and the reason of a condition of a front's object."""
        conditions = ((await self.seen(kind, version, name)).get("status") or {}).get("conditions") or ()
        return next(((each["status"], each.get("reason", "")) for each in conditions if each["type"] == type), ("", ""))

    async def resolved(self, name: str = "web", kind: str = "VirtualMachine", version: str = "kubevirt.io/v1") -> tuple[str, str]:
        """Return the condition of its sources."""
        return await self.condition(kind, version, name, "DataSourceResolved")

    async def remove(self, kind: str, version: str, name: str, options: Data | None = None) -> None:
        """Delete in the front."""
        reply = await self.front.delete(self.host.place(kind, version, name=name), options)
        assert reply.status in (200, 202), reply.data

    def revision(self) -> int:
        """Return the number of writes, on both sides."""
        return self.front.store.revision + self.host.api.store.revision

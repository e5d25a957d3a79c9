"""Front doors on a whole host without QEMU: what a thousand machines cost, from the manifest to Running, and what it costs to keep them.

The server, its controllers and an engine in memory are one process, and time is virtual: what is measured is CPU. Users' requests and the
answers that they read are part of it.
"""

import asyncio
import gc
import time
from pathlib import Path
from typing import Any

from paddock.app.server import eventloop
from paddock.base.errors import Terminal
from paddock.client.target import Key
from paddock.controllers.vitistack import machines
from paddock.controllers.vitistack.settings import VitistackSettings
from paddock.engine.host.capacity import Room
from tests import virtualtime
from tests.fakehost import FakeHost
from tools.bench.offline import Figure

MANY, FEW = 1000, 100
_MACHINES = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
_RESYNC_SECONDS = VitistackSettings().resync_seconds
_ROUNDS = 4
# All statuses and events are written by then.
_QUIET_SECONDS = 60.0
# of the clock of the bench
_PATIENCE_SECONDS = 3600
# The machines are made with this much memory for each.
_MEMORY = 1 << 29


def machine(number: int) -> dict[str, Any]:
    """A small machine."""
    spec = {"template": "small", "resources": {"memory": {"size": "128Mi"}}}
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": f"m{number}"}, "spec": spec}


class _Bench:
    def __init__(self, host: FakeHost, count: int) -> None:
        self._host = host
        self._count = count

    async def figures(self) -> list[Figure]:
        """From the manifest to Running, then at rest."""
        before, revision = time.process_time(), self._host.api.store.revision
        for number in range(self._count):
            reply = await self._host.api.post(_MACHINES, machine(number))
            assert reply.status == 201, reply.data
        await self._until_all_run()
        used, writes = time.process_time() - before, self._host.api.store.revision - revision
        await asyncio.sleep(_QUIET_SECONDS)
        return [
            Figure(f"{self._count} Machines, manifest -> Running, CPU of everything, each", used * 1000 / self._count, "ms", 5, ""),
            Figure("writes of all objects until it runs, each", writes / self._count, "", 25, ""),
            *await self._at_rest(),
        ]

    async def _until_all_run(self) -> None:
        for _ in range(_PATIENCE_SECONDS):
            await asyncio.sleep(1)
            found = (await self._host.api.get(_MACHINES)).data["items"]
            waiting = [each.get("status", {}) for each in found if each.get("status", {}).get("phase") != "Running"]
            if not waiting:
                return
        raise Terminal(f"{len(waiting)} of {self._count} machines do not run", why=str(waiting[0]))

    async def _at_rest(self) -> list[Figure]:
        revision = self._host.api.store.revision
        await asyncio.sleep(_RESYNC_SECONDS * _ROUNDS)
        writes = self._host.api.store.revision - revision
        gc.collect()
        # What a sweep does, without what else a host does in the time between two of them.
        controller = next(each for each in self._host.control.program.controllers if each.name == machines.CONTROLLER)
        start = time.process_time()
        for _ in range(_ROUNDS):
            for number in range(self._count):
                controller.offer(Key("default", f"m{number}"))
            while not controller.queue.idle:
                await asyncio.sleep(0)
        used = time.process_time() - start
        return [
            Figure("resync with nothing to do, CPU, each", used * 1000 / self._count / _ROUNDS, "ms", 0.2, ""),
            Figure("writes of a resync with nothing to do", writes, "", 0, ""),
        ]


async def _run(folder: Path, count: int) -> list[Figure]:
    async with FakeHost(folder) as host:
        host.engine.room = Room.of(_MEMORY * (count + 1))
        # As the server does when it has started.
        eventloop.spare_the_collector()
        return await _Bench(host, count).figures()


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []

    async def script() -> None:
        figures.extend(await _run(folder, FEW if quick else MANY))

    virtualtime.run(script())
    return figures

"""Front doors on a whole host without QEMU: what a thousand machines of each dialect cost until they run, and what it costs to keep them.

The server, its controllers and an engine in memory are one process, and time is virtual: what is measured is CPU. Users' requests and the
answers that they read are part of it. A thousand machines at once have more events than may wait, so most are dropped.
"""

import asyncio
import gc
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock.app.server import eventloop
from paddock.base.errors import Terminal
from paddock.dialects.vitistack.controllers import machines
from paddock.dialects.vitistack.controllers.settings import VitistackSettings
from paddock.engine.host.capacity import Room
from paddock.kubernetes.client.target import Key
from tests import virtualtime
from tests.kit.engine import fakehost
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.fronts.kubermatic import making as kubermatic
from tests.scenario.fronts.stakater import stage as stakater
from tools.bench.offline import Figure

Data = dict[str, Any]
MANY, FEW = 1000, 100
_RESYNC_SECONDS = VitistackSettings().resync_seconds
_ROUNDS = 4
# They come and go by themselves.
_NOT_COUNTED = ("events", "leases.coordination.k8s.io")
# All statuses and events are written by then.
_QUIET_SECONDS = 60.0
# of the clock of the bench
_PATIENCE_SECONDS = 3600
# The machines are made with this much memory for each.
_MEMORY = 1 << 30


@dataclass(frozen=True)
class Front:
    """One dialect's machine: how it is made, when it runs, and what that may cost."""

    name: str
    path: str
    machine: Callable[[str], Data]
    runs: Callable[[Data], bool]


def machine(name: str) -> Data:
    """A small Vitistack Machine."""
    spec = {"template": "small", "resources": {"memory": {"size": "128Mi"}}}
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": name}, "spec": spec}


def _stakater(name: str) -> Data:
    """A machine whose disk is an image of the catalogue."""
    return stakater.front(name, imageName="rhel9")


def _says(status: Data, **wanted: str) -> bool:
    return all(status.get(member) == value for member, value in wanted.items())


def _is_ready(status: Data) -> bool:
    return any((each["type"], each["status"]) == ("Ready", "True") for each in status.get("conditions") or ())


def _runs(status: Data) -> bool:
    return _says(status, printableStatus="Running")


_VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
VITISTACK = Front(
    "Vitistack Machine",
    "/apis/vitistack.io/v1alpha1/namespaces/default/machines",
    machine,
    lambda status: _says(status, phase="Running"),
)
FRONTS = (
    VITISTACK,
    Front("Stakater VirtualMachine", stakater.Stage.path(), _stakater, _is_ready),
    Front("Kubermatic VirtualMachine", _VMS, lambda name: kubermatic.machine(name, disk=f"{name}-disk"), _runs),
    Front("KubeVirt VirtualMachine without a disk", _VMS, fakehost.machine, _runs),
)


class _Bench:
    def __init__(self, host: FakeHost, front: Front, count: int) -> None:
        self._host = host
        self._front = front
        self._count = count

    async def to_running(self) -> list[Figure]:
        """From the manifest to Running."""
        written: Counter[str] = Counter()
        self._host.api.store.follow(lambda changes: written.update(each.key.collection for each in changes))
        before = time.process_time()
        for number in range(self._count):
            reply = await self._host.api.post(self._front.path, self._front.machine(f"m{number}"))
            assert reply.status == 201, reply.data
        await self._until_all_run()
        used = time.process_time() - before
        await asyncio.sleep(_QUIET_SECONDS)
        writes, name = written.total() - sum(written[each] for each in _NOT_COUNTED), self._front.name
        return [
            Figure(f"CPU of a {name}, from the manifest to Running", used * 1000 / self._count, f"{self._count} of them"),
            Figure(f"writes of all objects of a {name}, without events", writes / self._count),
        ]

    async def _until_all_run(self) -> None:
        for _ in range(_PATIENCE_SECONDS):
            await asyncio.sleep(1)
            found = (await self._host.api.get(self._front.path)).data["items"]
            waiting = [each.get("status", {}) for each in found if not self._front.runs(each.get("status", {}))]
            if not waiting:
                return
        raise Terminal(f"{len(waiting)} of {self._count} machines do not run", why=str(waiting[0]))

    async def at_rest(self) -> list[Figure]:
        """Sweeps over machines with which nothing happens."""
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
            Figure("resync with nothing to do, CPU of each", used * 1000 / self._count / _ROUNDS),
            Figure("writes of a resync with nothing to do", writes),
        ]


async def _run(folder: Path, front: Front, count: int) -> list[Figure]:
    async with FakeHost(folder) as host:
        host.engine.room = Room.of(_MEMORY * (count + 1))
        await stakater.Stage(host).open()
        host.engine.images.offer(kubermatic.URL)
        await host.make(kubermatic.source())
        await asyncio.sleep(_QUIET_SECONDS)
        # As the server does when it has started.
        eventloop.spare_the_collector()
        bench = _Bench(host, front, count)
        figures = await bench.to_running()
        return [*figures, *await bench.at_rest()] if front is VITISTACK else figures


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []
    for front in FRONTS:

        async def script(front: Front = front) -> None:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                figures.extend(await _run(Path(place), front, FEW if quick else MANY))

        virtualtime.run(script())
    return figures

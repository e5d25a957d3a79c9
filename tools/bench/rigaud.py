"""A thousand of VirtRigaud's machines on one provider: what they cost from the manifest to Running, and at rest.

The server, the controllers and the fake driver are one process, and time is virtual: what is measured is CPU. The driver's own share is
measured step by step and left out; the requests of the user who makes the machines are counted in.
"""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Awaitable, Generator
from typing import Any

from paddock.app.server import eventloop
from paddock.base.jsondata import Data
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import SecondsRange, TaskMode
from tests import virtualtime
from tests.unit.kubevirt.controllers.rigaudharness import GROUP, NAMES, Rigaud, machine, rigaud
from tools.bench.offline import Figure

MANY, FEW = 1000, 100
_INTERVALS = 10
_INTERVAL_SECONDS = 120.0
_SETTLING_SECONDS = 300.0
_CHECKS = ("Validate", "GetCapabilities", "GetFeatures")
_MACHINE_PARTS = ("/virtualmachines", "/events")


class _Measured:
    """Runs a call and measures the CPU of its own steps."""

    def __init__(self, call: Awaitable[Any], meter: "MeteredDriver") -> None:
        self._call = call
        self._meter = meter

    def __await__(self) -> Generator[Any, None, Any]:
        steps = self._call.__await__()
        while True:
            before = time.process_time()
            try:
                pending = next(steps)
            except StopIteration as done:
                return done.value
            finally:
                self._meter.seconds += time.process_time() - before
            yield pending


class MeteredDriver:
    """The fake driver, and the CPU that it took."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.driver, name)
        if name not in NAMES:
            return call

        async def measured(request: Any) -> Any:
            return await _Measured(call(request), self)

        return measured


class _RigaudBench:
    """One run."""

    def __init__(self, life: Rigaud, count: int) -> None:
        self._life = life
        self._count = count
        self._writes: Counter[str] = Counter()
        self._driver = MeteredDriver(life.driver.driver)
        life.driver.driver = self._driver  # type: ignore[assignment]
        self._send = life.wire.send
        life.wire.send = self._counted  # type: ignore[method-assign]

    async def _counted(self, ask: TransportRequest) -> TransportResponse:
        reply = await self._send(ask)
        if ask.method != "GET" and reply.status < 300:
            self._writes[next((part for part in _MACHINE_PARTS if part in ask.target), "others")] += 1
        return reply

    def _calls(self) -> int:
        return sum(name not in _CHECKS for name, _ in self._life.driver.calls)

    async def to_running(self) -> tuple[float, float, float]:
        """CPU in milliseconds, calls and writes of each machine."""
        await asyncio.sleep(_SETTLING_SECONDS)
        self._reset()
        before = time.process_time()
        for number in range(self._count):
            await self._life.make(machine(f"web-{number}"))
        await asyncio.sleep(60)
        used = time.process_time() - before - self._driver.seconds
        found = (await self._life.api.get(f"{GROUP}/virtualmachines")).data["items"]
        assert all(_runs(each) for each in found), "not all machines run"
        writes = sum(self._writes[each] for each in _MACHINE_PARTS)
        return used * 1000 / self._count, self._calls() / self._count, writes / self._count

    async def at_rest(self) -> list[Figure]:
        """Calls, writes and CPU of machines with which nothing happens."""
        await asyncio.sleep(_SETTLING_SECONDS)
        self._reset()
        gc.collect()
        before = time.process_time()
        await asyncio.sleep(_INTERVALS * _INTERVAL_SECONDS)
        used = time.process_time() - before - self._driver.seconds
        looks = self._count * _INTERVALS
        machines = sum(self._writes[each] for each in _MACHINE_PARTS)
        checks = sum(name == "Validate" for name, _ in self._life.driver.calls)
        return [
            Figure("at rest: calls of each in a poll interval of two minutes", self._calls() / looks),
            Figure("at rest: writes of machines", machines),
            Figure("at rest: writes of the Provider (lastHealthCheck), for each check", self._writes["others"] / checks),
            Figure("at rest: CPU of a poll", used * 1000 / looks),
        ]

    def _reset(self) -> None:
        self._life.driver.calls.clear()
        self._writes.clear()
        self._driver.seconds = 0.0


def _runs(seen: Data) -> bool:
    status = seen.get("status") or {}
    return status.get("phase") == "Running" and bool(status.get("ips"))


async def _run(count: int, tasks: TaskMode) -> list[Figure]:
    async with rigaud(tasks=tasks, task_seconds=SecondsRange()) as life:
        # As the server does when it has started.
        eventloop.spare_the_collector()
        bench = _RigaudBench(life, count)
        cpu, calls, writes = await bench.to_running()
        if tasks == "async":
            return [
                Figure("a provider that answers with tasks: calls until it runs, each", calls),
                Figure("a provider that answers with tasks: writes until it runs, each", writes),
            ]
        return [
            Figure("CPU of one machine, from the manifest to Running", cpu, f"{count} machines, without the driver's"),
            Figure("calls of the provider until it runs, each", calls),
            Figure("writes until it runs, with two events, each", writes),
            *await bench.at_rest(),
        ]


def measure(*, quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []
    modes: tuple[TaskMode, ...] = ("sync", "async")
    for tasks in modes:

        async def script(tasks: TaskMode = tasks) -> None:
            figures.extend(await _run(FEW if quick else MANY, tasks))

        virtualtime.run(script())
    return figures

"""The loads, each run on one server, and what they measured. CPU is that of the server's processes, never the client's."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import uvloop

from tools.bench import objects
from tools.bench.client import LoadFailed, Outcome, Target, Watchers, Writer, call, connect, drive, fetch, watching
from tools.bench.programs import Server

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# What the objects are created on, and which part of them: the rest of the figures stands on all of them.
CREATES = {1: 0.1, 16: 0.6, 64: 0.3}
Measures = dict[str, float]


@dataclass(frozen=True)
class Size:
    """The size of the loads."""

    objects: int = 10_000
    gets: int = 4_000
    lists: int = 5
    watchers: int = 1_000
    events: int = 60
    burst: int = 200
    applies: int = 300
    starts: int = 3
    growth: tuple[int, int] = (1_000, 100_000)
    growth_sample: int = 500

    @staticmethod
    def quick() -> "Size":
        """Minutes instead of a quarter of an hour."""
        return Size(2_000, 2_000, 3, 200, 30, 100, 100, 1, (1_000, 10_000), 200)


class Loads:
    """Runs the loads on a server and keeps the figures."""

    def __init__(self, server: Server, size: Size, say: Callable[[str], None]) -> None:
        self._server = server
        self._size = size
        self._say = say
        self.measures: Measures = {}

    # --- measuring ------------------------------------------------------------------------------------------------------

    def _keep(self, name: str, value: float) -> None:
        self.measures[name] = value
        self._say(f"{self._server.name}: {name} {value:.3f}")

    def _drive(self, connections: int, requests: Iterator[bytes], wanted: bytes) -> tuple[Outcome, float]:
        """A load and the CPU milliseconds of each of its requests."""
        before = self._server.cpu()
        outcome = _run(drive(self._server.target, connections, requests)).check(wanted)
        return outcome, (self._server.cpu() - before) * 1000 / outcome.count

    # --- the loads ------------------------------------------------------------------------------------------------------

    def creates(self) -> None:
        """All objects, on 1, 16 and 64 connections."""
        begin = 0
        for connections, part in CREATES.items():
            end = begin + int(self._size.objects * part)
            outcome, cpu = self._drive(connections, _creations(self._server.target, begin, end), b"201")
            self._keep(f"create.{connections}.rate", outcome.count / outcome.seconds)
            self._keep(f"create.{connections}.cpu", cpu)
            self._keep(f"create.{connections}.p99", outcome.quantile(0.99) * 1000)
            begin = end

    def gets(self) -> None:
        """Objects by name."""
        target, numbers = self._server.target, random.Random(0)
        names = (numbers.randrange(self._size.objects) for _ in range(self._size.gets))
        outcome, cpu = self._drive(16, (target.request("GET", _path(number)) for number in names), b"200")
        self._keep("get.rate", outcome.count / outcome.seconds)
        self._keep("get.cpu", cpu)

    def lists(self) -> None:
        """All objects: as they are, as a table, and one of a hundred by its label."""
        self._list("list", objects.COLLECTION, self._size.lists)
        self._list("table", objects.COLLECTION, self._size.lists, accept=TABLE)
        self._list("label", f"{objects.COLLECTION}?labelSelector=group%3Dg7", self._size.lists * 10)

    def _list(self, name: str, path: str, runs: int, *, accept: str = "") -> None:
        request = self._server.target.request("GET", path, accept=accept)
        with connect(self._server.target) as connection:
            fetch(connection, request)
            before = self._server.cpu()
            taken = [fetch(connection, request) for _ in range(runs)]
        self._keep(f"{name}.cpu", (self._server.cpu() - before) * 1000 / runs)
        self._keep(f"{name}.wall", min(seconds for seconds, _ in taken) * 1000)
        self._keep(f"{name}.bytes", taken[0][1])

    def watches(self) -> None:
        """One change at a time to many watchers, then a burst of changes."""
        writes = _changes(self._server.target)
        # Ticks of /proc are coarse: what a write costs by itself is taken from more of them.
        _, alone = self._drive(1, _take(writes, self._size.events * 4), b"200")
        _, together = self._drive(16, _take(writes, self._size.burst * 4), b"200")
        self._keep("patch.cpu", together)
        _run(self._watched(writes, alone, together))

    async def _watched(self, writes: Iterator[bytes], alone: float, together: float) -> None:
        """`alone` and `together`: CPU milliseconds of a write that nobody watches."""
        size, server = self._size, self._server
        path = f"{objects.COLLECTION}?watch=1&resourceVersion={_revision(server.target)}"
        async with watching(server.target, path, size.watchers) as all_:
            with Writer(server.target) as writer:
                before, latencies = server.cpu(), []
                for _ in range(size.events):
                    wanted = all_.events + size.watchers
                    latencies.append(await writer.write(next(writes)))
                    await all_.reach(wanted)
            used = server.cpu() - before - size.events * alone / 1000
            self._keep("watch.cpu", used * 1e6 / (size.events * size.watchers))
            self._keep("watch.writer", max(latencies) * 1000)
            self._keep("watch.writer.median", sorted(latencies)[len(latencies) // 2] * 1000)
            await self._burst(all_, writes, together)

    async def _burst(self, all_: Watchers, writes: Iterator[bytes], together: float) -> None:
        size, server = self._size, self._server
        seen, before = all_.events, server.cpu()
        await drive(server.target, 16, _take(writes, size.burst))
        await _quiet(all_, seen + size.burst * size.watchers)
        used = server.cpu() - before - size.burst * together / 1000
        self._keep("burst.cpu", used * 1e6 / (all_.events - seen))
        self._keep("burst.arrived", (all_.events - seen) / (size.burst * size.watchers))

    def idle_watches(self) -> None:
        """Memory of a watch that has no events."""
        _run(self._idle_watches())

    async def _idle_watches(self) -> None:
        server = self._server
        path = f"{objects.COLLECTION}?watch=1&resourceVersion={_revision(server.target)}"
        before = sum(server.resident().values())
        async with watching(server.target, path, self._size.watchers):
            grown = sum(server.resident().values()) - before
        self._keep("watch.memory", grown / self._size.watchers / 1e3)

    def updates(self) -> None:
        """Whole objects as they are stored, each with one changed annotation."""
        target = self._server.target
        requests = [_replacement(target, number) for number in range(self._size.applies)]
        _, cpu = self._drive(16, iter(requests), b"200")
        self._keep("update.cpu", cpu)

    def applies(self) -> None:
        """Server-side apply: of what is there already, and of one changed field."""
        target, count = self._server.target, self._size.applies
        self._drive(16, (_apply(target, number, 10) for number in range(count)), b"201")
        for name, seconds in (("same", 10), ("changed", 20)):
            _, cpu = self._drive(1, (_apply(target, number, seconds) for number in range(count)), b"200")
            self._keep(f"apply.{name}.cpu", cpu)

    def resident(self, name: str) -> None:
        """Memory."""
        sizes = self._server.resident()
        self._keep(f"resident.{name}", sum(sizes.values()) / 1e6)

    def restart(self, name: str) -> None:
        """Seconds until ready, with what is stored."""
        times = []
        for _ in range(self._size.starts):
            self._server.stop()
            times.append(self._server.start())
        self._keep(f"start.{name}", min(times))

    def fill(self, count: int) -> None:
        """Store so many objects."""
        self._drive(64, _creations(self._server.target, 0, count, "many"), b"201")

    def more(self, begin: int, count: int) -> float:
        """CPU milliseconds of each of some more creates."""
        _, cpu = self._drive(16, _creations(self._server.target, begin, begin + count, "more"), b"201")
        return cpu


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a load on the loop that costs the client least."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _path(number: int, prefix: str = "vm") -> str:
    return f"{objects.COLLECTION}/{prefix}-{number:06d}"


def _creations(target: Target, begin: int, end: int, prefix: str = "vm") -> Iterator[bytes]:
    return (target.request("POST", objects.COLLECTION, objects.body(number, prefix)) for number in range(begin, end))


def _changes(target: Target) -> Iterator[bytes]:
    """Merge patches that each change one field of some object."""
    number = 0
    while True:
        number += 1
        body = b'{"metadata":{"annotations":{"example.com/ticket":"OPS-%d"}}}' % number
        yield target.request("PATCH", _path(number % 100), body, media="application/merge-patch+json")


def _replacement(target: Target, number: int) -> bytes:
    status, answer = call(target, "GET", _path(number))
    if status != 200:
        raise LoadFailed(f"cannot read {_path(number)}: {answer[:300]!r}")
    machine = json.loads(answer)
    machine["metadata"]["annotations"]["example.com/ticket"] = "OPS-1"
    return target.request("PUT", _path(number), json.dumps(machine).encode())


def _apply(target: Target, number: int, seconds: int) -> bytes:
    machine = objects.machine(number, "applied")
    machine["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = seconds
    path = f"{_path(number, 'applied')}?fieldManager=bench"
    return target.request("PATCH", path, json.dumps(machine).encode(), media="application/apply-patch+yaml")


def _take(requests: Iterator[bytes], count: int) -> Iterator[bytes]:
    return (next(requests) for _ in range(count))


def _revision(target: Target) -> str:
    status, answer = call(target, "GET", f"{objects.COLLECTION}?limit=1")
    if status != 200:
        raise LoadFailed(f"cannot list: {answer[:300]!r}")
    return answer.split(b'"resourceVersion":"', 1)[1].split(b'"', 1)[0].decode()


async def _quiet(all_: Watchers, wanted: int) -> None:
    """Wait until everything has come, or nothing more comes: a server may cut off watchers that it finds slow."""
    seen = -1
    while all_.events < wanted and all_.events != seen:
        seen = all_.events
        try:
            await all_.reach(wanted, 4.0)
        except TimeoutError:
            continue

"""A flood: clients of one ServiceAccount that ask again as soon as they have an answer, whatever Retry-After says.

Beside it an administrator connects anew for each request, as kubectl does, and one connection is kept by a user of its own. The flood
runs in a process that gives way to all others; it shares the machine with the server all the same.
"""

import asyncio
import json
import multiprocessing
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import uvloop

from tools.bench.client import LoadFailed, Target, call, connect, fetch
from tools.bench.offline import Figure
from tools.bench.programs import Paddock, permit

_AT_ONCE = 200
_NICE = 5
_PATH = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True)
class Sample:
    """The measurements of one flood."""

    connected: int
    # seconds of a request on a new connection of the administrator, and on one that was kept by somebody else
    fresh: list[float]
    kept: list[float]
    statuses: Counter[str]
    seconds: float
    cpu: float


class _Client(asyncio.Protocol):
    """Asks again at once."""

    def __init__(self, request: bytes, statuses: Counter[str]) -> None:
        self._request = request
        self._statuses = statuses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 "):
            self._statuses[data[9:12].decode()] += 1
            self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._statuses["closed"] += 1


async def _flood(target: Target, count: int, orders: Connection) -> None:
    loop, context, statuses = asyncio.get_running_loop(), target.tls(), Counter[str]()
    request, connected = target.request("GET", _PATH), 0

    async def one() -> None:
        nonlocal connected
        try:
            await loop.create_connection(
                lambda: _Client(request, statuses), target.host, target.port, ssl=context, ssl_handshake_timeout=120
            )
        except OSError:
            statuses["unreachable"] += 1
            return
        connected += 1

    waiting = set()
    for _ in range(count):
        waiting.add(asyncio.create_task(one()))
        if len(waiting) >= _AT_ONCE:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    _, late = await asyncio.wait(waiting, timeout=60) if waiting else (None, set())
    for task in late:
        task.cancel()
    statuses.clear()
    orders.send(connected)
    await loop.run_in_executor(None, orders.recv)
    orders.send(dict(statuses))


def _run(target: Target, count: int, orders: Connection) -> None:
    os.nice(_NICE)
    uvloop.run(_flood(target, count, orders))


@contextmanager
def flooding(target: Target, count: int) -> Iterator[tuple[int, Connection]]:
    """A flood that has begun; the number of its connections, and where to ask for its end."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(target, count, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(300):
            raise LoadFailed("the flood did not get connected")
        yield ours.recv(), ours
    finally:
        process.terminate()
        process.join()


def _account(server: Paddock) -> Target:
    """A ServiceAccount that may read."""
    admin = server.admin
    call(admin, "POST", "/api/v1/namespaces/default/serviceaccounts", json.dumps({"metadata": {"name": "flood"}}).encode())
    binding = {
        "metadata": {"name": "flood"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "flood", "namespace": "default"}],
    }
    call(admin, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json.dumps(binding).encode())
    status, answer = call(admin, "POST", "/api/v1/namespaces/default/serviceaccounts/flood/token", b'{"spec":{}}')
    if status != 201:
        raise LoadFailed(f"no token: {answer!r}")
    return Target(admin.host, admin.port, json.loads(answer)["status"]["token"])


def sample(server: Paddock, count: int, probes: int = 20) -> Sample:
    """Probes beside a flood of so many clients."""
    request = server.target.request("GET", _PATH)
    kept, fresh = connect(server.target), list[float]()
    # A connection that has asked something may idle.
    fetch(kept, request)
    with kept, flooding(_account(server), count) as (connected, orders):
        beside, cpu, began = list[float](), server.cpu(), time.monotonic()
        for _ in range(probes):
            start = time.monotonic()
            status, _ = call(server.admin, "GET", "/api/v1/namespaces/default")
            if status != 200:
                raise LoadFailed(f"the administrator got {status}")
            fresh.append(time.monotonic() - start)
            beside.append(fetch(kept, request)[0])
            time.sleep(0.1)
        seconds, spent = time.monotonic() - began, server.cpu() - cpu
        orders.send("end")
        statuses = Counter(orders.recv() if orders.poll(60) else {})
    return Sample(connected, fresh, beside, statuses, seconds, spent)


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """Measure a new connection beside floods of several sizes."""
    (folder / "flood").mkdir()
    server = Paddock(folder / "flood", inflight=())
    found = []
    try:
        server.start()
        permit(server.admin, "flood")
        for count in (100,) if quick else (100, 1000, 2000):
            seen = sample(server, count)
            said = ", ".join(f"{number / seen.seconds:.0f}/s {status}" for status, number in sorted(seen.statuses.items()))
            cpu = f"CPU {seen.cpu / seen.seconds:.0%}"
            beside = f"kept connection: median {statistics.median(seen.kept):.2f} s, worst {max(seen.kept):.2f} s; {cpu}; {said}"
            found.append(
                Figure(f"fresh client beside {count:,} busy ones, worst", max(seen.fresh), f"{seen.connected} connected; {beside}")
            )
            found.append(Figure(f"fresh client beside {count:,} busy ones, median", statistics.median(seen.fresh)))
    finally:
        server.close()
    return found

"""Servers that only store machines: Paddock, and kube-apiserver with etcd."""

import itertools
import json
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import uvloop

from tools.bench import comparison, objects
from tools.bench.client import LoadFailed, Target, call, connect, drive, fetch, read
from tools.bench.maxima.stages import Limit, Stage, first_break
from tools.bench.programs import Paddock, Reference, Server, permit

Say = Callable[[str], None]
_AT_ONCE = 16
_CHANGES = 200
LIMITS = {
    "create": Limit("ms of CPU", 100.0),
    "list of all": Limit("s", 10.0, 0.8),
    "list by a label of 1 %": Limit("s", 5.0),
    "first page of 500": Limit("s", 1.0),
    "get, p99": Limit("ms", 100.0),
    "change until a watcher has it, p99": Limit("ms", 1_000.0, 50.0),
    "memory": Limit("MB", 8_000.0, 1_200.0),
    "start": Limit("s", 30.0, 5.0),
}


def grow(server: Server, sizes: Sequence[int], say: Say) -> list[Stage]:
    """Grow a server that has started, size by size, until something breaks."""
    stages: list[Stage] = []
    for before, size in itertools.pairwise((0, *sizes)):
        stages.append(_stage(server, before, size))
        say(f"{server.name}: {size:,} machines are stored")
        if first_break(stages, LIMITS) is not None:
            break
    return stages


def prepared(server: Paddock | Reference) -> None:
    """Start a server, give the user of the loads its rights, and make the namespace and the kind."""
    server.start()
    permit(server.admin, objects.NAMESPACE)
    if isinstance(server, Reference):
        comparison.install(server)


def _stage(server: Server, before: int, size: int) -> Stage:
    stage, target = Stage(size), server.target
    try:
        cpu = server.cpu()
        created = (target.request("POST", objects.COLLECTION, objects.body(number)) for number in range(before, size))
        uvloop.run(drive(target, _AT_ONCE, created)).check(b"201")
        stage.figures["create"] = (server.cpu() - cpu) * 1000 / (size - before)
        with closing(connect(target)) as one:
            stage.figures |= dict(_reads(target, one, size))
        changes = sorted(_changes(target, size))
        stage.figures["change until a watcher has it, p99"] = changes[int(len(changes) * 0.99) - 1] * 1000
        stage.figures["memory"] = sum(server.resident().values()) / 1e6
        server.stop()
        stage.figures["start"] = server.start()
    except (LoadFailed, OSError, TimeoutError) as error:
        stage.failed[_next_trial(stage)] = str(error)[:200]
    return stage


def _next_trial(stage: Stage) -> str:
    """The trial that a stage was at when it failed."""
    return next((trial for trial in LIMITS if trial not in stage.figures), "start")


def _reads(target: Target, one: ssl.SSLSocket, size: int) -> Iterator[tuple[str, float]]:
    seconds, _ = fetch(one, target.request("GET", objects.COLLECTION))
    yield "list of all", seconds
    seconds, _ = fetch(one, target.request("GET", f"{objects.COLLECTION}?labelSelector=group%3Dg7"))
    yield "list by a label of 1 %", seconds
    seconds, _ = fetch(one, target.request("GET", f"{objects.COLLECTION}?limit=500"))
    yield "first page of 500", seconds
    taken = sorted(fetch(one, target.request("GET", f"{objects.COLLECTION}/vm-{number:06d}"))[0] for number in _spread(size, _CHANGES))
    yield "get, p99", taken[int(len(taken) * 0.99) - 1] * 1000


def _changes(target: Target, size: int) -> Iterator[float]:
    """The seconds of single changes, from the request until a watcher of all machines has the event."""
    _, answer = call(target, "GET", f"{objects.COLLECTION}?limit=1")
    revision = json.loads(answer)["metadata"]["resourceVersion"]
    with closing(connect(target)) as watch, closing(connect(target)) as writer:
        watch.sendall(target.request("GET", f"{objects.COLLECTION}?watch=true&resourceVersion={revision}"))
        events = watch.makefile("rb")
        for number in _spread(size, _CHANGES):
            name = f"vm-{number:06d}".encode()
            patch = json.dumps({"metadata": {"annotations": {"example.com/ticket": f"OPS-{size}-{number}"}}}).encode()
            request = target.request("PATCH", f"{objects.COLLECTION}/{name.decode()}", patch, media="application/merge-patch+json")
            began = time.perf_counter()
            writer.sendall(request)
            while name not in events.readline():
                pass
            yield time.perf_counter() - began
            if (reply := read(writer))[9:12] != b"200":
                raise LoadFailed(f"a change was answered with {bytes(reply[:300])!r}")


def _spread(size: int, count: int) -> Iterator[int]:
    """Numbers of machines all over the store."""
    return iter(range(0, size, max(size // count, 1)))

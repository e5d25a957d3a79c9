"""Memory that comes back: what the server holds when a crowd has gone, compared with what it held before it came.

Each crowd begins when the memory is what it was after the one before. The smallest value within a time counts: what is freed at a quiet
moment, and changes that watches may resume from, go later.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import uvloop

from tools.bench.client import LoadFailed, Target, call, connect, drive, fetch
from tools.bench.objects import COLLECTION, NAMESPACE, body
from tools.bench.offline import Figure
from tools.bench.programs import Paddock, permit

_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_TARGET = 1.2
_AT_ONCE = 16
# One body, and how many of them come on how many connections.
_BODY, _BODIES, _SENDERS = 900_000, 400, 100
# A quiet moment comes within the first time; old changes are forgotten after the second.
_QUIET_SECONDS, _FORGOTTEN_SECONDS = 60.0, 540.0


def _connections(target: Target, count: int) -> None:
    request = target.request("GET", f"{_MAPS}?limit=1")
    for _ in range(count):
        with connect(target) as one:
            fetch(one, request)


def _objects(target: Target, count: int) -> None:
    made = (target.request("POST", COLLECTION, body(number)) for number in range(count))
    _drive(target, _AT_ONCE, made, b"201")
    status, answer = call(target, "DELETE", COLLECTION)
    if status != 200:
        raise LoadFailed(f"the deletion was answered with {answer[:300]!r}")


def _uploads(target: Target, count: int) -> None:
    large = {"metadata": {"generateName": "large-"}, "data": {"text": "x" * _BODY}}
    _drive(target, _SENDERS, (target.request("POST", f"{_MAPS}?dryRun=All", orjson.dumps(large)) for _ in range(count)), b"201")


def _drive(target: Target, connections: int, requests: Iterator[bytes], wanted: bytes) -> None:
    uvloop.run(drive(target, connections, requests)).check(wanted)


def _settled(server: Paddock, before: float, seconds: float) -> float:
    """The least that the server holds within a time, as a multiple of before; no longer is waited once the target is met."""
    end, least = time.monotonic() + seconds, float("inf")
    while time.monotonic() < end and least > _TARGET:
        time.sleep(1)
        least = min(least, server.resident()["paddock"] / before)
    return least


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """All crowds, one after the other."""
    few = 10 if quick else 1
    crowds: tuple[tuple[str, Callable[[Target, int], None], int, float], ...] = (
        ("10,000 connections, each for one request", _connections, 10_000 // few, _QUIET_SECONDS),
        ("400 bodies of 900 KB, 100 at once", _uploads, _BODIES // few, _QUIET_SECONDS),
        ("20,000 VirtualMachines made and deleted", _objects, 20_000 // few, _FORGOTTEN_SECONDS),
    )
    (folder / "returning").mkdir()
    server, found = Paddock(folder / "returning"), list[Figure]()
    try:
        server.start()
        permit(server.admin, NAMESPACE)
        for _, crowd, _, _ in crowds:
            # What is loaded with the first use stays.
            crowd(server.target, 20)
        for name, crowd, count, seconds in crowds:
            time.sleep(5)
            before = server.resident()["paddock"]
            crowd(server.target, count)
            began, most = time.monotonic(), server.resident()["paddock"]
            least = _settled(server, before, seconds)
            after = f"{before * least / 1e6:.0f} MB after {time.monotonic() - began:.0f} s"
            note = f"{before / 1e6:.0f} MB, then {most / 1e6:.0f} MB, then {after}"
            found.append(Figure(f"memory after {name}", least, f"{count:,}: {note}"))
    finally:
        server.close()
    return found

"""CPU of one watch event on its way into an informer's cache, over plain HTTP: ``python tools/bench_informer.py``.

A server in a process of its own sends 20,000 events about 1,001 machines of 1 KB each, as fast as they are taken. Measured is the CPU
time of the process with the informer, from the last event of the list to the last of the watch. For comparison, the same stream is
read by the transport alone (how much is the socket's), and parsed into plain dicts, which is what a cache of decoded objects costs.
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import orjson

from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import EVERYTHING, WatchOptions
from paddock.kubernetes.client.target import plain
from paddock.kubernetes.runtime.informer import Informer, ListGate
from paddock.kubernetes.runtime.machinery import Machinery

MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
OBJECTS, EVENTS, BATCH = 1001, 20_000, 40
TARGET_US = 15.0


@dataclass(frozen=True, slots=True)
class Result:
    """CPU microseconds per event."""

    informer: float
    dicts: float
    bytes_alone: float


def machine(number: int, revision: int) -> dict[str, Any]:
    """One machine, about as large as they are."""
    disks = [{"name": f"disk-{index}", "disk": {"bus": "virtio"}} for index in range(3)]
    volumes = [{"name": f"disk-{index}", "persistentVolumeClaim": {"claimName": f"claim-{number}-{index}"}} for index in range(3)]
    domain = {"cpu": {"cores": 2}, "devices": {"disks": disks, "interfaces": [{"name": "default", "masquerade": {}}]}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": f"machine-{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(revision),
            "labels": {"app": f"app-{number % 50}", "kubevirt.io/os": "linux"},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Machine", "name": f"m-{number}", "uid": f"owner-{number}"}],
        },
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": domain, "volumes": volumes, "networks": [{"name": "default"}]}}},
        "status": {"printableStatus": "Running", "conditions": [{"type": "Ready", "status": "True", "reason": "Up"}]},
    }


def line(kind: str, value: Any) -> bytes:
    return orjson.dumps({"type": kind, "object": value}) + b"\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def serve() -> None:
    """Answer `/version`, and every watch with everything and then all events."""
    events = [line("MODIFIED", machine(index % OBJECTS, OBJECTS + index + 1)) for index in range(EVENTS)]
    first = b"".join(line("ADDED", machine(index, index + 1)) for index in range(OBJECTS))
    meta = {"resourceVersion": str(OBJECTS), "annotations": {"k8s.io/initial-events-end": "true"}}
    first += line("BOOKMARK", {"metadata": meta})
    batches = [chunk(b"".join(events[at : at + BATCH])) for at in range(0, EVENTS, BATCH)]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        writer.close()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"/version" in head.split(b"\r\n")[0]:
                body = b'{"minor":"34"}'
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
                continue
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(first))
            await writer.drain()
            # The reader measures from when it has the list.
            await asyncio.sleep(0.5)
            for batch in batches:
                writer.write(batch)
                await writer.drain()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _client(port: int) -> Client:
    return Client(Https(Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential())))


async def through_informer(port: int) -> float:
    machinery = Machinery()
    async with _client(port) as client:
        informer = Informer(client, MACHINES, machinery=machinery, gate=ListGate())
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        began = time.process_time()
        while informer.revision != str(OBJECTS + EVENTS):
            await asyncio.sleep(0.01)
        taken = time.process_time() - began
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(informer.cache) == OBJECTS
    return taken / EVENTS * 1e6


async def through_dicts(port: int) -> float:
    """Every object decoded whole into a cache of dicts."""
    cache: dict[tuple[str, str], Any] = {}
    seen, began = 0, 0.0
    async with _client(port) as client:
        async for event in client.watch(MACHINES, EVERYTHING, WatchOptions(initial=True)):
            metadata = event.object["metadata"]
            if event.type == "BOOKMARK":
                began = time.process_time()
                continue
            cache[metadata["namespace"], metadata["name"]] = event.object
            seen += 1
            if seen == OBJECTS + EVENTS:
                break
    return (time.process_time() - began) / EVENTS * 1e6


async def through_nothing(port: int) -> float:
    """The bytes, thrown away."""
    began, seen = 0.0, 0
    async with _client(port) as client:
        async for frames in client.frames(MACHINES, EVERYTHING, WatchOptions(initial=True)):
            seen += len(frames)
            if began == 0.0 and seen > OBJECTS:
                began = time.process_time()
            if seen >= OBJECTS + 1 + EVENTS:
                break
    return (time.process_time() - began) / EVENTS * 1e6


def measure(runs: int = 3) -> Result:
    """The smallest of several runs of each."""
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        # The runs take turns, so that a busy moment hits all of them.
        rounds = [
            (asyncio.run(through_informer(port)), asyncio.run(through_dicts(port)), asyncio.run(through_nothing(port))) for _ in range(runs)
        ]
    finally:
        server.kill()
        server.wait()
    return Result(*(min(each[place] for each in rounds) for place in range(3)))


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--serve", action="store_true", help="be the server")
    if options.parse_args().serve:
        asyncio.run(serve())
        return 0
    found = measure()
    print(f"watch event into an informer's cache, CPU   {found.informer:6.1f} us   target {TARGET_US:g} us")
    print(f"  the same into a dict of decoded objects   {found.dicts:6.1f} us")
    print(f"  the bytes alone                           {found.bytes_alone:6.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())

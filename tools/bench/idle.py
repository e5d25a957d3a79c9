"""Paddock beside twenty guests that do nothing: the server's share of a processor and its memory while it has no requests.

The guests are booted, their agents answer, and all have become quiet. The server polls their agents and reads their use as always.
"""

import asyncio
import json
import shutil
import tempfile
import time
from pathlib import Path

from paddock.base.images.build import places, tiny
from paddock.fleet.diagnosis.scene import holds
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import EVERYTHING, WatchOptions
from tools.bench.hosting import INSTANCES, VMS, Host
from tools.bench.imports import server
from tools.bench.offline import Figure
from tools.bench.programs import cpu_seconds
from tools.bench.userland import booting

GUESTS, QUICK_GUESTS = 20, 5
_MEMORY = "192Mi"
_MB = 1_000_000
# Emulated on a busy host, each takes half a minute.
_BOOT_SECONDS = 1800.0
# Until what follows the boots is over, and then what is measured: several rounds of everything that has a period.
_SETTLE_SECONDS, _IDLE_SECONDS = 60.0, 120.0


async def _all_answer(client: Client, count: int) -> None:
    """Return when the agents of so many guests are connected."""
    connected = set[str]()
    async for event in client.watch(INSTANCES, EVERYTHING, WatchOptions(initial=True, seconds=int(_BOOT_SECONDS))):
        if event.type == "BOOKMARK":
            continue
        if holds(event.object, "AgentConnected"):
            connected.add(event.object["metadata"]["name"])
        if len(connected) == count:
            return


async def _start(host: Host, url: str, count: int) -> None:
    async with host.client() as client:
        for number in range(count):
            machine = booting(f"idle-{number}", url)
            machine["spec"]["template"]["spec"]["domain"]["memory"]["guest"] = _MEMORY
            await client.request("POST", VMS, body=json.dumps(machine).encode())
        await asyncio.wait_for(_all_answer(client, count), _BOOT_SECONDS)


async def _rest(host: Host) -> list[Figure]:
    """The figures of two minutes without a client."""
    qemus = host.qemus()
    before, guests, began = host.cpu(), sum(map(cpu_seconds, qemus)), time.monotonic()
    await asyncio.sleep(_IDLE_SECONDS)
    seconds = time.monotonic() - began
    share = (host.cpu() - before) / seconds * 100
    theirs = (sum(map(cpu_seconds, qemus)) - guests) / seconds / len(qemus) * 100
    return [
        Figure("share of a processor, server", share, f"beside {len(qemus)} guests, over {seconds:.0f} s"),
        Figure("memory of the server (PSS)", host.memory() / _MB),
        Figure("memory of the server (RSS, with pages that other Pythons on the host share)", host.resident() / _MB),
        Figure("share of a processor, QEMU of a guest", theirs),
    ]


async def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """All figures."""
    image = tiny.build(places.cache())
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=folder))
    host = Host(root, "--image-from=127.0.0.1")
    host.start()
    try:
        with server(image.disk.parent) as address:
            await _start(host, f"{address}/{image.disk.name}", QUICK_GUESTS if quick else GUESTS)
        await asyncio.sleep(_SETTLE_SECONDS)
        return await _rest(host)
    finally:
        host.end()
        shutil.rmtree(root, ignore_errors=True)

"""Snapshots with memory of a guest of 256 MiB that writes its memory meanwhile: for how long it stands still, and what they take."""

import asyncio

from msgspec.structs import replace

from paddock.engine.machine.config import DiskLayer, MemoryConfig
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.memorysnapshots import MemoryRequest
from tools.bench.tinyguest import Bench, until

_MEMORY = 256 << 20
# 64 MiB are written, and 4 MiB of them again and again.
_BUSY = (
    "mount -t tmpfs none /mnt; dd if=/dev/urandom of=/mnt/once bs=1M count=64 2>/dev/null; "
    "(while :; do dd if=/mnt/once of=/mnt/often bs=1M count=4; sleep 0.2; done) </dev/null >/dev/null 2>&1 &"
)


async def measure(bench: Bench, machines: Machines, rounds: int) -> None:
    """Some snapshots of one guest."""
    below = DiskLayer(bench.image.disk, "qcow2")
    config = replace(bench.config(below, bench.by_ourselves), memory=MemoryConfig(_MEMORY, _MEMORY))
    machine = await machines.define("memory", config)
    await machine.start()
    await until(machine, lambda: machine.agent.open)
    await machine.agent.execute(["/bin/sh", "-c", _BUSY], 60)
    for number in range(rounds):
        layer = machine.config.disks[0].layer
        assert layer is not None
        path = bench.folder / f"memory-{number}"
        taken = await machine.take_memory(MemoryRequest({"root": bench.by_ourselves(layer)}, frozenset(), path))
        bench.samples.add("memory pause", taken.pause)
        bench.samples.add("memory size", taken.saved.size)
        path.unlink()
    await machine.stop(0)
    while machine.observed.live:
        await asyncio.sleep(0.01)
    await machine.forget()

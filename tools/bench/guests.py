"""Machines of the engine beside the same QEMU started by hand, in one run: what a start costs, cold and as a warm clone.

By hand means: the command line that the engine makes, started by a script that waits for the monitor, sends what is needed and nothing
else, and knows nothing afterwards. Both are measured by turns, so that a busy host is busy for both.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path

from paddock.base.images.build import places, tiny
from paddock.engine.host.facts import collect
from paddock.engine.machine import clones
from paddock.engine.machine.config import DiskLayer
from tools.bench import crowds, memories
from tools.bench.offline import Figure
from tools.bench.tinyguest import Bench, Samples

ROUNDS = 7


async def _measure(folder: Path, count: int, rounds: int) -> Samples:
    facts = await collect(folder)
    image = tiny.build(places.cache())
    bench = Bench(folder, facts, image, _size(image.disk))
    machines = bench.machines()
    await machines.adopt()
    try:
        below = DiskLayer(bench.image.disk, "qcow2")
        for _ in range(rounds):
            bench.by_hand("cold", lambda: bench.config(below, bench.by_qemu_img))
            await bench.by_engine(machines, "cold", lambda: bench.config(below, bench.by_ourselves))
        await memories.measure(bench, machines, rounds)
        template = await bench.template(machines)
        for _ in range(rounds):
            bench.by_hand("clone", lambda: clones.config_of(template, bench.clone(template, bench.by_qemu_img)), template.state)
            make = lambda: clones.config_of(template, bench.clone(template, bench.by_ourselves))  # noqa: E731 - the counterpart of the line above
            await bench.by_engine(machines, "clone", make, template)
        bench.samples.add("many count", count)
        await crowds.warm(bench, machines, template, count)
        await crowds.cold(bench, machines, count)
    finally:
        machines.close()
    return bench.samples


def _size(disk: Path) -> int:
    """Bytes that a guest sees of a qcow2."""
    with disk.open("rb") as file:
        return int.from_bytes(file.read(32)[24:], "big")


def measure(folder: Path, *, quick: bool = False) -> list[Figure]:
    """Everything; minutes."""
    try:
        return figures(asyncio.run(_measure(folder, 10 if quick else 50, 3 if quick else ROUNDS)))
    finally:
        _end_all(folder)
        shutil.rmtree(folder / "machines", ignore_errors=True)


def _end_all(folder: Path) -> None:
    """End every process below a directory, when a measurement was cut short."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder) and int(entry.name) != os.getpid():
                    os.kill(int(entry.name), signal.SIGKILL)


def figures(samples: Samples) -> list[Figure]:
    """What the samples say."""
    mib = 1 << 20
    count = f"{samples.median('many count'):.0f} guests"
    return [
        _beside("start: until QEMU runs the guest", "cold running", samples),
        _beside("start: CPU time of the starting process", "cold cpu", samples),
        _beside("cold: until the agent answers", "cold agent", samples),
        _beside("cold: memory (PSS)", "cold pss", samples, mib),
        _beside("clone: until it runs", "clone running", samples),
        _beside("clone: until its agent answers", "clone agent", samples),
        _beside("clone: memory (PSS)", "clone pss", samples, mib),
        _beside("fifty, cold: until all answer", "crowd answer", samples, 1, count),
        _beside("fifty, cold: memory (PSS) of each", "crowd pss", samples, mib),
        _beside("fifty clones: until all answer", "many answer", samples, 1, count),
        _beside("fifty clones: memory (PSS) of each", "many pss", samples, mib),
        Figure("fifty clones: until each has its own identity", samples.median("many own")),
        Figure("pause of the guest", samples.median("memory pause") * 1000),
        Figure("size of the memory", samples.median("memory size") / mib),
    ]


def _beside(text: str, name: str, samples: Samples, unit: float = 0.001, note: str = "") -> Figure:
    return Figure(text, samples.median(name) / unit, note, samples.median(f"{name}, by hand") / unit)

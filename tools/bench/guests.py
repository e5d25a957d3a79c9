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

from paddock.engine.host.facts import collect
from paddock.engine.images.build import places, tiny
from paddock.engine.machine import clones
from paddock.engine.machine.config import DiskLayer
from tools.bench import crowds, memories
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


def measure(folder: Path, *, quick: bool = False) -> Samples:
    """Everything; minutes."""
    try:
        return asyncio.run(_measure(folder, 10 if quick else 50, 3 if quick else ROUNDS))
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


def table(samples: Samples) -> str:
    """The figures beside their targets."""
    count = int(samples.median("many count"))
    rows = [
        _row("start: until QEMU runs the guest", "cold running", samples, "<= 1.5x"),
        _row("start: processor time of whoever starts it", "cold cpu", samples, "<= +120 ms"),
        _row("start: until the agent answers", "cold agent", samples, "<= 1.1x"),
        _row("memory (PSS) of a guest", "cold pss", samples, "<= 1.05x", 1 << 20, "MiB"),
        _row("clone: until it runs", "clone running", samples, ""),
        _row("clone: until the agent answers", "clone agent", samples, "<= 150 ms"),
        _row("memory (PSS) of a clone", "clone pss", samples, "", 1 << 20, "MiB"),
        _row(f"{count} guests, cold: until all answer", "crowd answer", samples, "<= 1.1x"),
        _row(f"{count} guests, cold: memory (PSS) of each", "crowd pss", samples, "<= 1.1x", 1 << 20, "MiB"),
        _row(f"{count} clones: until all answer", "many answer", samples, "<= 1.1x"),
        _row(f"{count} clones: memory (PSS) of each", "many pss", samples, "<= 1.1x", 1 << 20, "MiB"),
        f"{'snapshot with memory, 256 MiB: pause':<46} {samples.median('memory pause') * 1000:9.0f} ms {'':>19}  <= 300 ms",
        f"{'snapshot with memory, 256 MiB: size':<46} {samples.median('memory size') / (1 << 20):9.0f} MiB",
        f"{f'{count} clones: until each has its own identity':<46} {samples.median('many own') * 1000:9.0f} ms",
    ]
    return "\n".join([f"{'':<46} {'engine':>12} {'by hand':>12} {'ratio':>6}  target", *rows])


def _row(text: str, name: str, samples: Samples, target: str, unit: float = 0.001, shown: str = "ms") -> str:
    ours, theirs = samples.median(name), samples.median(f"{name}, by hand")
    return f"{text:<46} {ours / unit:9.0f} {shown} {theirs / unit:8.0f} {shown} {ours / theirs:6.2f}  {target}"

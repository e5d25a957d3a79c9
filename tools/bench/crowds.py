"""Many guests at once, cold and as warm clones: until all answer, and what memory each takes.

By hand, cold ones are started as many at a time as the start queue lets boot, and clones one after the other: more at a time is no sooner
there, and each waits longer.
"""

import asyncio
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from paddock.engine.machine import clones
from paddock.engine.machine.clones import CloneTemplate
from paddock.engine.machine.config import DiskLayer
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tools.bench.byhand import Hand
from tools.bench.programs import pss
from tools.bench.tinyguest import Bench, until


async def cold(bench: Bench, machines: Machines, count: int) -> None:
    """All of them, from their first instruction to their agent's first answer."""
    below = DiskLayer(bench.image.disk, "qcow2")
    began = time.monotonic()

    def one(number: int) -> Hand:
        hand = Hand(bench.folder / f"cold-{number}", bench.config(below, bench.by_qemu_img), bench.facts)
        hand.answer()
        return hand

    with ThreadPoolExecutor(bench.at_once) as threads:
        hands = list(await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(threads, one, number) for number in range(count))))
    _by_hand(bench, "crowd", began, hands)
    began = time.monotonic()
    started = [await machines.define(f"cold-{number}", bench.config(below, bench.by_ourselves)) for number in range(count)]
    for machine in started:
        await machine.start()
    await asyncio.gather(*(_answers(machine) for machine in started))
    _ours(bench, "crowd", began, started)
    await _end(started)


async def warm(bench: Bench, machines: Machines, template: CloneTemplate, count: int) -> None:
    """Clones of one guest."""
    hands = []
    began = time.monotonic()
    for number in range(count):
        config = clones.config_of(template, bench.clone(template, bench.by_qemu_img))
        hands.append(Hand(bench.folder / f"warm-{number}", config, bench.facts, state=template.state))
        hands[-1].answer()
    _by_hand(bench, "many", began, hands)
    began = time.monotonic()
    cloned = []
    for number in range(count):
        clone = bench.clone(template, bench.by_ourselves)
        cloned.append((await machines.define(f"many-{number}", clones.config_of(template, clone)), clone))
    await asyncio.gather(*(clones.wake(machine, template) for machine, _ in cloned))
    _ours(bench, "many", began, [machine for machine, _ in cloned])
    await asyncio.gather(*(clones.identify(machine, template, clone) for machine, clone in cloned))
    bench.samples.add("many own", time.monotonic() - began)
    await _end([machine for machine, _ in cloned])


def _by_hand(bench: Bench, name: str, began: float, hands: list[Hand]) -> None:
    bench.samples.add(f"{name} answer, by hand", time.monotonic() - began)
    bench.samples.add(f"{name} pss, by hand", statistics.mean(pss(hand.process.pid) for hand in hands))
    for hand in hands:
        hand.end()


def _ours(bench: Bench, name: str, began: float, machines: list[QemuMachine]) -> None:
    bench.samples.add(f"{name} answer", time.monotonic() - began)
    bench.samples.add(f"{name} pss", statistics.mean(pss(machine.observed.pid) for machine in machines))


async def _answers(machine: QemuMachine) -> None:
    await until(machine, lambda: machine.agent.open)
    await machine.agent.ping()


async def _end(machines: list[QemuMachine]) -> None:
    for machine in machines:
        await machine.stop(0)
    while any(machine.observed.live for machine in machines):
        await asyncio.sleep(0.05)

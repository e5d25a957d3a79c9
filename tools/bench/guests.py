"""Machines of the engine beside the same QEMU started by hand, in one run: what a start costs, cold and as a warm clone.

By hand means: the command line that the engine makes, started by a script that waits for the monitor, sends what is needed and nothing
else, and knows nothing afterwards. Both are measured by turns, so that a busy host is busy for both.
"""

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock.engine.host.facts import Facts, collect
from paddock.engine.images.build import places, tiny
from paddock.engine.machine import clones
from paddock.engine.machine.argv.command import command
from paddock.engine.machine.clones import Clone, CloneNic, Template
from paddock.engine.machine.config import Cpu, Devices, Disk, Kernel, Layer, MachineConfig, Memory, Nic, User
from paddock.engine.machine.host import Surroundings
from paddock.engine.machine.machine import Machine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.startqueue import StartQueue

ROUNDS = 7
_MEMORY = 128 << 20
_NETWORK = User(network="10.0.2.0/24", gateway="10.0.2.2", address="10.0.2.15", dns="10.0.2.3")


@dataclass
class Samples:
    """What was measured, by name: seconds, or bytes."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """One more."""
        self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        """The middle one."""
        return statistics.median(self.values[name])


class Hand:
    """A QEMU that a script started."""

    def __init__(self, folder: Path, config: MachineConfig, facts: Facts, *, state: Path | None = None) -> None:
        folder.mkdir(parents=True)
        line = command(config, facts.view(config), incoming=state is not None)
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                line.arguments({}, {}), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._folder = folder
        self._state = state
        self._qmp = self._connect("qmp.sock")
        self._file = self._qmp.makefile("rb")
        self._file.readline()
        self._say("qmp_capabilities")
        if state is not None:
            self._receive(state)
        self._say("cont")

    def _connect(self, name: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(self._folder / name))
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.002)

    def _say(self, name: str, arguments: Mapping[str, Any] | None = None, files: tuple[int, ...] = ()) -> Any:
        message = json.dumps({"execute": name, "arguments": arguments or {}}).encode()
        socket.send_fds(self._qmp, [message], list(files))
        while True:
            answer = json.loads(self._file.readline())
            if "event" not in answer:
                return answer["return"]

    def _receive(self, state: Path) -> None:
        self._say("migrate-set-capabilities", {"capabilities": [{"capability": "x-ignore-shared", "state": True}]})
        handle = os.open(state, os.O_RDONLY)
        self._say("getfd", {"fdname": "state"}, (handle,))
        os.close(handle)
        self._say("migrate-incoming", {"uri": "fd:state"})
        while self._say("query-status")["status"] == "inmigrate":
            time.sleep(0.002)

    def answer(self) -> None:
        """Returns when the agent answered."""
        with self._connect("agent.sock") as agent, agent.makefile("rb") as file:
            number = int(time.monotonic() * 1000)
            agent.sendall(json.dumps({"execute": "guest-sync", "arguments": {"id": number}}).encode() + b"\n")
            while json.loads(file.readline().lstrip(b"\xff") or b"{}").get("return") != number:
                pass

    def end(self) -> None:
        """At once."""
        self._file.close()
        self._qmp.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Bench:
    """A directory with everything that is measured."""

    folder: Path
    facts: Facts
    image: tiny.TinyImage
    samples: Samples = field(default_factory=Samples)
    numbers: int = 0

    def machines(self) -> Machines:
        """Machines of the engine; as they are, they run as whoever runs this, so that both do the same."""
        return Machines(self.folder / "machines", Surroundings(self.facts.view, StartQueue(len(self.facts.cpus) + 1)))

    def config(self, below: Layer) -> MachineConfig:
        """The tiny guest, with a disk over this one."""
        return MachineConfig(
            "bench_tiny",
            Cpu(model="host"),
            Memory(_MEMORY, _MEMORY),
            kernel=Kernel(self.image.bare, self.image.initrd, "console=ttyS0 quiet"),
            disks=(Disk("root", self.overlay(below)),),
            nics=(Nic("default", "02:00:00:00:00:01", _NETWORK),),
            devices=Devices(graphics=False, rng=True),
        )

    def overlay(self, below: Layer) -> Layer:
        """A new layer."""
        self.numbers += 1
        path = self.folder / f"disk-{self.numbers}.qcow2"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", below.format, "-b", below.path, path], check=True)
        return Layer(path, "qcow2", below)

    def clone(self, template: Template) -> Clone:
        """What a clone has of its own."""
        below = template.config.disks[0].layer
        assert below is not None
        disk = self.overlay(below)
        nic = CloneNic(f"02:00:00:00:01:{self.numbers % 256:02x}", _NETWORK)
        return Clone("bench_clone", {"root": disk}, {"default": nic}, str(uuid.uuid4()), f"clone-{self.numbers}")

    def by_hand(self, name: str, make: Callable[[], MachineConfig], state: Path | None = None) -> None:
        """One QEMU of a script: until it runs, until its agent answers."""
        began, used = time.monotonic(), _cpu()
        self.numbers += 1
        hand = Hand(self.folder / f"hand-{self.numbers}", make(), self.facts, state=state)
        self.samples.add(f"{name} running, by hand", time.monotonic() - began)
        self.samples.add(f"{name} cpu, by hand", _cpu() - used)
        hand.answer()
        self.samples.add(f"{name} agent, by hand", time.monotonic() - began)
        self.samples.add(f"{name} pss, by hand", pss(hand.process.pid))
        hand.end()

    async def by_engine(self, machines: Machines, name: str, make: Callable[[], MachineConfig], template: Template | None = None) -> None:
        """One machine of the engine."""
        began, used = time.monotonic(), _cpu()
        self.numbers += 1
        machine = await machines.define(f"bench-{self.numbers}", make())
        await machine.start(state=template.state if template else None)
        await _until(machine, lambda: machine.observed.phase == "running")
        self.samples.add(f"{name} running", time.monotonic() - began)
        self.samples.add(f"{name} cpu", _cpu() - used)
        await _until(machine, lambda: machine.agent.open)
        await machine.agent.ping()
        self.samples.add(f"{name} agent", time.monotonic() - began)
        self.samples.add(f"{name} pss", pss(machine.observed.pid))
        await machine.stop(0)
        while machine.observed.live:
            await asyncio.sleep(0.01)
        await machine.forget()

    async def template(self, machines: Machines) -> Template:
        """A frozen guest."""
        folder = self.folder / "template"
        folder.mkdir()
        machine = await machines.define("template", clones.freezable(self.config(Layer(self.image.disk, "qcow2")), folder))
        await machine.start()
        await _until(machine, lambda: machine.agent.open)
        # Until nothing of its start is left to do.
        await asyncio.sleep(2)
        return await clones.freeze(machine, folder)


async def _until(machine: Machine, holds: Callable[[], bool]) -> None:
    while not holds():
        if machine.observed.phase == "ended":
            raise RuntimeError(f"a machine ended: {machine.observed.end}")
        await asyncio.sleep(0.002)


def pss(pid: int) -> float:
    """A process's share of memory, in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024.0 for line in lines if line.startswith("Pss:"))


def _cpu() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


async def _many(bench: Bench, machines: Machines, template: Template, count: int) -> None:
    """Clones: by hand one after the other, as is best there; by the engine through its queue."""
    bench.samples.add("many count", count)
    hands = []
    began = time.monotonic()
    for _ in range(count):
        bench.numbers += 1
        config = clones.config_of(template, bench.clone(template))
        hands.append(Hand(bench.folder / f"hand-{bench.numbers}", config, bench.facts, state=template.state))
        hands[-1].answer()
    bench.samples.add("many answer, by hand", time.monotonic() - began)
    bench.samples.add("many pss, by hand", statistics.mean(pss(hand.process.pid) for hand in hands))
    for hand in hands:
        hand.end()
    began = time.monotonic()
    cloned = []
    for number in range(count):
        clone = bench.clone(template)
        cloned.append((await machines.define(f"many-{number}", clones.config_of(template, clone)), clone))
    await asyncio.gather(*(clones.wake(machine, template) for machine, _ in cloned))
    bench.samples.add("many answer", time.monotonic() - began)
    bench.samples.add("many pss", statistics.mean(pss(machine.observed.pid) for machine, _ in cloned))
    await asyncio.gather(*(clones.identify(machine, template, clone) for machine, clone in cloned))
    bench.samples.add("many own", time.monotonic() - began)
    for machine, _ in cloned:
        await machine.stop(0)
    while any(machine.observed.live for machine, _ in cloned):
        await asyncio.sleep(0.05)


async def _measure(folder: Path, count: int, rounds: int) -> Samples:
    facts = await collect(folder)
    bench = Bench(folder, facts, tiny.build(places.cache()))
    machines = bench.machines()
    await machines.adopt()
    try:
        below = Layer(bench.image.disk, "qcow2")
        for _ in range(rounds):
            bench.by_hand("cold", lambda: bench.config(below))
            await bench.by_engine(machines, "cold", lambda: bench.config(below))
        template = await bench.template(machines)
        for _ in range(rounds):
            bench.by_hand("clone", lambda: clones.config_of(template, bench.clone(template)), template.state)
            await bench.by_engine(machines, "clone", lambda: clones.config_of(template, bench.clone(template)), template)
        await _many(bench, machines, template, count)
    finally:
        for machine in machines:
            if machine.observed.pid:
                os.kill(machine.observed.pid, signal.SIGKILL)
        machines.close()
    return bench.samples


def measure(folder: Path, *, quick: bool = False) -> Samples:
    """Everything; minutes."""
    samples = asyncio.run(_measure(folder, 10 if quick else 50, 3 if quick else ROUNDS))
    shutil.rmtree(folder / "machines", ignore_errors=True)
    return samples


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
        _row(f"{count} clones: until all answer", "many answer", samples, "<= 1.1x"),
        _row(f"{count} clones: memory (PSS) of each", "many pss", samples, "<= 1.1x", 1 << 20, "MiB"),
        f"{f'{count} clones: until each has its own identity':<46} {samples.median('many own') * 1000:9.0f} ms",
    ]
    return "\n".join([f"{'':<46} {'engine':>12} {'by hand':>12} {'ratio':>6}  target", *rows])


def _row(text: str, name: str, samples: Samples, target: str, unit: float = 0.001, shown: str = "ms") -> str:
    ours, theirs = samples.median(name), samples.median(f"{name}, by hand")
    return f"{text:<46} {ours / unit:9.0f} {shown} {theirs / unit:8.0f} {shown} {ours / theirs:6.2f}  {target}"

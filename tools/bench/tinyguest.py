"""The tiny guest, started in turns by the engine and by hand: what is measured, and the parts that all measurements have in common."""

import asyncio
import resource
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from paddock.base.images.build import tiny
from paddock.engine.host.facts import HostFacts
from paddock.engine.machine import clones, startqueue
from paddock.engine.machine.clones import Clone, CloneNic, CloneTemplate
from paddock.engine.machine.config import (
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    KernelConfig,
    MachineConfig,
    MemoryConfig,
    Nic,
    UserNetwork,
)
from paddock.engine.machine.host import MachineEnvironment
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.storage import files
from tools.bench.byhand import Hand
from tools.bench.programs import pss

_MEMORY = 128 << 20
_NETWORK = UserNetwork(network="10.0.2.0/24", gateway="10.0.2.2", address="10.0.2.15", dns="10.0.2.3")


@dataclass
class Samples:
    """The measurements by name: seconds, or bytes."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """One more."""
        self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        """The middle one."""
        return statistics.median(self.values[name])


Overlay = Callable[[DiskLayer], DiskLayer]


@dataclass
class Bench:
    """A directory with everything that is measured."""

    folder: Path
    facts: HostFacts
    image: tiny.TinyImage
    image_size: int
    samples: Samples = field(default_factory=Samples)
    numbers: int = 0

    @property
    def at_once(self) -> int:
        """The number of guests that boot at a time."""
        return startqueue.places(len(self.facts.cpus), "tcg")

    def machines(self) -> Machines:
        """Machines of the engine; as they are, they run as whoever runs this, so that both do the same."""
        return Machines(self.folder / "machines", MachineEnvironment(self.facts.view, StartQueue(self.at_once, startqueue.LONGEST["tcg"])))

    def config(self, below: DiskLayer, overlay: "Overlay") -> MachineConfig:
        """The tiny guest, with a disk over this one."""
        return MachineConfig(
            "bench_tiny",
            CpuConfig(model="host"),
            MemoryConfig(_MEMORY, _MEMORY),
            kernel=KernelConfig(self.image.bare, self.image.initrd, "console=ttyS0 quiet"),
            disks=(DiskConfig("root", overlay(below)),),
            nics=(Nic("default", "02:00:00:00:00:01", _NETWORK),),
            devices=DeviceConfig(graphics=False, rng=True),
        )

    def by_qemu_img(self, below: DiskLayer) -> DiskLayer:
        """A new layer, as a script makes it."""
        layer = self._layer(below)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", below.format, "-b", below.path, layer.path], check=True)
        return layer

    def by_ourselves(self, below: DiskLayer) -> DiskLayer:
        """A new layer, as the engine makes it."""
        layer = self._layer(below)
        files.make_layer(layer.path, below, self.image_size)
        return layer

    def _layer(self, below: DiskLayer) -> DiskLayer:
        self.numbers += 1
        return DiskLayer(self.folder / f"disk-{self.numbers}.qcow2", "qcow2", below)

    def clone(self, template: CloneTemplate, overlay: "Overlay") -> Clone:
        """Return the own parts of a clone."""
        below = template.config.disks[0].layer
        assert below is not None
        nic = CloneNic(f"02:00:00:00:01:{self.numbers % 256:02x}", _NETWORK)
        return Clone("bench_clone", {"root": overlay(below)}, {"default": nic}, str(uuid.uuid4()), f"clone-{self.numbers}")

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

    async def by_engine(
        self, machines: Machines, name: str, make: Callable[[], MachineConfig], template: CloneTemplate | None = None
    ) -> None:
        """One machine of the engine."""
        began, used = time.monotonic(), _cpu()
        self.numbers += 1
        machine = await machines.define(f"bench-{self.numbers}", make())
        await machine.start(state=template.state if template else None)
        await until(machine, lambda: machine.observed.phase == "running")
        self.samples.add(f"{name} running", time.monotonic() - began)
        self.samples.add(f"{name} cpu", _cpu() - used)
        await until(machine, lambda: machine.agent.open)
        await machine.agent.ping()
        self.samples.add(f"{name} agent", time.monotonic() - began)
        self.samples.add(f"{name} pss", pss(machine.observed.pid))
        await machine.stop(0)
        while machine.observed.live:
            await asyncio.sleep(0.01)
        await machine.forget()

    async def template(self, machines: Machines) -> CloneTemplate:
        """A frozen guest."""
        folder = self.folder / "template"
        folder.mkdir()
        machine = await machines.define(
            "template", clones.freezable(self.config(DiskLayer(self.image.disk, "qcow2"), self.by_ourselves), folder)
        )
        await machine.start()
        await until(machine, lambda: machine.agent.open)
        # Until nothing of its start is left to do.
        await asyncio.sleep(2)
        return await clones.freeze(machine, folder)


async def until(machine: QemuMachine, holds: Callable[[], bool]) -> None:
    while not holds():
        if machine.observed.phase == "ended":
            raise RuntimeError(f"a machine ended: {machine.observed.end}")
        await asyncio.sleep(0.002)


def _cpu() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])

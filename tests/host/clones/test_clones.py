"""Warm clones of the tiny guest: in a moment, and each a machine of its own."""

import asyncio
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.base.images.build import tiny
from paddock.engine.machine import clones
from paddock.engine.machine.clones import Clone, CloneNic, CloneTemplate
from paddock.engine.machine.config import (
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    FirmwareConfig,
    KernelConfig,
    MachineConfig,
    MemoryConfig,
    Nic,
    Tpm,
    UserNetwork,
)
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, surroundings, until, until_phase

pytestmark = pytest.mark.needs("qemu")

_SIZE = 128 << 20


def overlay(path: Path, below: DiskLayer) -> DiskLayer:
    """A layer of its own over one that stays as it is."""
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", below.format, "-b", str(below.path), str(path)]
    subprocess.run(command, check=True)
    return DiskLayer(path, "qcow2", below)


def network() -> UserNetwork:
    """QEMU's own."""
    return UserNetwork(network="10.0.2.0/24", gateway="10.0.2.2", address="10.0.2.15", dns="10.0.2.3")


@dataclass
class Farm:
    """A place for machines with a template to be."""

    place: Place
    guest: tiny.TinyImage

    @property
    def folder(self) -> Path:
        """The template's."""
        folder = self.place.root / "template"
        folder.mkdir(mode=0o711, exist_ok=True)
        return folder

    def config(self, disk: Path) -> MachineConfig:
        """The tiny guest, started without a boot loader, with a disk."""
        below = DiskLayer(self.guest.disk, "qcow2")
        root = DiskConfig("root", overlay(disk, below))
        memory = _SIZE if self.guest.flavour == "own" else 2 * _SIZE
        return MachineConfig(
            "ns_template",
            CpuConfig(model="qemu64", features=(("rdrand", True),)),
            MemoryConfig(memory, memory),
            kernel=KernelConfig(self.guest.bare, self.guest.initrd, "console=ttyS0 quiet"),
            disks=(root,),
            nics=(Nic("default", "02:00:00:00:00:01", network()),),
            devices=DeviceConfig(graphics=False, rng=True),
            firmware=FirmwareConfig(uuid=str(uuid.UUID(int=1))),
        )

    async def frozen(self, machines: Machines) -> CloneTemplate:
        """A template of a guest that has booted."""
        machine = await machines.define("template", clones.freezable(self.config(self.place.root / "source.qcow2"), self.folder))
        await machine.start()
        await until(machine, lambda one: one.observed.agent or one.observed.phase == "ended", "the agent", 60)
        assert (await machine.agent.execute(["/bin/sh", "-c", "echo before > /data/x"], 20)).code == 0
        return await clones.freeze(machine, self.folder)

    def clone(self, template: CloneTemplate, number: int) -> Clone:
        """Return the clone of this number, with its own parts."""
        below = template.config.disks[0].layer
        assert below
        disk = overlay(self.place.root / f"clone-{number}.qcow2", below)
        nics = {"default": CloneNic(f"02:00:00:00:01:{number:02x}", network())}
        return Clone(f"ns_clone-{number}", {"root": disk}, nics, str(uuid.uuid4()), f"clone-{number}")

    async def wake(self, machines: Machines, template: CloneTemplate, number: int) -> tuple[QemuMachine, clones.CloneTimings]:
        """A clone that is a machine of its own."""
        clone = self.clone(template, number)
        machine = await machines.define(f"clone-{number}", clones.config_of(template, clone))
        return machine, await clones.awaken(machine, template, clone)


@pytest.fixture
def farm(place: Place, tiny_guest: tiny.TinyImage) -> Farm:
    """A place, and the guest."""
    if tiny_guest.flavour != "own":
        pytest.skip("needs own-kernel: Debian's knows no generation counter; `paddock image build tiny --kernel own` makes one that does")
    return Farm(place, tiny_guest)


async def shell(machine: QemuMachine, command: str) -> str:
    done = await machine.agent.execute(["/bin/sh", "-c", command], 30)
    assert done.code == 0, done.err
    return done.out.decode().strip()


@played_by(run, seconds=300)
async def test_each_clone_is_a_machine_of_its_own(farm: Farm) -> None:
    machines = Machines(farm.place.machines, surroundings(4))
    await machines.adopt()
    template = await farm.frozen(machines)
    assert template == clones.load(farm.folder)
    (one, first), (two, second) = [await farm.wake(machines, template, number) for number in (1, 2)]
    for times in (first.times, second.times):
        print({name: f"{seconds * 1000:.0f} ms" for name, seconds in times.items()})
    assert [await shell(machine, "hostname") for machine in (one, two)] == ["clone-1", "clone-2"]
    assert await shell(two, "cat /sys/class/net/eth0/address") == "02:00:00:00:01:02"
    await until_true(lambda: shell(one, "ip -4 addr show eth0 | grep -c 'inet 10.0.2.' || true"), "1")
    # Disks: what was there is there, what one writes is its own.
    assert [await shell(machine, "cat /data/x") for machine in (one, two)] == ["before", "before"]
    await shell(one, "echo one > /data/x; sync")
    assert await shell(two, "sync; echo 3 > /proc/sys/vm/drop_caches; cat /data/x") == "before"
    # Memory: no two draw the same numbers, no clone sees what another writes.
    drawn = [await shell(machine, "head -c 16 /dev/urandom | xxd -p") for machine in (one, two)]
    assert drawn[0] != drawn[1]
    # One ends as any machine, and goes on cold.
    await one.stop(20)
    await until_phase(one, "ended")
    again = await machines.define("clone-1", clones.cold(one.config))
    await again.start()
    await until(again, lambda machine: machine.observed.agent, "the agent", 60)
    assert await shell(again, "cat /data/x") == "one"
    for machine in (again, two):
        await machine.stop(0)
        await until_phase(machine, "ended")
    # The template is as good as before.
    third, _ = await farm.wake(machines, template, 3)
    assert await shell(third, "cat /data/x") == "before"
    await third.stop(0)
    await until_phase(third, "ended")


async def until_true(ask: Callable[[], Awaitable[str]], wanted: str) -> None:
    """Asks until the answer is the wanted one."""
    async with asyncio.timeout(20):
        while await ask() != wanted:
            await asyncio.sleep(0.1)


@played_by(run)
async def test_a_machine_that_was_not_prepared_is_not_frozen_and_runs_on(farm: Farm) -> None:
    machines = Machines(farm.place.machines, surroundings())
    await machines.adopt()
    machine = await machines.define("plain", farm.config(farm.place.root / "plain.qcow2"))
    await machine.start()
    await until(machine, lambda one: one.observed.agent or one.observed.phase == "ended", "the agent", 60)
    with pytest.raises(RequestRefused, match="its memory is not a file"):
        await clones.freeze(machine, farm.folder)
    assert machine.observed.phase == "running"
    with_tpm = replace(machine.config, devices=replace(machine.config.devices, tpm=Tpm()))
    with pytest.raises(RequestRefused, match="TPM"):
        clones.freezable(with_tpm, farm.folder)
    await machine.stop(0)
    await until_phase(machine, "ended")

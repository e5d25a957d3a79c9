"""Warm clones of an ordinary Debian: systemd's network, OpenSSH's keys, and a machine-id of their own."""

import asyncio
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from paddock.base.seeds import nocloud
from paddock.base.seeds.seed import SeedIdentity, Texts
from paddock.engine.machine import clones
from paddock.engine.machine.clones import Clone, CloneNic
from paddock.engine.machine.config import CpuConfig, DeviceConfig, DiskConfig, DiskLayer, FirmwareConfig, MachineConfig, MemoryConfig, Nic
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.coroutines import played_by
from tests.host.clones.test_clones import network, overlay, shell
from tests.host.machines.conftest import Place, run, surroundings, until, until_phase

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "root", "mmdebstrap", "ssh")]

_MINUTES = 15 * 60
_GUEST = SeedIdentity("6f1a4a8e-5f0b-5f5e-9a64-0f1a9d3a2b11", "source.shop", "source")


def nic(port: int) -> Nic:
    """A card whose SSH is a port of the host."""
    return Nic("default", "02:00:00:00:00:01", structs.replace(network(), forwards=(("tcp", "127.0.0.1", port, 22),)))


async def greeted(port: int) -> float:
    """Return the time of SSH's greeting."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                async with asyncio.timeout(5):
                    if (await reader.readline()).startswith(b"SSH-"):
                        return time.monotonic()
            finally:
                writer.close()
        except (OSError, TimeoutError):
            pass
        await asyncio.sleep(0.1)


async def identity(machine: QemuMachine) -> tuple[str, ...]:
    """Return the values that must be different."""
    commands = ("hostname", "cat /etc/machine-id", "cat /etc/ssh/ssh_host_ed25519_key.pub", "head -c 16 /dev/urandom | od -An -tx1")
    return tuple([await shell(machine, command) for command in commands])


@played_by(run, seconds=3 * _MINUTES)
async def test_a_clone_of_debian_is_a_machine_of_its_own(debian_guest: Path, place: Place, free_port: Callable[[], int]) -> None:
    ports = [free_port(), free_port(), free_port()]
    disk = place.root / "debian.qcow2"
    disk.write_bytes(debian_guest.read_bytes())
    (place.root / "seed.iso").write_bytes(nocloud.seed(_GUEST, Texts(b"#cloud-config\n")).image())
    root = DiskConfig("root", overlay(place.root / "source.qcow2", DiskLayer(disk, "qcow2")), boot_order=1)
    seed = DiskConfig("seed", DiskLayer(place.root / "seed.iso", "raw"), readonly=True)
    config = MachineConfig(
        "ns_debian",
        CpuConfig(model="max"),
        MemoryConfig(512 << 20, 512 << 20),
        disks=(root, seed),
        nics=(nic(ports[0]),),
        devices=DeviceConfig(graphics=False, rng=True),
        firmware=FirmwareConfig(uuid=_GUEST.uuid),
    )
    folder = place.root / "template"
    folder.mkdir(mode=0o711)
    machines = Machines(place.machines, surroundings(4))
    await machines.adopt()
    source = await machines.define("source", clones.freezable(config, folder))
    began = time.monotonic()
    await source.start()
    cold = await greeted(ports[0]) - began
    await until(source, lambda one: one.observed.agent, "the agent", _MINUTES)
    assert (await source.agent.execute(["cloud-init", "status", "--wait"], _MINUTES)).code == 0
    before = await identity(source)
    template = await clones.freeze(source, folder)
    seen = [before]
    for number in (1, 2):
        own = {"root": overlay(place.root / f"clone-{number}.qcow2", root.layer)} if root.layer else {}
        card = CloneNic(nic(0).mac, nic(ports[number]).backend)
        clone = Clone("ns_clone", own, {"default": card}, str(uuid.uuid4()), f"clone-{number}")
        machine = await machines.define(f"clone-{number}", clones.config_of(template, clone))
        began = time.monotonic()
        awakened = await clones.awaken(machine, template, clone)
        warm = await greeted(ports[number]) - began
        print(f"ssh: cold {cold:.1f} s, warm {warm:.2f} s, 1/{cold / warm:.0f}; {awakened.times}")
        seen.append(await identity(machine))
        await machine.stop(0)
        await until_phase(machine, "ended")
    assert [one[0] for one in seen] == ["source", "clone-1", "clone-2"]
    # Not only from the source, but from each other: random numbers drawn by two clones are different ones.
    assert all(len(set(column)) == 3 for column in zip(*seen, strict=True)), seen

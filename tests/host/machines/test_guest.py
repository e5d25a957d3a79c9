"""Machines with an operating system in them: what their agents say, and devices that come and go."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.base.images.build import tiny
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
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, until, until_phase

pytestmark = pytest.mark.needs("qemu")

MIB = 1 << 20
CARD = Nic("default", "02:00:00:00:00:01", UserNetwork("10.0.2.0/24", "10.0.2.1", "10.0.2.2", "10.0.2.3"))


def _config(guest: tiny.TinyImage, memory: int = 192) -> MachineConfig:
    kernel = KernelConfig(guest.bare, guest.initrd, "console=ttyS0 quiet memhp_default_state=online")
    cpu = CpuConfig(model="qemu64", max_sockets=4, features=(("rdrand", True),))
    return MachineConfig(
        "ns_tiny", cpu, MemoryConfig(memory * MIB, 2 * memory * MIB), kernel=kernel, nics=(CARD,), devices=DeviceConfig(graphics=False)
    )


async def says(machine: QemuMachine, script: str) -> str:
    done = await machine.agent.execute(["/bin/sh", "-c", script], 30)
    assert done.code == 0, done
    return done.out.decode().strip()


async def until_said(machine: QemuMachine, script: str, holds: Callable[[str], bool]) -> None:
    said = ""
    for _ in range(100):
        said = await says(machine, script)
        if holds(said):
            return
        await asyncio.sleep(0.2)
    pytest.fail(f"{script}: still {said!r}")


def _blank(path: Path) -> DiskLayer:
    path.write_bytes(b"")
    os.truncate(path, 4 * MIB)
    return DiskLayer(path, "raw")


@played_by(run)
async def test_an_agent_answers_also_after_a_restart(place: Place, tiny_guest: tiny.TinyImage) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", _config(tiny_guest))
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 60)
    assert machine.observed.times["agent"] >= machine.observed.times["running"]
    assert ("guest-exec", True) in (await machine.agent.info()).commands
    assert (await machine.agent.os()).id == "paddock-tiny" and await machine.agent.hostname() == "tiny"
    assert ("10.0.2.2", 24) in {one for card in await machine.agent.interfaces() for one in card.addresses}
    assert await machine.agent.execute(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], 30) == (3, b"out\n", b"err\n")
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None
    await until(again, lambda one: one.observed.agent, "the agent is found")
    await again.agent.ping()
    await again.stop(30)
    await until_phase(again, "ended")
    assert again.observed.end is not None and again.observed.end.reason == "guest-shutdown"


@played_by(run)
async def test_a_guest_sees_devices_come_and_go(place: Place, tiny_guest: tiny.TinyImage) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", _config(tiny_guest))
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 60)
    for bus in ("virtio", "scsi"):
        disk = DiskConfig("data", _blank(place.root / f"{bus}.img"), bus=bus, serial="data")
        await machine.plug_disk(disk)
        if bus == "virtio":
            await until_said(machine, "cat /sys/block/vd*/size 2>/dev/null || true", lambda said: "8192" in said.split())
            await machine.resize_disk("data", 8 * MIB)
            await until_said(machine, "cat /sys/block/vd*/size 2>/dev/null || true", lambda said: "16384" in said.split())
        await machine.unplug_disk("data")
        await until_said(machine, "ls /sys/block", lambda said: "vd" not in said)
    extra = Nic("extra", "02:00:00:00:00:02", UserNetwork("10.9.2.0/24", "10.9.2.1", "10.9.2.2", "10.9.2.3"))
    await machine.plug_nic(extra)
    await until_said(machine, "cat /sys/class/net/*/address", lambda said: extra.mac in said)
    await machine.set_link("extra", False)
    await machine.unplug_nic("extra")
    await until_said(machine, "cat /sys/class/net/*/address", lambda said: extra.mac not in said)
    assert machine.config.nics == (CARD,) and machine.config.disks == ()
    await machine.stop(0)
    await until_phase(machine, "ended")


@pytest.mark.spec("kubevirt", 168)
@played_by(run, seconds=900)
async def test_a_guest_reads_the_medium_that_is_in_its_drive(place: Place, tiny_guest: tiny.TinyImage) -> None:
    media = {}
    for text in ("one", "two"):
        media[text] = _blank(place.root / f"{text}.img")
        with media[text].path.open("r+b") as file:
            file.write(text.encode())
    reads = "head -c 3 /dev/sr0 2>/dev/null || echo none"
    machines = place.open()
    await machines.adopt()
    drive = DiskConfig("cd", None, bus="scsi", role="cdrom")
    machine = await machines.define("a", replace(_config(tiny_guest), disks=(drive,)))
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 600)
    await until_said(machine, reads, lambda said: said == "none")
    for text in ("one", "two"):
        await machine.change_medium(replace(drive, layer=media[text]))
        await until_said(machine, reads, lambda said, text=text: said == text)  # type: ignore[misc]
    # A guest that has it open keeps the tray locked, and its medium.
    holder = await says(machine, "(exec 3</dev/sr0; exec sleep 1000) >/dev/null 2>&1 & sleep 1; echo $!")
    with pytest.raises(Unanswered, match="keeps its tray locked"):
        await machine.change_medium(drive)
    assert await says(machine, reads) == "two" and machine.config.disks[0].layer == media["two"]
    await says(machine, f"kill {holder}")
    await machine.change_medium(drive)
    await until_said(machine, reads, lambda said: said == "none")
    await machine.stop(0)
    await until_phase(machine, "ended")


async def with_processors(machine: QemuMachine, sockets: int) -> None:
    """Add processors. While an emulated guest still boots, its buffer for translated code may have no room for them yet."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await machine.set_sockets(sockets)
            except RequestRefused as error:
                if "try again later" not in str(error):
                    raise
                await asyncio.sleep(1)


@played_by(run, seconds=180)
async def test_a_guest_sees_processors_and_memory_come(place: Place, tiny_guest: tiny.TinyImage) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", _config(tiny_guest, 320))
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 60)
    assert await says(machine, "grep -c ^processor /proc/cpuinfo") == "1"
    await with_processors(machine, 4)
    await until_said(machine, "ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l", lambda said: said == "4")
    before = int(await says(machine, "awk '/MemTotal/ {print $2}' /proc/meminfo"))
    await machine.set_memory(448 * MIB)
    await until(machine, lambda one: one.observed.memory == 448 * MIB, "the guest took it", 60)
    await until_said(machine, "awk '/MemTotal/ {print $2}' /proc/meminfo", lambda said: int(said) - before >= 100 * 1024)
    await machine.stop(0)
    await until_phase(machine, "ended")

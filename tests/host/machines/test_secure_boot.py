"""Hot-plug under Secure Boot, where QEMU emulates System Management Mode."""

from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from paddock.engine.host import efi
from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.config import CpuConfig, DeviceConfig, DiskConfig, DiskLayer, FirmwareConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, until
from tests.host.machines.test_guest import says, until_said

pytestmark = [pytest.mark.needs("qemu", "ovmf"), pytest.mark.slow]
MIB = 1 << 20


def _config(disk: Path, place: Place, *, secure: bool) -> MachineConfig:
    layer = DiskLayer(place.root / "over.qcow2", "qcow2", backing=DiskLayer(disk, "qcow2"))
    cpu = CpuConfig(model="max", max_sockets=4)
    firmware = FirmwareConfig("efi", secure_boot=secure)
    # So large that what its start translates leaves room for another processor's code.
    memory, disks = MemoryConfig(1536 * MIB, 2048 * MIB), (DiskConfig("root", layer, boot_order=1),)
    return MachineConfig("ns_secure", cpu, memory, firmware=firmware, disks=disks, devices=DeviceConfig(graphics=False), smm=secure)


async def _started(place: Place, guest: tiny.TinyImage, *, secure: bool) -> QemuMachine:
    found = efi.find("amd64")
    files: EfiFiles | None = found.secure if secure else found.plain
    machines = place.open(efi=files)
    await machines.adopt()
    place.over(guest.disk)
    machine = await machines.define("a", _config(guest.disk, place, secure=secure))
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 240)
    return machine


@pytest.mark.spec("kubevirt", 84, 115)
@played_by(run, seconds=600)
async def test_processors_and_memory_are_plugged_under_secure_boot(place: Place, tiny_signed: tiny.TinyImage) -> None:
    machine = await _started(place, tiny_signed, secure=True)
    # Two at once: the firmware takes them in one after the other.
    for count in (2, 4):
        await machine.set_sockets(count)
        await until_said(machine, "ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l", str(count).__eq__)
    online = "for each in 1 2 3; do echo 1 > /sys/devices/system/cpu/cpu$each/online; done 2>/dev/null; grep -c ^processor /proc/cpuinfo"
    assert await says(machine, online) == "4"
    await machine.set_memory(1664 * MIB)
    await until(machine, lambda one: one.observed.memory == 1664 * MIB, "the guest took it", 60)
    assert await says(machine, "grep -c ^processor /proc/cpuinfo") == "4"
    await machine.stop(0)


@pytest.mark.spec("kubevirt", 84)
@played_by(run, seconds=400)
async def test_without_system_management_mode_processors_are_plugged(place: Place, tiny_signed: tiny.TinyImage) -> None:
    machine = await _started(place, tiny_signed, secure=False)
    await machine.set_sockets(2)
    await until_said(machine, "ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l", lambda said: said == "2")
    assert await says(machine, "echo 1 > /sys/devices/system/cpu/cpu1/online 2>/dev/null; grep -c ^processor /proc/cpuinfo") == "2"
    await machine.stop(0)

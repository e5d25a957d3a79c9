"""A machine's life with a real operating system under a KVM that the processor carries out; nothing of it runs where KVM is emulated."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.base.images.build import tiny
from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, FirmwareConfig, KernelConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, until, until_phase
from tests.host.machines.test_renewal import blank, says
from tests.host.underkvm.conftest import Home
from tests.host.underkvm.test_bare import EXTRA, FIRST, HYPERV

pytestmark = pytest.mark.needs("qemu", "cc", "kvm")

_MIB = 1 << 20
_OVMF = EfiFiles(Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/OVMF/OVMF_VARS_4M.fd"))


def _machine(place: Place, guest: tiny.TinyImage, way: str) -> MachineConfig:
    memory, cpu = MemoryConfig(192 * _MIB, 320 * _MIB), CpuConfig(model="host", max_sockets=2)
    if way == "kernel":
        kernel = KernelConfig(guest.bare, guest.initrd, "console=ttyS0 quiet memhp_default_state=online")
        return MachineConfig(
            "ns_real", cpu, memory, kernel=kernel, disks=(DiskConfig("root", blank(place.root / "root.img")),), nics=(FIRST,)
        )
    layer = DiskLayer(place.over(guest.disk), "qcow2", DiskLayer(guest.disk, "qcow2"))
    disks = (DiskConfig("root", layer, boot_order=1),)
    return MachineConfig(
        "ns_real", cpu, memory, firmware=FirmwareConfig(kind="efi" if way == "uefi" else "bios"), disks=disks, nics=(FIRST,)
    )


async def _booted(home: Home, config: MachineConfig) -> QemuMachine:
    machines = home.open(_OVMF)
    await machines.adopt()
    machine = await machines.define("a", config)
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 120)
    return machine


@pytest.mark.parametrize("way", ["kernel", "bios", pytest.param("uefi", marks=pytest.mark.needs("ovmf"))])
@played_by(run, seconds=300)
async def test_it_boots_and_obeys_its_button(home: Home, place: Place, tiny_guest: tiny.TinyImage, way: str) -> None:
    machine = await _booted(home, _machine(place, tiny_guest, way))
    assert "hypervisor" in await says(machine, "cat /proc/cpuinfo")
    await machine.stop(30)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"


@played_by(run, seconds=300)
async def test_it_changes_pauses_is_suspended_and_moves(home: Home, place: Place, tiny_guest: tiny.TinyImage) -> None:
    machine = await _booted(home, _machine(place, tiny_guest, "kernel"))
    await says(machine, "echo kept > /tmp/kept")
    await machine.plug_disk(DiskConfig("data", blank(place.root / "data.img"), bus="virtio"))
    await machine.plug_nic(EXTRA)
    await machine.set_sockets(2)
    await machine.set_memory(256 * _MIB)
    await until(machine, lambda one: one.observed.memory == 256 * _MIB, "the guest took the memory", 60)
    assert await says(machine, "ls /sys/block | grep -c vd; grep -c ^processor /proc/cpuinfo") == "2\n2"
    await machine.pause()
    await machine.resume()
    await machine.suspend()
    await until_phase(machine, "suspended")
    await machine.start()
    await until(machine, lambda one: one.observed.phase == "running" and not one.observed.paused, "it goes on")
    await machine.renew()
    assert await says(machine, "cat /tmp/kept") == "kept"
    await machine.unplug_disk("data")
    await machine.unplug_nic("extra")
    assert await says(machine, "ls /sys/block | grep -c vd") == "1"


@played_by(run, seconds=300)
async def test_it_finds_the_settings_of_hyperv(home: Home, place: Place, tiny_guest: tiny.TinyImage) -> None:
    config = _machine(place, tiny_guest, "kernel")
    machine = await _booted(home, replace(config, cpu=replace(config.cpu, hyperv=HYPERV)))
    assert "Hyper-V" in await says(machine, "dmesg")

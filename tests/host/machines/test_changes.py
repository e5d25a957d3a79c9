"""Machines that change while they run, with a real QEMU."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.machine.config import Bus, CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig, Nic, UserNetwork
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, bare, run, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")

MIB = 1 << 20


def _raw(path: Path, size: int) -> DiskLayer:
    path.write_bytes(b"")
    os.truncate(path, size)
    return DiskLayer(path, "raw")


def _qcow2(path: Path, below: DiskLayer, size: int) -> DiskLayer:
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", below.format, "-b", str(below.path), str(path), str(size)]
    subprocess.run(command, check=True)
    return DiskLayer(path, "qcow2", below)


async def _running(machines: Machines, name: str, config: MachineConfig, *, paused: bool = False) -> QemuMachine:
    machine = await machines.define(name, config)
    await machine.start(paused=paused)
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None, machine.observed.end
    return machine


@played_by(run)
async def test_disks_are_plugged_grown_and_unplugged(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await _running(machines, "a", place.guest(hotplug=True))
    layer = _raw(place.root / "data.img", 4 * MIB)
    disk = DiskConfig("data", layer, bus="scsi", serial="data")
    await asyncio.gather(machine.plug_disk(disk), machine.plug_disk(disk))
    assert machine.observed.disks["data"].size == 4 * MIB
    assert machine.config.disks[-1] == replace(disk, hotplugged=True)
    with pytest.raises(RequestRefused, match="another one"):
        await machine.plug_disk(replace(disk, layer=_raw(place.root / "other.img", MIB)))
    await machine.resize_disk("data", 8 * MIB - 100)  # whole sectors: QEMU takes nothing else
    assert machine.observed.disks["data"].size == 8 * MIB and (place.root / "data.img").stat().st_size == 8 * MIB
    with pytest.raises(RequestRefused, match="shrink"):
        await machine.resize_disk("data", MIB)
    statistics = await machine.statistics()
    assert statistics.cpu_seconds > 0 and set(statistics.disks) == {"root", "data"} and len(statistics.vcpus) == 1
    assert statistics.memory.resident > MIB
    # A restart of Paddock finds it; a plug that is repeated finds it, too.
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.disks["data"].size == 8 * MIB
    await again.plug_disk(disk)
    await again.unplug_disk("data")
    assert "data" not in again.observed.disks and len(again.config.disks) == 1
    await again.unplug_disk("data")
    await again.plug_disk(disk)
    # It is there at the next start.
    await again.stop(0)
    await until_phase(again, "ended")
    await again.start()
    await until_phase(again, "running", "ended")
    assert again.observed.disks["data"].size == 8 * MIB
    await again.stop(0)
    await until_phase(again, "ended")


@pytest.mark.spec("kubevirt", 168)
@pytest.mark.parametrize("bus", ["sata", "ide", "scsi", "usb"])
@played_by(run)
async def test_media_are_put_in_exchanged_and_taken_out(place: Place, bus: Bus) -> None:
    machines = place.open()
    await machines.adopt()
    drive = DiskConfig("cd", None, bus=bus, role="cdrom")
    machine = await _running(machines, "a", place.guest(disks=(drive,)))
    assert machine.observed.disks["cd"].size == 0
    one = replace(drive, layer=_raw(place.root / "one.img", MIB))
    two = replace(drive, layer=_qcow2(place.root / "two.img", _raw(place.root / "below.img", MIB), 2 * MIB))
    await asyncio.gather(machine.change_medium(one), machine.change_medium(one))
    assert machine.observed.disks["cd"].size == MIB and machine.config.disks[1] == one
    await machine.change_medium(two)
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.disks["cd"].size == 2 * MIB
    await again.change_medium(two)
    with pytest.raises(RequestRefused, match="no drive"):
        await again.change_medium(replace(two, name="root"))
    await again.change_medium(drive)
    assert again.observed.disks["cd"].size == 0 and again.config.disks[1] == drive
    # It is there at the next start.
    await again.change_medium(one)
    await again.stop(0)
    await until_phase(again, "ended")
    await again.start()
    await until_phase(again, "running", "ended")
    assert again.observed.disks["cd"].size == MIB
    await again.stop(0)
    await until_phase(again, "ended")


@played_by(run)
async def test_a_guest_that_keeps_a_device_is_not_forced(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    network = UserNetwork("10.0.2.0/24", "10.0.2.1", "10.0.2.2", "10.0.2.3")
    # A QEMU that starts without such a card has no network that one could be plugged into.
    config = replace(place.guest(hotplug=True), nics=(Nic("first", "02:00:00:00:00:01", network),))
    machine = await _running(machines, "a", config)
    disk = DiskConfig("data", _raw(place.root / "data.img", MIB), bus="virtio")
    nic = Nic("extra", "02:00:00:00:00:02", network)
    await machine.plug_disk(disk)
    await machine.plug_nic(nic)
    await machine.set_link("extra", False)
    assert not machine.observed.nics["extra"].link_up
    with pytest.raises(Unanswered, match="not let go"):
        await machine.unplug_disk("data")
    state = machine.observed.disks["data"]
    assert state.state == "unplugging" and state.error
    with pytest.raises(Unanswered):
        await machine.unplug_nic("extra")
    # A reset lets go of what was asked for.
    await machine.reset()
    await until(machine, lambda one: "data" not in one.observed.disks and "extra" not in one.observed.nics, "both are out")
    assert [one.name for one in machine.config.disks] == ["root"] and [one.name for one in machine.config.nics] == ["first"]
    await machine.stop(0)
    await until_phase(machine, "ended")


@played_by(run)
async def test_processors_and_memory_are_added(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    config = replace(place.guest(), cpu=CpuConfig(cores=2, max_sockets=4, model="qemu64"), memory=MemoryConfig(16 * MIB, 272 * MIB))
    machine = await _running(machines, "a", config)
    assert machine.observed.sockets == 1 and machine.observed.memory == 16 * MIB
    await machine.set_sockets(3)
    with pytest.raises(RequestRefused, match="cannot be taken away"):
        await machine.set_sockets(2)
    with pytest.raises(RequestRefused):
        await machine.set_sockets(5)
    await machine.set_memory(144 * MIB)
    with pytest.raises(RequestRefused):
        await machine.set_memory(512 * MIB)
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.sockets == 3 and again.config.memory.size == 144 * MIB
    await again.stop(0)
    await until_phase(again, "ended")


@played_by(run)
async def test_snapshots_and_merges(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    config = place.guest()
    root = config.disks[0].layer
    assert root is not None
    machine = await _running(machines, "a", config)
    first = _qcow2(place.root / "first.qcow2", root, MIB)
    await machine.overlay_disks({"root": first})
    await machine.overlay_disks({"root": first})
    assert machine.config.disks[0].layer == first
    second = _qcow2(place.root / "second.qcow2", first, MIB)
    await machine.overlay_disks({"root": second})
    with pytest.raises(RequestRefused, match="not an overlay"):
        await machine.overlay_disks({"root": DiskLayer(place.root / "third.qcow2", "qcow2", root)})
    await machine.commit_disk("root", first.path)
    assert machine.config.disks[0].layer == first and not machine.observed.jobs and not machine.observed.paused
    await machine.commit_disk("root", root.path)
    assert machine.config.disks[0].layer == root
    await machine.stop(0)
    await until_phase(machine, "ended")
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None
    await machine.stop(0)
    await until_phase(machine, "ended")


@played_by(run)
async def test_pictures_and_sessions(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await _running(machines, "a", place.guest())
    assert (await machine.screenshot()).startswith(b"\x89PNG")
    await until_guest_runs(machine)
    console = machine.console()
    assert (await console.read()).endswith(b"R")
    await console.write(b"x")
    assert await console.read() == b"x"
    await until(machine, lambda one: one.directory.serial_tail(100).endswith(b"Rx"), "it is in the log, too")
    newer = machine.console()
    assert await console.read() == b""
    assert (await newer.read()).endswith(b"Rx")
    await newer.write(b"y")
    assert await newer.read() == b"y"
    display = await machine.vnc()
    assert (await display.read()).startswith(b"RFB 003.008")
    other = await machine.vnc()
    assert await display.read() == b"" and (await other.read()).startswith(b"RFB")
    dump = place.root / "memory.elf"
    await machine.dump_memory(dump)
    assert dump.read_bytes()[:4] == b"\x7fELF" and dump.stat().st_mode & 0o777 == 0o600
    await until(machine, lambda one: not one.observed.stands_still, "it goes on")
    await newer.write(b"p")
    await until_phase(machine, "ended")
    assert await newer.read() in (b"p", b"") and await newer.read() == b"" and await other.read() == b""
    plain = await _running(machines, "b", bare(), paused=True)
    with pytest.raises(RequestRefused, match="no display"):
        await plain.screenshot()
    with pytest.raises(RequestRefused, match="no display"):
        await plain.vnc()
    await plain.stop(0)
    await until_phase(plain, "ended")


@played_by(run)
async def test_saved_it_goes_on_where_it_was(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await _running(machines, "a", place.guest())
    await until_guest_runs(machine)
    state = place.root / "state"
    await machine.save(state)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "saved"
    await machine.start(state=state)
    await until_phase(machine, "running", "ended")
    assert machine.observed.phase == "running", machine.observed.end
    console = machine.console()
    await console.read()
    await console.write(b"z")
    assert await console.read() == b"z", "it did not boot again, or it would have said R first"
    await machine.stop(10)
    await until_phase(machine, "ended")

"""A guest moves into a new QEMU with real ones. There is one version here: what is proven is the move, not another QEMU."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from paddock.base.errors import PaddockError
from paddock.base.images.build import tiny
from paddock.engine.machine import migration, renewal
from paddock.engine.machine.argv.view import EfiFiles
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
from paddock.engine.machine.errors import QemuRefused, RequestRefused, StartFailed
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.owner import MachineOwner
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, closed, qemus, run, until, until_guest_runs, until_phase

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]

_OVMF = Path("/usr/share/OVMF")


async def echoes(machine: QemuMachine) -> None:
    console = machine.console()
    while b"z" not in machine.directory.serial_tail(1):
        await console.write(b"z")
        await asyncio.sleep(0.2)
    console.close()


@played_by(run)
async def test_a_guest_goes_on_in_a_new_process(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_guest_runs(machine)
    old = machine.observed.pid
    renewed = await machine.renew()
    print(renewed)
    assert machine.observed.pid != old and machine.observed.phase == "running"
    await echoes(machine)
    assert machine.directory.serial_tail(1000).count(b"R") == 1
    await machine.stop(30)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"


MIB = 1 << 20
CARD = Nic("default", "02:00:00:00:00:01", UserNetwork("10.0.2.0/24", "10.0.2.1", "10.0.2.2", "10.0.2.3"))
EXTRA = Nic("extra", "02:00:00:00:00:02", UserNetwork("10.9.2.0/24", "10.9.2.1", "10.9.2.2", "10.9.2.3"))


async def says(machine: QemuMachine, script: str) -> str:
    done = await machine.agent.execute(["/bin/sh", "-c", script], 60)
    assert done.code == 0, done
    return done.out.decode().strip()


def blank(path: Path, size: int = 4 * MIB) -> DiskLayer:
    path.write_bytes(b"")
    os.truncate(path, size)
    return DiskLayer(path, "raw")


async def booted(machine: QemuMachine) -> None:
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open", 120)


def small(place: Place, guest: tiny.TinyImage, port: int) -> MachineConfig:
    card = structs.replace(CARD, backend=structs.replace(CARD.backend, forwards=(("tcp", "127.0.0.1", port, 7),)))
    kernel = KernelConfig(guest.bare, guest.initrd, "console=ttyS0 quiet memhp_default_state=online")
    cpu = CpuConfig(model="qemu64", max_sockets=4, features=(("rdrand", True),))
    disks = (
        DiskConfig("root", blank(place.root / "root.img")),
        DiskConfig("old", blank(place.root / "old.img"), bus="scsi", hotplugged=True),
    )
    devices = DeviceConfig(graphics=False)
    return MachineConfig("ns_tiny", cpu, MemoryConfig(192 * MIB, 512 * MIB), kernel=kernel, nics=(card,), disks=disks, devices=devices)


_COUNT = "(i=0; while :; do i=$((i+1)); echo $i > /tmp/next; mv /tmp/next /tmp/count; sleep 0.05; done) >/dev/null 2>&1 &"
_DEVICES = "ls /sys/bus/pci/devices; ls /sys/block; cat /sys/class/net/*/address; ls -d /sys/devices/system/cpu/cpu[0-9]*"


async def _devices(machine: QemuMachine) -> str:
    """Return the guest's devices; a busy one takes its time to find plugged ones, and its shell may trip over one that goes."""
    found, before = "", None
    while not found or found != before:
        await asyncio.sleep(5)
        done = await machine.agent.execute(["/bin/sh", "-c", _DEVICES], 60)
        found, before = done.out.decode() if done.code == 0 else "", found
    return found


@played_by(run, seconds=600)
async def test_an_operating_system_keeps_all_it_has(place: Place, tiny_guest: tiny.TinyImage, free_port: Callable[[], int]) -> None:
    port = free_port()
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", small(place, tiny_guest, port))
    await booted(machine)
    # Everything that may differ from the start: what came, what went, what grew.
    await machine.set_sockets(2)
    await machine.plug_disk(DiskConfig("data", blank(place.root / "data.img"), bus="virtio", serial="data"))
    await machine.plug_disk(DiskConfig("more", blank(place.root / "more.img"), bus="scsi"))
    await machine.plug_nic(EXTRA)
    await machine.unplug_disk("old")
    await machine.resize_disk("data", 8 * MIB)
    await machine.set_memory(256 * MIB)
    await until(machine, lambda one: one.observed.memory == 256 * MIB, "the guest took it", 120)
    await machine.set_link("extra", False)
    await says(machine, f"{_COUNT} echo written | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null; echo kept > /tmp/kept")
    before, config, old = await _devices(machine), machine.config, machine.observed
    uptime, count = float((await says(machine, "cat /proc/uptime")).split()[0]), int(await says(machine, "cat /tmp/count"))
    for _ in range(2):
        renewed = await machine.renew()
        print(f"stood still for {renewed.pause * 1000:.0f} ms of {renewed.seconds:.2f} s")
        assert machine.observed.pid != old.pid and machine.config == config
    await until(machine, lambda one: one.observed.agent, "the agent is found")
    assert await _devices(machine) == before
    assert await says(machine, "cat /tmp/kept; head -c 7 /dev/vda") == "kept\nwritten"
    assert float((await says(machine, "cat /proc/uptime")).split()[0]) > uptime
    assert int(await says(machine, "cat /tmp/count")) > count
    assert (machine.observed.memory, machine.observed.sockets) == (old.memory, old.sockets) == (256 * MIB, 2)
    assert machine.observed.nics == old.nics and machine.observed.disks == old.disks
    # The port that the card lists leads there again, and devices still come and go.
    assert await asyncio.to_thread(echoed, port, b"through QEMU's own network") == b"through QEMU's own network"
    await machine.unplug_disk("data")
    await machine.plug_disk(DiskConfig("last", blank(place.root / "last.img"), bus="virtio"))
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.pid == machine.observed.pid
    await until(again, lambda one: one.observed.agent, "the agent is found")
    assert await says(again, "cat /tmp/kept") == "kept"
    await again.stop(30)
    await until_phase(again, "ended")
    assert again.observed.end is not None and again.observed.end.reason == "guest-shutdown"
    assert qemus(place.machines) == {} and not list(again.directory.path.glob("next*"))


def echoed(port: int, said: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while data := connection.recv(4096):
            found += data
    return found


async def _small_one(place: Place, machines: Machines, **more: Any) -> QemuMachine:
    await machines.adopt()
    machine = await machines.define("a", structs.replace(place.guest(), **more))
    await machine.start()
    await until_guest_runs(machine)
    return machine


async def _is_as_before(place: Place, machine: QemuMachine, pid: int) -> None:
    await until(machine, lambda one: not one.observed.stands_still, "it runs")
    assert (machine.observed.phase, machine.observed.pid) == ("running", pid)
    assert qemus(place.machines) == {"a": [pid]} and not list(machine.directory.path.glob("next*"))
    record = machine.directory.read_record()
    assert record is not None and record.renewal is None and record.pid == pid
    await echoes(machine)
    assert machine.directory.serial_tail(1000).count(b"R") == 1


async def _fails_after_everything_was_received(side: migration.MigrationEnd) -> None:
    await _RECEIVE(side)
    raise StartFailed("cannot go on", why="as if")


async def _kills_who_receives(side: migration.MigrationEnd) -> None:
    os.kill(side.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    await asyncio.Event().wait()


_RECEIVE = migration.receive


@pytest.mark.parametrize("receive", [_fails_after_everything_was_received, _kills_who_receives])
@played_by(run)
async def test_a_failure_leaves_it_where_it_was(place: Place, monkeypatch: pytest.MonkeyPatch, receive: Callable[..., Any]) -> None:
    machine = await _small_one(place, place.open())
    pid = machine.observed.pid
    monkeypatch.setattr(migration, "receive", receive)
    with pytest.raises(RequestRefused) as caught:
        await machine.renew()
    assert caught.value.reason == "MigrationFailed"
    await _is_as_before(place, machine, pid)
    monkeypatch.undo()
    await machine.renew()
    await _is_as_before(place, machine, machine.observed.pid)
    assert machine.observed.pid != pid


@played_by(run)
async def test_a_new_qemu_that_does_not_run_the_guest_is_left_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())
    pid, execute = machine.observed.pid, MachineOwner.execute
    refused: list[int] = []

    async def cannot(owner: MachineOwner, command: str, *args: Any, **more: Any) -> Any:
        if command == "cont" and not refused:
            refused.append(owner.record.pid)
            raise QemuRefused("QEMU refused cont", kind="GenericError", description="as if a disk were locked")
        return await execute(owner, command, *args, **more)

    monkeypatch.setattr(MachineOwner, "execute", cannot)
    with pytest.raises(QemuRefused):
        await machine.renew()
    assert refused != [pid]
    await _is_as_before(place, machine, pid)


@pytest.mark.parametrize("closes_first", [False, True])
@played_by(run)
async def test_a_new_qemu_that_does_not_start_says_why(place: Place, monkeypatch: pytest.MonkeyPatch, closes_first: bool) -> None:
    machine = await _small_one(place, place.open())
    pid, config = machine.observed.pid, machine.config
    if closes_first:
        monkeypatch.setattr(renewal, "reach", closed)
    machine._owner.files.config = structs.replace(
        config, disks=(structs.replace(config.disks[0], layer=DiskLayer(place.root / "gone.img", "raw")),)
    )
    with pytest.raises(RequestRefused, match=r"gone\.img") as caught:
        await machine.renew()
    assert caught.value.reason == "NewFailed"
    machine._owner.files.config = config
    await _is_as_before(place, machine, pid)


@played_by(run)
async def test_a_stop_overtakes_a_move(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())
    waits = asyncio.Event()

    async def receive(side: migration.MigrationEnd) -> None:
        await _RECEIVE(side)
        waits.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(migration, "receive", receive)
    moving = asyncio.create_task(machine.renew())
    await waits.wait()
    await machine.stop(30)
    with pytest.raises(RequestRefused, match="stopped"):
        await moving
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"
    async with asyncio.timeout(30):
        while qemus(place.machines):
            await asyncio.sleep(0.05)


@played_by(run)
async def test_a_process_that_dies_in_the_middle_ends_the_machine_as_ever(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())

    async def receive(side: migration.MigrationEnd) -> None:
        os.kill(machine.observed.pid, signal.SIGKILL)
        await asyncio.Event().wait()

    monkeypatch.setattr(migration, "receive", receive)
    with pytest.raises(PaddockError):
        await machine.renew()
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "crashed"
    monkeypatch.undo()
    async with asyncio.timeout(30):
        while qemus(place.machines):
            await asyncio.sleep(0.05)
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.phase == "running", machine.observed.end
    assert not list(machine.directory.path.glob("next*"))


def _outdated(machine: QemuMachine) -> bool:
    return machine.outdated


@played_by(run)
async def test_what_was_replaced_under_a_machine_is_noticed(place: Place) -> None:
    machine = await _small_one(place, place.open())
    assert _outdated(machine) is False
    owner = machine._owner
    assert owner.record.program is not None
    # As if the file had been another one when the machine was started.
    owner.save(program=structs.replace(owner.record.program, size=1))
    assert _outdated(machine)
    await machine.pause()
    with pytest.raises(RequestRefused, match="resume it first"):
        await machine.renew()
    await machine.resume()
    await machine.renew()
    assert not _outdated(machine)


@pytest.mark.parametrize("kind", ["memory file", "TPM"])
@played_by(run)
async def test_what_the_guest_has_besides_its_memory_comes_along(place: Place, kind: str) -> None:
    more: dict[str, Any] = {}
    if kind == "memory file":
        more["memory"] = structs.replace(place.guest().memory, file=place.root / "memory")
    elif kind == "TPM":
        more["devices"] = structs.replace(place.guest().devices, tpm=Tpm())
    machine = await _small_one(place, place.open(), **more)
    for _ in range(2):
        renewed = await machine.renew()
        print(f"{kind}: stood still for {renewed.pause * 1000:.0f} ms of {renewed.seconds:.2f} s")
        await _is_as_before(place, machine, machine.observed.pid)
    if kind == "TPM":
        record = machine.directory.read_record()
        assert record is not None and list(record.helpers) == ["tpm"]
    await machine.stop(30)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown" and not machine.observed.detail


@played_by(run)
async def test_a_guest_that_is_never_through_stands_still_in_the_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())
    # As if it wrote faster than its memory is sent: it is stopped at once.
    monkeypatch.setattr(renewal, "FORCE_SECONDS", 0.0)
    pid = machine.observed.pid
    await machine.renew()
    assert machine.observed.pid != pid
    await _is_as_before(place, machine, machine.observed.pid)


@played_by(run)
async def test_layers_that_were_laid_since_are_those_that_are_written(place: Place) -> None:
    machine = await _small_one(place, place.open())
    below = machine.config.disks[0].layer
    assert below is not None
    before = below.path.read_bytes()
    over = DiskLayer(place.root / "over.qcow2", "qcow2", backing=below)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", os.fspath(over.path), "1M"], check=True)
    await machine.overlay_disks({"root": over})
    empty = over.path.stat().st_size
    await machine.renew()
    console = machine.console()
    await console.write(b"w")
    await until(machine, lambda one: one.directory.serial_tail(1) == b"w", "it writes")
    console.close()
    await machine.renew()
    await _is_as_before(place, machine, machine.observed.pid)
    await machine.stop(0)
    await until_phase(machine, "ended")
    assert below.path.read_bytes() == before and over.path.stat().st_size >= empty + (64 << 10)
    subprocess.run(["qemu-img", "check", "-q", os.fspath(over.path)], check=True)


@pytest.mark.parametrize("kept", [False, True])
@played_by(run)
async def test_firmware_variables_come_along(place: Place, kept: bool) -> None:
    files = EfiFiles(_OVMF / "OVMF_CODE_4M.fd", _OVMF / "OVMF_VARS_4M.fd")
    if not files.code.exists():
        pytest.skip("needs ovmf: there is no EFI firmware here")
    variables = place.root / "variables.fd"
    machines = place.open(efi=files)
    await machines.adopt()
    config = structs.replace(
        place.guest(), memory=MemoryConfig(64 << 20, 64 << 20), firmware=FirmwareConfig("efi", variables=variables if kept else None)
    )
    machine = await machines.define("a", config)
    await machine.start()
    await until_phase(machine, "running", "ended")
    await machine.renew()
    await machine.renew()
    assert machine.observed.phase == "running" and not machine.observed.paused
    file = variables if kept else machine.directory.run / "efi-vars.fd"
    assert file.stat().st_size == files.variables.stat().st_size
    assert os.path.samefile(f"/proc/{machine.observed.pid}/cwd", machine.directory.run)
    await machine.stop(0)
    await until_phase(machine, "ended")


@played_by(run)
async def test_what_qemu_itself_finds_in_the_way_is_a_refusal(place: Place) -> None:
    machine = await _small_one(place, place.open())
    pid = machine.observed.pid
    # A node that QEMU cannot hand over.
    node = {"driver": "vvfat", "node-name": "fat", "dir": ".", "rw": True, "read-only": False}
    await machine._owner.execute("blockdev-add", node)
    with pytest.raises(RequestRefused, match="vvfat") as caught:
        await machine.renew()
    assert caught.value.reason == "NotRenewable"
    await machine._owner.execute("blockdev-del", {"node-name": "fat"})
    await _is_as_before(place, machine, pid)
    await asyncio.gather(machine.renew(), machine.renew())
    await _is_as_before(place, machine, machine.observed.pid)

"""The actions of guests and hosts on a machine, and the rights of the machine's QEMU on the host."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.machine import directory, limits
from paddock.engine.machine.config import DiskConfig, DiskLayer, Tpm
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines import bootsector
from tests.host.machines.conftest import Place, bare, run, running, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")

MIB = 1 << 20


async def _guest_runs(machine: QemuMachine) -> None:
    await machine.start()
    await until_guest_runs(machine)


@pytest.fixture
def small_store(place: Place) -> Iterator[Path]:
    """A file system of 1 MiB."""
    store = place.root / "store"
    store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "none", store], check=True)
    yield store
    subprocess.run(["umount", "-l", store], check=True)


@pytest.mark.needs("root")
@played_by(run)
async def test_a_full_store_pauses_the_guest_and_room_lets_it_go_on(place: Place, small_store: Path) -> None:
    machines = place.open()
    await machines.adopt()
    layer = DiskLayer(bootsector.write(small_store / "root.img", 64 * MIB), "raw")
    config = replace(place.guest(), disks=(DiskConfig("root", layer, boot_order=1),))
    machine = await machines.define("a", config)
    await _guest_runs(machine)
    console = machine.console()
    await console.read()
    written = 0
    while not machine.observed.paused:
        await console.write(b"w")
        try:
            async with asyncio.timeout(1):
                written += len(await console.read())
        except TimeoutError:
            continue
        assert written < 40
    assert machine.observed.phase == "running" and machine.observed.disk_errors == {"root": "enospc"}
    assert machine.observed.paused == "io-error"
    # It is found so, too.
    console.close()
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None
    assert again.observed.paused == "io-error" and again.observed.disk_errors == {"root": "enospc"}
    await again.resume()
    await until(again, lambda one: one.observed.paused == "io-error" and bool(one.observed.disk_errors), "it failed again")
    subprocess.run(["mount", "-o", "remount,size=16m", small_store], check=True)
    await until(again, lambda one: not one.observed.stands_still, "it goes on by itself")
    assert again.observed.disk_errors == {}
    console = again.console()
    before = len(await console.read())
    assert before
    await console.write(b"w")
    # What was written while the guest was paused may answer, too.
    answer = await console.read()
    assert answer and not answer.strip(b"w")
    await again.stop(0)
    await until_phase(again, "ended")
    machines.close()


@pytest.mark.parametrize("ends", [False, True])
@played_by(run)
async def test_reboots(place: Place, ends: bool) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest(reboot_ends=ends))
    await _guest_runs(machine)
    console = machine.console()
    await console.write(b"r")
    if ends:
        await until_phase(machine, "ended")
        assert machine.observed.end is not None and machine.observed.end.reason == "guest-reboot"
    else:
        await until(machine, lambda one: one.directory.serial_tail(100).count(b"R") == 2, "it boots again")
        # The firmware resets once more on its own account.
        resets = machine.observed.resets
        assert resets >= 1 and machine.observed.phase == "running"
        await machine.reset()
        await until(machine, lambda one: one.observed.resets > resets, "another one")
    await machine.stop(0)
    await until(machine, lambda one: one.observed.phase == "ended", "its end")


@played_by(run)
async def test_a_stop_ends_a_qemu_that_hangs(place: Place) -> None:
    machine = await running(place.open())
    os.kill(machine.observed.pid, signal.SIGSTOP)
    await machine.stop(30)
    began = time.monotonic()
    await asyncio.sleep(0.2)
    await machine.stop(0)
    await until_phase(machine, "ended")
    assert time.monotonic() - began < 2
    assert machine.observed.end is not None and machine.observed.end.reason == "killed"


@played_by(run)
async def test_a_qemu_that_is_silent_when_it_is_found(place: Place) -> None:
    machines = place.open()
    machine = await running(machines)
    machines.close()
    os.kill(machine.observed.pid, signal.SIGSTOP)
    machines = place.open(patience=0.3)
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.live and again.observed.fault is not None
    assert again.observed.fault.reason == "ProcessStopped"
    await again.stop(0)
    await until_phase(again, "ended")


@pytest.mark.needs("root")
@pytest.mark.spec("kubevirt", 107)
@played_by(run)
async def test_qemu_has_no_rights_and_its_guest_cannot_fill_the_host(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "SERIAL_LIMIT", 1 << 13)
    machines = place.open()
    await machines.adopt()
    first, second = await machines.define("a", place.guest("a")), await machines.define("b", place.guest("b"))
    await _guest_runs(first)
    await _guest_runs(second)
    users = set()
    for machine in (first, second):
        status = _status(machine.observed.pid)
        (user,) = set(status["Uid"].split())
        assert int(user) >= 2_000_000_000
        assert set(status["Gid"].split()) == {user} and status["Groups"] == ""
        users.add(user)
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
        argv = Path(f"/proc/{machine.observed.pid}/cmdline").read_text().split("\0")
        assert argv[argv.index("-sandbox") + 1] == "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
        folder = machine.directory.run.stat()
        assert folder.st_mode & 0o777 == 0o700 and str(folder.st_uid) == user
        limits = Path(f"/proc/{machine.observed.pid}/limits").read_text().splitlines()
        assert next(line.split()[4] for line in limits if line.startswith("Max core file size")) == "0"
        for name in ("config.json", "process.json", "qemu.log", "lock"):
            kept = (machine.directory.path / name).stat()
            assert kept.st_uid == 0 and kept.st_mode & 0o077 == 0
    assert len(users) == 2, "each machine has a user of its own"
    console = first.console()
    await console.write(b"f")
    # An open session that is not read would slow the guest down.
    console.close()
    log = first.directory.run / "serial.log"
    before = cuts = 0
    deadline = time.monotonic() + 30
    while cuts < 2 and time.monotonic() < deadline:
        size = log.stat().st_size
        cuts, before = cuts + (size < before), size
        await asyncio.sleep(0.01)
    assert cuts == 2, "the log grew beyond what it may hold, and was cut, twice"
    await first.stop(0)
    await second.stop(0)
    await until_phase(first, "ended")
    await until_phase(second, "ended")
    first.directory.bound_logs()
    assert log.stat().st_size <= 1 << 13


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.needs("swtpm")
@played_by(run)
async def test_a_tpm_is_started_and_ends_with_its_machine(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    config = place.guest()
    machine = await machines.define("a", replace(config, devices=replace(config.devices, tpm=Tpm())))
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.phase == "running", machine.observed.end
    record = machine.directory.read_record()
    assert record is not None
    ((pid, _),) = record.helpers.values()
    assert Path(f"/proc/{pid}").exists()
    await machine.stop(0)
    await until_phase(machine, "ended")
    await until(machine, lambda one: not Path(f"/proc/{pid}").exists(), "the TPM went")


@pytest.mark.needs("root")
@played_by(run)
async def test_limits_of_the_host_hold_for_the_process_and_go_with_it(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("limited", replace(bare(), limits={"cpu.max": "50000 100000", "made.up": "1"}))
    await machine.start()
    await until_phase(machine, "running", "ended")
    found = limits.on_this_host().of("cpu")
    if found is None or not os.access(found[0], os.W_OK):
        pytest.skip("needs cgroups: no control groups for cpu that may be written")
    group = found[0] / "paddock" / machines.shares.group("limited", machine.config)
    assert str(machine.observed.pid) in (group / "cgroup.procs").read_text().split()
    assert "made.up=1 is not kept" in machine.observed.detail and "cpu" not in machine.observed.detail
    await machine.stop(0)
    await until_phase(machine, "ended")
    assert not group.exists()

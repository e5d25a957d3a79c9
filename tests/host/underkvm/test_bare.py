"""A machine's life under KVM, with a guest that any KVM runs, even one that interprets instructions."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, Nic, UserNetwork
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.defaults import InstallationDefaults, defaulted
from paddock.kubevirt.translate.config import machine_config
from paddock.kubevirt.translate.resolved import MachineInputs, ResolvedHost
from tests.coroutines import played_by
from tests.host.machines.conftest import ROOT, run, until, until_phase
from tests.host.underkvm import bareguest
from tests.host.underkvm.conftest import Home
from tests.unit.dialects.vitistack.translate.making import small, virtual_machine

pytestmark = pytest.mark.needs("qemu", "cc", "kvm-device")

NETWORK = UserNetwork("10.9.2.0/24", "10.9.2.1", "10.9.2.2", "10.9.2.3")
# A QEMU that starts without such a card has no network that one could be plugged into.
FIRST, EXTRA = Nic("first", "02:00:00:00:00:01", NETWORK), Nic("extra", "02:00:00:00:00:02", NETWORK)
# What a guest of Windows gets, and the part of it that this project has seen a software KVM take.
HYPERV = tuple(
    (name, "on")
    for name in (
        "hv-relaxed",
        "hv-vapic",
        "hv-vpindex",
        "hv-runtime",
        "hv-synic",
        "hv-time",
        "hv-stimer",
        "hv-reset",
        "hv-frequencies",
        "hv-ipi",
    )
)
_SIMPLE = (
    *((name, "on") for name in ("hv-relaxed", "hv-runtime", "hv-reset", "hv-frequencies")),
    ("hv-spinlocks", "0x1fff"),
    ("hv-vendor-id", "KVM Hv"),
)
# Under an interpreting KVM, some registers of the processor that it shows cannot be set.
_WHOLE = pytest.mark.needs("kvm")


async def _begun(machines: Machines, home: Home, cpu: CpuConfig | None = None, nics: tuple[Nic, ...] = ()) -> QemuMachine:
    await machines.adopt()
    machine = await machines.define("a", replace(bareguest.guest(home.root, cpu), nics=nics))
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None, machine.observed.end
    assert machine.observed.accelerator == "kvm"
    await bareguest.until_it_runs(machine)
    return machine


async def _ended(machine: QemuMachine, reason: str) -> None:
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == reason


def _has_kvm(pid: int) -> bool:
    """QEMU holds a virtual machine of the kernel."""
    return any(os.readlink(f"/proc/{pid}/fd/{handle}") == "anon_inode:kvm-vm" for handle in os.listdir(f"/proc/{pid}/fd"))


@played_by(run)
async def test_it_starts_writes_and_obeys_its_button(home: Home) -> None:
    machine = await _begun(home.open(), home)
    assert _has_kvm(machine.observed.pid)
    await bareguest.sees(machine, disks=1, nics=0)
    await bareguest.writes(machine, home.root / "root.img")
    await until(machine, lambda one: one.observed.agent, "the agent has its channel open")
    await machine.agent.ping()
    await machine.stop(30)
    await _ended(machine, "guest-shutdown")


@played_by(run)
async def test_a_reset_and_a_reboot_begin_again_in_the_same_process(home: Home) -> None:
    machine = await _begun(home.open(), home)
    pid = machine.observed.pid
    await machine.reset()
    await bareguest.until_it_runs(machine, 2)
    await machine.soft_reboot()
    await bareguest.until_it_runs(machine, 3)
    assert (machine.observed.phase, machine.observed.pid) == ("running", pid)


@played_by(run)
async def test_devices_come_and_go(home: Home) -> None:
    machine = await _begun(home.open(), home, nics=(FIRST,))
    path = home.root / "data.img"
    path.write_bytes(bytes(1 << 20))
    await machine.plug_disk(DiskConfig("data", DiskLayer(path, "raw"), bus="virtio"))
    await machine.plug_nic(EXTRA)
    await bareguest.sees(machine, disks=2, nics=2)
    await machine.set_sockets(2)
    assert len((await machine.statistics()).vcpus) == 2
    await machine.unplug_disk("data")
    await machine.unplug_nic("extra")
    await bareguest.sees(machine, disks=1, nics=1)


@played_by(run)
async def test_its_clock_stands_still_while_it_is_paused(home: Home) -> None:
    machine = await _begun(home.open(), home)
    await machine.pause()
    assert machine.observed.paused == "user"
    before = machine.directory.serial_tail(1000)
    console = machine.console()
    await console.write(b"c")
    console.close()
    await asyncio.sleep(1)
    assert machine.directory.serial_tail(1000) == before
    await machine.resume()
    assert await bareguest.ticks(machine) > 0


@played_by(run)
async def test_it_goes_on_after_a_suspension(home: Home) -> None:
    machine = await _begun(home.open(), home)
    before = await bareguest.ticks(machine)
    await machine.suspend()
    await until_phase(machine, "suspended")
    await machine.start()
    await until(machine, lambda one: one.observed.phase == "running" and not one.observed.paused, "it goes on")
    await _is_the_same(machine, home, before)


@played_by(run)
async def test_it_goes_on_in_a_new_process(home: Home) -> None:
    machine = await _begun(home.open(), home)
    before, old = await bareguest.ticks(machine), machine.observed.pid
    await machine.renew()
    assert machine.observed.pid != old and _has_kvm(machine.observed.pid)
    await _is_the_same(machine, home, before)


async def _is_the_same(machine: QemuMachine, home: Home, before: int) -> None:
    """It has not begun again, and its clock, its disk and its agent go on."""
    assert await bareguest.ticks(machine) > before
    await bareguest.writes(machine, home.root / "root.img")
    await machine.agent.ping()
    assert machine.directory.serial_tail(100_000).count(b"R") == 1


@played_by(run)
async def test_a_snapshot_keeps_what_was_written_before(home: Home) -> None:
    machine = await _begun(home.open(), home)
    base, top = home.root / "root.img", home.root / "top.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base), str(top)], check=True)
    await machine.overlay_disks({"root": DiskLayer(top, "qcow2", DiskLayer(base, "raw"))})
    await bareguest.asked(machine, "w", "w")
    assert base.read_bytes() == bytes(1 << 20)
    await machine.commit_disk("root", base)
    assert base.read_bytes()[bareguest.MARKED :].startswith(bareguest.WRITTEN)


@played_by(run)
async def test_adopted_it_goes_on_and_its_crash_is_seen(home: Home) -> None:
    first = home.open()
    machine = await _begun(first, home)
    seen, before = machine.observed, await bareguest.ticks(machine)
    first.close()
    second = home.open()
    await second.adopt()
    again = second.get("a")
    assert again is not None and again.observed.pid == seen.pid and again.observed.accelerator == "kvm"
    await _is_the_same(again, home, before)
    os.kill(seen.pid, signal.SIGKILL)
    await _ended(again, "crashed")


@pytest.mark.parametrize("step", [3, 9, 18])
@played_by(run)
async def test_a_renewal_that_is_killed_loses_nothing(home: Home, step: int) -> None:
    first = home.open()
    machine = await _begun(first, home)
    before = await bareguest.ticks(machine)
    first.close()
    command = [sys.executable, "-m", "tests.host.underkvm.renewing", str(home.root), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    machines = home.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None
    await until(again, lambda one: one.observed.phase == "running" and not one.observed.paused, "it runs")
    await _is_the_same(again, home, before)


@pytest.mark.parametrize("features", [pytest.param((), marks=_WHOLE, id="whole"), pytest.param((("arch-capabilities", False),), id="part")])
@played_by(run)
async def test_it_runs_on_the_processor_of_the_host(home: Home, features: tuple[tuple[str, bool], ...]) -> None:
    machine = await _begun(home.open(), home, CpuConfig(model="host", features=features))
    await bareguest.writes(machine, home.root / "root.img")


@pytest.mark.parametrize("settings", [pytest.param(HYPERV, marks=_WHOLE, id="whole"), pytest.param(_SIMPLE, id="part")])
@played_by(run)
async def test_qemu_takes_the_settings_of_hyperv(home: Home, settings: tuple[tuple[str, str], ...]) -> None:
    machine = await _begun(home.open(), home, CpuConfig(model="qemu64", hyperv=settings))
    await bareguest.writes(machine, home.root / "root.img")


@pytest.mark.spec("vitistack", 53)
@pytest.mark.parametrize("whole", [pytest.param(True, marks=_WHOLE, id="whole"), pytest.param(False, id="part")])
@played_by(run)
async def test_qemu_takes_what_a_machine_of_vitistack_asks_of_hyperv(home: Home, whole: bool) -> None:
    wanted = virtual_machine(small(domain={"features": {"hyperv": True}}))
    spec = {**wanted["spec"]["template"]["spec"], "volumes": []}
    spec["domain"] = {**spec["domain"], "devices": {}}
    instance = from_data({"metadata": {"name": "a"}, "spec": spec}, VirtualMachineInstance)
    instance = replace(instance, spec=defaulted(instance.spec, InstallationDefaults()))
    cpu = machine_config(instance, MachineInputs(host=ResolvedHost(accelerator="kvm"))).config.cpu
    asked = dict(cpu.hyperv)
    assert asked["hv-spinlocks"] == "0x1fff" and asked.keys() >= {"hv-synic", "hv-stimer", "hv-stimer-direct", "hv-tlbflush", "hv-ipi"}
    settings = tuple(each for each in cpu.hyperv if whole or each in _SIMPLE)
    assert len(settings) >= 5
    machine = await _begun(home.open(), home, CpuConfig(model="qemu64", hyperv=settings))
    words = Path(f"/proc/{machine.observed.pid}/cmdline").read_text().split("\0")
    processor = words[words.index("-cpu") + 1].split(",")
    assert {f"{name}={value}" for name, value in settings} <= set(processor)
    await bareguest.writes(machine, home.root / "root.img")

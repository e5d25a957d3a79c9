"""A guest whose kernel panics for ever, and a QEMU that is stopped."""

import os
import signal

import pytest

from paddock.base.images.build import tiny
from paddock.engine.machine.config import CpuConfig, DeviceConfig, KernelConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.errors import Unanswered
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, running, until, until_phase

pytestmark = pytest.mark.needs("qemu")
MIB = 1 << 20


@pytest.mark.spec("kubevirt", 114)
@played_by(run, seconds=300)
async def test_a_kernel_that_panics_for_ever_is_seen(place: Place, tiny_guest: tiny.TinyImage) -> None:
    machines = place.open()
    await machines.adopt()
    # There is nothing that it could start from.
    kernel = KernelConfig(tiny_guest.bare, None, "console=ttyS0 panic=-1")
    memory, devices = MemoryConfig(192 * MIB, 192 * MIB), DeviceConfig(graphics=False, balloon=False)
    config = MachineConfig("ns_tiny", CpuConfig(model="qemu64", features=(("rdrand", True),)), memory, kernel=kernel, devices=devices)
    machine = await machines.define("a", config)
    await machine.start()
    await until(machine, lambda one: one.observed.fault is not None, "its loop is seen", 200)
    assert machine.observed.fault is not None and machine.observed.fault.reason == "GuestRebootLoop"
    assert "Kernel panic - not syncing" in machine.observed.fault.message
    assert machine.observed.resets >= 5
    await machine.stop(0)
    await until_phase(machine, "ended")


@pytest.mark.spec("kubevirt", 113)
@played_by(run)
async def test_a_stopped_qemu_is_told_nothing(place: Place) -> None:
    machine = await running(place.open())
    os.kill(machine.observed.pid, signal.SIGSTOP)
    await until(machine, lambda one: one.observed.fault is not None, "its silence is seen", 30)
    assert machine.observed.fault is not None and machine.observed.fault.reason == "ProcessStopped"
    with pytest.raises(Unanswered, match="it was not told"):
        await machine.pause()
    os.kill(machine.observed.pid, signal.SIGCONT)
    await until(machine, lambda one: one.observed.fault is None, "it goes on", 30)
    assert machine.observed.paused == ""
    await machine.stop(0)
    await until_phase(machine, "ended")

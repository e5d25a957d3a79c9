"""Paddock is killed at any moment: no machine runs twice, none is lost, and each is found as it is."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

from paddock.engine.machine.machines import Machines
from paddock.engine.machine.process import start_ticks
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, qemus, run, surroundings, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    for turn in range(6):
        command = [sys.executable, "-m", "tests.host.machines.crashing", str(place.machines), str(seed * 100 + turn), "4"]
        program = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert program.stdout is not None and program.stdout.readline() == b"adopted\n"
        time.sleep(chance.random() * 0.5)
        program.send_signal(signal.SIGKILL)
        program.wait()
        program.stdout.close()
        for name, pids in qemus(place.machines).items():
            assert len(pids) == 1, f"{name} runs twice: {pids}"

    async def script() -> None:
        machines = Machines(place.machines, surroundings(4))
        await machines.adopt()
        for machine in machines:
            await until_phase(machine, "running", "ended", "defined", "stopping")
        there = qemus(place.machines)
        for machine in machines:
            seen, pids = machine.observed, there.pop(machine.id, [])
            # One that is being stopped may go in this very moment, before that is noticed.
            assert pids == ([seen.pid] if seen.pid else []) or (seen.phase == "stopping" and not pids), (
                seen,
                machine.directory.read_record(),
            )
        assert not there, "a QEMU of no machine"
        assert {path.name for path in place.machines.iterdir()} == {machine.id for machine in machines}
        for machine in machines:
            await machine.stop(0)
        for machine in machines:
            await until(machine, lambda one: one.observed.phase in ("ended", "defined"), "its end")
        assert not qemus(place.machines)
        machines.close()

    run(script)


@played_by(run)
async def test_a_stop_goes_on_after_a_restart(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_guest_runs(machine)
    console = machine.console()
    await console.read()
    await console.write(b"d")
    await asyncio.sleep(0.3)
    await machine.stop(1.5)
    deadline = machine.observed.deadline
    console.close()
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.phase == "stopping" and again.observed.deadline == deadline
    await until_phase(again, "ended")
    end = again.observed.end
    assert end is not None and end.reason == "killed" and end.asked and abs(end.at - deadline) < 1.0


@played_by(run)
async def test_a_number_that_is_somebody_else_s_by_now_is_not_believed(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    pid = machine.observed.pid
    machines.close()
    record = machine.directory.read_record()
    assert record is not None
    machine.directory.write_record(structs.replace(record, pid=os.getpid(), ticks=start_ticks(os.getpid()) + 1))
    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.pid == pid and again.observed.phase == "running"
    await again.stop(0)
    await until_phase(again, "ended")


@played_by(run)
async def test_a_machine_whose_config_was_lost_is_not_started_twice(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    config = place.guest()
    machine = await machines.define("a", config)
    await machine.start()
    await until_phase(machine, "running", "ended")
    pid = machine.observed.pid
    machines.close()
    (machine.directory.path / "config.json").write_bytes(b"{")
    machines = place.open()
    await machines.adopt()
    assert machines.get("a") is None and machines.leftovers() == {"a"}
    again = await machines.define("a", config)
    assert again.observed.pid == pid and again.observed.phase == "running" and machines.leftovers() == set()
    await again.start()
    assert qemus(place.machines) == {"a": [pid]}
    await again.stop(0)
    await until_phase(again, "ended")


@played_by(run)
async def test_a_host_that_went_down(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    machines.close()
    os.kill(machine.observed.pid, signal.SIGKILL)
    while machine.directory.locked():
        time.sleep(0.01)
    record = machine.directory.read_record()
    assert record is not None
    machine.directory.write_record(structs.replace(record, boot="another"))
    (place.machines / "half").mkdir()
    machines = place.open(1)
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.end is not None and again.observed.end.reason == "host-reboot"
    assert not (place.machines / "half").exists()
    # Those that start now came up with the host: the first to come is not the first to start.
    low, high = await machines.define("low", place.guest("low")), await machines.define("high", place.guest("high"))
    await low.start()
    await high.start(priority=7)
    for each in (low, high):
        await until_phase(each, "running", "ended")
    assert low.observed.times["started"] > high.observed.times["started"]
    for each in (low, high):
        await each.stop(0)
        await until_phase(each, "ended")

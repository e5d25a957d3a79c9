"""A guest moves into a new QEMU with real ones. There is one version here: what is proven is the move, not another QEMU."""

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.machine import Machine
from tests.host.machines.conftest import Place, qemus, run, until, until_phase

pytestmark = pytest.mark.needs("qemu")

ROOT = Path(__file__).resolve().parents[3]


async def _echoes(machine: Machine) -> None:
    console = machine.console()
    while b"z" not in machine.directory.serial_tail(1):
        await console.write(b"z")
        await asyncio.sleep(0.2)
    console.close()


def test_a_guest_goes_on_in_a_new_process(place: Place) -> None:
    async def script() -> None:
        machines = place.open()
        await machines.adopt()
        machine = await machines.define("a", place.guest())
        await machine.start()
        await until(machine, lambda one: one.directory.serial_tail(100).endswith(b"R"), "the guest runs")
        old = machine.observed.pid
        renewed = await machine.renew()
        print(renewed)
        assert machine.observed.pid != old and machine.observed.phase == "running"
        await _echoes(machine)
        assert machine.directory.serial_tail(1000).count(b"R") == 1
        await machine.stop(30)
        await until_phase(machine, "ended")
        assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"

    run(script)


def _renew_until(place: Place, step: int) -> bool:
    """Another Paddock renews the machine, and is killed at a step; True: it was done before."""
    command = [sys.executable, "-m", "tests.host.machines.renewing", str(place.machines), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode == 0


def test_killed_at_every_step(place: Place) -> None:
    """One process is left, which runs the guest as if nothing had been, and no file tells of a second."""

    async def found(start: bool = False) -> int:
        machines = place.open()
        await machines.adopt()
        machine = await machines.define("a", place.guest()) if start else machines.get("a")
        assert machine is not None
        if start:
            await machine.start()
            await until(machine, lambda one: one.directory.serial_tail(100).endswith(b"R"), "the guest runs")
        await until(machine, lambda one: one.observed.phase == "running" and not one.observed.paused, "it runs")
        await until(machine, lambda one: one.directory.read_record().renewal is None, "all is done")  # type: ignore[union-attr]
        await _echoes(machine)
        assert qemus(place.machines) == {"a": [machine.observed.pid]}
        assert sorted(path.name for path in machine.directory.path.iterdir() if "next" in path.name) == []
        assert machine.directory.serial_tail(100_000).count(b"R") == 1, "it booted again"
        pid = machine.observed.pid
        machines.close()
        return pid

    pids: list[int] = []
    run(lambda: _into(pids, found(start=True)), 300)
    step = 0
    while not _renew_until(place, step):
        run(lambda: _into(pids, found()), 300)
        step += 1
    run(lambda: _into(pids, found()), 300)
    moved = [before != after for before, after in itertools.pairwise(pids)]
    # From some step on the guest has moved, and never before it.
    assert step > 30 and moved == sorted(moved) and moved[-2]
    print(f"{step} steps, of which the first {moved.index(True)} lead back")


async def _into(pids: list[int], work: Coroutine[Any, Any, int]) -> None:
    pids.append(await work)

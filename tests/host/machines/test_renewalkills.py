"""Paddock is killed in the middle of a renewal, and one process is left, with its own files alone."""

import asyncio
import itertools
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from paddock.engine.machine import renewal
from paddock.engine.machine.directory import Renewal
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, killed_at, qemus, run, taken_over, until
from tests.host.machines.test_renewal import echoes

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]


def test_killed_at_every_step(place: Place) -> None:
    """One process is left, which runs the guest as if nothing had been, and no file tells of a second."""

    async def found(start: bool = False) -> int:
        machines, machine = await taken_over(place, start=start)
        await until(machine, lambda one: one.observed.phase == "running" and not one.observed.stands_still, "it runs")
        await until(machine, lambda one: one.directory.read_record().renewal is None, "all is done")  # type: ignore[union-attr]
        await echoes(machine)
        # One that was killed takes a moment to be gone.
        await until(machine, lambda one: qemus(place.machines) == {"a": [one.observed.pid]}, "one process is left")
        assert sorted(path.name for path in machine.directory.path.iterdir() if "next" in path.name) == []
        assert machine.directory.serial_tail(100_000).count(b"R") == 1, "it booted again"
        pid = machine.observed.pid
        machines.close()
        return pid

    pids: list[int] = []
    run(lambda: _into(pids, found(start=True)), 300)
    step = 0
    while not killed_at(place, "renewing", step):
        run(lambda: _into(pids, found()), 300)
        step += 1
    run(lambda: _into(pids, found()), 300)
    moved = [before != after for before, after in itertools.pairwise(pids)]
    # From some step on the guest has moved, and never before it.
    assert step > 30 and moved == sorted(moved) and moved[-2]
    print(f"{step} steps, of which the first {moved.index(True)} lead back")


@played_by(run)
async def test_no_file_is_left_by_a_process_that_nobody_has_a_number_of(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paddock was killed while it started the second QEMU, and a busy host takes a second to see that one off."""
    monkeypatch.setattr(renewal, "holders", lambda path: [])

    async def start() -> Path:
        machines, machine = await taken_over(place, start=True)
        directory, record = machine.directory, machine.directory.read_record()
        assert record is not None
        machines.close()
        directory.write_record(structs.replace(record, renewal=Renewal()))
        return directory.path / "next.lock"

    async def again(lock: Path) -> None:
        machines = place.open()
        await machines.adopt()
        machine = machines.get("a")
        assert machine is not None
        await until(machine, lambda one: one.directory.read_record().renewal is None, "all is done")  # type: ignore[union-attr]
        assert machine.observed.phase == "running" and not lock.exists()
        machines.close()

    lock = await start()
    holder = subprocess.Popen(["flock", "--exclusive", str(lock), "sleep", "1"])
    await asyncio.sleep(0.3)
    await again(lock)
    holder.wait()


async def _into(pids: list[int], work: Coroutine[Any, Any, int]) -> None:
    pids.append(await work)

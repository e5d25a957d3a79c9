"""Many machines on one host."""

import time
from pathlib import Path

import pytest

from tests.coroutines import played_by
from tests.host.machines.conftest import Place, bare, run, until_phase

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.slow]


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@played_by(run)
async def test_a_hundred_machines(place: Place) -> None:
    machines = place.open(4)
    await machines.adopt()
    first = await machines.define("first", bare())
    await first.start(paused=True)
    await until_phase(first, "running")
    memory, used = _memory(), time.process_time()
    group = [await machines.define(f"m{number}", bare()) for number in range(100)]
    for machine in group:
        await machine.start(paused=True)
    for machine in group:
        await until_phase(machine, "running", "ended")
        assert machine.observed.end is None, machine.observed.end
    # CPU seconds and bytes of this process for each machine; the bounds are ten times what is usual.
    assert (time.process_time() - used) / 100 < 0.12
    assert (_memory() - memory) / 100 < 1 << 20
    pids = {machine.observed.pid for machine in machines}
    assert len(pids) == 101
    machines.close()
    machines = place.open(4)
    used = time.process_time()
    await machines.adopt()
    # Fifty in one second is what is asked for.
    assert time.process_time() - used < 2
    assert {machine.observed.pid for machine in machines} == pids
    assert all(machine.observed.phase == "running" for machine in machines)
    for machine in machines:
        await machine.stop(0)
    for machine in machines:
        await until_phase(machine, "ended")

"""The history of use of real machines: its figures, and its price."""

import asyncio
import time
from pathlib import Path

import pytest

from paddock.app.history.files import HistoryFiles
from paddock.app.history.history import HistoryOwners, UsageHistory
from paddock.app.history.rings import BY_RANGE
from paddock.app.history.samples import HistoryReading
from paddock.app.metrics.queries import PendingQueries
from paddock.base.clock import SystemClock
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, until_phase

pytestmark = [pytest.mark.needs("qemu")]
_GUESTS, _SAMPLES = 4, 20


@played_by(run)
async def test_machines_are_sampled_at_a_small_price(place: Place, tmp_path: Path) -> None:
    machines = place.open(2)
    await machines.adopt()
    guests = [await machines.define(f"m{number}", place.guest(f"g{number}")) for number in range(_GUESTS)]
    for each in guests:
        await each.start()
    for each in guests:
        await until_phase(each, "running")
    queries = PendingQueries(agents=False)

    async def read() -> dict[str, HistoryReading]:
        used = await queries.ask(machines)
        return {name: HistoryReading(asyncio.get_running_loop().time(), 1, each) for name, each in used.items()}

    owners = HistoryOwners({each.id: each.id for each in guests}, frozenset(each.id for each in guests))
    history = UsageHistory(HistoryFiles(tmp_path / "usage"), read, lambda: owners, SystemClock())
    await history.sample()
    before = time.process_time()
    for _ in range(_SAMPLES):
        await history.sample()
    spent = (time.process_time() - before) / _SAMPLES / _GUESTS
    print(f"CPU of a sample of one machine: {spent * 1000:.2f} ms")
    # Ten times what is usual: a sample every 15 seconds costs the server nothing that one would notice.
    assert spent < 0.02
    await history.flush()
    await queries.close()
    for each in guests:
        found = history.series(each.id, BY_RANGE["1h"]).series
        assert max(value for value in found["memory"] if value is not None) > 1 << 20
        assert {"cpu", "read", "write"} <= found.keys()
        assert (tmp_path / "usage" / each.id).stat().st_size == 26_336
        await each.stop(0)
    for each in guests:
        await until_phase(each, "ended")

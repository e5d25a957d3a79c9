"""The measurement of use: windows between readings, and no reading that nobody asked for."""

import asyncio
from collections.abc import Mapping

import pytest

from paddock.app.resourcemetrics.meter import LONGEST_SECONDS, UsageReading, UseMeter, between
from paddock.engine.host.usage import HostReading, busy_seconds, used_memory
from paddock.engine.machine.process import ProcessUsage
from tests.coroutines import timeless

MIB = 1 << 20


def reading(at: float, machines: Mapping[str, tuple[int, ProcessUsage]] | None = None, host: float = 0.0) -> UsageReading:
    return UsageReading(at, HostReading(host, 100 * MIB), machines or {})


def used(cpu: float, age: float = 1000.0, memory: int = MIB) -> ProcessUsage:
    return ProcessUsage(cpu, age, memory)


@pytest.mark.parametrize(
    ("before", "after", "cores", "window"),
    [
        ({"a": (7, used(10))}, {"a": (7, used(15))}, 0.5, 10.0),
        # started in between: since its start
        ({}, {"a": (7, used(2, age=4))}, 0.5, 4.0),
        # another process of the same machine: a restart
        ({"a": (7, used(50))}, {"a": (8, used(3, age=6))}, 0.5, 6.0),
        # a counter never runs backwards
        ({"a": (7, used(10))}, {"a": (7, used(9))}, 0.0, 10.0),
    ],
)
def test_the_use_of_a_machine(before: Mapping[str, object], after: Mapping[str, object], cores: float, window: float) -> None:
    found = between(reading(100, before), reading(110, after)).machines["a"]  # type: ignore[arg-type]
    assert (found.cores, found.window_seconds, found.memory_bytes) == (cores, window, MIB)


def test_a_machine_that_ended_and_one_without_age_have_no_use() -> None:
    assert between(reading(0, {"gone": (7, used(1))}), reading(5, {"new": (8, used(0, age=0))})).machines == {}


class Counting:
    """Readings of a host whose processors work half of the time."""

    def __init__(self) -> None:
        self.count = 0

    async def read(self) -> UsageReading:
        self.count += 1
        now = asyncio.get_running_loop().time()
        return reading(now, host=now / 2)


@timeless
async def test_the_first_client_waits_a_second_and_the_next_gets_the_time_since() -> None:
    loop, counting = asyncio.get_running_loop(), Counting()
    meter = UseMeter(counting.read)
    begun = loop.time()
    first = await meter.measure()
    assert (counting.count, loop.time() - begun, first.host.cores, first.host.window_seconds) == (2, 1.0, 0.5, 1.0)
    await asyncio.sleep(0.5)
    assert await meter.measure() is first and counting.count == 2
    await asyncio.sleep(14.5)
    second = await meter.measure()
    assert (counting.count, second.host.window_seconds) == (3, 15.0)
    await asyncio.sleep(LONGEST_SECONDS + 1)
    # Nobody asked for a minute, so nothing was read, and an old reading does not count.
    assert counting.count == 3
    assert ((await meter.measure()).host.window_seconds, counting.count) == (1.0, 5)


@timeless
async def test_clients_that_ask_together_share_a_measurement() -> None:
    counting = Counting()
    meter = UseMeter(counting.read)
    found = await asyncio.gather(*(meter.measure() for _ in range(50)))
    assert counting.count == 2 and len({id(each) for each in found}) == 1


def test_the_host_from_the_files_of_the_kernel() -> None:
    # user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice
    stat = "cpu  100 20 30 5000 600 7 3 40 50 6\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    assert busy_seconds(stat) == pytest.approx(1.6)
    assert used_memory(["MemTotal:  1000 kB", "MemFree: 1 kB", "MemAvailable:   400 kB", "HugePages_Total: 0"]) == 600 * 1024

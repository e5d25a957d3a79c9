"""Measures the use of processors between two readings, and only when somebody asks.

Processor time is a counter, so a rate needs two readings. The meter keeps the last one: a client that asks every few seconds gets the
use since it asked before. The first client, or one after a long pause, waits a second for the second reading.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from paddock.engine.host.usage import HostReading
from paddock.engine.machine.process import ProcessUsage

# A client that asks again sooner gets the same answer; also the shortest window.
SHORTEST_SECONDS = 1.0
# An older reading would hide what the machines do now.
LONGEST_SECONDS = 60.0


class UsageReading(msgspec.Struct, frozen=True):
    """Counters at one time of the running clock. Each machine has its process and that process's use."""

    at: float
    host: HostReading
    machines: Mapping[str, tuple[int, ProcessUsage]]


class MeasuredUse(msgspec.Struct, frozen=True):
    """The use of something: cores over a window, and bytes at its end."""

    cores: float
    memory_bytes: int
    window_seconds: float


class UseReport(msgspec.Struct, frozen=True):
    """The use of the host and of each machine, by its id."""

    at: float
    host: MeasuredUse
    machines: Mapping[str, MeasuredUse]


def between(before: UsageReading, after: UsageReading) -> UseReport:
    """Return the use from one reading to the next. A machine that started in between is measured from its start."""
    window = after.at - before.at
    found = {}
    for name, (pid, used) in after.machines.items():
        earlier = before.machines.get(name)
        if earlier is not None and earlier[0] == pid:
            found[name] = _use(used.cpu_seconds - earlier[1].cpu_seconds, used.resident_bytes, window)
        elif used.age_seconds > 0:
            found[name] = _use(used.cpu_seconds, used.resident_bytes, used.age_seconds)
    host = _use(after.host.cpu_seconds - before.host.cpu_seconds, after.host.memory_bytes, window)
    return UseReport(after.at, host, found)


def _use(seconds: float, memory: int, window: float) -> MeasuredUse:
    return MeasuredUse(max(0.0, seconds) / window, memory, window)


class UseMeter:
    """Reads and remembers. Clients that ask at the same time share a measurement."""

    def __init__(self, read: Callable[[], Awaitable[UsageReading]]) -> None:
        self._read = read
        self._last: UsageReading | None = None
        self._report: UseReport | None = None
        self._turn = asyncio.Lock()

    async def measure(self) -> UseReport:
        """Return the use of now; takes up to a second."""
        async with self._turn:
            now = asyncio.get_running_loop().time()
            if self._report is not None and now - self._report.at < SHORTEST_SECONDS:
                return self._report
            before = self._last
            if before is None or not SHORTEST_SECONDS <= now - before.at <= LONGEST_SECONDS:
                before = await self._read()
                await asyncio.sleep(SHORTEST_SECONDS)
            self._last = await self._read()
            self._report = between(before, self._last)
            return self._report

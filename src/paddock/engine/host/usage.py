"""The use of the whole host: processor time since the boot, and memory in use now."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

_TICKS = os.sysconf("SC_CLK_TCK")
# of a line of /proc/stat: user, nice, system, irq, softirq; a guest's time is part of user and nice
_BUSY = (0, 1, 2, 5, 6)


class HostReading(Struct, frozen=True):
    """CPU seconds of all processors since the boot, and bytes of memory that nothing else can have."""

    cpu_seconds: float
    memory_bytes: int


def read(proc: Path = Path("/proc")) -> HostReading:
    """Return the use of the host."""
    return HostReading(busy_seconds((proc / "stat").read_text()), used_memory((proc / "meminfo").read_text().splitlines()))


def busy_seconds(stat: str) -> float:
    """Return the seconds in which processors worked, from the first line of `/proc/stat`."""
    fields = stat.partition("\n")[0].split()[1:]
    return sum(int(fields[place]) for place in _BUSY) / _TICKS


def used_memory(lines: Iterable[str]) -> int:
    """Return the bytes in use, from `/proc/meminfo`: all memory but what the kernel could give to a new program."""
    found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if rest.split()}
    return max(0, found.get("MemTotal", 0) - found.get("MemAvailable", 0))

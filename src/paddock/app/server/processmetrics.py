"""The series `process_*` of this process, under the names that Prometheus' clients share."""

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from paddock.base.metrics import number

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TEXTS = {
    "cpu_seconds_total": "Processor time of this process.",
    "open_fds": "Open files of this process.",
    "max_fds": "Files that this process may have open.",
    "resident_memory_bytes": "Resident memory of this process.",
    "virtual_memory_bytes": "Address space of this process.",
    "start_time_seconds": "The start of this process, in seconds since the epoch.",
}


def lines() -> Iterator[str]:
    """Yield the series."""
    for name, value in _values().items():
        yield f"# HELP process_{name} {_TEXTS[name]}"
        yield f"# TYPE process_{name} {'counter' if name.endswith('_total') else 'gauge'}"
        yield f"process_{name} {number(value)}"


def _values() -> dict[str, float]:
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS
    return {
        "cpu_seconds_total": (int(fields[11]) + int(fields[12])) / _TICKS,
        "open_fds": len(os.listdir("/proc/self/fd")),
        "max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "resident_memory_bytes": int(fields[21]) * _PAGE,
        "virtual_memory_bytes": int(fields[20]),
        "start_time_seconds": round(time.time() - age, 2),
    }

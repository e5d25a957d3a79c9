"""The series `process_*` of this process, under the names that Prometheus' clients share."""

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from paddock.base.metrics import MetricFamily, number

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
FAMILIES = (
    MetricFamily("process_cpu_seconds_total", "counter", "Processor time of this process."),
    MetricFamily("process_open_fds", "gauge", "Open files of this process."),
    MetricFamily("process_max_fds", "gauge", "Files that this process may have open."),
    MetricFamily("process_resident_memory_bytes", "gauge", "Resident memory of this process."),
    MetricFamily("process_virtual_memory_bytes", "gauge", "Address space of this process."),
    MetricFamily("process_start_time_seconds", "gauge", "The start of this process, in seconds since the epoch."),
)


def lines() -> Iterator[str]:
    values = _values()
    for family in FAMILIES:
        yield from family.head()
        yield f"{family.name} {number(values[family.name.removeprefix('process_')])}"


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

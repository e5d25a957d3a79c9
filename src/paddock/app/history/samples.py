"""From the statistics of a machine at two moments to one sample. Pure."""

import math
from collections.abc import Sequence

import msgspec

from paddock.engine.machine.observation import Statistics

_UNKNOWN = math.nan


class HistoryReading(msgspec.Struct, frozen=True):
    """The statistics of a run of a machine, and the moment of a running clock at which they were read."""

    moment: float
    run: int
    used: Statistics


def sample(before: HistoryReading | None, now: HistoryReading) -> Sequence[float]:
    """Return the use between two readings, in the order of `rings.SERIES`. Without an earlier one of the same run, rates are not known."""
    memory = now.used.memory
    guest = _UNKNOWN
    if memory.available is not None and memory.usable is not None:
        guest = float(max(0, memory.available - memory.usable))
    gauges = (float(memory.resident), guest)
    if before is None or before.run != now.run or now.moment <= before.moment:
        return (_UNKNOWN, *gauges, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN)
    passed = now.moment - before.moment
    # A counter that fell belongs to a disk or a card that was exchanged.
    cpu, *rates = (max(0.0, new - old) / passed for old, new in zip(_counters(before.used), _counters(now.used), strict=True))
    return (cpu, *gauges, *rates)


def _counters(used: Statistics) -> tuple[float, ...]:
    disks, nics = used.disks.values(), used.nics.values()
    return (
        used.cpu_seconds,
        sum(each.read_bytes for each in disks),
        sum(each.written_bytes for each in disks),
        sum(each.received_bytes for each in nics),
        sum(each.sent_bytes for each in nics),
    )

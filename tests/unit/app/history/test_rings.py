"""Rings of samples: averages, gaps, clocks that jump, and bytes that are always as many."""

import math
from itertools import pairwise

import pytest

from paddock.app.history.rings import BY_RANGE, RESOLUTIONS, SERIES, BadRings, Resolution, SampleRing, UsageRings

UNKNOWN = math.nan
START = 1_800_000_000.0
TINY = Resolution("1h", 10, 4)


def cpu(ring: SampleRing, now: float) -> list[float | None]:
    return ring.columns(now)[1][SERIES.index("cpu")]


def of(value: float) -> tuple[float, ...]:
    return (value, *(UNKNOWN for _ in SERIES[1:]))


def filled(*samples: tuple[float, float]) -> SampleRing:
    ring = SampleRing(TINY)
    for seconds, value in samples:
        ring.add(START + seconds, of(value))
    return ring


@pytest.mark.parametrize(
    ("samples", "now", "expected"),
    [
        ([], 0, [None, None, None, None]),
        ([(0, 1)], 0, [None, None, None, 1]),
        ([(0, 1), (3, 2), (9, 6)], 9, [None, None, None, 3]),
        ([(0, 1), (10, 2), (20, 3), (30, 4)], 30, [1, 2, 3, 4]),
        ([(0, 1), (10, 2), (20, 3), (30, 4), (40, 5)], 40, [2, 3, 4, 5]),
        # A machine that was off left a gap, and what was a round ago is no figure of now.
        ([(0, 1), (30, 4)], 30, [1, None, None, 4]),
        ([(0, 1), (10, 2), (20, 3), (30, 4), (60, 7)], 60, [4, None, None, 7]),
        ([(0, 1), (4000, 2)], 4000, [None, None, None, 2]),
        # The time went on without a sample.
        ([(0, 1), (10, 2)], 30, [1, 2, None, None]),
        ([(0, 1), (10, 2)], 500, [None, None, None, None]),
        # The clock was set back: what lay ahead is gone, and does not come back when it is time.
        ([(0, 1), (10, 2), (20, 3), (0, 9)], 30, [9, None, None, None]),
        ([(0, 1), (10, 2), (20, 3), (0, 9)], 0, [None, None, None, 9]),
        ([(0, 1), (1, UNKNOWN)], 1, [None, None, None, 1]),
        ([(0, math.inf)], 0, [None, None, None, None]),
    ],
)
def test_slots(samples: list[tuple[float, float]], now: float, expected: list[float | None]) -> None:
    ring = filled(*samples)
    times, _ = ring.columns(START + now)
    assert cpu(ring, START + now) == expected
    assert times[-1] == int(START + now) // 10 * 10
    assert [b - a for a, b in pairwise(times)] == [10, 10, 10]


def test_the_average_goes_on_after_a_restart() -> None:
    rings = UsageRings()
    for second, value in ((0, 1.0), (100, 2.0)):
        rings.add(START + second, of(value))
    again = UsageRings.unpack(rings.pack())
    again.add(START + 200, of(6.0))
    day = again.series(BY_RANGE["24h"], START + 200)
    assert day.series == {"cpu": [*[None] * 359, 3.0]}


def test_every_range_has_its_length_and_no_series_without_figures() -> None:
    rings = UsageRings()
    rings.add(START, (0.25, 1e9, *(UNKNOWN for _ in SERIES[2:])))
    for each in RESOLUTIONS:
        found = rings.series(each, START)
        assert (found.range, found.step, len(found.times)) == (each.range, each.step, each.slots)
        assert {name: column[-1] for name, column in found.series.items()} == {"cpu": 0.25, "memory": 1e9}


def test_a_machine_takes_the_same_bytes_however_long_it_runs() -> None:
    rings = UsageRings()
    sizes = {len(rings.pack())}
    for number in range(3000):
        rings.add(START + number * 15, [float(number)] * len(SERIES))
    sizes.add(len(rings.pack()))
    assert len(sizes) == 1
    assert sizes.pop() < 27_000


@pytest.mark.parametrize("damage", ["cut", "long", "flipped", "other", "empty"])
def test_damaged_bytes_are_no_rings(damage: str) -> None:
    data = UsageRings().pack()
    wrong = {
        "cut": data[:-1],
        "long": data + b"\0",
        "flipped": data[:200] + bytes([data[200] ^ 1]) + data[201:],
        "other": b"paddock usage 2\n" + data[16:],
        "empty": b"",
    }[damage]
    with pytest.raises(BadRings):
        UsageRings.unpack(wrong)

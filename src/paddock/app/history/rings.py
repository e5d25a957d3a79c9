"""Rings of samples: each resolution has as many slots as it ever has, and a slot has the average of its samples. Pure.

The slot of a moment follows from its time, so a ring holds no times: only the number of its newest slot. A slot without a sample is a gap.
"""

import math
import struct
import zlib
from array import array
from collections.abc import Mapping, Sequence

import msgspec

# In the order in which a slot holds them: cores, bytes, bytes, and bytes a second.
SERIES = ("cpu", "memory", "guest", "read", "write", "received", "sent")
_WIDTH = len(SERIES)
_MAGIC = b"paddock usage 1\n"
_GAP = math.nan
# number of the newest slot, and the samples of each series in it
_HEAD = struct.Struct(f"<q{_WIDTH}I")
_CHECKSUM = struct.Struct("<I")
# Digits that are worth sending: a slot has 24 bits of a mantissa.
_DIGITS = 6


class Resolution(msgspec.Struct, frozen=True):
    """A span of time in slots of a width in seconds."""

    range: str
    step: int
    slots: int


RESOLUTIONS = (Resolution("1h", 15, 240), Resolution("24h", 240, 360), Resolution("7d", 1800, 336))
BY_RANGE: Mapping[str, Resolution] = {each.range: each for each in RESOLUTIONS}


class BadRings(ValueError):
    """Bytes that are no rings of this version."""


class UsageSeries(msgspec.Struct, frozen=True):
    """Series that share their times. None is a gap."""

    range: str
    step: int
    times: list[int]
    series: dict[str, list[float | None]]


class SampleRing:
    """The samples of one resolution."""

    def __init__(self, resolution: Resolution) -> None:
        self.resolution = resolution
        self._newest = -1
        self._counts = [0] * _WIDTH
        self._values = array("f", [_GAP]) * (resolution.slots * _WIDTH)

    def add(self, seconds: float, sample: Sequence[float]) -> None:
        """Add a sample of a moment. NaN stands for a figure that is not known."""
        slot = int(seconds // self.resolution.step)
        if slot != self._newest:
            self._move(slot)
        place = slot % self.resolution.slots * _WIDTH
        for index, value in enumerate(sample):
            if not math.isfinite(value):
                continue
            count = self._counts[index] = self._counts[index] + 1
            before = self._values[place + index] if count > 1 else 0.0
            self._values[place + index] = before + (value - before) / count

    def columns(self, now: float) -> tuple[list[int], list[list[float | None]]]:
        """Return the times of the whole span that ends now, and a column for each series."""
        step, slots = self.resolution.step, self.resolution.slots
        last = int(now // step)
        numbers = range(last - slots + 1, last + 1)
        columns = [[self._value(number, index) for number in numbers] for index in range(_WIDTH)]
        return [number * step for number in numbers], columns

    def pack(self) -> bytes:
        """Return the ring as bytes; always as many."""
        return _HEAD.pack(self._newest, *self._counts) + self._values.tobytes()

    @property
    def size(self) -> int:
        """The bytes of a packed ring."""
        return _HEAD.size + len(self._values) * self._values.itemsize

    def unpack(self, data: bytes) -> None:
        """Take over what `pack` returned."""
        self._newest, *self._counts = _HEAD.unpack_from(data)
        self._values = array("f", data[_HEAD.size :])

    def _move(self, slot: int) -> None:
        """Go to another slot. Those on the way become gaps; a clock that was set back loses what lies ahead of it."""
        slots = self.resolution.slots
        first, last = min(self._newest + 1, slot), max(self._newest, slot)
        for number in range(max(first, last - slots + 1), last + 1):
            place = number % slots * _WIDTH
            self._values[place : place + _WIDTH] = array("f", [_GAP]) * _WIDTH
        self._newest, self._counts = slot, [0] * _WIDTH

    def _value(self, number: int, index: int) -> float | None:
        if not self._newest - self.resolution.slots < number <= self._newest:
            return None
        value = self._values[number % self.resolution.slots * _WIDTH + index]
        return None if math.isnan(value) else float(f"{value:.{_DIGITS}g}")


class UsageRings:
    """All resolutions of one machine."""

    def __init__(self) -> None:
        self._rings = {each.range: SampleRing(each) for each in RESOLUTIONS}

    def add(self, seconds: float, sample: Sequence[float]) -> None:
        """Add a sample to every resolution."""
        for ring in self._rings.values():
            ring.add(seconds, sample)

    def series(self, resolution: Resolution, now: float) -> UsageSeries:
        """Return the series of a resolution up to now. A series without any figure is left out."""
        times, columns = self._rings[resolution.range].columns(now)
        found = {name: column for name, column in zip(SERIES, columns, strict=True) if any(value is not None for value in column)}
        return UsageSeries(resolution.range, resolution.step, times, found)

    def pack(self) -> bytes:
        """Return everything as bytes, with a checksum."""
        body = b"".join((_MAGIC, *(ring.pack() for ring in self._rings.values())))
        return body + _CHECKSUM.pack(zlib.crc32(body))

    @classmethod
    def unpack(cls, data: bytes) -> "UsageRings":
        """Return what `pack` returned. Raises `BadRings` for anything else."""
        made = cls()
        size = len(_MAGIC) + sum(ring.size for ring in made._rings.values())
        body = data[:size]
        if len(data) != size + _CHECKSUM.size or not body.startswith(_MAGIC) or _CHECKSUM.pack(zlib.crc32(body)) != data[size:]:
            raise BadRings("not the usage of a machine, or damaged")
        at = len(_MAGIC)
        for ring in made._rings.values():
            ring.unpack(body[at : at + ring.size])
            at += ring.size
        return made

"""The memory of a server: short collections whatever it holds, no cycle kept for good, and what is free goes back to the host."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from paddock.app.server.eventloop import MemoryReturn
from paddock.base import allocator

_PRELUDE = """
import gc
from paddock.app.server import eventloop
looked_at = []
def note(phase, info):
    if phase == "start":
        looked_at.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))
gc.callbacks.append(note)
"""
_HOLDING = """
eventloop.spare_the_collector()
held = [{"of": [number]} for number in range(1_000_000)]
print(max(looked_at), gc.get_freeze_count())
"""
# A hundredth of everything.
_CYCLES = """
eventloop._THRESHOLDS, eventloop._PASSES, eventloop._ALLOWANCE = (300, 4, 0), 8, 10_000
eventloop.spare_the_collector()
class Node: pass
def ring():
    one, other = Node(), Node()
    one.other, other.other = other, one
    return one
alive = []
for number in range(200_000):
    alive.append(ring())
    if len(alive) == 2_000:
        # Each of them survived a full collection, and goes now.
        del alive[:]
print(max(looked_at), gc.get_freeze_count())
"""


def run(script: str) -> tuple[int, int]:
    """The most objects that a collection looked at, and how many are frozen at the end."""
    found = subprocess.run([sys.executable, "-c", _PRELUDE + script], capture_output=True, text=True, check=True)
    most, frozen = found.stdout.split()
    return int(most), int(frozen)


def test_a_collection_does_not_look_at_what_is_held() -> None:
    most, frozen = run(_HOLDING)
    assert most < 300_000
    assert frozen > 1_500_000


def test_cycles_among_frozen_objects_go_when_they_have_doubled() -> None:
    _, frozen = run(_CYCLES)
    assert frozen < 150_000


class Program:
    """A program whose memory and CPU time are what a test says, with the times at which it gave memory back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.resident, self.needed, self.cpu, self.returned = 100, 100, 0.0, 0
        self._next: Callable[[], None] = lambda: None
        monkeypatch.setattr(allocator, "trim", self._trim)
        MemoryReturn(self._later, resident=lambda: self.resident, used=lambda: self.cpu).check()

    def _later(self, seconds: float, check: Callable[[], None]) -> None:
        self._next = check

    def _trim(self) -> None:
        self.resident = self.needed
        self.returned += 1

    def looks(self, count: int, *, cpu: float = 0.0) -> int:
        """How often memory is given back in so many looks, with so much CPU between two of them."""
        before = self.returned
        for _ in range(count):
            self.cpu += cpu
            self._next()
        return self.returned - before


def test_memory_goes_back_once_after_it_grew(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    program.looks(1)
    assert program.looks(20) == 0
    program.resident = 200
    assert (program.looks(20), program.resident) == (1, 100)
    # It needs more than before: that is not tried again and again.
    program.resident = program.needed = 300
    assert program.looks(20) == 1


def test_memory_that_was_freed_without_growth_goes_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    program.looks(1)
    assert program.looks(300) == 10


def test_a_busy_program_waits_for_a_quiet_moment_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    program.looks(1)
    program.resident = 200
    assert program.looks(10, cpu=4.0) == 0
    assert program.looks(1) == 1
    program.resident = 200
    assert program.looks(20, cpu=4.0) == 1


_FRAGMENTS = """
from paddock.base import allocator
allocator.settle()
held = [bytes(3000) for _ in range(50_000)]
most = allocator.resident()
# One of each hundred stays, so that the heap cannot shrink at its end.
held = held[::100]
kept = allocator.resident()
allocator.trim()
print(most - kept, kept - allocator.resident())
"""


def test_a_heap_full_of_holes_goes_back() -> None:
    before, after = run(_FRAGMENTS)
    assert before < 30_000_000 < 100_000_000 < after

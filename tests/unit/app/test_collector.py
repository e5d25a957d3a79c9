"""The garbage collector of a server: short collections whatever the server holds, and no cycle kept for good."""

import subprocess
import sys

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

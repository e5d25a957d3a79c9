"""The progress of an import: a fraction that never falls, a speed, and the rest."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

Step = Literal["waiting", "downloading", "unpacking", "converting", "storing", "uploading", "done"]

# The speed is that of the last seconds; a listener hears of it this often at most.
_WINDOW_SECONDS = 10.0
_TELL_SECONDS = 0.25


class Progress(msgspec.Struct, frozen=True):
    """The state of an import. `fraction` is None until something is known of the whole."""

    step: Step = "waiting"
    fraction: float | None = None
    bytes_done: int = 0
    bytes_total: int | None = None
    bytes_per_second: float = 0.0
    seconds_left: float | None = None

    @property
    def percent(self) -> str:
        """As a DataVolume shows it."""
        if self.fraction is None:
            return "N/A"
        return "100.0%" if self.fraction >= 1 else f"{self.fraction * 100:.2f}%"


# The part of the whole that each step is taken for. Downloads are most of what people wait for.
_SHARES: dict[Step, tuple[float, float]] = {
    "waiting": (0.0, 0.0),
    "downloading": (0.0, 0.80),
    "unpacking": (0.80, 0.90),
    "converting": (0.90, 0.99),
    "storing": (0.99, 1.0),
    "uploading": (0.99, 1.0),
    "done": (1.0, 1.0),
}


class Meter:
    """Counts in the thread that works; `tell` is called from that thread."""

    def __init__(self, tell: Callable[[Progress], None], now: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._now = now
        self._lock = threading.Lock()
        self._marks: deque[tuple[float, int]] = deque()
        self._reported = float("-inf")
        self.seen = Progress()

    def begin(self, step: Step, total: int | None, done: int = 0) -> None:
        """A step begins; `done` of its bytes are there already."""
        self._marks.clear()
        self._marks.append((self._now(), done))
        self._update(step, done, total, force=True)

    def at(self, done: int) -> None:
        """So many bytes of this step are done."""
        self._update(self.seen.step, done, self.seen.bytes_total, force=False)

    def finish(self) -> None:
        self._update("done", self.seen.bytes_done, self.seen.bytes_done, force=True)

    def _update(self, step: Step, done: int, total: int | None, *, force: bool) -> None:
        now = self._now()
        with self._lock:
            if not force and now - self._reported < _TELL_SECONDS:
                return
            self._reported = now
            self._marks.append((now, done))
            while len(self._marks) > 2 and now - self._marks[0][0] > _WINDOW_SECONDS:
                self._marks.popleft()
            since, first = self._marks[0]
            speed = (done - first) / (now - since) if now > since and done > first else 0.0
            self.seen = Progress(
                step=step,
                fraction=self._fraction(step, done, total),
                bytes_done=done,
                bytes_total=total,
                bytes_per_second=speed,
                seconds_left=(total - done) / speed if total is not None and speed and done <= total else None,
            )
        self._tell(self.seen)

    def _fraction(self, step: Step, done: int, total: int | None) -> float | None:
        """Never less than before, and unknown only until something is known."""
        low, high = _SHARES[step]
        before = self.seen.fraction
        if total is None:
            return before
        part = low + (high - low) * min(1.0, done / total if total else 1.0)
        return part if before is None else max(before, part)

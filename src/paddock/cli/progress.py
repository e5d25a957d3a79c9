"""The progress of what takes more than a second: a bar on a terminal, a line for each ten per cent elsewhere.

    with progress.ProgressBar(console, quiet=parsed.quiet) as bar:
        bar.show("downloading", done=12 << 20, total=80 << 20)
        bar.show("waiting for the guest")

Everything goes to standard error. On a terminal the bar is gone at the end, and the command's result stands in its place.
With --quiet, only what stays is written. `show` may be called from any thread.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from paddock.base.lines import one_line
from paddock.cli.console import Console

# What is over before is not shown.
PATIENCE = 1.0
# A terminal is redrawn this often; the speed is that of the last seconds.
_DRAW_SECONDS = 0.2
_WINDOW_SECONDS = 10.0
# In a pipe, a step of unknown length is named again after this long.
_REMIND_SECONDS = 30.0
_TENTHS = 10
_DEFAULT_WIDTH = 80
_WIDEST_BAR = 40
_NARROWEST_BAR = 8
_COLOUR, _PLAIN = "\x1b[36m", "\x1b[0m"
_ERASE = "\r\x1b[2K"


@dataclass(frozen=True)
class ProgressState:
    """The state of one step. With `in_bytes`, `done` and `total` are bytes; otherwise only their ratio counts."""

    label: str
    done: float = 0.0
    total: float | None = None
    in_bytes: bool = True
    per_second: float = 0.0
    elapsed: float = 0.0

    @property
    def fraction(self) -> float | None:
        """From 0 to 1; None if the length is unknown."""
        return None if self.total is None else max(0.0, min(1.0, self.done / self.total if self.total else 1.0))

    @property
    def seconds_left(self) -> float | None:
        """At the present speed."""
        if self.total is None or self.per_second <= 0:
            return None
        return max(0.0, self.total - self.done) / self.per_second


@dataclass(frozen=True)
class ProgressOutput:
    """The place of a bar. `width` is 0 where it cannot be drawn in place."""

    write: Callable[[str], None]
    width: Callable[[], int]
    colours: bool = False

    @classmethod
    def standard_error(cls, console: Console, environment: Mapping[str, str]) -> "ProgressOutput":
        """Standard error: in place if it is a terminal that can go back in its line."""
        able = console.error_is_terminal and environment.get("TERM") != "dumb"
        return cls(console.note, _terminal_width if able else lambda: 0, able and not environment.get("NO_COLOR"))


@dataclass
class _Step:
    label: str
    began: float
    marks: "deque[tuple[float, float]]" = field(default_factory=deque)


class ProgressBar:
    """Shows one step after another."""

    def __init__(
        self, console: Console, *, quiet: bool = False, out: ProgressOutput | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet = quiet
        self._out = out or ProgressOutput.standard_error(console, os.environ)
        self._now = now
        self._lock = threading.Lock()
        self._began = now()
        self._step = _Step("", self._began)
        self._state: ProgressState | None = None
        self._reported: tuple[str, int] = ("", -1)
        self._told_at = self._began
        self._drawn = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "ProgressBar":
        if not self._quiet:
            self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._erase()

    def show(self, label: str, done: float = 0.0, total: float | None = None, *, in_bytes: bool = True) -> None:
        """The present state. A new label begins a new step."""
        now = self._now()
        with self._lock:
            if label != self._step.label:
                self._step = _Step(label, now)
            self._state = _measured(self._step, ProgressState(label, done, total, in_bytes), now)

    def say(self, line: str) -> None:
        """Write a line that stays, above the bar. It is written with --quiet, too."""
        with self._lock:
            self._erase()
            self._out.write(f"{line}\n")

    def pause(self) -> None:
        """Take the bar away until the next `show`: something else is written now."""
        with self._lock:
            self._erase()
            self._state = None

    def draw(self) -> None:
        """Bring the output up to date; the thread of `with` calls it."""
        with self._lock:
            now = self._now()
            if self._state is None or self._quiet or now - self._began < PATIENCE:
                return
            state = _aged(self._state, now - self._step.began)
            if width := self._out.width():
                self._out.write(_ERASE + bar_line(state, width, colours=self._out.colours))
                self._drawn = True
            else:
                self._tell(state, now)

    def _tick(self) -> None:
        while not self._stop.wait(_DRAW_SECONDS):
            self.draw()

    def _tell(self, state: ProgressState, now: float) -> None:
        tenth = -1 if state.fraction is None else int(state.fraction * _TENTHS)
        if (state.label, tenth) == self._reported and (tenth >= 0 or now - self._told_at < _REMIND_SECONDS):
            return
        self._reported, self._told_at = (state.label, tenth), now
        self._out.write(f"paddock: {text_line(state)}\n")

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(_ERASE)
            self._drawn = False


def _measured(step: _Step, state: ProgressState, now: float) -> ProgressState:
    """Add the speed of the last seconds. The first value only begins the measurement: it may have been there already."""
    marks = step.marks
    marks.append((now, state.done))
    while len(marks) > 2 and now - marks[0][0] > _WINDOW_SECONDS:
        marks.popleft()
    since, first = marks[0]
    speed = (state.done - first) / (now - since) if now > since and state.done > first else 0.0
    return ProgressState(state.label, state.done, state.total, state.in_bytes, speed, now - step.began)


def _aged(state: ProgressState, elapsed: float) -> ProgressState:
    return ProgressState(state.label, state.done, state.total, state.in_bytes, state.per_second, elapsed)


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _DEFAULT_WIDTH
    except (OSError, ValueError):
        return _DEFAULT_WIDTH


def bar_line(state: ProgressState, width: int, *, colours: bool = False) -> str:
    """Return one line for a terminal, shorter than its width. What does not fit is left out, the bar first."""
    room = max(1, width - 1)
    label, details = one_line(state.label), "  ".join(_details(state))
    text = f"{label}  {details}".rstrip()
    wide = min(_WIDEST_BAR, room - len(text) - 4)
    if state.fraction is None or wide < _NARROWEST_BAR:
        return text[:room]
    full = int(wide * state.fraction)
    filled = "#" * full
    inner = f"{_COLOUR}{filled}{_PLAIN}" if colours and full else filled
    return f"{label}  [{inner}{'.' * (wide - full)}]  {details}"


def text_line(state: ProgressState) -> str:
    """Return one line for a log."""
    return f"{one_line(state.label)} {', '.join(_details(state))}".rstrip()


def _details(state: ProgressState) -> list[str]:
    if state.fraction is None:
        known = [size(state.done)] if state.in_bytes and state.done else []
        return [*known, *_speed(state), seconds(state.elapsed)]
    left = state.seconds_left
    return [f"{state.fraction * 100:.0f} %", *_speed(state), *([f"{seconds(left)} left"] if left is not None else [])]


def _speed(state: ProgressState) -> list[str]:
    return [f"{size(state.per_second)}/s"] if state.in_bytes and state.per_second else []


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def seconds(count: float) -> str:
    """A span of time for people."""
    whole = int(count)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"

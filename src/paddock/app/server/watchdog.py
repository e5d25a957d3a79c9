"""A watchdog over the event loop: a thread that reports when the loop stands still, with the stack of what it does.

The thread asks the loop for a sign of life ten times a second. A loop that gives none for a quarter of a second keeps every client,
guest and controller waiting. Time in which the loop's thread was ready and the host gave it no processor does not count. Neither does time
in which it waited while another thread of this process was in that state, the watchdog's among them: that thread may hold the interpreter's
lock. On a host that is a machine itself, time that its own host took from a processor does not count either: no thread shows it.

A loop that stands still for half a minute does not come back. An armed watchdog then writes down what every thread does and ends the
process, so that whoever started it starts it again; guests live on. Only time that the thread itself has seen pass counts for that: a host
that slept, a machine that was paused and a process that was stopped prove nothing.
"""

import asyncio
import contextlib
import faulthandler
import logging
import os
import re
import sys
import threading
import time
import traceback
from pathlib import Path

from paddock.base.metrics import MetricsRegistry
from paddock.cli.exits import STALLED

_LOG = logging.getLogger(__name__)
STALLED_SECONDS = 0.25
# After so long the process ends.
ENDING_SECONDS = 30.0
# How much of a pause between two looks counts: a longer one was a pause of this thread, too.
_LOOK_SECONDS = 1.0
# Whoever has to take the log and the stacks may be what stands still.
_WRITING_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
# A sign that takes this part of the time is worth a look at the other threads.
_LATE = 0.2
# One line of the log in this time; the metric counts all.
_LOG_SECONDS = 10.0
_DEEPEST = 30
# Processor time in /proc/stat is in these.
_TICKS = os.sysconf("SC_CLK_TCK")
_BOUNDS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class LoopWatchdog:
    """Watches one loop from its start to `stop`. Made in the thread of the loop."""

    def __init__(self, metrics: MetricsRegistry, stalled_seconds: float = STALLED_SECONDS) -> None:
        self._loop = asyncio.get_running_loop()
        self._stalled_seconds = stalled_seconds
        self._thread_of_loop = threading.get_ident()
        self._native = threading.get_native_id()
        self._stalls = metrics.counter("paddock_event_loop_stalls_total", "How often the event loop stood still for more than 250 ms.")
        self._stalls.inc(by=0)
        self._seconds = metrics.histogram(
            "paddock_event_loop_stall_seconds", "How long the event loop stood still, when it did.", bounds=_BOUNDS
        )
        self._alive = threading.Event()
        self._end = threading.Event()
        self._logged = float("-inf")
        self._unlogged = 0
        self._armed = False
        self._record: Path | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def arm(self, record: Path | None = None) -> None:
        """End the process from now on when the loop stands still for too long; what every thread did goes to this file, too."""
        self._armed, self._record = True, record

    def stop(self) -> None:
        self._end.set()
        self._alive.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(_PAUSE_SECONDS):
            self._alive.clear()
            # `stop` says so before it gives the sign: if the sign was cleared just now, the end is seen here. The loop gives none any more.
            if self._end.is_set():
                return
            try:
                self._loop.call_soon_threadsafe(self._alive.set)
            except RuntimeError:
                # The loop is closed.
                return
            self._ask()

    def _ask(self) -> None:
        """Wait for the sign of life."""
        asked, before, is_told = time.monotonic(), _times(self._native), False
        if self._alive.wait(_LATE * self._stalled_seconds):
            return
        late, others, stolen = time.monotonic(), _other_waits(self._native), _stolen()

        def stood() -> float:
            now, after = time.monotonic(), _times(self._native)
            ran, waited = after[0] - before[0], after[1] - before[1]
            idle = max(0.0, now - late - ran - waited)
            starved = max((wait - others.get(thread, 0.0) for thread, wait in _other_waits(self._native).items()), default=0.0)
            taken = max((seconds - stolen.get(cpu, 0.0) for cpu, seconds in _stolen().items()), default=0.0)
            # The kernel notes a wait for a processor when it is over; whoever is ready now and has not run is still in it.
            return now - asked - waited - (idle if _is_ready(self._native) else min(idle, starved + taken))

        looked, seen = late, 0.0
        while not self._alive.wait((1 - _LATE) * self._stalled_seconds):
            now = time.monotonic()
            looked, seen = now, seen + min(now - looked, _LOOK_SECONDS)
            if not is_told and stood() >= self._stalled_seconds:
                is_told = True
                # The loop may stand still because the log takes nothing.
                threading.Thread(target=self._tell, name="watchdog log", daemon=True).start()
            if self._armed and min(seen, stood()) >= ENDING_SECONDS and not self._is_debugged():
                self._end_process()
        if is_told and not self._end.is_set():
            self._stalls.inc()
            self._seconds.observe(stood())

    def _is_debugged(self) -> bool:
        """Somebody looks at the process step by step: a debugger of the system, or one of Python in the loop's thread."""
        with contextlib.suppress(OSError):
            if "\nTracerPid:\t0\n" not in Path("/proc/self/status").read_text():
                return True
        frame = sys._current_frames().get(self._thread_of_loop)
        return any(each.f_globals.get("__name__") == "bdb" for each, _ in traceback.walk_stack(frame)) if frame is not None else False

    def _end_process(self) -> None:
        """Write down what every thread does, and end. Nothing of the process is asked to help, for it may be what stands still."""
        threading.Thread(target=_leave_later, name="watchdog end", daemon=True).start()
        line = f"paddock: the event loop has stood still for {ENDING_SECONDS:g} s; the process ends, and every thread is here:\n"
        for target in (self._file(), sys.stderr.fileno()):
            if target is not None:
                with contextlib.suppress(OSError):
                    os.write(target, line.encode())
                    faulthandler.dump_traceback(target, all_threads=True)
        os._exit(STALLED)

    def _file(self) -> int | None:
        if self._record is None:
            return None
        try:
            return os.open(self._record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._logged < _LOG_SECONDS:
            self._unlogged += 1
            return
        frame = sys._current_frames().get(self._thread_of_loop)
        stack = "".join(traceback.format_stack(frame)[-_DEEPEST:]) if frame is not None else "unknown"
        more = {"not_logged": self._unlogged} if self._unlogged else {}
        _LOG.warning(
            "event loop stalled; requests wait",
            extra={"for_more_than": f"{self._stalled_seconds:g} s", "stack": stack, **more},
        )
        self._logged, self._unlogged = now, 0


def _leave_later() -> None:
    time.sleep(_WRITING_SECONDS)
    os._exit(STALLED)


def _times(thread: int) -> tuple[float, float]:
    """The seconds for which a thread has run, and was ready to run and did not; always 0 where the kernel does not count them."""
    try:
        ran, waited, _ = Path(f"/proc/self/task/{thread}/schedstat").read_text().split()
        return int(ran) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0


def _is_ready(thread: int) -> bool:
    """Return whether a thread runs, or waits for nothing but a processor."""
    try:
        return Path(f"/proc/self/task/{thread}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"R"
    except (OSError, IndexError):
        return False


def _stolen() -> dict[str, float]:
    """The seconds that the host below took from each processor; nothing where the kernel does not count them, or /proc is out of reach."""
    try:
        rows = [line.split() for line in Path("/proc/stat").read_text().splitlines() if re.match(r"cpu\d", line)]
        return {row[0]: int(row[8]) / _TICKS for row in rows}
    except (OSError, ValueError, IndexError):
        return {}


def _other_waits(but: int) -> dict[int, float]:
    """For how long each other thread of this process was ready to run and did not; nothing where /proc is out of reach."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        # The program of a Provider is confined to its own files.
        return {}
    return {thread: _times(thread)[1] for thread in map(int, threads) if thread != but}

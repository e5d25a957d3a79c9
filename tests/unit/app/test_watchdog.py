"""The watchdog over the event loop."""

import asyncio
import logging
import threading
import time

import pytest

from paddock.app.server import watchdog as watchdogs
from paddock.app.server.watchdog import LoopWatchdog
from paddock.base.metrics import MetricsRegistry
from tests.scripted import scripted


def stand_still(until: threading.Event) -> None:
    """Block the loop until somebody else has seen it."""
    assert until.wait(30)


class Seen(logging.Handler):
    """Tells when a line was logged: by then the watchdog has seen the loop stand still."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.event = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.event.set()


@pytest.fixture
def seen() -> "pytest.Generator[Seen, None, None]":  # type: ignore[name-defined]
    handler = Seen()
    logger = logging.getLogger("paddock.app.server.watchdog")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@scripted
async def still(metrics: MetricsRegistry, seen: Seen) -> None:
    watchdog = LoopWatchdog(metrics, stalled_seconds=0.05)
    try:
        stand_still(seen.event)
        # The watchdog counts when the loop is back.
        while "paddock_event_loop_stalls_total 1" not in metrics.text():
            await asyncio.sleep(0.01)
    finally:
        watchdog.stop()


def test_a_loop_that_stands_still_is_reported_with_its_stack(seen: Seen) -> None:
    metrics = MetricsRegistry()
    still(metrics, seen)
    (record,) = seen.records
    assert record.levelno == logging.WARNING
    stack = record.stack  # type: ignore[attr-defined]
    assert "in stand_still" in stack and "until.wait(30)" in stack
    assert "paddock_event_loop_stall_seconds_count 1" in metrics.text()


def test_the_metric_is_there_before_anything_happens() -> None:
    async def script() -> str:
        metrics = MetricsRegistry()
        watchdog = LoopWatchdog(metrics)
        watchdog.stop()
        return metrics.text()

    assert "\npaddock_event_loop_stalls_total 0\n" in asyncio.run(script())


def test_one_line_is_logged_and_all_are_counted(seen: Seen) -> None:
    metrics = MetricsRegistry()

    async def script() -> None:
        watchdog = LoopWatchdog(metrics, stalled_seconds=0.05)
        told = threading.Event()
        tell = watchdog._tell

        def tell_and_note() -> None:
            tell()
            told.set()

        watchdog._tell = tell_and_note  # type: ignore[method-assign]
        try:
            for number in (1, 2):
                told.clear()
                stand_still(told)
                while f"paddock_event_loop_stalls_total {number}" not in metrics.text():
                    await asyncio.sleep(0.01)
        finally:
            watchdog.stop()

    asyncio.run(script())
    assert len(seen.records) == 1


class StopsJustBefore(threading.Event):
    """A sign of life that `stop` gives in the moment before the watchdog's thread clears it."""

    def __init__(self, end: threading.Event) -> None:
        super().__init__()
        self._end_of_watch = end

    def clear(self) -> None:
        self._end_of_watch.set()
        self.set()
        super().clear()


def test_an_end_while_the_thread_is_about_to_ask_is_seen() -> None:
    """Otherwise the thread waits for the loop, which waits for the thread."""

    async def script() -> None:
        watchdog = LoopWatchdog(MetricsRegistry())
        watchdog._alive = StopsJustBefore(watchdog._end)
        # This keeps the loop from giving a sign, as `stop` does.
        watchdog._thread.join(30)
        ended = not watchdog._thread.is_alive()
        threading.Event.set(watchdog._alive)
        assert ended

    asyncio.run(script())


@pytest.mark.parametrize(("computes", "counted"), [(False, 0), (True, 1)], ids=["waiting", "computing"])
def test_a_loop_that_waits_for_a_thread_without_a_processor_is_none(
    monkeypatch: pytest.MonkeyPatch, seen: Seen, computes: bool, counted: int
) -> None:
    """Another thread of the process is ready all the time and does not run. A loop that computes meanwhile has no such excuse."""
    metrics = MetricsRegistry()
    looked = threading.Event()
    looks: list[float] = []

    def other_waits(but: int) -> dict[int, float]:
        looks.append(time.monotonic())
        if len(looks) > 8:
            looked.set()
        return {1: looks[-1]}

    monkeypatch.setattr(watchdogs, "_other_waits", other_waits)

    async def script() -> None:
        watchdog = LoopWatchdog(metrics, stalled_seconds=0.05)
        try:
            await asyncio.sleep(0)
            if computes:
                while not seen.event.is_set():
                    sum(range(10_000))
            else:
                stand_still(looked)
            while computes and "paddock_event_loop_stalls_total 1" not in metrics.text():
                await asyncio.sleep(0.01)
        finally:
            watchdog.stop()

    asyncio.run(script())
    assert f"paddock_event_loop_stalls_total {counted}" in metrics.text()

"""The watchdog over the event loop."""

import asyncio
import bdb
import logging
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from paddock.app.server import watchdog as watchdogs
from paddock.app.server.watchdog import LoopWatchdog
from paddock.base.metrics import MetricsRegistry
from tests.coroutines import run_by, scripted


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


def test_a_confined_program_whose_loop_stands_still_is_reported(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> list[str]:
        raise PermissionError(13, "Permission denied", "/proc/self/task")

    monkeypatch.setattr("os.listdir", refused)
    still(MetricsRegistry(), seen)
    assert len(seen.records) == 1


@run_by(asyncio.run)
async def test_the_metric_is_there_before_anything_happens() -> None:
    metrics = MetricsRegistry()
    watchdog = LoopWatchdog(metrics)
    watchdog.stop()
    assert "\npaddock_event_loop_stalls_total 0\n" in metrics.text()


@run_by(asyncio.run)
async def test_one_line_is_logged_and_all_are_counted(seen: Seen) -> None:
    metrics = MetricsRegistry()
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


@run_by(asyncio.run)
async def test_an_end_while_the_thread_is_about_to_ask_is_seen() -> None:
    """Otherwise the thread waits for the loop, which waits for the thread."""
    watchdog = LoopWatchdog(MetricsRegistry())
    watchdog._alive = StopsJustBefore(watchdog._end)
    # This keeps the loop from giving a sign, as `stop` does.
    watchdog._thread.join(30)
    ended = not watchdog._thread.is_alive()
    threading.Event.set(watchdog._alive)
    assert ended


@pytest.mark.parametrize("who", ["_other_waits", "_stolen"])
@pytest.mark.parametrize(("computes", "counted"), [(False, 0), (True, 1)], ids=["waiting", "computing"])
@run_by(asyncio.run)
async def test_a_loop_that_waits_for_a_thread_without_a_processor_is_none(
    monkeypatch: pytest.MonkeyPatch, seen: Seen, computes: bool, counted: int, who: str
) -> None:
    """Another thread is ready all the time, or the host's own host has the processor. A loop that computes meanwhile has no such excuse."""
    metrics = MetricsRegistry()
    looked = threading.Event()
    looks: list[float] = []

    def seconds(*_: int) -> dict[object, float]:
        looks.append(time.monotonic())
        if len(looks) > 8:
            looked.set()
        return {1: looks[-1]}

    monkeypatch.setattr(watchdogs, who, seconds)
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
    assert f"paddock_event_loop_stalls_total {counted}" in metrics.text()


@run_by(asyncio.run)
async def test_a_loop_that_is_ready_and_does_not_run_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has not noted the wait, which is not over."""
    metrics = MetricsRegistry()
    looked = threading.Event()
    looks: list[float] = []

    def is_ready(_: int) -> bool:
        looks.append(time.monotonic())
        if len(looks) > 8:
            looked.set()
        return True

    monkeypatch.setattr(watchdogs, "_is_ready", is_ready)
    watchdog = LoopWatchdog(metrics, stalled_seconds=0.05)
    await asyncio.sleep(0)
    stand_still(looked)
    await asyncio.sleep(0.1)
    watchdog.stop()
    assert "paddock_event_loop_stalls_total 0" in metrics.text()


def test_the_thread_of_the_watchdog_may_be_the_one_without_a_processor() -> None:
    assert threading.get_native_id() in watchdogs._other_waits(0)
    assert all(seconds >= 0 for seconds in watchdogs._stolen().values())


# A program whose loop stands still once it is ready. The limit is shorter than the product's, and nothing else differs.
_STANDS = """
import asyncio, sys, time
from paddock.app import main
from paddock.app.server import watchdog

watchdog.ENDING_SECONDS, seconds, way, *given = float(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:]
arm = watchdog.LoopWatchdog.arm

def block():
    end = time.monotonic() + seconds
    if way == "sleep":
        time.sleep(seconds)
    while time.monotonic() < end:
        pass
    print("the loop turns again", flush=True)

def arm_and_block(self, record=None):
    arm(self, record)
    asyncio.get_running_loop().call_later(0.2, block)

watchdog.LoopWatchdog.arm = arm_and_block
sys.argv[1:] = given
sys.exit(main.main())
"""


def program(tmp_path: Path, name: str) -> list[str]:
    """The command line of a program that needs nothing else."""
    match name:
        case "operator":
            config = tmp_path / "kubeconfig"
            config.write_text(
                "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
                'clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]\nusers: [{name: a, user: {token: a}}]\n'
            )
            return ["operator", "--kubeconfig", str(config), "--health-probe-bind-address", "0", "--metrics-bind-address", "0"]
        case "provider":
            return ["provider", "serve", "--type", "fake", "--insecure", "--port", "0", "--health-port", "0"]
        case "up":
            return ["up", "--network", "user", "--dir", str(tmp_path / "server"), "--listen", "127.0.0.1:0"]
    return [name, "--dir", str(tmp_path / "server"), "--listen", "127.0.0.1:0"]


def stands(tmp_path: Path, name: str, limit: float, seconds: float, way: str = "spin") -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", _STANDS, str(limit), str(seconds), way, *program(tmp_path, name)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.spec("kube-api", 160)
@pytest.mark.parametrize(
    ("name", "way"), [("apiserver", "spin"), ("apiserver", "sleep"), ("up", "spin"), ("operator", "spin"), ("provider", "sleep")]
)
def test_a_program_whose_loop_stands_still_ends_with_a_code_and_its_stacks(tmp_path: Path, name: str, way: str) -> None:
    process = stands(tmp_path, name, 1.5, 600, way)
    _, log = process.communicate(timeout=300)
    assert process.returncode == 70, log
    texts = [log]
    if name in ("apiserver", "up"):
        file = tmp_path / "server" / "stacks.log"
        assert file.stat().st_mode & 0o777 == 0o600
        texts.append(file.read_text())
    for text in texts:
        assert "the event loop has stood still for 1.5 s" in text and " in block\n" in text and "watchdog.py" in text


@pytest.mark.spec("kube-api", 161)
def test_a_program_whose_loop_goes_on_is_reported_and_goes_on(tmp_path: Path) -> None:
    process = stands(tmp_path, "apiserver", 30.0, 3.0)
    assert process.stdout is not None
    for line in process.stdout:
        if "turns again" in line:
            break
    process.terminate()
    _, log = process.communicate(timeout=300)
    assert process.returncode == 0 and "event loop stalled; requests wait" in log
    assert not (tmp_path / "server" / "stacks.log").exists()


@pytest.mark.spec("kube-api", 161)
def test_a_process_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """As on a host that slept: the clock has gone on, and no thread has run. What a debugger stops is the same."""
    process = stands(tmp_path, "apiserver", 2.0, 1.0)
    assert process.stderr is not None and process.stdout is not None
    while "ready at" not in process.stderr.readline():
        pass
    time.sleep(0.5)  # into the time in which the loop stands still
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    for line in process.stdout:
        if "turns again" in line:
            break
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 0


@pytest.mark.soak
@pytest.mark.spec("kube-api", 160)
@pytest.mark.parametrize(("seconds", "code"), [(600.0, 70), (5.0, 0)])
def test_the_limit_of_the_product(tmp_path: Path, seconds: float, code: int) -> None:
    process = stands(tmp_path, "apiserver", watchdogs.ENDING_SECONDS, seconds)
    assert process.stderr is not None and process.stdout is not None
    while "ready at" not in process.stderr.readline():
        pass
    began = time.monotonic()
    if code:
        assert process.wait(600) == code
        assert time.monotonic() - began >= watchdogs.ENDING_SECONDS
    else:
        for line in process.stdout:
            if "turns again" in line:
                break
        process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == code


@run_by(asyncio.run)
async def test_a_debugger_of_python_is_seen() -> None:
    watchdog = LoopWatchdog(MetricsRegistry())
    found: list[bool] = []

    class Looks(bdb.Bdb):
        def user_line(self, frame: object) -> None:
            found.append(watchdog._is_debugged())

    before = watchdog._is_debugged()
    Looks().runcall(sum, ())
    Looks().run("1 + 1")
    watchdog.stop()
    assert not before and found and all(found)

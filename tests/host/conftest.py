"""Shared parts of tests with real guests: the machine's abilities, a directory, processes and network namespaces that end with the test.

Everything here ends its own processes, by process id, and removes its own files; it searches for nothing by name.
"""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.host.guests import debian_guest, registry, tiny_disk_image, tiny_guest, tiny_kernel_image, tiny_signed, web
from tests.host.machine import NEEDS, lacks
from tools.gate.plugin import reason_of

# Fixtures that pytest finds here.
__all__ = ["debian_guest", "registry", "tiny_disk_image", "tiny_guest", "tiny_kernel_image", "tiny_signed", "web"]

Spawn = Callable[[Sequence[str | Path]], "subprocess.Popen[bytes]"]

_END_SECONDS = 5
_numbers = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--slow`."""
    parser.getgroup("paddock").addoption("--slow", action="store_true", help="run the tests that take minutes, too")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what this machine cannot do, and what takes minutes unless it was asked for."""
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if name not in NEEDS:
                pytest.fail(f"{item.nodeid}: nothing is called {name!r}; tests/host/machine.py has {', '.join(NEEDS)}", pytrace=False)
            if reason := lacks(name):
                pytest.skip(f"needs {name}: {reason}")
    if item.get_closest_marker("slow") and not item.config.getoption("--slow", default=False):
        pytest.skip("slow: `make test-host SLOW=1` runs it")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skipped tests by reason: a run that skipped everything looks like a full one."""
    reasons = Counter(reason_of(report) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section("left out on this machine")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count:4}  {reason}")


@pytest.fixture
def work() -> Iterator[Path]:
    """A directory with a short path, because names of UNIX sockets are short; gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="pdk-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Starts a program in a session of its own, without our pipes; ends it, and its children, after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(command: Sequence[str | Path]) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in reversed(started):
        end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Asks a process that leads its group to end, then makes it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Not reaped yet: neither the number of the process nor that of its group can be anybody else's.
        if process.returncode is None and process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                continue


@pytest.fixture
def netns() -> Iterator[str]:
    """The name of a network namespace of its own, with loopback up; for `ip netns exec NAME ...`. Needs "netns"."""
    name = f"pdk{os.getpid()}-{next(_numbers)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Gives a TCP port on loopback that was free a moment ago, another one with each call."""
    given: set[int] = set()

    def pick() -> int:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = int(probe.getsockname()[1])
            if port not in given:
                given.add(port)
                return port

    return pick


def wait_until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Looks until it holds. Guests take their time, so the test says how long is too long."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)

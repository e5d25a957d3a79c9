"""`make demo` with real guests: to its end, ended at any moment, kept and taken away; nothing of it is left, nowhere."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.engine.images.build import tiny
from tests.host.conftest import wait_until
from tests.host.networks.namespaces import run
from tools.demo.sight import GUESTS

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 500
pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")


class Demo:
    """The demonstration, in a network namespace of its own."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.place = folder / "demo"
        self._namespace = namespace
        self._environment = {**os.environ, "PADDOCK_DEMO_DIR": str(self.place)}

    def start(self, verb: str, out: int | Path) -> "subprocess.Popen[bytes]":
        """In the foreground, as make does it."""
        command = ["ip", "netns", "exec", self._namespace, sys.executable, "-m", "tools.demo", verb]
        where = os.open(out, os.O_WRONLY | os.O_CREAT) if isinstance(out, Path) else out
        try:
            return subprocess.Popen(command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=where, stderr=where)
        finally:
            if isinstance(out, Path):
                os.close(where)

    def down(self) -> None:
        """`make demo-down`."""
        assert self.start("down", Path(os.devnull)).wait(SECONDS) == 0

    def left(self) -> list[str]:
        """Files, processes, and what differs on the network."""
        found = [str(self.place)] if self.place.exists() else []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                found += [words] if str(self.place) in words else []
        return found

    def network(self) -> list[str]:
        """Devices, rules, routes and listeners."""
        commands = ("ip -o -br link", "ip rule", "ip route show table all type unicast", "nft list ruleset", "ss -ltnuH")
        return [run("ip", "netns", "exec", self._namespace, *each.split()) for each in commands]


@pytest.fixture
def demo(work: Path, netns: str, tiny_guest: tiny.TinyImage) -> Iterator[Demo]:
    """One that is over when the test is. The guest is in the cache already."""
    found = Demo(work, netns)
    yield found
    found.down()


def test_without_a_terminal_it_shows_everything_and_takes_it_away(demo: Demo, work: Path) -> None:
    before = demo.network()
    process = demo.start("up", work / "said")
    assert process.wait(SECONDS) == 0, (work / "said").read_text()
    said = (work / "said").read_text()
    for guest in GUESTS:
        (row,) = [line for line in said.splitlines() if line.startswith(guest.dialect) and f" {guest.name} " in line]
        assert re.fullmatch(r"\S+ +\S+ +\d+ s +\d+\.\d+\.\d+\.\d+, Paddock tiny guest", row)
    assert {guest.dialect for guest in GUESTS} == {"kubevirt", "kubermatic", "stakater", "vitistack", "virtrigaud"}
    assert (demo.left(), demo.network()) == ([], before)


# What is there when the signal comes.
MOMENTS = {
    "at once": "",
    "while the server starts": "server.process",
    "while the guests boot": "host/engine/machines/*/process.json",
}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_it_may_be_ended_at_any_moment(moment: str, sent: signal.Signals, demo: Demo, work: Path) -> None:
    before = demo.network()
    process = demo.start("up", work / "said")
    if pattern := MOMENTS[moment]:
        wait_until(moment, lambda: any(demo.place.glob(pattern)), 120)
    else:
        time.sleep(0.5)
    process.send_signal(sent)
    assert process.wait(SECONDS) in (130, -sent, -signal.SIGINT)
    assert (demo.left(), demo.network()) == ([], before)


def test_on_a_terminal_it_stays_until_it_is_taken_away(demo: Demo) -> None:
    before = demo.network()
    leader, terminal = pty.openpty()
    for seconds in (SECONDS, 60):
        process = demo.start("up", terminal)
        said = _read(leader, process, seconds)
        assert process.returncode == 0 and f"{len(GUESTS)} guests of 5 dialects run and answer" in said
        assert "\x1b[K" in said and "make demo-down" in said and f"export KUBECONFIG={demo.place}/host/kubeconfig" in said
    os.close(leader)
    os.close(terminal)
    demo.down()
    assert (demo.left(), demo.network()) == ([], before)


def _read(leader: int, process: "subprocess.Popen[bytes]", seconds: float) -> str:
    """Return the output on a terminal, to the end of a process."""
    os.set_blocking(leader, False)
    said, end = b"", time.monotonic() + seconds
    while True:
        over = process.poll() is not None
        try:
            said += os.read(leader, 65536)
        except BlockingIOError:
            if over:
                return said.decode()
        assert time.monotonic() < end, said.decode()
        time.sleep(0.02)

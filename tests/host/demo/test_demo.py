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

from paddock.base.images.build import tiny
from tests.host.conftest import wait_until
from tests.host.networks.namespaces import run
from tools.demo.sight import GUESTS

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 500
# As a browser: the link's cookie, and the stream that fills the page.
BROWSE = """
import http.cookiejar, sys, urllib.request
link, names = sys.argv[1], set(sys.argv[2:])
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
browser.open(link).close()
for line in browser.open(link.partition("login/")[0] + "console/v1/stream?topics=machines"):
    names -= {name for name in names if f'"{name}"'.encode() in line}
    if not names:
        sys.exit()
sys.exit(f"the stream ended without {names}")
"""
pytestmark = [pytest.mark.needs("qemu", "netns", "tun", "nft"), pytest.mark.long]


class Demo:
    """The demonstration, in a network namespace of its own."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.place = folder / "demo"
        self._namespace = namespace
        self._inside = ["ip", "netns", "exec", namespace, sys.executable]
        self._environment = {**os.environ, "PADDOCK_DEMO_DIR": str(self.place)}

    def start(self, verb: str, out: int | Path, **environment: str) -> "subprocess.Popen[bytes]":
        """In the foreground, as make does it."""
        command = [*self._inside, "-m", "tools.demo", verb]
        variables = self._environment | environment
        where = os.open(out, os.O_WRONLY | os.O_CREAT) if isinstance(out, Path) else out
        try:
            return subprocess.Popen(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, stdout=where, stderr=where)
        finally:
            if isinstance(out, Path):
                os.close(where)

    def browse(self, link: str, names: list[str]) -> None:
        """Open a link of the web console, and return when its page has got a machine of each of these names."""
        run(*self._inside, "-c", BROWSE, link, *names)

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
    assert "The web console and its session end with the demonstration" in said
    assert {guest.dialect for guest in GUESTS} == {"kubevirt", "kubermatic", "stakater", "vitistack", "virtrigaud"}
    assert (demo.left(), demo.network()) == ([], before)


def test_the_link_of_the_web_console_comes_before_the_guests_and_shows_them(demo: Demo, work: Path) -> None:
    said = work / "said"
    # It stays, so that a fast host does not end it before the page is open.
    process = demo.start("up", said, PADDOCK_DEMO_KEEP="yes")
    wait_until("guests are to start", lambda: f"starting {len(GUESTS)} guests" in said.read_text(), 180)
    before, _, _ = said.read_text().partition(f"starting {len(GUESTS)} guests")
    (link,) = re.findall(r"http://127\.0\.0\.1:\d+/login/\S+", before)
    demo.browse(link, [guest.name for guest in GUESTS])
    with pytest.raises(AssertionError):
        demo.browse(link, [])
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) in (0, 130)


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
        assert (
            "\x1b[K" in said
            and "make demo-down" in said
            and "web console" in said
            and ".venv/bin/paddock ui" in said
            and f"export KUBECONFIG={demo.place}/host/kubeconfig" in said
        )
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

"""The real virtctl opens consoles, displays and ports of a real guest."""

import hashlib
import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.reference import recipes
from tests.reference.virtctl.conftest import Get, Guests, Virtctl, until
from tests.reference.virtctl.terminal import Terminal, at_terminal

PROMPT = b"root@tiny:/# "
LEAVE = b"\x1d"
HINT = b"You were disconnected"


def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def connect(where: int) -> socket.socket:
    found: list[socket.socket] = []

    def try_it() -> bool:
        try:
            found.append(socket.create_connection(("127.0.0.1", where), timeout=60))
        except OSError:
            return False
        return True

    until(f"something listens at {where}", try_it)
    return found[0]


@pytest.fixture
def mine(virtctl: Virtctl) -> bytes:
    """Return text that separates the words of this test from those of the one before, which a new console shows once more."""
    return virtctl.release.encode()


# --- the console ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 41)
def test_typing_works_both_ways_and_ctrl_bracket_leaves(virtctl: Virtctl, tiny: str, mine: bytes) -> None:
    with at_terminal(virtctl.command("console", tiny), virtctl.environment) as terminal:
        terminal.read_until(b"Successfully connected")
        terminal.type(b"\r")
        terminal.read_until(PROMPT)
        terminal.type(b"echo $((6 * 7)) is the answer to %b\r" % mine)
        terminal.read_until(b"42 is the answer to %b" % mine)
        # What is not text comes through, too: a control character ends a program in the guest.
        terminal.type(b"echo $((6 * 8)) begins for %b; sleep 1000\r" % mine)
        terminal.read_until(b"48 begins for %b" % mine)
        # Before the shell lets a program have the terminal, such a character is only a key.
        time.sleep(2)
        terminal.type(b"\x03")
        terminal.read_until(PROMPT)
        terminal.type(LEAVE)
        assert HINT not in terminal.ended()
        assert terminal.process.returncode == 0


@pytest.mark.spec("kubevirt", 41)
def test_a_second_console_ends_the_first_like_an_exit(virtctl: Virtctl, tiny: str, mine: bytes) -> None:
    with at_terminal(virtctl.command("console", tiny), virtctl.environment) as first:
        first.read_until(b"Successfully connected")
        first.type(b"\r")
        first.read_until(PROMPT)
        with at_terminal(virtctl.command("console", tiny), virtctl.environment) as second:
            second.read_until(b"Successfully connected")
            # A close with 1006 would say that the connection was lost.
            assert HINT not in first.ended()
            second.type(b"\recho $((6 * 7)) goes on for %b\r" % mine)
            second.read_until(b"42 goes on for %b" % mine)


@pytest.mark.spec("kubevirt", 197)
def test_a_new_console_begins_with_what_the_guest_writes_next(virtctl: Virtctl, tiny: str, mine: bytes) -> None:
    with at_terminal(virtctl.command("console", tiny), virtctl.environment) as first:
        first.read_until(b"Successfully connected")
        first.type(b"\recho left $((6 * 7)) here by %b\r" % mine)
        first.read_until(b"left 42 here by %b" % mine)
    with at_terminal(virtctl.command("console", tiny), virtctl.environment) as second:
        second.read_until(b"Successfully connected")
        second.type(b"\recho back $((6 * 7)) times by %b\r" % mine)
        assert b"left 42 here" not in second.read_until(b"back 42 times by %b" % mine)


@pytest.mark.spec("kubevirt", 41)
def test_a_console_waits_for_a_machine_that_starts(virtctl: Virtctl, guests: Guests) -> None:
    name = f"slow-{virtctl.release.replace('.', '-')}"
    guests.make(name, runStrategy="Halted")
    try:
        until("the machine is there", lambda: "printableStatus" in (guests.vm(name).get("status") or {}))
        virtctl.ok("start", name)
        until("its instance is there", lambda: guests.phase(name) != "")
        with at_terminal(virtctl.command("console", name), virtctl.environment) as terminal:
            terminal.read_until(b"READY", 180)
    finally:
        guests.delete(name)


@pytest.mark.soak
@pytest.mark.spec("kubevirt", 41, 51)
def test_consoles_survive_thirty_idle_minutes(get_virtctl: Get, guests: Guests) -> None:
    """The machines are paused meanwhile, so that neither end says a word. One machine for each virtctl: they idle side by side."""
    with ExitStack() as meanwhile:
        open_consoles = [meanwhile.enter_context(idle_console(get_virtctl(release), guests)) for release in recipes.VIRTCTLS]
        time.sleep(30 * 60)
        for virtctl, name, terminal in open_consoles:
            assert terminal.process.poll() is None, terminal.ended()
            virtctl.ok("unpause", "vm", name)
            terminal.type(b"echo $((6 * 7)) after a long time\r")
            assert HINT not in terminal.read_until(b"42 after a long time")
            terminal.type(LEAVE)
            assert HINT not in terminal.ended()


@contextmanager
def idle_console(virtctl: Virtctl, guests: Guests) -> Iterator[tuple[Virtctl, str, Terminal]]:
    """A console that somebody has typed at, of a machine that is paused."""
    name = f"idle-{virtctl.release.replace('.', '-')}"
    guests.make(name)
    try:
        guests.until_up(name)
        with at_terminal(virtctl.command("console", name), virtctl.environment) as terminal:
            terminal.read_until(b"Successfully connected")
            terminal.type(b"\r")
            terminal.read_until(f"root@{name}:/# ".encode())
            virtctl.ok("pause", "vm", name)
            yield virtctl, name, terminal
    finally:
        guests.delete(name)


# --- the display ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 42)
def test_a_viewer_can_speak_rfb(virtctl: Virtctl, tiny: str) -> None:
    with virtctl.running("vnc", tiny, "--proxy-only", f"--port={port()}") as process:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())["port"]
        with connect(where) as viewer:
            assert viewer.recv(12) == b"RFB 003.008\n"
            viewer.sendall(b"RFB 003.008\n")
            kinds = viewer.recv(1)[0]
            assert 1 in viewer.recv(kinds)
            viewer.sendall(b"\x01")
            assert viewer.recv(4) == bytes(4)
            viewer.sendall(b"\x01")
            width, height = struct.unpack(">HH", viewer.recv(24)[:4])
            assert width >= 640 and height >= 350


@pytest.mark.spec("kubevirt", 42)
def test_a_screenshot_is_a_picture(newest: Virtctl, tiny: str, tmp_path: Path) -> None:
    file = tmp_path / "screen.png"
    newest.ok("vnc", "screenshot", tiny, f"--file={file}")
    data = file.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    place, pixels = 8, b""
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        pixels += data[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += 12 + length
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[colour]
    assert len(zlib.decompress(pixels)) == height * (1 + (width * channels * depth + 7) // 8)


# --- ports ----------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 43)
def test_tcp_and_udp_are_forwarded(virtctl: Virtctl, tiny: str) -> None:
    web, datagrams = port(), port()
    with virtctl.running("port-forward", f"vm/{tiny}/default", f"{web}:80", f"udp/{datagrams}:7"):
        with connect(web):
            pass
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/", timeout=30) as answer:
            assert answer.read().strip() == b"tiny"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(5)
            sender.connect(("127.0.0.1", datagrams))
            for data in (b"one datagram", bytes(range(256)) * 4):
                sender.send(data)
                assert sender.recv(2048) == data


@pytest.mark.spec("kubevirt", 43)
def test_many_connections_at_once(virtctl: Virtctl, tiny: str) -> None:
    echo = port()
    wrong: list[str] = []

    def one(number: int) -> None:
        data = hashlib.shake_256(str(number).encode()).digest(200_000)
        with connect(echo) as stream:
            sending = threading.Thread(target=stream.sendall, args=(data,))
            sending.start()
            came = b""
            while len(came) < len(data):
                part = stream.recv(65536)
                if not part:
                    break
                came += part
            sending.join()
        if came != data:
            wrong.append(f"{number}: {len(came)} bytes")

    with virtctl.running("port-forward", f"vmi/{tiny}/default", f"{echo}:7"):
        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert wrong == []


@pytest.mark.spec("kubevirt", 43)
def test_what_a_client_sent_before_it_left_arrives(virtctl: Virtctl, tiny: str) -> None:
    """virtctl closes both directions as soon as one is closed; the guest gets everything that was sent before."""
    shell, size = port(), 3_000_000
    with virtctl.running("port-forward", f"vmi/{tiny}/default", f"{shell}:9"), connect(shell) as stream:
        stream.sendall(bytes(size))
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(1) == b""


@pytest.mark.spec("kubevirt", 43)
def test_a_guest_that_says_its_last_word_is_heard(virtctl: Virtctl, tiny: str) -> None:
    web = port()
    with virtctl.running("port-forward", f"vm/{tiny}/default", f"{web}:80"), connect(web) as stream:
        # HTTP/1.0: the answer is what comes before the guest closes.
        stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        came = b""
        while part := stream.recv(65536):
            came += part
        assert came.startswith(b"HTTP/1.") and came.rstrip().endswith(b"tiny")


# --- a lot of bytes -------------------------------------------------------------------------------------------------------

GIB = 1 << 30
# Numbered pieces of text make a stream in which nothing can be missing, twice or in another place without being noticed.
PIECE = "".join(f"{number}\n" for number in range(1, 160_001)).encode()
PIECES = GIB // len(PIECE) + 1
SEND, TAKE, SUM = 5001, 5002, "sum"
IN_THE_GUEST = (
    "seq 1 160000 >/run/piece",
    f"printf '#!/bin/sh\\ni=0; while [ $i -lt {PIECES} ]; do echo $i; cat /run/piece; i=$((i+1)); done\\n' >/run/send",
    f"printf '#!/bin/sh\\nrm -f /www/{SUM}; md5sum >/run/sum; mv /run/sum /www/{SUM}\\n' >/run/take",
    "chmod +x /run/send /run/take",
    f"nc -ll -p {SEND} -e /run/send & nc -ll -p {TAKE} -e /run/take &",
)


def pieces() -> Iterator[bytes]:
    """The stream, as the guest sends it."""
    for number in range(PIECES):
        yield f"{number}\n".encode() + PIECE


@pytest.fixture(scope="module")
def whole() -> str:
    """The checksum of the stream."""
    digest = hashlib.md5(usedforsecurity=False)
    for piece in pieces():
        digest.update(piece)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def services(newest: Virtctl, tiny: str) -> None:
    """Start listeners in the guest."""
    with at_terminal(newest.command("console", tiny), newest.environment) as terminal:
        terminal.read_until(b"Successfully connected")
        terminal.type(b"\r")
        terminal.read_until(PROMPT)
        for line in IN_THE_GUEST:
            terminal.type(f"{line}\r".encode())
            terminal.read_until(PROMPT)


@pytest.mark.soak
@pytest.mark.spec("kubevirt", 43)
def test_a_gibibyte_arrives_whole(virtctl: Virtctl, tiny: str, services: None, whole: str) -> None:
    there = port()
    digest, size = hashlib.md5(usedforsecurity=False), 0
    with virtctl.running("port-forward", f"vmi/{tiny}/default", f"{there}:{SEND}"), connect(there) as stream:
        while part := stream.recv(1 << 20):
            digest.update(part)
            size += len(part)
    assert size >= GIB and digest.hexdigest() == whole


@pytest.mark.soak
@pytest.mark.spec("kubevirt", 43)
def test_a_gibibyte_is_taken_whole(virtctl: Virtctl, tiny: str, services: None, whole: str) -> None:
    there, web = port(), port()

    def told() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/{SUM}", timeout=30) as answer:
                return str(answer.read().split()[0].decode())
        except urllib.error.HTTPError:
            return ""

    with virtctl.running("port-forward", f"vmi/{tiny}/default", f"{there}:{TAKE}", f"{web}:80"):
        with connect(there) as stream:
            for piece in pieces():
                stream.sendall(piece)
            stream.shutdown(socket.SHUT_WR)
            until("the guest has counted", lambda: told() != "", 300)
        assert told() == whole

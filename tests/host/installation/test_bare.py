"""A bare Debian, three commands, and a shell in a guest; and the core of the program on another release.

The figures go to the output (`pytest -s`), and from there into tools/bench/results.toml.
"""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host.conftest import end, wait_until
from tests.host.installation import chroots
from tests.host.installation.chroots import Chroot, DebianRelease
from tests.host.installation.conftest import BuiltPackage

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "qemu", "mmdebstrap", "tun")]
_PROMPT = b":/# "
_MINUTES = 5 * 60
_STEPS = ("apt", "up", "image", "run")


class Terminal:
    """A program that runs on a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int) -> None:
        self._process, self._handle = process, handle

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._handle, text.encode())

    def read_until(self, wanted: bytes) -> bytes:
        """Return the output up to these bytes."""
        output = b""
        deadline = time.monotonic() + _MINUTES
        while wanted not in output:
            assert time.monotonic() < deadline, output
            if select.select([self._handle], [], [], 1)[0]:
                try:
                    output += os.read(self._handle, 4096)
                except OSError:
                    pytest.fail(f"the program ended with {self._process.wait()}: {output!r}")
        return output

    def wait(self) -> int:
        """Return the exit code."""
        return self._process.wait(_MINUTES)


@contextmanager
def terminal(words: Sequence[str]) -> Iterator[Terminal]:
    """A program on a terminal of its own; ended if it does not end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        end(process)
        os.close(ours)


def test_three_commands_lead_from_a_bare_debian_to_a_shell(package: BuiltPackage, tmp_path: Path) -> None:
    tar = chroots.archive(chroots.BOOKWORM)
    with chroots.unpacked(tar, tmp_path) as root, chroots.running(root) as chroot:
        deb = chroots.take(root, package("3.11"))
        # A release without lists of packages cannot install any.
        chroot.run("apt-get", "update", "-qq", online=True)
        marks = [time.monotonic()]
        chroot.run("apt-get", "install", "-y", "-qq", deb, online=True)
        marks.append(time.monotonic())
        chroot.run("paddock", "up", "--detach")
        marks.append(time.monotonic())
        # `paddock run` would build the image itself; here its network is one without a way out.
        chroot.run("paddock", "image", "build", "tiny", online=True)
        marks.append(time.monotonic())
        with terminal(chroot.words(["paddock", "run", "--rm", "tiny"])) as shell:
            shell.read_until(_PROMPT)
            marks.append(time.monotonic())
            shell.type("hostname; uname -s\r")
            assert b"tiny-1\r\nLinux" in shell.read_until(b"Linux\r\n")
            shell.type("\x1d")
            assert shell.wait() == 0
        assert chroot.qemus() == {}, "--rm deletes the machine"
        spans = [f"{word} {later - mark:.1f} s" for word, mark, later in zip(_STEPS, marks, marks[1:], strict=False)]
        print(f"bare Debian 12 to a shell: {', '.join(spans)}; together {marks[-1] - marks[0]:.1f} s")


def versions(chroot: Chroot) -> str:
    """Return the versions of Python and QEMU."""
    python = chroot.run("/usr/lib/paddock/bin/python3", "--version").split()[1]
    return f"Python {python}, QEMU {chroot.run('qemu-system-x86_64', '--version').split()[3]}"


@pytest.mark.parametrize("of", [chroots.BOOKWORM, chroots.TRIXIE], ids=lambda of: of.name)
def test_the_core_works_on_each_release(of: DebianRelease, package: BuiltPackage, tiny_guest: object, tmp_path: Path) -> None:
    tar = chroots.archive(of, chroots.HOSTING)
    with chroots.unpacked(tar, tmp_path) as root, chroots.running(root, systemd=True) as host:
        chroots.take_guest(root)
        host.run("apt-get", "install", "-y", "-qq", chroots.take(root, package(of.python)))
        host.run("paddock", "run", "tiny", "--name", "web")
        assert host.in_guest("web", "hostname") == "web\n"
        count = len(host.in_guest("web", "ls", "/sys/block").split())
        host.run("paddock", "disk", "add", "web", "more", "64Mi")
        wait_until("the guest has the disk", lambda: len(host.in_guest("web", "ls", "/sys/block").split()) == count + 1)
        host.in_guest("web", "sh", "-c", "echo before > /data/mark && sync")
        host.run("paddock", "snap", "web", "first")
        host.in_guest("web", "sh", "-c", "echo after > /data/mark && sync")
        host.run("paddock", "pause", "web")
        host.run("systemctl", "restart", "paddock")
        host.run("paddock", "unpause", "web")
        host.run("paddock", "renew", "web")
        assert host.in_guest("web", "cat", "/data/mark") == "after\n"
        host.run("paddock", "stop", "web")
        host.run("paddock", "restore", "web", "first", "--yes")
        host.run("paddock", "start", "web")
        assert host.in_guest("web", "cat", "/data/mark") == "before\n"
        print(f"{of.name}: {versions(host)}, the core works")
        host.run("paddock", "down", "--purge", "--delete-data", "--yes")
        assert host.qemus() == {}

"""Two whole Paddocks with real guests, and `paddock move` as a process between them."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.guests import Registry
from tests.host.runs.conftest import VMIS, VMS, Console, Host, Talk

Data = dict[str, Any]
MARKER = "written on the source"


class OneAtATime:
    """Looks at the QEMUs of both hosts all the time, and remembers when both had one."""

    def __init__(self, hosts: "tuple[Host, Host]") -> None:
        self._hosts = hosts
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.looks = 0
        self.twice: list[str] = []

    def __enter__(self) -> "OneAtATime":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.05):
            running = [each.qemus() for each in self._hosts]
            self.looks += 1
            if all(running):
                self.twice.append(str(running))


class Pair:
    """Two hosts that are up, and the command."""

    def __init__(self, root: Path, registry: str) -> None:
        self.hosts = (Host(_made(root / "a"), registry), Host(_made(root / "b"), registry))
        self.a, self.b = self.hosts
        self.lines: list[str] = []

    def command(self, *words: str, source: Host | None = None, target: Host | None = None) -> list[str]:
        """The words of `paddock move`."""
        one, two = source or self.a, target or self.b
        return [
            *(sys.executable, "-m", "paddock.app", "move", "--yes", "--timeout=300s"),
            *("--kubeconfig", str(one.root / "kubeconfig"), "--to", str(two.root), *words),
        ]

    def run(self, *words: str, **sides: Host) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        ended = subprocess.run(self.command(*words, **sides), capture_output=True, text=True, timeout=600, check=False)
        self.lines += ended.stderr.splitlines()
        return ended

    def good(self, *words: str, **sides: Host) -> str:
        """Run it; it must succeed."""
        ended = self.run(*words, **sides)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def killed_at(self, text: str, *words: str, **sides: Host) -> bool:
        """Kill it with SIGKILL as soon as it writes a line with this text. False if it came to its end before."""
        with subprocess.Popen(self.command(*words, **sides), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                self.lines.append(line.rstrip())
                if text in line:
                    process.send_signal(signal.SIGKILL)
                    return True
            assert process.wait(600) == 0, self.lines
        return False

    def until_line(self, text: str, *words: str) -> "subprocess.Popen[str]":
        """Start it, and return when it has written a line with this text."""
        process = subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            self.lines.append(line.rstrip())
            if text in line:
                return process
        raise AssertionError(self.lines)

    @contextlib.asynccontextmanager
    async def guest(self, host: Host) -> AsyncIterator[Console]:
        """The console of the guest, which answers."""
        async with host.client() as client:
            talk = Talk(host, client)
            await talk.running("web", 120)
            async with talk.console("web") as console:
                await console.write(b"\r")
                await console.until(b":/# ", 120)
                yield console

    async def is_off(self, host: Host) -> bool:
        """Return True if a host runs no instance."""
        async with host.client() as client:
            return await Talk(host, client).get(f"{VMIS}/web") == {}


def _made(root: Path) -> Path:
    root.mkdir()
    return root


def document(image: str) -> Data:
    """A machine with two disks of its own: the tiny guest's, and a blank one."""
    storage = {"resources": {"requests": {"storage": "256Mi"}}}
    templates = [
        {"metadata": {"name": "web-root"}, "spec": {"source": {"registry": {"url": f"docker://{image}"}}, "storage": storage}},
        {"metadata": {"name": "web-data"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "32Mi"}}}}},
    ]
    names = ("root", "data")
    devices = {"autoattachGraphicsDevice": False, "disks": [{"name": each, "disk": {"bus": "virtio"}} for each in names]}
    guest = {
        "domain": {"memory": {"guest": "128Mi"}, "devices": devices},
        "volumes": [{"name": each, "dataVolume": {"name": f"web-{each}"}} for each in names],
        "terminationGracePeriodSeconds": 30,
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web"},
        "spec": {"runStrategy": "Always", "dataVolumeTemplates": templates, "template": {"spec": guest}},
    }


@pytest.fixture
def pair(work: Path, registry: Registry, tiny_disk_image: str) -> Iterator[Pair]:
    """Two hosts; the first runs the machine, whose data disk has the marker."""
    made = Pair(work, registry.address)
    try:
        for host in made.hosts:
            host.start()
        asyncio.run(_begin(made, tiny_disk_image))
        yield made
    finally:
        for host in made.hosts:
            host.end()
        if os.environ.get("PADDOCK_SHOW_MOVES"):
            print("\n".join(made.lines))


async def _begin(pair: Pair, image: str) -> None:
    async with pair.a.client() as client:
        await Talk(pair.a, client).make(VMS, document(image))
    async with pair.guest(pair.a) as console:
        await console.shell(f"echo {MARKER} > /dev/vdb; sync", 60)

"""Two whole Paddocks with real guests, and `paddock move` as a process between them."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pytest

from tests.host.guests import Registry
from tests.host.runs.conftest import VMIS, VMS, Console, Host, Talk

Data = dict[str, Any]
Result = TypeVar("Result")
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


class MoveCommand:
    """`paddock move` from one server to another, as a process. `lines` gets what it says."""

    # What it waits for a machine at most: less than a test waits for the command.
    seconds = 300

    def __init__(self, source: Path, target: Path, lines: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> None:
        options = ("--yes", f"--timeout={self.seconds}s", "--kubeconfig", str(source), "--to", str(target))
        self._words = [sys.executable, "-m", "paddock.app", "move", *options]
        self._lines = lines
        self._environment = {**os.environ, **environment}

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        with self.started(*words) as process:
            out, err = process.communicate()
        self._lines += err.splitlines()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def good(self, *words: str) -> str:
        """Run it; it must succeed."""
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def started(self, *words: str) -> "subprocess.Popen[str]":
        """Start it."""
        return subprocess.Popen([*self._words, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment)

    def until_line(self, text: str, *words: str) -> "subprocess.Popen[str]":
        """Start it, and return when it has written a line with this text."""
        process = self.started(*words)
        assert self._says(process, text), self._lines
        return process

    def killed_at(self, text: str, *words: str) -> bool:
        """Kill it with SIGKILL as soon as it writes a line with this text. False if it came to its end before."""
        process = self.started(*words)
        is_killed = self._says(process, text)
        if is_killed:
            process.kill()
        process.communicate()
        assert is_killed or process.returncode == 0, self._lines
        return is_killed

    def _says(self, process: "subprocess.Popen[str]", text: str) -> bool:
        assert process.stderr is not None
        for line in process.stderr:
            self._lines.append(line.rstrip())
            if text in line:
                return True
        return False


class Pair:
    """Two hosts that are up, and the command."""

    def __init__(self, root: Path, registry: str) -> None:
        self.hosts = (Host(_made(root / "a"), registry), Host(_made(root / "b"), registry))
        self.a, self.b = self.hosts
        self.lines: list[str] = []
        self.there, self.back = (MoveCommand(a.root / "kubeconfig", b.root, self.lines) for a, b in (self.hosts, self.hosts[::-1]))

    @contextlib.asynccontextmanager
    async def guest(self, host: Host) -> AsyncIterator[Console]:
        """The console of the guest, which answers."""
        async with answering(host) as console:
            yield console

    def says(self, host: Host, command: str, name: str = "web") -> str:
        """Return what a guest answers to a command."""

        async def ask() -> str:
            async with answering(host, name=name) as console:
                return (await console.shell(command, 60)).strip()

        return asyncio.run(ask())

    def do(self, host: Host, script: Callable[[Talk], Awaitable[Result]]) -> Result:
        """Run a script with a host."""

        async def inside() -> Result:
            async with host.client() as client:
                return await script(Talk(host, client))

        return asyncio.run(inside())

    async def is_off(self, host: Host) -> bool:
        """Return True if a host runs no instance."""
        async with host.client() as client:
            return await Talk(host, client).get(f"{VMIS}/web") == {}


@contextlib.asynccontextmanager
async def answering(host: Host, seconds: float = 120, name: str = "web") -> AsyncIterator[Console]:
    """The console of the guest on a server, as soon as it answers."""
    async with host.client() as client:
        talk = Talk(host, client)
        await talk.running(name, seconds)
        async with talk.console(name) as console:
            await console.write(b"\r")
            await console.until(b":/# ", seconds)
            yield console


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
def hosts(work: Path, registry: Registry) -> Iterator[Pair]:
    """Two hosts without machines."""
    made = Pair(work, registry.address)
    try:
        for host in made.hosts:
            host.start()
        yield made
    finally:
        for host in made.hosts:
            host.end()
        if os.environ.get("PADDOCK_SHOW_MOVES"):
            print("\n".join(made.lines))


@pytest.fixture
def pair(hosts: Pair, tiny_disk_image: str) -> Pair:
    """Two hosts; the first runs the machine, whose data disk has the marker."""
    asyncio.run(_begin(hosts, tiny_disk_image))
    return hosts


async def _begin(pair: Pair, image: str) -> None:
    async with pair.a.client() as client:
        await Talk(pair.a, client).make(VMS, document(image))
    async with pair.guest(pair.a) as console:
        await console.shell(f"echo {MARKER} > /dev/vdb; sync", 60)

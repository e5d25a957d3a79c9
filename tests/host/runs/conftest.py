"""A whole Paddock in a process of its own, with real machines: its objects, and the consoles of its guests."""

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from paddock.base.clock import SystemClock
from paddock.engine.storage.pools import MARKER
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.http import tls
from tests.host.chaos.test_kills import VERBS, VMIS, VMS
from tests.host.chaos.test_kills import Host as KilledHost
from tests.host.guests import Registry
from tests.kit.servers import websockets

__all__ = ["VERBS", "VMIS", "VMS"]
Data = dict[str, Any]
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances"
EVENTS = "/api/v1/namespaces/default/events"
SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
PROMPT = b":/# "
_numbers = itertools.count(1)


class Host(KilledHost):
    """It can be stopped in good order, too, and is asked about its process."""

    def stop(self) -> None:
        """Paddock goes, machines stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(60) == 0

    def resident(self) -> int:
        """Bytes of memory that the process has."""
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def command(self, *words: str) -> str:
        """Another command of the program; it must succeed."""
        said = subprocess.run([sys.executable, "-m", "paddock.app", *words], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        return said.stdout


class Talk:
    """One at work with a host."""

    def __init__(self, host: Host, client: Client) -> None:
        self.host = host
        self.client = client

    async def get(self, path: str) -> Data:
        """An object, or a list; empty when it is not there."""
        try:
            return dict(orjson.loads(await self.client.request("GET", path)))
        except NotFound:
            return {}

    async def make(self, path: str, body: Data) -> Data:
        """A new object."""
        return dict(orjson.loads(await self.client.request("POST", path, body=orjson.dumps(body))))

    async def change(self, path: str, body: Data) -> None:
        """A merge patch."""
        await self.client.request("PATCH", path, body=orjson.dumps(body), media="application/merge-patch+json")

    async def verb(self, name: str, verb: str, **options: Any) -> None:
        """Ask something of a machine."""
        await self.client.request("PUT", f"{VERBS}/{name}/{verb}", body=orjson.dumps(options))

    async def until(self, path: str, holds: Callable[[Data], object], what: str = "", seconds: float = 90) -> Data:
        """The object, as soon as something holds of it."""
        found: Data = {}
        try:
            async with asyncio.timeout(seconds):
                while not holds(found := await self.get(path)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"not within {seconds:g} s: {what}; {path} is {found}")
        return found

    async def running(self, name: str, seconds: float = 90) -> Data:
        """An instance that runs."""
        return await self.until(f"{VMIS}/{name}", lambda found: phase(found) == "Running", "it runs", seconds)

    @asynccontextmanager
    async def console(self, name: str) -> AsyncIterator["Console"]:
        """The serial console of a machine."""
        access = kubeconfig.find({}, SystemClock(), explicit=self.host.root / "kubeconfig")
        credential = await access.credentials.current()
        context, url = tls.context(access, credential.certificate), urlsplit(access.server)
        assert url.port is not None
        way = websockets.connected(
            url.port, f"{SUBRESOURCES}/{name}/console?screen=true", dict(credential.headers), tls=context, name=url.hostname or ""
        )
        async with way as socket:
            yield Console(socket)


class Console:
    """A serial console."""

    def __init__(self, socket: websockets.Socket) -> None:
        self._socket = socket
        self._said = b""

    async def write(self, data: bytes) -> None:
        """Type."""
        await self._socket.send(data)

    async def until(self, text: bytes, seconds: float = 60) -> bytes:
        """Return the guest's output up to this text."""
        try:
            async with asyncio.timeout(seconds):
                while text not in self._said:
                    heard = await self._socket.receive()
                    assert isinstance(heard, bytes), f"the console was closed; it said {self._said[-500:]!r}"
                    self._said += heard
        except TimeoutError:
            pytest.fail(f"not within {seconds:g} s: {text!r}; it said {self._said[-500:]!r}")
        before, _, self._said = self._said.partition(text)
        return before

    async def shell(self, command: str, seconds: float = 60) -> str:
        """Return a command's output in the tiny guest."""
        # The marks are no hexadecimal digits, of which a checksum has any row.
        number = next(_numbers)
        await self.write(f"echo y$(({number}+0))y; {command}; echo z$(({number}+0))z\r".encode())
        await self.until(b"y%dy\r\n" % number, seconds)
        said = await self.until(b"z%dz" % number, seconds)
        return said.decode().replace("\r\n", "\n")


def files_in(host: "Host", *folders: str) -> list[Path]:
    """Return what is in folders of the engine, without the mark that a pool keeps."""
    found = (each for folder in folders for each in (host.root / "engine" / folder).glob("[!.]*"))
    return [each for each in found if each.name != MARKER]


def phase(found: Data) -> str:
    """The phase of an object."""
    return str(found.get("status", {}).get("phase", ""))


def condition(found: Data, kind: str) -> Data:
    """A condition of an object."""
    return next((dict(each) for each in found.get("status", {}).get("conditions") or () if each["type"] == kind), {})


def machine(name: str, image: str = "", strategy: str = "Always", **more: Any) -> Data:
    """A machine that boots a containerDisk, if it is given one."""
    disks = [{"name": "root", "disk": {"bus": "virtio"}}] if image else []
    volumes = [{"name": "root", "containerDisk": {"image": image}}] if image else []
    for each in more.pop("volumes", ()):
        volumes.append(each)
        disks.append({"name": each["name"], "disk": {"bus": "virtio"}})
    devices = {"autoattachGraphicsDevice": False, "disks": disks}
    domain = {"memory": {"guest": "32Mi"}, "devices": devices, **more.pop("domain", {})}
    spec = {"domain": domain, "volumes": volumes, **more}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": strategy, "template": {"spec": spec}},
    }


Play = Callable[[Callable[[Talk], Awaitable[Any]]], None]


@pytest.fixture
def host(work: Path, registry: Registry) -> Iterator[Host]:
    """A host that was not started yet."""
    made = Host(work, registry.address)
    yield made
    made.end()


def perform(host: Host, script: Callable[[Talk], Awaitable[Any]]) -> None:
    """Start a host, and run a script with it."""

    async def inside() -> None:
        async with asyncio.timeout(300), host.client() as client:
            await script(Talk(host, client))

    host.start()
    asyncio.run(inside())


@pytest.fixture
def play(host: Host) -> Play:
    """Runs a script with the started host."""
    return partial(perform, host)

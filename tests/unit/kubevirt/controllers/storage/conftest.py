"""Storage in virtual time: a server in memory, the controllers, volumes and images without files."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.storage import targets
from paddock.kubevirt.controllers.storage.assembly import StorageSettings, storage_controllers
from paddock.server.housekeeping.claims import ClaimProtection
from paddock.server.housekeeping.collector import GarbageCollector
from tests import virtualtime
from tests.kit.engine.enginefakes_storage import FakeImages, FakeVolumes
from tests.kit.servers import apiclient
from tests.kit.servers.apiharness import Harness

CORE = "/api/v1/namespaces/default"
CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default"
GIB = 1 << 30
KINDS = {target.plural: target.kind for target in vars(targets).values() if isinstance(target, Target)} | {
    "uploadtokenrequests": "UploadTokenRequest",
    "configmaps": "ConfigMap",
    "namespaces": "Namespace",
}
Data = dict[str, Any]


class Clock(virtualtime.Clock):
    """No two looks at it are the same: events are named after their time."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def seconds(self) -> float:
        self._looks += 1
        return super().seconds() + self._looks * 1e-5


class Host:
    """A running host: its API and what is behind it."""

    def __init__(self, api: Harness, client: Client) -> None:
        self.api = api
        self.client = client
        self.images = FakeImages()
        self.volumes = FakeVolumes()

    async def begin(self) -> None:
        """Start the controllers, and the class that claims get."""
        machinery = Machinery(clock=Clock(), chance=random.Random(1))
        self.program = ControllerManager(self.client, component="storage", instance="test", machinery=machinery)
        self.storage = storage_controllers(self.program, self.images, self.volumes, StorageSettings(upload_url=lambda: "https://here:6443"))
        self._task = asyncio.create_task(self.program.run())
        await asyncio.sleep(5)

    async def end(self) -> None:
        """Stop them, as a sudden end of the process would."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.storage.close()

    async def again(self) -> None:
        """The process ends and is started again; volumes and images stay."""
        await self.end()
        await self.begin()

    async def settle(self, seconds: float = 5.0) -> None:
        """Let everything happen that happens in this time."""
        await asyncio.sleep(seconds)

    async def post(self, path: str, body: Data) -> Data:
        """Make an object; the test fails when it is refused."""
        words = path.strip("/").split("/")
        version = "/".join(words[1:3]) if words[0] == "apis" else words[1]
        reply = await self.api.post(path, {"apiVersion": version, "kind": KINDS[words[-1]], **body})
        assert reply.status == 201, reply.data
        return dict(reply.data)

    async def get(self, path: str) -> Data:
        """An object that is there."""
        reply = await self.api.get(path)
        assert reply.status == 200, reply.data
        return dict(reply.data)

    async def data_volume(self, name: str, spec: Data, **metadata: Any) -> Data:
        """Make a DataVolume."""
        return await self.post(f"{CDI}/datavolumes", {"metadata": {"name": name, **metadata}, "spec": spec})

    async def status(self, name: str) -> Data:
        """The status of a DataVolume."""
        return dict((await self.get(f"{CDI}/datavolumes/{name}")).get("status") or {})

    async def phase(self, name: str) -> str:
        """The phase of a DataVolume."""
        return str((await self.status(name)).get("phase", ""))

    async def condition(self, name: str, type: str) -> Data:
        """A condition of a DataVolume."""
        return next(each for each in (await self.status(name))["conditions"] if each["type"] == type)

    async def claim(self, name: str) -> Data:
        """A claim."""
        return await self.get(f"{CORE}/persistentvolumeclaims/{name}")

    async def volume_of(self, name: str) -> Any:
        """The engine's volume of a claim."""
        return self.volumes.get((await self.claim(name))["metadata"]["uid"])

    async def content(self, name: str) -> str:
        """Return the initial content of a claim's volume."""
        return self.volumes.content[(await self.claim(name))["metadata"]["uid"]]

    async def reasons(self, name: str) -> list[str]:
        """The reasons of the events about an object of this name, in order."""
        found = (await self.get(f"{CORE}/events"))["items"]
        return [each["reason"] for each in found if each["involvedObject"]["name"] == name]


Script = Callable[[Host], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play() -> Play:
    """Runs a script with a fresh host in virtual time; returns how long it took there."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with Harness() as api:
                await stage(api, script)

        return virtualtime.run(inside())

    return run


def pvc(size: str = "1Gi") -> Data:
    """The literal form of a claim."""
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}


def storage(size: str = "1Gi") -> Data:
    """The form that the class completes."""
    return {"resources": {"requests": {"storage": size}}}


def http(url: str = "http://images/a.qcow2", **more: Any) -> Data:
    """An import over http."""
    return {"http": {"url": url, **more}}


async def stage(api: Harness, script: Script) -> None:
    """Runs a script with a host around a server, whose own chores run too."""
    chores = (GarbageCollector(api.parts), ClaimProtection(api.parts))
    for each in chores:
        each.start()
    async with apiclient.inside(api) as client:
        host = Host(api, client)
        await host.begin()
        try:
            await script(host)
        finally:
            await host.end()
            for each in chores:
                await each.chores.stop()

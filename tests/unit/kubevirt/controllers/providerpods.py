"""Providers in a cluster in memory: controllers, API and the wire are real; a kubelet is played, whose Pods serve the fake driver."""

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.contract import tls
from paddock.contract.server import ProviderServer, ProviderServerSettings
from paddock.dialects.virtrigaud.controllers import controller
from paddock.dialects.virtrigaud.controllers.providers.cluster import ClusterPrograms, ClusterSettings
from paddock.dialects.virtrigaud.controllers.providers.connections import ProviderConnections
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from tests import virtualtime
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.interruption import Interruption
from tests.unit.kubevirt.controllers.rigaudharness import RecordedDriver, base, provider

NAME = "virtrigaud-provider-default-lab"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CORE = "/api/v1/namespaces/default"
# Services are names, which lead to this host.
_SUFFIX = ".svc.cluster.local"


class Pod:
    """A Pod of a Provider: the fake driver behind the certificates that the Deployment mounts."""

    def __init__(self, server: ProviderServer, driver: RecordedDriver) -> None:
        self.server = server
        self.driver = driver


class Cluster:
    """The world of one test."""

    def __init__(self, api: Harness, folder: Path, settings: ClusterSettings) -> None:
        self.api = api
        self.wire = Interruption.of(api)
        self.folder = folder
        self.settings = settings
        # Certificates are made by this clock and judged by OpenSSL, whose clock is the host's.
        self.clock = virtualtime.Clock(time.time() - virtualtime.Clock.START)
        self.connections: ProviderConnections | None = None
        self.port = _free_port()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the controllers, as a new process."""
        machinery = Machinery(clock=self.clock, chance=random.Random(1))
        program = ControllerManager(Client(self.wire), component="paddock-operator", instance="test", machinery=machinery)
        programs = ClusterPrograms(program.client, program.informers, machinery.clock, self.settings)
        self.connections = ProviderConnections(programs)
        controller.wire(program, self.connections)
        self._running = asyncio.create_task(program.run())
        await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """End the controllers at once."""
        if self._running is not None and self.connections is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            await self.connections.close()
            self._running = None

    # --- what a user does -----------------------------------------------------------------------------------------------------

    async def make(self, **spec: Any) -> None:
        """Make the Provider `lab`."""
        runtime = {"image": "example/provider:1", "service": {"port": self.port, **spec.pop("service", {})}, **spec.pop("runtime", {})}
        body = provider(runtime=runtime, **spec)
        made = await self.api.post(base("Provider"), body)
        assert made.status == 201, made.data

    async def credentials(self, password: str = "first") -> None:
        """Make the Secret with the credentials, or change it."""
        body = {"metadata": {"name": "lab"}, "stringData": {"username": "root", "password": password}}
        made = await self.api.post(f"{CORE}/secrets", body)
        if made.status == 409:
            made = await self.api.merge(f"{CORE}/secrets/lab", {"stringData": {"password": password}})
        assert made.status in (200, 201), made.data

    async def get(self, path: str) -> Data:
        """An object; empty if it does not exist."""
        found = await self.api.get(path)
        return dict(found.data) if found.status == 200 else {}

    async def deployment(self, name: str = NAME) -> Data:
        return await self.get(f"{DEPLOYMENTS}/{name}")

    async def status(self) -> Data:
        return dict((await self.get(f"{base('Provider')}/lab")).get("status") or {})

    async def condition(self, type: str) -> tuple[str, str, str]:
        conditions = (await self.status()).get("conditions") or ()
        found: Data = next((each for each in conditions if each["type"] == type), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    # --- what a kubelet does ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def pod(self, secret: str = f"{NAME}-tls", driver: RecordedDriver | None = None) -> AsyncIterator[Pod]:
        """Run the Pod of the Deployment for the length of the block."""
        served = driver or RecordedDriver(FakeDriver(FakeSettings(), self.clock, random.Random(7)))
        security, allowed = None, frozenset[str]()
        if secret:
            data = decoded(Secret(data=(await self.get(f"{CORE}/secrets/{secret}"))["data"]))
            folder = self.folder / f"pod-{len(list(self.folder.iterdir()))}"
            folder.mkdir()
            for each in ("tls.crt", "tls.key", "ca.crt"):
                (folder / each).write_bytes(data[each])
            security = tls.ServerTls(folder)
            variables = {each["name"]: each.get("value", "") for each in (await self.container())["env"]}
            allowed = tls.allowed_names(variables)
        settings = ProviderServerSettings(host="127.0.0.1", port=self.port, health_port=None, allowed=allowed, grace_seconds=0.1)
        server = ProviderServer(served, settings, security)
        await server.start()
        await self.report(ready=1)
        try:
            yield Pod(server, served)
        finally:
            await server.close()
            await self.report(ready=0)

    async def running(self) -> None:
        """Wait until the Provider is healthy."""
        async with asyncio.timeout(120):
            while (await self.status()).get("healthy") is not True:
                await asyncio.sleep(0.5)

    async def container(self) -> Data:
        return dict((await self.deployment())["spec"]["template"]["spec"]["containers"][0])

    async def report(self, ready: int, **members: Any) -> None:
        """Write the Deployment's status."""
        found = await self.deployment()
        if not found:
            return
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), ready)
        status = {**counts, "observedGeneration": found["metadata"]["generation"], **members}
        reply = await self.api.merge(f"{DEPLOYMENTS}/{NAME}/status", {"status": status})
        assert reply.status == 200, reply.data


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture(autouse=True)
def services_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of Services lead to this host; no thread looks them up, for which virtual time would not wait."""

    async def found(self: Any, host: Any, port: Any, **more: Any) -> Any:
        address = "127.0.0.1" if str(host).endswith(_SUFFIX) else str(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", found)


@asynccontextmanager
async def cluster(folder: Path, *, settings: ClusterSettings = ClusterSettings()) -> AsyncIterator[Cluster]:  # noqa: B008 - frozen
    """A world with the controllers at work."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(Harness(settings=AdmissionSettings(workloads="stored")))
        found = Cluster(api, folder, settings)
        await found.start()
        stack.push_async_callback(found.stop)
        yield found


KEY = Key("default", "lab")

"""VirtRigaud's controllers on a server in memory, in virtual time, with the fake driver behind a recorder of its calls."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.base.metrics import MetricsRegistry
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.contract.methods import EXTENSIONS, METHODS
from paddock.dialects.virtrigaud.controllers import controller
from paddock.dialects.virtrigaud.controllers.migrations.reconciler import NetworkChecks
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection, ProviderSecrets
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from tests import virtualtime
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.interruption import Interruption

GROUP = "/apis/infra.virtrigaud.io/v1beta1"
API = "infra.virtrigaud.io/v1beta1"
NAMES = {method.attribute: method.name for method in (*METHODS, *EXTENSIONS)}
# A call, before it reaches the driver: raise or return an answer in place of the driver's, or return None.
Script = Callable[[str, m.WireMessage], Awaitable[m.WireMessage | None]]


class RecordedDriver:
    """Passes calls on and records them. `script` may answer in place of the driver; `down` makes every call fail."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.calls: list[tuple[str, Any]] = []
        self.script: Script | None = None
        self.down: ProviderError | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)

        async def call(request: m.WireMessage) -> m.WireMessage:
            self.calls.append((NAMES[name], request))
            if self.down is not None:
                raise self.down
            if self.script is not None and (answer := await self.script(NAMES[name], request)) is not None:
                return answer
            answer = await getattr(self.driver, name)(request)
            assert isinstance(answer, m.WireMessage)
            return answer

        return call

    def count(self, rpc: str) -> int:
        """How often an RPC was called."""
        return sum(name == rpc for name, _ in self.calls)

    def of(self, rpc: str) -> list[Any]:
        """The requests of an RPC."""
        return [request for name, request in self.calls if name == rpc]

    def names(self) -> list[str]:
        """The RPCs in their order, without those that only ask."""
        return [name for name, _ in self.calls if name not in ("Describe", "TaskStatus", "Validate", "GetCapabilities", "GetFeatures")]


class OneProvider:
    """The registry of a test: every Provider of type libvirt, vsphere or proxmox has the driver."""

    def __init__(self, driver: RecordedDriver, others: Mapping[str, RecordedDriver] | None = None) -> None:
        self.driver = driver
        # those of Providers with drivers of their own, by name
        self.others = others if others is not None else {}

    def find(self, key: Key, type: str) -> ProviderConnection:
        if type in ("qemu", "firecracker"):
            missing = ProviderRuntimeFacts(
                phase="Failed", reason="DriverMissing", message=f"there is no driver for Providers of type {type}"
            )
            return ProviderConnection(None, missing)
        return ProviderConnection(self.others.get(key.name, self.driver))

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> None: ...

    async def release(self, key: Key) -> None: ...

    def listen(self, handler: Callable[[Key], None]) -> None: ...


class Rigaud:
    """The world of one test."""

    def __init__(self, api: Harness, wire: Interruption, driver: RecordedDriver, settings: VirtrigaudSettings) -> None:
        self.api, self.wire, self.driver = api, wire, driver
        self.settings = settings
        self.others: dict[str, RecordedDriver] = {}
        self.checks = NetworkChecks()
        self.clock = virtualtime.Clock()
        # of the present process
        self.metrics = MetricsRegistry()
        self.http: list[tuple[str, int]] = []
        # how often the power was changed before each
        self.http_after: list[int] = []
        self.http_answer = b"HTTP/1.1 200 OK\r\n"
        self.http_seconds = 0.0
        # what the next requests fail with; None: nothing answers
        self.http_faults: list[OSError | None] = []
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the controllers, as a new process."""
        self.metrics = MetricsRegistry()
        machinery = Machinery(clock=self.clock, chance=random.Random(1), metrics=self.metrics)
        program = ControllerManager(Client(self.wire), component="paddock-virtrigaud", instance="test", machinery=machinery)
        controller.wire(program, OneProvider(self.driver, self.others), self.settings, self._exchange, self.checks)
        self._running = asyncio.create_task(program.run())
        await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """End the controllers at once."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    async def restart(self) -> None:
        """End the process and start another one."""
        await self.stop()
        await self.start()

    async def _exchange(self, host: str, port: int, request: bytes, encrypted: bool) -> bytes:
        self.http.append((host, port))
        self.http_after.append(self.driver.count("Power"))
        await asyncio.sleep(self.http_seconds)
        if self.http_faults:
            fault = self.http_faults.pop(0)
            if fault is None:
                await asyncio.Event().wait()
            else:
                raise fault
        return self.http_answer

    # --- what a user does -------------------------------------------------------------------------------------------------

    async def make(self, *bodies: Data, namespace: str = "default") -> None:
        for body in bodies:
            made = await self.api.post(f"{base(body['kind'], namespace)}", body)
            assert made.status == 201, made.data

    async def merge(self, name: str, body: Data, kind: str = "VirtualMachine") -> None:
        said = await self.api.merge(f"{base(kind)}/{name}", body)
        assert said.status == 200, said.data

    async def status_merge(self, name: str, status: Data, kind: str) -> None:
        said = await self.api.merge(f"{base(kind)}/{name}/status", {"status": status})
        assert said.status == 200, said.data

    async def delete(self, name: str = "web", kind: str = "VirtualMachine") -> None:
        said = await self.api.delete(f"{base(kind)}/{name}")
        assert said.status in (200, 202), said.data

    async def get(self, name: str = "web", kind: str = "VirtualMachine", namespace: str = "default") -> Data:
        found = await self.api.current(f"{base(kind, namespace)}/{name}")
        return {} if found.status == 404 else dict(found.data)

    async def status(self, name: str = "web", kind: str = "VirtualMachine") -> Data:
        return dict((await self.get(name, kind)).get("status") or {})

    async def said(self, type: str = "Ready", name: str = "web", kind: str = "VirtualMachine") -> tuple[str, str]:
        found = await self.condition(type, name, kind)
        return (found["status"], found["reason"]) if found else ("", "")

    async def condition(self, type: str = "Ready", name: str = "web", kind: str = "VirtualMachine") -> Data:
        conditions = (await self.status(name, kind)).get("conditions") or []
        return next((dict(each) for each in conditions if each["type"] == type), {})

    async def events(self, name: str = "web") -> list[str]:
        await asyncio.sleep(1)
        found = (await self.api.get("/api/v1/namespaces/default/events")).data["items"]
        found.sort(key=lambda each: str(each["metadata"]["uid"]))
        return [each["reason"] for each in found if each["involvedObject"]["name"] == name]

    # --- waiting ----------------------------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[], Awaitable[Any]], seconds: float = 600.0) -> None:
        async with asyncio.timeout(seconds):
            while not await holds():
                await asyncio.sleep(0.5)

    async def ready(self, name: str = "web", seconds: float = 900.0) -> Data:
        """Wait until a machine is as its spec says."""

        async def holds() -> bool:
            seen = await self.get(name)
            current = (seen.get("status") or {}).get("observedGeneration") == seen["metadata"]["generation"]
            return current and (await self.said("Ready", name)) == ("True", "ReconcileSuccess")

        try:
            await self.until(holds, seconds)
        except TimeoutError:
            raise AssertionError(f"not ready: {await self.status(name)}, calls {self.driver.names()}") from None
        return await self.status(name)

    async def gone(self, name: str = "web", seconds: float = 900.0) -> None:
        async def holds() -> bool:
            return not await self.get(name)

        try:
            await self.until(holds, seconds)
        except TimeoutError:
            raise AssertionError(f"not gone: {await self.get(name)}, calls {self.driver.names()}") from None

    async def machines(self) -> list[m.VMInfo]:
        """The machines at the provider."""
        return list((await self.driver.driver.list_vms(m.ListVMsRequest())).vms)


def base(kind: str, namespace: str = "default") -> str:
    if kind == "Secret":
        return f"/api/v1/namespaces/{namespace}/secrets"
    plural = {"VMClass": "vmclasses", "VMPlacementPolicy": "vmplacementpolicies"}.get(kind, f"{kind.lower()}s")
    return f"{GROUP}/namespaces/{namespace}/{plural}"


# --- objects ----------------------------------------------------------------------------------------------------------------


def provider(name: str = "lab", type: str = "libvirt", **spec: Any) -> Data:
    endpoints = {"libvirt": "qemu+ssh://root@lab/system", "qemu": "tcp://lab:1"}
    given = {
        "type": type,
        "endpoint": endpoints.get(type, "https://lab"),
        "credentialSecretRef": {"name": "lab"},
        "runtime": {"image": "example/provider:1"},
        **spec,
    }
    return {"apiVersion": API, "kind": "Provider", "metadata": {"name": name}, "spec": given}


def vmclass(name: str = "small", **spec: Any) -> Data:
    given = {"cpu": 2, "memory": "4Gi", **spec}
    return {"apiVersion": API, "kind": "VMClass", "metadata": {"name": name}, "spec": given}


def image(name: str = "ubuntu", source: Data | None = None, **spec: Any) -> Data:
    given = {"source": source or {"libvirt": {"path": "/images/ubuntu.qcow2"}}, **spec}
    return {"apiVersion": API, "kind": "VMImage", "metadata": {"name": name}, "spec": given}


def network(name: str = "lan", **spec: Any) -> Data:
    given = {"network": {"libvirt": {"networkName": "default"}}, **spec}
    return {"apiVersion": API, "kind": "VMNetworkAttachment", "metadata": {"name": name}, "spec": given}


def machine(name: str = "web", **spec: Any) -> Data:
    given = {
        "providerRef": {"name": "lab"},
        "classRef": {"name": "small"},
        "imageRef": {"name": "ubuntu"},
        "networks": [{"name": "lan", "networkRef": {"name": "lan"}}],
        **spec,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return {"apiVersion": API, "kind": "VirtualMachine", "metadata": {"name": name}, "spec": given}


WORLD = (provider(), vmclass(), image(), network())


@asynccontextmanager
async def rigaud(
    fake: FakeSettings = FakeSettings(),  # noqa: B008 - frozen
    *,
    world: bool = True,
    settings: VirtrigaudSettings = VirtrigaudSettings(),  # noqa: B008 - frozen
    **members: Any,
) -> AsyncIterator[Rigaud]:
    """A world with the controllers at work; `members` are those of the fake driver's settings."""
    async with Harness() as api:
        clock = virtualtime.Clock()
        driver = RecordedDriver(FakeDriver(msgspec.structs.replace(fake, **members), clock, random.Random(7)))
        life = Rigaud(api, Interruption.of(api), driver, settings)
        await life.start()
        try:
            if world:
                await life.make(*WORLD)
            yield life
        finally:
            await life.stop()

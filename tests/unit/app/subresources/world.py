"""A server with the subresources, and machines in memory behind it.

async with World() as world:
    machine = await world.running("vm")                   # VirtualMachine, VirtualMachineInstance and machine of one name
    reply = await world.put("vmi", "vm", "pause")
"""

import asyncio
from typing import Any

from paddock.app.subresources.environment import SubresourceEnvironment as Given
from paddock.app.subresources.stored import StoredObjects
from paddock.app.subresources.subresources import SubresourceApi
from paddock.engine.machine.config import CpuConfig, DeviceConfig, MachineConfig, MemoryConfig
from paddock.engine.networks.datagrams import Datagrams, open_datagrams
from paddock.engine.networks.errors import GuestUnreachable
from paddock.server.resources.kubevirtsubresources import GROUP, INSTANCES, MACHINES
from tests.kit.engine.enginefakes import FakeMachine, FakeMachines
from tests.kit.servers.apiharness import Harness, Reply

Data = dict[str, Any]
PLURALS = {"vm": MACHINES, "vmi": INSTANCES}
BASE = f"/apis/{GROUP}/v1"
CONFIG = MachineConfig(
    label="default_vm", cpu=CpuConfig(), memory=MemoryConfig(size=64 << 20, max_size=64 << 20), devices=DeviceConfig(usb_redirections=4)
)


def path(kind: str, name: str, subresource: str, *, version: str = "v1", namespace: str = "default") -> str:
    """Return the path of a subresource."""
    return f"/apis/{GROUP}/{version}/namespaces/{namespace}/{PLURALS[kind]}/{name}/{subresource}"


def hardware(**more: Any) -> Data:
    """The spec of an instance."""
    return {
        "domain": {
            "memory": {"guest": "64Mi"},
            "devices": {"interfaces": [{"name": "default", "masquerade": {}}], **more.pop("devices", {})},
            **more.pop("domain", {}),
        },
        "networks": [{"name": "default", "pod": {}}],
        **more,
    }


class FakeNetworks:
    """Guests' ports are ports of loopback: `ports[80] = 40123`."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.dialled: list[tuple[str, str, int]] = []

    async def dial(self, owner: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((owner, name, port))
        if port not in self.ports:
            raise GuestUnreachable(f"cannot reach port {port}", why="connection refused")
        return await asyncio.open_connection("127.0.0.1", self.ports[port])

    async def datagrams(self, owner: str, name: str, port: int) -> Datagrams:
        self.dialled.append((owner, name, port))
        return await open_datagrams(("127.0.0.1", self.ports[port]))


class FakeConsoleLogs:
    """The console's output of runs that are over, by owner."""

    def __init__(self) -> None:
        self.logs: dict[str, bytes] = {}

    def kept(self, owner: str) -> bytes | None:
        return self.logs.get(owner)


class World:
    """All of it; `api` is the harness."""

    def __init__(self, api: Harness | None = None) -> None:
        self.api = api or Harness()
        self.machines = FakeMachines()
        self.networks = FakeNetworks()
        self.consoles = FakeConsoleLogs()
        self.told: list[tuple[str, str, str]] = []

    async def __aenter__(self) -> "World":
        await self.api.__aenter__()
        self.stored = StoredObjects(self.api.parts)
        self.subresources = SubresourceApi(Given(self.api.parts, self.machines, self.networks, self.consoles, self._tell))
        self.subresources.serve(self.api.api)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.subresources.close()
        await self.api.__aexit__()

    def _tell(self, instance: Data, kind: str, reason: str, note: str) -> None:
        self.told.append((kind, reason, note))

    # --- what there is ------------------------------------------------------------------------------------------------------

    async def machine(self, name: str = "vm", **spec: Any) -> Data:
        """A VirtualMachine."""
        body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "metadata": {"name": name},
            "spec": {"runStrategy": "Always", "template": {"spec": hardware()}, **spec},
        }
        await self.stored.create(MACHINES, "default", body)
        return self.stored.machine_data("default", name)

    async def instance(self, name: str = "vm", *, phase: str = "Running", **spec: Any) -> str:
        """A VirtualMachineInstance in a phase; its UID."""
        body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": name},
            "spec": spec.get("spec") or hardware(),
        }
        await self.stored.create(INSTANCES, "default", body)
        await self.set_status(name, phase=phase)
        return str(self.stored.instance_data("default", name)["metadata"]["uid"])

    async def set_status(self, name: str, **status: Any) -> None:
        """Members of an instance's status, as its controller writes them."""
        await self.stored.edit(INSTANCES, ("default", name), lambda old: {**old, "status": {**old.get("status", {}), **status}})

    async def set_machine_status(self, name: str, **status: Any) -> None:
        """Members of a machine's status, as its controller writes them."""
        place = ("default", name)
        await self.stored.edit(MACHINES, place, lambda old: {**old, "status": {**old.get("status", {}), **status}}, sub="status")

    async def running(self, name: str = "vm", **spec: Any) -> FakeMachine:
        """An instance that runs, and its machine."""
        uid = await self.instance(name, **spec)
        machine = await self.machines.define(uid, CONFIG)
        await machine.start()
        async with asyncio.timeout(5):
            while machine.observed.phase != "running":
                await asyncio.sleep(0)
        return machine

    # --- what is asked ------------------------------------------------------------------------------------------------------

    async def put(self, kind: str, name: str, subresource: str, body: Any = None, **headers: str) -> Reply:
        """A PUT."""
        return await self.api.call("PUT", path(kind, name, subresource), body, **headers)

    async def get(self, kind: str, name: str, subresource: str, **headers: str) -> Reply:
        """A GET."""
        return await self.api.call("GET", path(kind, name, subresource), **headers)

    def vm(self, name: str = "vm") -> Data:
        """A stored machine."""
        return self.stored.machine_data("default", name)

    def vmi(self, name: str = "vm") -> Data:
        """A stored instance."""
        return self.stored.instance_data("default", name)

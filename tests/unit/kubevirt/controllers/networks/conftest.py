"""Services and policies in virtual time: a server in memory, the controllers, networks without a host."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.networkpolicies import controller
from paddock.kubevirt.controllers.services import controller as services
from tests import virtualtime
from tests.kit.engine.enginefakes_networks import FakeNetworks
from tests.kit.servers.apiharness import Harness

CORE = "/api/v1/namespaces/default"
INSTANCES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
KIND = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
Data = dict[str, Any]


class Host:
    """A running host: its API and what is behind it."""

    def __init__(self, api: Harness, client: Client) -> None:
        self.api = api
        self.client = client
        self.networks = FakeNetworks()

    async def begin(self) -> None:
        """Start the controllers."""
        machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
        self.program = ControllerManager(self.client, component="networks", instance="test", machinery=machinery)
        services.add(self.program, self.networks, "cluster.local")
        controller.add(self.program, self.networks)
        self._task = asyncio.create_task(self.program.run())
        await asyncio.sleep(5)

    async def end(self) -> None:
        """Stop them."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def machine(self, name: str, address: str, *, ready: bool = True, labels: Data | None = None, ports: Any = None) -> Data:
        """A machine that runs."""
        card = {"name": "default", "masquerade": {}} | ({"ports": ports} if ports else {})
        spec = {
            "domain": {"resources": {"requests": {"memory": "64Mi"}}, "devices": {"interfaces": [card]}},
            "networks": [{"name": "default", "pod": {}}],
        }
        document = {"metadata": {"name": name, "labels": labels or {"app": "web"}}, "spec": spec}
        made = await self.client.create(KIND, {"apiVersion": "kubevirt.io/v1", "kind": KIND.kind, **document}, "default")
        await self.state(name, address, ready=ready)
        return made

    async def state(self, name: str, address: str, *, ready: bool, phase: str = "Running") -> None:
        """Write its present state."""
        status = {
            "phase": phase,
            "nodeName": "host",
            "interfaces": [{"name": "default", "ipAddress": address}],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        }
        await self.client.patch(KIND, Key("default", name), merge_patch({"status": status}))
        await asyncio.sleep(1)


Script = Callable[[Host], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play() -> Play:
    """Runs a script with a fresh host in virtual time."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with Harness() as api, api.client() as client:
                host = Host(api, client)
                await host.begin()
                try:
                    await script(host)
                finally:
                    await host.end()

        return virtualtime.run(inside())

    return run

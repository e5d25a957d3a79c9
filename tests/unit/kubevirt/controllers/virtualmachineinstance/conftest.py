"""VirtualMachineInstances in virtual time: a server in memory, the controller, an engine without QEMU."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from paddock.engine.engine import Engine
from paddock.engine.networks.nics import HostBridge
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.virtualmachineinstance.controller import NodeIdentity, no_definitions, wire
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from tests import virtualtime
from tests.kit.engine.enginefakes import FakeMachine
from tests.kit.engine.fakehost import GIB, Clock, Data, FakeEngine
from tests.kit.servers.apiharness import Harness

CORE = "/api/v1/namespaces/default"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
__all__ = ["CORE", "GIB", "VMIS", "Host", "Play"]


def definitions(instance: VirtualMachineInstance) -> Mapping[str, HostBridge | str]:
    """Resolve the definition `lan`; there is no other."""
    named = [each.name for each in instance.spec.networks or () if each.multus is not None and each.multus.networkName == "lan"]
    return {**no_definitions(instance), **dict.fromkeys(named, HostBridge("br1"))}


class Host:
    """A running host: its API and what is behind it."""

    def __init__(self, api: Harness, root: Path) -> None:
        self.api = api
        self.engine = FakeEngine(root)

    async def begin(self) -> None:
        """Start the controller."""
        machinery = Machinery(clock=Clock(), chance=random.Random(1))
        self.program = ControllerManager(self.api.client(), component="virt-handler", instance="test", machinery=machinery)
        place = NodeIdentity("host", "cluster.local", b"authority")
        made = wire(self.program, cast(Engine, self.engine), place, definitions)
        self.made = made
        works = (self.program.run(), made.sweeper.run(), made.upgrades.run())
        self._tasks = [asyncio.create_task(work) for work in works]
        await asyncio.sleep(1)

    async def end(self) -> None:
        """Stop it, as a sudden end of the process would."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.made.monitors.stop()

    async def again(self) -> None:
        """The process ends and is started again; machines stay."""
        await self.end()
        await self.begin()

    async def make(self, name: str = "web", *, annotations: Data | None = None, **spec: Any) -> Data:
        """A VirtualMachineInstance with a disk for each volume; the test fails when it is refused."""
        disks = [{"name": each["name"], "disk": {"bus": "virtio"}} for each in spec.get("volumes", ()) if "memoryDump" not in each]
        devices = {"disks": disks, **spec.pop("devices", {})}
        body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"domain": {"memory": {"guest": "128Mi"}, "devices": devices, **spec.pop("domain", {})}, **spec},
        }
        return await self.post(VMIS, body)

    async def post(self, path: str, body: Data) -> Data:
        """Make an object; the test fails when it is refused."""
        reply = await self.api.post(path, body)
        assert reply.status == 201, reply.data
        return dict(reply.data)

    async def get(self, name: str = "web") -> Data:
        """The instance, or nothing."""
        reply = await self.api.get(f"{VMIS}/{name}")
        return dict(reply.data) if reply.status == 200 else {}

    async def status(self, name: str = "web") -> Data:
        """Its status."""
        return dict((await self.get(name)).get("status") or {})

    async def conditions(self, name: str = "web") -> dict[str, tuple[str, str | None]]:
        """Its conditions."""
        return {each["type"]: (each["status"], each.get("reason")) for each in (await self.status(name)).get("conditions") or ()}

    def machine(self, uid: str) -> FakeMachine:
        """The machine of an instance."""
        found = self.engine.machines.get(uid)
        assert found is not None
        return found

    async def running(self, name: str = "web", **spec: Any) -> FakeMachine:
        """An instance that runs."""
        made = await self.make(name, **spec)
        await asyncio.sleep(1)
        assert (await self.status(name))["phase"] == "Running"
        return self.machine(made["metadata"]["uid"])

    async def events(self, name: str = "web") -> list[tuple[str, str]]:
        """Reasons and messages of the events about it, in order."""
        await asyncio.sleep(0.5)
        found = (await self.api.get(f"{CORE}/events")).data["items"]
        return [(each["reason"], each.get("message", "")) for each in found if each["involvedObject"]["name"] == name]


Script = Callable[[Host], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with a fresh host in virtual time; returns how long it took there."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with Harness() as api:
                host = Host(api, tmp_path)
                await host.begin()
                try:
                    await script(host)
                finally:
                    await host.end()

        return virtualtime.run(inside())

    return run

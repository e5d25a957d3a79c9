"""VirtualMachineInstances in virtual time: a server in memory, the controller, an engine without QEMU."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from paddock.controllers.virtualmachineinstance.assembly import Place, assembled
from paddock.engine.engine import Engine
from paddock.engine.host.capacity import Room
from paddock.engine.host.facts import Facts
from paddock.engine.host.kvm import Kvm
from paddock.engine.host.qemu import Qemu
from paddock.engine.machine.config import Layer
from paddock.engine.states import States
from paddock.runtime.machinery import Machinery
from paddock.runtime.program import Program
from tests import virtualtime
from tests.apiharness import Harness
from tests.enginefakes import FakeMachine, FakeMachines
from tests.enginefakes_networks import FakeNetworks
from tests.enginefakes_storage import FakeImages, FakeVolumes

CORE = "/api/v1/namespaces/default"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
GIB = 1 << 30
Data = dict[str, Any]


class Clock(virtualtime.Clock):
    """No two looks at it are the same: events are named after their time."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def seconds(self) -> float:
        self._looks += 1
        return super().seconds() + self._looks * 1e-5


class Volumes(FakeVolumes):
    """Volumes without files, and scratch files that exist."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.dropped: list[str] = []

    def scratch(self, machine: str, name: str) -> Path:
        (self.root / machine).mkdir(exist_ok=True)
        return self.root / machine / f"{name}.img"

    def scratch_owners(self) -> set[str]:
        return {each.name for each in self.root.iterdir()}

    async def drop_scratch(self, machine: str) -> None:
        self.dropped.append(machine)
        for file in (self.root / machine).glob("*"):
            file.unlink()
        if (self.root / machine).exists():
            (self.root / machine).rmdir()

    async def overlay(self, path: Path, below: Layer, size: int) -> Layer:
        return Layer(path, "qcow2", below)

    async def blank(self, path: Path, size: int) -> Layer:
        return Layer(path, "raw")


class FakeEngine:
    """An engine in memory, on a host with so much memory."""

    def __init__(self, root: Path, memory: int = 64 * GIB) -> None:
        qemu = Qemu("amd64", Path("/usr/bin/qemu"), (7, 2, 0), {"q35": "pc-q35-7.2"})
        self.facts = Facts("amd64", {"amd64": qemu}, {}, Kvm("absent", "there is none"), (0, 1), memory, is_root=False)
        self.settings = type("Settings", (), {"host_paths": ()})
        self.room = Room.of(memory)
        self.machines = FakeMachines(Clock())
        self.networks = Networks()
        self.volumes = Volumes(root / "scratch")
        self.images = FakeImages()
        self.states = States(root / "states")
        (root / "scratch").mkdir()
        self.states.prepare()


class Networks(FakeNetworks):
    """Networks that tell who has addresses."""

    def owners(self) -> set[str]:
        return {key[0] for key in self.book.entries}


class Host:
    """A running host: its API and what is behind it."""

    def __init__(self, api: Harness, root: Path) -> None:
        self.api = api
        self.engine = FakeEngine(root)

    async def begin(self) -> None:
        """Start the controller."""
        machinery = Machinery(clock=Clock(), chance=random.Random(1))
        self.program = Program(self.api.client(), component="virt-handler", instance="test", machinery=machinery)
        made = assembled(self.program, cast(Engine, self.engine), Place("host", "cluster.local", b"authority"))
        self.made = made
        self._tasks = [asyncio.create_task(self.program.run()), asyncio.create_task(made.sweeper.run())]
        await asyncio.sleep(1)

    async def end(self) -> None:
        """Stop it, as a sudden end of the process would."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.made.followers.stop()

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

"""A driver on a simulated cluster, in virtual time and without a network."""

import asyncio
import json
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.kubernetes.client.errors import TimedOut, Unreachable
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.proxmox.api import ProxmoxApi
from paddock_drivers.proxmox.driver import ProxmoxDriver
from paddock_drivers.proxmox.settings import ProxmoxSettings
from tests import virtualtime
from tests.kit.proxmox.client import Api
from tests.kit.proxmox.errors import failed
from tests.kit.proxmox.inventory import Guest
from tests.kit.proxmox.server import Fault
from tests.kit.proxmox.simulator import BASE, Request, Simulator

TEMPLATE = 9000
IMAGE_URL = "https://images.example/tiny.qcow2"
Script = Callable[["Stage"], Awaitable[None]]


class SimulatedTransport:
    """Carries requests to a simulator in this process. `away` is a cluster that nobody answers for; faults are those of the server."""

    def __init__(self, simulator: Simulator, token: str) -> None:
        self.simulator = simulator
        self.token = token
        self.away = False
        self.seconds = 0.0
        self.faults: list[Fault] = []

    async def send(self, ask: TransportRequest) -> TransportResponse:
        call = f"{ask.method} {ask.target.partition('?')[0].removeprefix(BASE)}"
        fault = next((each for each in self.faults if re.fullmatch(each.call, call)), None)
        if fault is not None and fault.after:
            fault.after -= 1
            fault = None
        if fault is not None and fault.count:
            fault.count -= 1
            if not fault.count:
                self.faults.remove(fault)
        if self.away or (fault is not None and fault.effect == "reset"):
            raise Unreachable("cannot connect to pve1:8006", why="connection refused", sent=False)
        await asyncio.sleep(self.seconds + (fault.seconds if fault is not None and fault.effect == "delay" else 0.0))
        if fault is not None and fault.effect == "hang":
            await asyncio.sleep(ask.seconds)
            raise TimedOut(f"no answer to {ask.method} within {ask.seconds:g} s", sent=True)
        if fault is not None and fault.effect == "error":
            return TransportResponse(fault.status, {}, b'{"data":null}', fault.reason)
        headers = {"authorization": self.token, "content-type": ask.content_type}
        answer = self.simulator.handle(Request(ask.method, ask.target, headers, ask.body))
        if fault is not None and fault.effect == "lost-answer":
            raise Unreachable("the server closed the connection", sent=True)
        return TransportResponse(answer.status, {}, answer.body, answer.reason)

    async def send_stream(self, ask: TransportRequest, body: AsyncIterator[bytes], length: int) -> TransportResponse:
        data = b"".join([each async for each in body])
        assert len(data) == length, "the length that was announced"
        return await self.send(msgspec.structs.replace(ask, body=data))

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        raise AssertionError("nothing is streamed from Proxmox VE")

    async def close(self) -> None:
        pass


@dataclass
class Stage:
    """A simulated cluster with a template, and drivers for it."""

    simulator: Simulator
    transport: SimulatedTransport
    admin: Api
    settings: ProxmoxSettings
    drivers: list[ProxmoxDriver] = field(default_factory=list)

    @property
    def driver(self) -> ProxmoxDriver:
        return self.drivers[-1]

    def restart(self) -> ProxmoxDriver:
        """Start another driver; the work of the one before ends without a word."""
        for each in self.drivers:
            for work in each._works._known.values():
                work.cancel()
        self.drivers.append(ProxmoxDriver(ProxmoxApi(self.transport), self.settings, virtualtime.Clock()))
        return self.driver

    def request(self, name: str = "web", **changes: Any) -> m.CreateRequest:
        """A create of a small machine from the template."""
        plain = m.CreateRequest(
            name=name,
            class_json=payloads.encode(payloads.ClassPayload(cpu=1, memory_mib=1024)),
            image_json=payloads.encode(payloads.ImagePayload(template_name=str(TEMPLATE))),
            owner=m.ObjectIdentity(uid=f"uid-{name}", namespace="default", name=name),
        )
        return msgspec.structs.replace(plain, **changes)

    async def finish(self, task: m.TaskRef | None) -> str:
        """Wait for a task; return its error."""
        while True:
            found = await self.driver.task_status(m.TaskStatusRequest(task=task))
            if found.done or found.error:
                return found.error
            await asyncio.sleep(0.5)

    async def make(self, request: m.CreateRequest | None = None) -> str:
        """Create a machine and wait until it is complete; return its id."""
        answer = await self.driver.create(request or self.request())
        assert await self.finish(answer.task) == ""
        return answer.id

    async def power(self, id: str, op: m.PowerOp) -> None:
        answer = await self.driver.power(m.PowerRequest(id=id, op=op))
        assert await self.finish(answer.task) == ""

    def conf(self, id: str) -> dict[str, str]:
        """The configuration of a machine at the cluster."""
        return self.simulator.machine(int(id.partition("/")[0])).conf

    async def raw(self, id: str) -> dict[str, str]:
        """The further facts of a describe."""
        answer = await self.driver.describe(m.DescribeRequest(id=id))
        found: dict[str, str] = json.loads(answer.provider_raw_json)
        return found

    def count(self, call: str) -> int:
        """How many calls match a pattern."""
        return len([each for each in self.simulator.calls if re.fullmatch(call, each)])


def run_command(command: list[str], given: str) -> tuple[int, str, str]:
    """A guest that has the programs of /bin."""
    if not command[0].startswith("/bin/"):
        raise failed(f"Agent error: Guest agent command failed, error was 'Failed to execute child process “{command[0]}”'")
    return (0, " ".join(command[1:]) + "\n", "")


def qcow2(size: int = 1 << 30) -> bytes:
    """An empty qcow2 image of a size."""
    head = b"QFI\xfb" + struct.pack(">IQIIQIIQQIIQ", 2, 0, 0, 16, size, 0, 1, 0x30000, 0x10000, 1, 0, 0)
    return head.ljust(0x40000, b"\0")


def add_template(admin: Api, simulator: Simulator, storage: str = "local-lvm") -> None:
    """A template as people make them: a disk, a card, the cluster's cloud-init drive, an agent."""
    made = admin.post(
        "/nodes/pve1/qemu",
        vmid=TEMPLATE,
        name="conformance",
        memory=2048,
        cores=2,
        scsihw="virtio-scsi-single",
        scsi0=f"{storage}:2",
        ide2=f"{storage}:cloudinit",
        boot="order=scsi0",
        net0="virtio,bridge=vmbr0",
        agent="enabled=1",
        ostype="l26",
    )
    assert admin.done(made) == "OK"
    admin.post(f"/nodes/pve1/qemu/{TEMPLATE}/template")
    simulator.settle()


def stage(nodes: tuple[str, ...] = ("pve1",), *, directory: Path | None = None, **settings: Any) -> Stage:
    """A new cluster. Call it inside the loop in virtual time."""
    simulator = Simulator(nodes, monotonic=asyncio.get_running_loop().time)
    simulator.park.fetch = lambda url: qcow2()
    simulator.cluster.new_guest = lambda vmid, name: Guest(obeys_shutdown=not name.endswith("-hang"), commands=run_command)
    token = simulator.access.add_token("root@pam", "driver", separated=False)
    admin = Api(simulator, token)
    add_template(admin, simulator)
    simulator.calls.clear()
    given = ProxmoxSettings(
        server="https://pve1.example:8006",
        account="root@pam!driver",
        staging=StagingSettings(claims=directory),
        poll_seconds=0.5,
        **settings,
    )
    made = Stage(simulator, SimulatedTransport(simulator, token), admin, given)
    made.restart()
    return made


@asynccontextmanager
async def staged(nodes: tuple[str, ...] = ("pve1",), *, directory: Path | None = None, **settings: Any) -> AsyncIterator[Stage]:
    """Make a new cluster."""
    made = stage(nodes, directory=directory, **settings)
    try:
        yield made
    finally:
        for each in made.drivers:
            await each.close()


def play(script: Script, nodes: tuple[str, ...] = ("pve1",), *, directory: Path | None = None, **settings: Any) -> float:
    """Run a script with a new cluster; returns how much time it took there."""

    async def run() -> None:
        async with staged(nodes, directory=directory, **settings) as made:
            await script(made)

    return virtualtime.run(run())


def play_in(directory: Path, script: Script, **settings: Any) -> None:
    """Run a script with a new cluster and a directory of staged disks."""
    play(script, directory=directory, **settings)

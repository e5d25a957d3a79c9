"""A driver on a whole host in virtual time: Paddock's own API server, all its controllers, an engine without QEMU."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.driver import Driver
from paddock.dialects.virtrigaud.translate import described
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from tests import virtualtime
from tests.kit.engine.fakehost import Data, FakeHost

OWNER = m.ObjectIdentity(uid="11111111-2222-4333-8444-555555555555", namespace="team", name="web")
HARDWARE = p.ClassPayload(
    cpu=2,
    memory_mib=1024,
    firmware="BIOS",
    disk_defaults=p.DiskDefaultsPayload(type="thin", size_gib=2),
    performance_profile=p.PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True),
)
IMAGE = p.ImagePayload(url="https://images.example/tiny.qcow2", format="qcow2", checksum="a" * 64, checksum_type="sha256")
SETTINGS = KubeVirtDriverSettings(translation=described.translate, server="https://here:6443", image_size="1Gi")


class Target:
    """A host, and drivers of it."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.driver: Driver = KubeVirtDriver(host.api.client(), SETTINGS)

    def again(self) -> None:
        """The driver ends, and another one is started."""
        self.driver = KubeVirtDriver(self.host.api.client(), SETTINGS)

    async def made(self, **change: Any) -> str:
        """A machine whose disks are filled; its vm_id."""
        answer = await self.driver.create(creation(**change))
        assert await self.ends(answer.task) == ""
        return answer.id

    async def running(self, **change: Any) -> str:
        """A machine that runs; its vm_id."""
        vm_id = await self.made(**change)
        assert await self.power(vm_id, m.PowerOp.ON) == ""
        return vm_id

    async def power(self, vm_id: str, op: m.PowerOp, seconds: int = 0) -> str:
        """Change power and wait; the error, if there is one."""
        answer = await self.driver.power(m.PowerRequest(id=vm_id, op=op, graceful_timeout_seconds=seconds))
        return await self.ends(answer.task)

    async def ends(self, task: m.TaskRef | None, seconds: float = 400) -> str:
        """Wait for the end of a task; its error, if there is one."""
        if task is None:
            return ""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.driver.task_status(m.TaskStatusRequest(task=task))
                if found.done or found.error:
                    return found.error
                self.again()
                await asyncio.sleep(1)

    async def seen(self, vm_id: str) -> m.DescribeResponse:
        return await self.driver.describe(m.DescribeRequest(id=vm_id))

    async def details(self, vm_id: str) -> Data:
        return dict(json.loads((await self.seen(vm_id)).provider_raw_json))

    async def names(self, *plurals: str) -> dict[str, list[str]]:
        """The names of the objects that are there, without what a host has anyway."""
        found = {}
        for path in plurals:
            reply = await self.host.api.get(path)
            assert reply.status == 200, reply.data
            found[path.rpartition("/")[2]] = sorted(each["metadata"]["name"] for each in reply.data["items"])
        return found


EVERYTHING = (
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachines",
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances",
    "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/namespaces/default/secrets",
    "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions",
    "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots",
    "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinerestores",
)


def creation(
    name: str = "web",
    *,
    owner: m.ObjectIdentity | None = OWNER,
    hardware: p.ClassPayload = HARDWARE,
    image: p.ImagePayload = IMAGE,
    **more: Any,
) -> m.CreateRequest:
    """A request for a machine."""
    return m.CreateRequest(
        name=name,
        owner=owner,
        class_json=p.encode(hardware),
        image_json=p.encode(image),
        networks_json=p.encode_list(more.pop("networks", ())),
        disks_json=p.encode_list(more.pop("disks", ())),
        placement_json=p.encode(more.pop("placement", None)),
        **more,
    )


Script = Callable[[Target], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with a driver of a fresh host; returns how long it took there."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with FakeHost(tmp_path) as host:
                host.engine.images.offer(IMAGE.url)
                await script(Target(host))

        return virtualtime.run(inside())

    return run

"""The driver of KubeVirt's machines with a real guest: from an image at an address to nothing that is left."""

import asyncio
import json
import time
from functools import partial

import pytest

from paddock.base.images.build import tiny
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.dialects.virtrigaud.translate import described
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.runs.conftest import PROMPT, Console, Data, Talk

pytestmark = pytest.mark.needs("qemu")
OWNER = m.ObjectIdentity(uid="11111111-2222-4333-8444-555555555555", namespace="team", name="web")
SETTINGS = KubeVirtDriverSettings(translation=described.translate, image_size="1Gi")
LEFT = (
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachines",
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/persistentvolumes",
    "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots",
    "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots",
)


def hardware(cpu: int, memory: int) -> p.ClassPayload:
    hot = p.PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True)
    return p.ClassPayload(cpu=cpu, memory_mib=memory, disk_defaults=p.DiskDefaultsPayload(size_gib=1), performance_profile=hot)


def data(size: int) -> tuple[p.DiskPayload, ...]:
    return (p.DiskPayload(name="data", size_gib=size, type="thin"),)


class Managed:
    """A machine that a manager has by the driver, which is another one at each call."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.id = ""

    @property
    def driver(self) -> KubeVirtDriver:
        return KubeVirtDriver(self._talk.client, SETTINGS)

    async def ends(self, task: m.TaskRef | None, seconds: float = 120) -> None:
        """Wait for a task that succeeds."""
        async with asyncio.timeout(seconds):
            while task is not None:
                found = await self.driver.task_status(m.TaskStatusRequest(task=task))
                assert not found.error, found.error
                if found.done:
                    return
                await asyncio.sleep(0.3)

    async def power(self, op: m.PowerOp, seconds: int = 0) -> None:
        request = m.PowerRequest(id=self.id, op=op, graceful_timeout_seconds=seconds)
        await self.ends((await self.driver.power(request)).task)

    async def seen(self) -> m.DescribeResponse:
        return await self.driver.describe(m.DescribeRequest(id=self.id))


async def ready(console: Console) -> None:
    await console.write(b"\r")
    await console.until(PROMPT, 120)


async def until(console: Console, command: str, wanted: str) -> None:
    async with asyncio.timeout(60):
        while (found := (await console.shell(command)).strip()) != wanted:
            await asyncio.sleep(0.5)
    assert found == wanted


def has(count: int, found: Data) -> bool:
    """Return whether a list has so many objects."""
    return len(found["items"]) == count


async def prepared(machine: Managed, url: str) -> str:
    """An image of this address; its id."""
    spec = json.dumps({"source": {"http": {"url": url}}})
    image = await machine.driver.image_prepare(m.ImagePrepareRequest(image_json=spec, target_name="tiny"))
    await machine.ends(image.task)
    return image.prepared_image_id


async def created(machine: Managed, image: str) -> None:
    """Create it, twice as far as the caller knows, and start it."""
    request = m.CreateRequest(
        name="web",
        owner=OWNER,
        user_data=b"#cloud-config\n",
        class_json=p.encode(hardware(1, 1024)),
        image_json=p.encode(p.ImagePayload(template_name=image)),
        disks_json=p.encode_list(data(1)),
    )
    made = await machine.driver.create(request)
    machine.id = made.id
    assert (await machine.driver.create(request)).id == made.id
    await machine.ends(made.task)
    await machine.power(m.PowerOp.ON)
    assert (await machine.seen()).power_state == "On"


async def changed(machine: Managed, console: Console) -> None:
    """Processors, memory and the disk reach the guest while it runs."""
    desired = p.encode(p.DesiredPayload(name="web", machine_class=hardware(2, 2048), disks=data(2)))
    answer = await machine.driver.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=desired))
    await machine.ends(answer.task)
    await until(console, "nproc", "2")
    await until(console, "cat /sys/class/block/vdb/size", "4194304")
    assert int((await console.shell("grep MemTotal /proc/meminfo")).split()[1]) > 1_800_000
    told = json.loads((await machine.seen()).provider_raw_json)
    assert (told["cpus"], told["memoryMiB"], told["restartRequired"]) == ("2", "2048", "false")


@pytest.mark.spec("virtrigaud", 39, 42, 119)
@played
async def test_a_machine_from_its_image_to_its_end(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    machine = Managed(talk)
    image = await prepared(machine, web.put(tiny_guest.disk))
    before = {path: len((await talk.get(path))["items"]) for path in LEFT}
    await created(machine, image)
    async with talk.console("web") as console:
        await ready(console)
        assert (await console.shell("nproc")).strip() == "1"
        assert (await console.shell("cat /sys/class/block/vda/size /sys/class/block/vdb/size")).split() == ["2097152", "2097152"]
        await console.shell("echo before | dd of=/dev/vdb conv=notrunc; sync")
        kept = await machine.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=machine.id, name_hint="kept"))
        await machine.ends(kept.task)
        await console.shell("echo after- | dd of=/dev/vdb conv=notrunc; sync")
        await changed(machine, console)
    began = time.monotonic()
    await machine.power(m.PowerOp.SHUTDOWN_GRACEFUL, 90)
    assert time.monotonic() - began < 60 and (await machine.seen()).power_state == "Off"
    reverted = await machine.driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=machine.id, snapshot_id=kept.snapshot_id))
    await machine.ends(reverted.task)
    await machine.power(m.PowerOp.ON)
    async with talk.console("web") as console:
        await ready(console)
        assert "before" in await console.shell("head -c 6 /dev/vdb")
        assert (await console.shell("nproc")).strip() == "1"
    await machine.ends((await machine.driver.delete(m.DeleteRequest(id=machine.id))).task)
    for path, count in before.items():
        await talk.until(path, partial(has, count), f"nothing is left of {path}")
    assert not talk.host.qemus() and not (await machine.seen()).exists

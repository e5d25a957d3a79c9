"""The driver of libvirt's machines with a real daemon and a real guest."""

import asyncio
import json
import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from paddock.base.clock import SystemClock
from paddock.base.images.build import tiny
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.conformance import suite
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.factory import DriverContext
from tests.coroutines import played_by
from tests.host.conftest import Spawn
from tests.host.drivers import sshserver
from tests.kit.providers import providerruns

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

pytestmark = [pytest.mark.needs("libvirtd", "qemu"), pytest.mark.long]
HOT = p.PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True)


@pytest.fixture
def image(libvirtd: "Libvirtd", tiny_guest: tiny.TinyImage) -> Iterator[p.ImagePayload]:
    """The tiny guest as a file of the pool."""
    path = libvirtd.pool / "tiny.qcow2"
    shutil.copyfile(tiny_guest.disk, path)
    yield p.ImagePayload(path=str(path), format="qcow2")
    path.unlink()


def hardware(cpu: int = 1, memory: int = 256, disk: int = 1) -> p.ClassPayload:
    return p.ClassPayload(cpu=cpu, memory_mib=memory, disk_defaults=p.DiskDefaultsPayload(size_gib=disk), performance_profile=HOT)


def disks(**sizes: int) -> tuple[p.DiskPayload, ...]:
    return tuple(p.DiskPayload(name=name, size_gib=size) for name, size in sizes.items())


@asynccontextmanager
async def serving(endpoint: str, credentials: Path = Path("/nonexistent"), staging: Path = Path("/nonexistent")) -> AsyncIterator[Driver]:
    """A driver as a program serves it."""
    from paddock_drivers.libvirt.factory import make  # noqa: PLC0415 - without the library, tests skip

    context = DriverContext(clock=SystemClock(), environment={"PROVIDER_ENDPOINT": endpoint}, credentials=credentials, staging=staging)
    async with make(context) as driver:
        yield driver


class Managed:
    """A machine as a manager has it."""

    def __init__(self, driver: Driver, image: p.ImagePayload, name: str) -> None:
        self.driver = driver
        self.request = m.CreateRequest(
            name=name,
            owner=m.ObjectIdentity(uid=f"uid-{name}", namespace="team", name=name),
            user_data=b"#cloud-config\nhostname: greeted\n",
            class_json=p.encode(hardware()),
            image_json=p.encode(image),
            disks_json=p.encode_list(disks(data=1)),
        )
        self.image = image
        self.id = ""

    async def ends(self, task: m.TaskRef | None) -> None:
        async with asyncio.timeout(120):
            while task is not None:
                found = await self.driver.task_status(m.TaskStatusRequest(task=task))
                assert not found.error, found.error
                if found.done:
                    return
                await asyncio.sleep(0.2)

    async def create(self) -> None:
        answer = await self.driver.create(self.request)
        self.id = answer.id
        await self.ends(answer.task)

    async def power(self, op: m.PowerOp, seconds: int = 0) -> None:
        await self.ends((await self.driver.power(m.PowerRequest(id=self.id, op=op, graceful_timeout_seconds=seconds))).task)

    async def reconfigure(self, wanted: p.ClassPayload, data: tuple[p.DiskPayload, ...]) -> None:
        desired = p.encode(p.DesiredPayload(name=self.request.name, machine_class=wanted, image=self.image, disks=data))
        await self.ends((await self.driver.reconfigure(m.ReconfigureRequest(id=self.id, desired_json=desired))).task)

    async def seen(self) -> m.DescribeResponse:
        return await self.driver.describe(m.DescribeRequest(id=self.id))

    async def shell(self, command: str) -> str:
        request = x.ExecRequest(vm_id=self.id, command=("/bin/sh", "-c", command), timeout_seconds=90)
        answer = await extensions(self.driver).exec(request)
        return answer.stdout.decode(errors="replace").strip()

    async def until(self, command: str, wanted: str) -> None:
        async with asyncio.timeout(60):
            while (found := await self.shell(command)) != wanted:
                await asyncio.sleep(0.5)
        assert found == wanted

    async def delete(self) -> None:
        await self.ends((await self.driver.delete(m.DeleteRequest(id=self.id))).task)


def volumes(libvirtd: "Libvirtd", machine: str) -> list[str]:
    """Return the names of a machine's volumes. Each has a note beside it that says whose it is."""
    found = sorted(each.name for each in libvirtd.pool.glob(f"{machine}*"))
    disks = [name for name in found if not name.endswith(".json")]
    assert [name for name in found if name.endswith(".json")] == [f"{name}.json" for name in disks]
    return disks


def run(script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(script())


@pytest.mark.spec("virtrigaud", 39, 42)
@played_by(run)
async def test_a_machine_from_its_image_to_its_end(libvirtd: "Libvirtd", image: p.ImagePayload) -> None:
    async with serving(libvirtd.uri) as driver:
        machine = Managed(driver, image, "web")
        await machine.create()
        first = machine.id
        await machine.create()
        assert machine.id == first and volumes(libvirtd, "web") == ["web-cloud-init.iso", "web-data.qcow2", "web-root.qcow2"]
        await machine.power(m.PowerOp.ON)
        await has_an_address(machine)
        await grows(machine)
        await loses_a_disk(machine)
        began = time.monotonic()
        await machine.power(m.PowerOp.SHUTDOWN_GRACEFUL, 90)
        assert time.monotonic() - began < 60 and (await machine.seen()).power_state == "Off"
        await machine.delete()
        # A disk that was detached stays, and nothing else.
        assert not (await machine.seen()).exists and volumes(libvirtd, "web") == ["web-data.qcow2"]
        (libvirtd.pool / "web-data.qcow2").unlink()


async def has_an_address(machine: Managed) -> None:
    """The agent tells it; cloud-init's documents reached the guest."""
    assert await machine.shell("hostname") == "greeted"
    seen = await machine.seen()
    assert seen.power_state == "On" and seen.ips and seen.ips[0].startswith("10.77.0.")
    assert seen.console_url.startswith("vnc://127.0.0.1:59")
    assert json.loads(seen.provider_raw_json)["addressSource"] == "agent"


async def grows(machine: Managed) -> None:
    """Processors, memory and disks reach the guest while it runs."""
    assert await machine.shell("nproc; cat /sys/class/block/vda/size /sys/class/block/vdb/size") == "1\n2097152\n2097152"
    await machine.reconfigure(hardware(2, 512, 2), disks(data=2, more=1))
    # Guests of Debian bring processors online by a rule of udev; the tiny one has none.
    await machine.shell("for each in /sys/devices/system/cpu/cpu*/online; do echo 1 >$each; done")
    await machine.until("nproc", "2")
    await machine.until("cat /sys/class/block/vda/size /sys/class/block/vdb/size /sys/class/block/vdd/size", "4194304\n4194304\n2097152")
    assert int((await machine.shell("grep MemTotal /proc/meminfo")).split()[1]) > 400_000
    told = json.loads((await machine.seen()).provider_raw_json)
    assert (told["cpus"], told["memoryMiB"], told["restartRequired"]) == ("2", "512", "false")
    with pytest.raises(ProviderError, match="loses none while it runs") as refused:
        await machine.reconfigure(hardware(1, 512, 2), disks(data=2, more=1))
    assert refused.value.kind is ErrorKind.CONFLICT


async def loses_a_disk(machine: Managed) -> None:
    """A disk that is not named is detached while the guest runs, and the same disk comes back with its name."""
    await machine.shell("echo kept | dd of=/dev/vdb conv=notrunc 2>/dev/null; sync")
    await machine.reconfigure(hardware(2, 512, 2), disks(more=1))
    assert "vdb" not in await machine.shell("ls /sys/class/block")
    await machine.reconfigure(hardware(2, 512, 2), disks(data=2, more=1))
    assert "kept" in await machine.shell("for each in /dev/vd?; do head -c 4 $each; echo; done")
    await machine.reconfigure(hardware(2, 512, 2), disks(more=1))


@played_by(run)
async def test_the_driver_keeps_the_contract(
    libvirtd: "Libvirtd", image: p.ImagePayload, work: Path, record_property: Callable[[str, object], None]
) -> None:
    (work / "claim").mkdir()
    async with serving(libvirtd.uri, staging=work) as driver:
        settings = ConformanceSettings(image=image, memory_mib=256, disk_gib=1, command=("/bin/true",), transfer_url="pvc://claim/run")
        result = await suite.judge(driver, settings, chance=random.Random())
    providerruns.keep(record_property, "libvirt", "a real libvirtd with guests", result)
    failed = [(each.name, each.reason) for each in result.results if each.status == "failed"]
    assert (failed, result.leftovers, result.good) == ([], (), True)


@played_by(run)
async def test_a_daemon_that_is_away_loses_nothing(libvirtd: "Libvirtd", image: p.ImagePayload) -> None:
    async with serving(libvirtd.uri) as driver:
        machine = Managed(driver, image, "away")
        await machine.create()
        first = machine.id
        await machine.power(m.PowerOp.ON)
        libvirtd.stop()
        for call in (machine.seen, machine.create, machine.delete):
            await unreachable(call)
        libvirtd.start()
        async with asyncio.timeout(30):
            while not (await driver.validate(m.ValidateRequest())).ok:
                await asyncio.sleep(0.2)
        await machine.create()
        assert machine.id == first and (await machine.seen()).power_state == "On"
        await machine.delete()
        assert not volumes(libvirtd, "away")


async def unreachable(call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(ProviderError) as trouble:
        await call()
    assert trouble.value.kind in (ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT), trouble.value


@played_by(run)
async def test_a_daemon_that_says_nothing_is_given_up(libvirtd: "Libvirtd") -> None:
    async with serving(libvirtd.uri) as driver:
        assert (await driver.validate(m.ValidateRequest())).ok
        with libvirtd.silent():
            began = time.monotonic()
            await unreachable(lambda: driver.describe(m.DescribeRequest(id="nobody")))
            assert time.monotonic() - began < 60
        async with asyncio.timeout(60):
            while not (await driver.validate(m.ValidateRequest())).ok:
                await asyncio.sleep(0.5)


@played_by(run)
async def test_a_domain_that_others_change_is_found_or_gone(libvirtd: "Libvirtd", image: p.ImagePayload) -> None:
    import libvirt  # noqa: PLC0415 - without the library, tests skip

    async with serving(libvirtd.uri) as driver:
        machine = Managed(driver, image, "known")
        await machine.create()
        other = libvirt.open(libvirtd.uri)
        before = len((await driver.list_vms(m.ListVMsRequest())).vms)
        other.lookupByName("known").rename("renamed")
        assert (await machine.seen()).exists
        await machine.create()
        names = [each.name for each in (await driver.list_vms(m.ListVMsRequest())).vms]
        assert len(names) == before and "renamed" in names and "known" not in names
        other.lookupByName("renamed").undefine()
        assert not (await machine.seen()).exists
        await machine.delete()
        other.close()
        for each in libvirtd.pool.glob("known*"):
            each.unlink()


@pytest.fixture
def sshd(work: Path, spawn: Spawn, free_port: Callable[[], int]) -> tuple[Path, int]:
    """An SSH server on loopback, and a directory with the credentials for it."""
    port = free_port()
    spawn(sshserver.prepared(work, port))
    credentials = work / "credentials"
    credentials.mkdir()
    return credentials, port


@played_by(run)
async def test_a_host_is_reached_by_ssh_if_its_key_is_known(libvirtd: "Libvirtd", sshd: tuple[Path, int], work: Path) -> None:
    credentials, port = sshd
    known = credentials / "known_hosts"
    async with serving(f"qemu+ssh://root@127.0.0.1:{port}/system?socket={libvirtd.socket}", credentials) as driver:

        async def answer(wanted: str, seconds: float = 20) -> None:
            async with asyncio.timeout(seconds):
                while wanted not in (found := await driver.validate(m.ValidateRequest())).message or found.ok == bool(wanted):
                    await asyncio.sleep(0.5)

        await answer("neither ssh-privatekey nor password")
        shutil.copyfile(work / "key", credentials / "ssh-privatekey")
        await answer("no known_hosts is among the credentials")
        known.write_text(f"[127.0.0.1]:{port} {(work / 'host.pub').read_text()}")
        await answer("")
        # Rotated to a key that the host does not take, and back.
        shutil.copyfile(work / "other", credentials / "ssh-privatekey")
        await answer("Unauthorized: cannot log in to libvirt")
        shutil.copyfile(work / "key", credentials / "ssh-privatekey")
        await answer("")
        known.write_text(f"[127.0.0.1]:{port} {(work / 'other.pub').read_text()}")
        await answer("HOST KEY VERIFICATION FAILED")

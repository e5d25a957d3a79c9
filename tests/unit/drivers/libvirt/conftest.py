"""A driver on libvirt's own driver for tests, which keeps domains in memory, with disks that are names."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt import marks
from paddock_drivers.libvirt.settings import LibvirtDriverSettings
from paddock_drivers.libvirt.storageport import DomainDisk, NamedMachine, StoredDisk

if TYPE_CHECKING:
    from paddock_drivers.libvirt.connection import LibvirtConnection
    from paddock_drivers.libvirt.driver import LibvirtDriver

GIB = 1 << 30
ENDPOINT = "test:///default"
# Modules that load the library themselves; a machine without libvirt's headers does not have it.
collect_ignore = [] if find_spec("libvirt") is not None else ["test_images.py", "test_imagesources.py", "test_snapshotxml.py"]


class NamedDisks:
    """The storage of machines: volumes are entries of a dict. `failing` calls of `make` fail; `pause` holds them."""

    def __init__(self) -> None:
        self.volumes: dict[str, int] = {}
        self.failing = 0
        self.pause: asyncio.Event | None = None
        self.begun = 0

    async def plan(self, given: MachineDescription, uuid: str) -> tuple[DomainDisk, ...]:
        if given.image.template_name == "missing":
            raise ProviderError(ErrorKind.NOT_FOUND, "the image does not exist")
        size = given.hardware.disk_defaults.size_gib if given.hardware.disk_defaults is not None else 0
        root = p.DiskPayload(name=marks.ROOT_DISK, size_gib=max(1, size))
        return tuple([await self.plan_disk(NamedMachine(given.name, uuid), each, "") for each in (root, *given.disks)])

    async def plan_disk(self, machine: NamedMachine, disk: p.DiskPayload, datastore: str) -> DomainDisk:
        volume = f"{machine.name}-{disk.name}.qcow2"
        return DomainDisk(name=disk.name, path=f"/pool/{volume}", pool="default", volume=volume, bytes=disk.size_gib * GIB)

    async def make(self, disks: Sequence[DomainDisk]) -> None:
        self.begun += 1
        if self.pause is not None:
            await self.pause.wait()
        for disk in disks:
            if self.failing:
                self.failing -= 1
                raise ProviderError(ErrorKind.UNAVAILABLE, "the pool is away")
            self.volumes[disk.path] = max(disk.bytes, self.volumes.get(disk.path, 0))

    async def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.volumes.pop(path, None)

    async def delete_left(self, uuid: str, name: str) -> None:
        pass

    async def tidy(self) -> None:
        pass

    async def keep_seed(self, machine: NamedMachine, datastore: str, content: bytes) -> DomainDisk:
        path = f"/pool/{machine.name}-cloud-init.iso"
        self.volumes[path] = len(content)
        return DomainDisk(name=marks.SEED_DISK, path=path, pool="default", volume="seed", format="raw", bytes=len(content))

    async def grow(self, uuid: str, path: str, size: int) -> None:
        self.volumes[path] = max(size, self.volumes[path])

    async def measured(self, paths: Iterable[str]) -> Mapping[str, StoredDisk]:
        return {path: StoredDisk(path=path, capacity=self.volumes[path]) for path in paths if path in self.volumes}


class Bench:
    """A driver with its connection and its disks."""

    def __init__(self, driver: "LibvirtDriver", connection: "LibvirtConnection", disks: NamedDisks) -> None:
        self.driver = driver
        self.connection = connection
        self.disks = disks

    async def run(self, function: Callable[[Any], Any]) -> Any:
        return await self.connection.run(function)

    async def create(self, name: str = "web", **changes: Any) -> str:
        return (await self.driver.create(request(name, **changes))).id

    async def describe(self, id: str) -> m.DescribeResponse:
        return await self.driver.describe(m.DescribeRequest(id=id))


def request(name: str = "web", **changes: Any) -> m.CreateRequest:
    hardware = changes.pop("hardware", p.ClassPayload(cpu=1, memory_mib=512))
    plain = {
        "name": name,
        "class_json": p.encode(hardware),
        "image_json": p.encode(p.ImagePayload(template_name="base")),
        "owner": m.ObjectIdentity(uid=f"uid-{name}", namespace="team", name=name),
    }
    return m.CreateRequest(**{**plain, **changes})


@asynccontextmanager
async def bench(disks: NamedDisks | None = None, **changes: Any) -> AsyncIterator[Bench]:
    from paddock_drivers.libvirt.connection import LibvirtConnection  # noqa: PLC0415 - without the library, tests skip
    from paddock_drivers.libvirt.driver import LibvirtDriver  # noqa: PLC0415

    settings = LibvirtDriverSettings(
        **{"endpoint": ENDPOINT, "credentials": Path("/nonexistent"), "pool": "default-pool", "restart_seconds": 0, **changes}
    )
    async with LibvirtConnection(settings) as connection:
        disks = disks or NamedDisks()
        driver = LibvirtDriver(connection, disks)
        try:
            yield Bench(driver, connection, disks)
        finally:
            await driver.close()
    # A virDomain that is still referred to keeps libvirt's driver for tests, and all domains with it.
    gc.collect()


Play = Callable[[Callable[[Bench], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def play() -> Play:
    """Run a script with a driver of its own."""
    pytest.importorskip("libvirt", reason="libvirt-python is not installed; it is built where libvirt-dev and pkg-config are")

    def run(script: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            # libvirt's driver for tests lives as long as somebody has it open.
            async with asyncio.timeout(60), bench() as found:
                await script(found)

        asyncio.run(whole())

    return run

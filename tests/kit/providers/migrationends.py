"""Both ends of a migration at the level of the contract: drivers with a machine to move, and what a target has of its disk in the end.

Each end is opened in turn in the loop of the test; staging storage under one directory is all that they share.
"""

import asyncio
import contextlib
import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.driver import Driver
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from paddock_drivers.kit.staging import StagingSettings
from tests.kit.servers.s3server import KEY, SECRET, S3Server
from tests.unit.drivers.firecracker.conftest import Lab
from tests.unit.drivers.proxmox.conftest import SimulatedTransport, stage

NFS = "nas:/exports"
# The beginning of a disk; the fake driver keeps no more than 64 KiB.
CONTENT, SIZE = b"boot" * 1024, 64 << 20
FORMAT = "qcow2"


class MigrationEnd(NamedTuple):
    """A driver, the image of its machines, and what it has received where it gives nothing out."""

    name: str
    driver: Driver
    image: p.ImagePayload
    received: Callable[[], bytes] | None = None
    memory_mib: int = 256

    async def finished(self, task: m.TaskRef | None) -> None:
        """Wait for a task."""
        while task is not None:
            found = await self.driver.task_status(m.TaskStatusRequest(task=task))
            assert not found.error, f"{self.name}: {found.error}"
            if found.done:
                return
            await asyncio.sleep(0.1)

    async def made(self, name: str, image: p.ImagePayload | None = None) -> str:
        """Make a machine that is off; return its id."""
        answer = await self.driver.create(
            m.CreateRequest(
                name=name,
                class_json=p.encode(p.ClassPayload(cpu=1, memory_mib=self.memory_mib)),
                image_json=p.encode(image or self.image),
                owner=m.ObjectIdentity(uid=str(uuid.uuid5(uuid.NAMESPACE_OID, name)), namespace="default", name=name),
            )
        )
        await self.finished(answer.task)
        return answer.id


class MigrationStaging:
    """The storage between both ends."""

    def __init__(self, folder: Path, bucket: S3Server) -> None:
        self.folder = folder
        self._bucket = bucket
        (folder / "claim").mkdir(parents=True, exist_ok=True)
        (folder / "export").mkdir(exist_ok=True)

    @property
    def settings(self) -> StagingSettings:
        """What a driver reaches."""
        return StagingSettings(claims=self.folder, mounts={NFS: self.folder / "export"})

    def words(self, storage: str, file: str) -> tuple[str, dict[str, Any]]:
        """The address of a file, and the members of requests that go with the storage."""
        plain: dict[str, Any] = {"backend_type": storage, "transfer_mode": "relay"}
        if storage == "s3":
            options = json.dumps({"endpoint": self._bucket.address, "usePathStyle": True, "region": "us-east-1"})
            keys = {"accessKeyID": KEY, "secretAccessKey": SECRET}
            return f"s3://bucket/{file}", plain | {"storage_options_json": options, "credentials": keys}
        return (f"pvc://claim/{file}" if storage == "pvc" else f"nfs://nas/exports/{file}"), plain

    def stored(self, storage: str, file: str) -> bytes:
        """The bytes of a file."""
        if storage == "s3":
            return next(data for name, data in self._bucket.objects.items() if name.endswith(file))
        return (self.folder / ("claim" if storage == "pvc" else "export") / file).read_bytes()


async def exported(end: MigrationEnd, vm_id: str, staging: MigrationStaging, storage: str, file: str) -> str:
    """Export the first disk of a machine as a migration does; return the SHA-256 of the stored file."""
    url, words = staging.words(storage, file)
    request = m.ExportDiskRequest(vm_id=vm_id, destination_url=url, format=file.rpartition(".")[2], **words)
    answer = await end.driver.export_disk(request)
    await end.finished(answer.task)
    if answer.task is not None and not answer.checksum:
        answer = await end.driver.export_disk(request)
    stored = staging.stored(storage, file)
    assert hashlib.sha256(stored).hexdigest() == answer.checksum, end.name
    return answer.checksum


async def imported(end: MigrationEnd, name: str, url: str, words: dict[str, Any], checksum: str) -> str:
    """Import a disk and make a machine of it, as a migration does; return the machine's id."""
    plain: dict[str, Any] = {"format": FORMAT, "verify_checksum": True, "expected_checksum": checksum, **words}
    machine = m.ObjectIdentity(namespace="default", name=name)
    request = m.ImportDiskRequest(source_url=url, target_name=f"{name}-migrated", target_vm=machine, **plain)
    answer = await end.driver.import_disk(request)
    await end.finished(answer.task)
    if answer.task is not None:
        answer = await end.driver.import_disk(request)
    assert answer.checksum in ("", checksum), end.name
    return await end.made(name, p.ImagePayload(path=answer.path or answer.disk_id, format=FORMAT))


# --- the ends ---------------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def fake(place: Path, staging: MigrationStaging) -> AsyncIterator[MigrationEnd]:
    """The fake driver."""
    driver = FakeDriver(FakeSettings(directory=str(staging.folder)), SystemClock())
    end = MigrationEnd("fake", driver, p.ImagePayload(template_name="any"))
    await end.made("source")
    disk = next(iter(driver._inventory.machines.values())).disks[0]
    disk.data, disk.size = CONTENT, SIZE
    yield end


@asynccontextmanager
async def firecracker(place: Path, staging: MigrationStaging) -> AsyncIterator[MigrationEnd]:
    """Firecracker's driver with the simulator's processes."""
    place.mkdir()
    lab = Lab(place)
    try:
        async with lab.driver(staging=staging.settings) as driver:
            end = MigrationEnd("firecracker", driver, p.ImagePayload(template_name="conformance"))
            await end.made("source")
            yield end
    finally:
        lab.close()


@asynccontextmanager
async def proxmox(place: Path, staging: MigrationStaging) -> AsyncIterator[MigrationEnd]:
    """Proxmox VE's driver on the simulated API, which keeps sizes of disks and no bytes: what was uploaded is noted on its way."""
    made, uploads = stage(), list[bytes]()
    made.settings = type(made.settings)(
        server=made.settings.server, account=made.settings.account, staging=staging.settings, poll_seconds=0.1
    )
    real = made.transport.send_stream

    async def noted(ask: Any, body: AsyncIterator[bytes], length: int) -> Any:
        async def chunks() -> AsyncIterator[bytes]:
            uploads.append(b"")
            async for chunk in body:
                uploads[-1] += chunk
                yield chunk

        return await real(ask, chunks(), length)

    transport: SimulatedTransport = made.transport
    transport.send_stream = noted  # type: ignore[method-assign]
    try:
        yield MigrationEnd("proxmox", made.restart(), p.ImagePayload(template_name="9000"), lambda: b"".join(uploads), 1024)
    finally:
        for each in made.drivers:
            await each.close()


Opener = Callable[[Path, MigrationStaging], AbstractAsyncContextManager[MigrationEnd]]
OPENERS: dict[str, Opener] = {"fake": fake, "firecracker": firecracker, "proxmox": proxmox}


async def carried(source: Opener, target: Opener, storage: str, place: Path) -> None:
    """Move the first disk of a machine from one driver to another, and compare what its successor has."""
    async with contextlib.AsyncExitStack() as stack:
        bucket = await stack.enter_async_context(S3Server())
        staging = MigrationStaging(place / "staging", bucket)
        gives = await stack.enter_async_context(source(place / "from", staging))
        takes = await stack.enter_async_context(target(place / "to", staging))
        vm_id = next(each.id for each in (await gives.driver.list_vms(m.ListVMsRequest())).vms if each.name == "source")
        before = await exported(gives, vm_id, staging, storage, "export.qcow2")
        raw = await _raw(gives, vm_id, staging, "before.raw")
        assert raw.startswith(CONTENT), gives.name
        url, words = staging.words(storage, "export.qcow2")
        moved = await imported(takes, f"from-{gives.name}-{storage}", url, words, before)
        if takes.received is not None:
            assert staging.stored(storage, "export.qcow2") in takes.received()
        else:
            found = await _raw(takes, moved, staging, "moved.raw")
            assert found[: len(raw)] == raw and not found[len(raw) :].strip(b"\0"), takes.name
        # The source is as it was.
        assert await _raw(gives, vm_id, staging, "after.raw") == raw


async def _raw(end: MigrationEnd, vm_id: str, staging: MigrationStaging, file: str) -> bytes:
    """What a guest sees of a machine's first disk. Each has a file of its own: a driver answers the same call from its memory."""
    await exported(end, vm_id, staging, "pvc", file)
    return staging.stored("pvc", file)


def run(script: Callable[[], Awaitable[None]]) -> None:
    """Run a script to its end."""
    asyncio.run(_bounded(script))


async def _bounded(script: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(600):
        await script()

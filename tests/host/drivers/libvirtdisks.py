"""The bench of the libvirt driver's storage: a driver on a real libvirtd, and disks whose bytes are written and compared with qemu-io.

No guest has to start for that: a machine without a system sits at its firmware's last word, and QEMU has its disks all the same.
"""

import asyncio
import contextlib
import importlib
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt.clones import clone_uuid
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.driver import LibvirtDriver
from paddock_drivers.libvirt.settings import LibvirtDriverSettings
from tests.host.drivers.libvirtd import Libvirtd

GIB, MIB = 1 << 30, 1 << 20
_SIZE = "64M"


class _End(BaseException):
    """The end of a process: nothing that it would have done to tidy up is done."""


class DiskBench:
    """A driver, and the files of its pool."""

    def __init__(self, driver: LibvirtDriver, connection: LibvirtConnection, daemon: Libvirtd) -> None:
        self.driver = driver
        self.connection = connection
        self.daemon = daemon

    async def create(
        self,
        name: str,
        *,
        image: str = "template.qcow2",
        data: tuple[str, ...] = (),
        firmware: str = "",
        owner: m.ObjectIdentity | None = None,
    ) -> str:
        """Create a machine that is off, and return its id."""
        request = m.CreateRequest(
            name=name,
            class_json=p.encode(p.ClassPayload(cpu=1, memory_mib=64, firmware=firmware)),
            image_json=p.encode(p.ImagePayload(path=str(self.daemon.pool / image) if "/" not in image else image, format="qcow2")),
            disks_json=p.encode_list(tuple(p.DiskPayload(name=each, size_gib=1) for each in data)),
            owner=owner or m.ObjectIdentity(uid=f"uid-{name}", namespace="tests", name=name),
        )
        made = await self.driver.create(request)
        await self.finish(made.task)
        return made.id

    async def power(self, id: str, op: m.PowerOp) -> None:
        """Change a machine's power."""
        await self.finish((await self.driver.power(m.PowerRequest(id=id, op=op))).task)

    async def finish(self, task: m.TaskRef | None) -> None:
        """Wait for a task."""
        error = await self.outcome(task)
        assert not error, error

    async def outcome(self, task: m.TaskRef | None) -> str:
        """Wait for a task, and return its error."""
        async with asyncio.timeout(60):
            while True:
                found = await self.driver.task_status(m.TaskStatusRequest(task=task))
                if found.done or found.error:
                    return found.error
                await asyncio.sleep(0.05)

    async def info(self, id: str, disk: str = "") -> m.GetDiskInfoResponse:
        """Describe a disk."""
        return await self.driver.get_disk_info(m.GetDiskInfoRequest(vm_id=id, disk_id=disk))

    async def path(self, id: str, disk: str = "") -> Path:
        """Return the newest file of a disk."""
        return Path((await self.info(id, disk)).path)

    async def snapshot(self, id: str, name: str, *, memory: bool = False) -> str:
        """Take a snapshot."""
        made = await self.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=id, name_hint=name, include_memory=memory))
        await self.finish(made.task)
        return made.snapshot_id

    async def revert(self, id: str, snapshot: str) -> None:
        """Go back to a snapshot."""
        made = await self.driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=id, snapshot_id=snapshot))
        await self.finish(made.task)

    async def clone(self, source: str, name: str, **members: object) -> str:
        """Clone a machine."""
        plain = m.CloneRequest(source_vm_id=source, target_name=name, target_vm=m.ObjectIdentity(namespace="tests", name=name))
        made = await self.driver.clone(msgspec.structs.replace(plain, **members))
        await self.finish(made.task)
        return made.target_vm_id

    async def cut_clone(self, source: str, name: str, step: str) -> str:
        """Begin a clone in another driver, which ends before the Nth call of a function as a process ends; return the clone's id."""
        module, function, number = step.split(".")
        place = importlib.import_module(f"paddock_drivers.libvirt.{module}")
        reached, real, left = asyncio.Event(), getattr(place, function), iter(range(int(number)))
        loop = asyncio.get_running_loop()

        def ends(*given: object, **named: object) -> object:
            if next(left, None) is not None:
                return real(*given, **named)
            loop.call_soon_threadsafe(reached.set)
            raise _End

        async with bench(self.daemon) as other:
            setattr(place, function, ends)
            try:
                request = m.CloneRequest(source_vm_id=source, target_name=name, target_vm=m.ObjectIdentity(namespace="tests", name=name))
                with contextlib.suppress(_End):
                    await other.driver.clone(request)
                async with asyncio.timeout(60):
                    await reached.wait()
            finally:
                setattr(place, function, real)
        return clone_uuid(request)

    async def snapshots(self, id: str) -> list[str]:
        """The snapshots of a machine, as libvirt knows them."""
        return await self.connection.run(lambda conn: sorted(conn.lookupByUUIDString(id).snapshotListNames()))

    async def process(self, id: str) -> tuple[str, int]:
        """What tells one run of a machine from another."""

        def work(conn: Any) -> tuple[str, int]:
            domain = conn.lookupByUUIDString(id)
            return domain.UUIDString(), domain.ID()

        return await self.connection.run(work)

    async def delete(self, *ids: str) -> None:
        """Delete machines."""
        for each in ids:
            await self.finish((await self.driver.delete(m.DeleteRequest(id=each))).task)

    def files(self) -> set[str]:
        """The files of the pool."""
        return {each.name for each in self.daemon.pool.iterdir()}


@asynccontextmanager
async def bench(daemon: Libvirtd) -> AsyncIterator[DiskBench]:
    """A driver for a daemon, with a template in its pool and a staging claim."""
    (daemon.work / "staging" / "claim").mkdir(parents=True, exist_ok=True)
    template = daemon.pool / "template.qcow2"
    if not template.exists():
        make_disk(template)
        write(template, 7, 5)
    settings = LibvirtDriverSettings(
        endpoint=daemon.uri,
        credentials=daemon.work / "none",
        staging=daemon.work / "staging",
        scratch=daemon.work / "staging",
        image_hosts=("127.0.0.0/8",),
    )
    async with LibvirtConnection(settings) as connection:
        driver = LibvirtDriver(connection)
        try:
            yield DiskBench(driver, connection, daemon)
        finally:
            await driver.close()


def make_disk(path: Path, kind: str = "qcow2", *options: str) -> None:
    """Make a disk of 64 MiB."""
    subprocess.run(["qemu-img", "create", "-q", "-f", kind, *options, str(path), _SIZE], check=True, timeout=60)


def write(path: Path, pattern: int, at_mib: int, kind: str = "qcow2") -> None:
    """Fill a MiB of a disk that nobody runs with a pattern."""
    _io(path, f"write -P {pattern} {at_mib}M 1M", kind)


def holds(path: Path, pattern: int, at_mib: int, kind: str = "qcow2", *, live: bool = False) -> bool:
    """Return whether a MiB of a disk, with all layers below it, has a pattern."""
    done = subprocess.run(
        ["qemu-io", "-r", *(["-U"] if live else []), "-f", kind, "-c", f"read -P {pattern} {at_mib}M 1M", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0 and "Pattern verification failed" not in done.stdout


def same_disk(one: Path, other: Path, kinds: tuple[str, str] = ("qcow2", "qcow2")) -> bool:
    """Return whether two disks have the same content."""
    words = ["qemu-img", "compare", "-f", kinds[0], "-F", kinds[1], str(one), str(other)]
    return subprocess.run(words, capture_output=True, timeout=60, check=False).returncode == 0


def _io(path: Path, command: str, kind: str) -> None:
    done = subprocess.run(["qemu-io", "-f", kind, "-c", command, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


Scripted = Callable[[DiskBench], Awaitable[None]]


def play(daemon: Libvirtd, script: Scripted) -> None:
    """Run a script with a driver, and see that the pool has the files from before."""

    async def run() -> None:
        async with asyncio.timeout(300), bench(daemon) as found:
            before = found.files()
            await script(found)
            assert found.files() == before

    asyncio.run(run())


class Refused:
    """Expect a refusal of a kind."""

    def __init__(self, kind: ErrorKind) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: object, error: BaseException | None, trace: object) -> bool:
        assert isinstance(error, ProviderError), f"nothing was refused: {error!r}"
        assert error.kind is self._kind, str(error)
        return True


async def back(found: DiskBench) -> None:
    """Start the daemon, and wait until the driver has noticed."""
    found.daemon.start()
    async with asyncio.timeout(30):
        while not (await found.driver.validate(m.ValidateRequest())).ok:
            await asyncio.sleep(0.1)


async def appears(daemon: Libvirtd, start: str, least: int) -> None:
    """Wait for a file that is being written."""
    async with asyncio.timeout(60):
        while not any(each.stat().st_blocks * 512 >= least for each in daemon.pool.glob(f"{start}*") if each.suffix == ".qcow2"):
            await asyncio.sleep(0.002)

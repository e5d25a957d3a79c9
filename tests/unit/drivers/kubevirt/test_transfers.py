"""Exports and imports: bytes, checksums and formats with real files and real sockets, and the calls of the driver on a host in memory."""

import asyncio
import base64
import functools
import gzip
import hashlib
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.app.uploads import wiring as uploads
from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.target import Key
from paddock.kubevirt import disklinks
from paddock.kubevirt.disklinks import DiskLink
from paddock_drivers.kit import conversion, staging, transfers
from paddock_drivers.kit.staging import StagedObject, StagingSettings
from paddock_drivers.kit.transfers import DiskSink, ExportOrder, ImportOrder
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from tests import virtualtime
from tests.coroutines import played, scripted
from tests.kit.servers.s3server import KEY, SECRET, S3Server
from tests.unit.drivers.kubevirt.conftest import SETTINGS, Target, creation

LINK = DiskLink("https://here/exports/disk.img", "", "token")
DISK = b"root".ljust(1 << 20, b"\0") + b"data".ljust(1 << 20, b"\0")
URL = "pvc://claim/vmmigrations/ns/move/export"


class Channel:
    """A target in memory."""

    def __init__(self, disk: bytes = DISK) -> None:
        self.disk = disk
        self.fetched: list[DiskLink] = []
        self.received: list[bytes] = []
        self.take: Callable[[DiskLink, bytes], Awaitable[None]] | None = None

    async def fetch(self, link: DiskLink) -> AsyncIterator[bytes]:
        self.fetched.append(link)
        for start in range(0, len(self.disk), 300_000):
            yield self.disk[start : start + 300_000]

    async def upload(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int) -> None:
        data = b"".join([chunk async for chunk in chunks])
        assert len(data) == length
        self.received.append(data)
        if self.take is not None:
            await self.take(link, data)


def staged(root: Path, name: str = "raw", **more: Any) -> StagedObject:
    settings = StagingSettings(claims=root)
    return staging.find(settings, more.pop("url", f"{URL}.{name}"), more.pop("credentials", {}), more.pop("options", ""), "relay")


def order(target: StagedObject, scratch: Path, format: str = "raw", **more: Any) -> ExportOrder:
    return ExportOrder(**{"target": target, "format": format, "compress": False, "size": len(DISK), "scratch": scratch, **more})


def sink_for(channel: Channel) -> Callable[[int], Awaitable[DiskSink]]:
    async def begin(size: int) -> DiskSink:
        return functools.partial(channel.upload, LINK)

    return begin


# --- bytes ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 87)
@pytest.mark.parametrize("format", ["raw", "qcow2", "vmdk"])
@scripted
async def test_an_export_comes_back_in_every_format(format: str, tmp_path: Path) -> None:
    if format not in conversion.formats():
        pytest.skip("qemu-img is not here")
    channel, place = Channel(), staged(tmp_path, format)
    made = await transfers.export(order(place, tmp_path, format, compress=format == "qcow2"), channel.fetch(LINK), SystemClock())
    (file,) = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert made.checksum == hashlib.sha256(file.read_bytes()).hexdigest() and made.size == file.stat().st_size
    assert made.disk_size == len(DISK)
    got = await transfers.import_(ImportOrder(source=place, checksum=made.checksum), SystemClock(), sink_for(channel))
    assert (got.checksum, got.disk_size) == (made.checksum, len(DISK)) and channel.received == [file.read_bytes()]
    if format != "raw":
        shown = subprocess.run(["qemu-img", "info", "--output=json", str(file)], capture_output=True, check=True)
        assert json.loads(shown.stdout)["format"] == format


@pytest.mark.spec("virtrigaud", 87)
@pytest.mark.parametrize("format", ["raw", "qcow2"])
@scripted
async def test_an_export_goes_to_a_bucket_and_back(format: str, tmp_path: Path) -> None:
    if format not in conversion.formats():
        pytest.skip("qemu-img is not here")
    async with S3Server() as server:
        keys, options = {"accessKeyID": KEY, "secretAccessKey": SECRET}, json.dumps({"endpoint": server.address, "usePathStyle": True})
        place = staged(tmp_path, url="s3://bucket/p/export.vmdk", credentials=keys, options=options)
        assert SECRET not in repr(place)
        channel = Channel()
        made = await transfers.export(order(place, tmp_path, format), channel.fetch(LINK), SystemClock())
        (stored,) = server.objects.values()
        assert made.checksum == hashlib.sha256(stored).hexdigest() and not list(tmp_path.iterdir())
        await transfers.import_(ImportOrder(source=place, checksum=made.checksum), SystemClock(), sink_for(channel))
        assert channel.received == [stored]
        await staging.remove(place, SystemClock())
        assert not server.objects


@pytest.mark.spec("virtrigaud", 87)
@scripted
async def test_a_damaged_export_does_not_reach_the_target(tmp_path: Path) -> None:
    channel, place = Channel(), staged(tmp_path)
    made = await transfers.export(order(place, tmp_path), channel.fetch(LINK), SystemClock())
    (file,) = [each for each in tmp_path.rglob("*") if each.is_file()]
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(ProviderError, match="the disk is damaged") as error:
        await transfers.import_(ImportOrder(source=place, checksum=made.checksum), SystemClock(), sink_for(channel))
    assert error.value.kind is ErrorKind.INVALID_SPEC and channel.received == []


@scripted
async def test_a_target_without_end_is_cut_off(tmp_path: Path) -> None:
    class Endless(Channel):
        async def fetch(self, link: DiskLink) -> AsyncIterator[bytes]:
            while True:
                yield bytes(64 << 20)

    with pytest.raises(ProviderError, match="sends more than"):
        await transfers.export(order(staged(tmp_path), tmp_path, size=1 << 20), Endless().fetch(LINK), SystemClock())
    with pytest.raises(ProviderError, match="sent nothing"):
        await transfers.export(order(staged(tmp_path), tmp_path), Channel(b"").fetch(LINK), SystemClock())
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"QFI\xfb" + bytes(20) + (5 << 30).to_bytes(8, "big"), 5 << 30),
        (b"KDMV" + bytes(8) + (64).to_bytes(8, "little"), 32768),
        (b"\0" * 40, 77),
    ],
)
def test_the_size_of_a_disk_is_in_its_first_bytes(head: bytes, size: int) -> None:
    assert conversion.virtual_size(head, 77) == size


class Stream:
    """An answer of the target."""

    status = 200
    headers: dict[str, str] = {}

    def __init__(self, data: bytes) -> None:
        self._left = [data[start : start + 1000] for start in range(0, len(data), 1000)]

    async def read(self) -> bytes:
        return self._left.pop(0) if self._left else b""

    def close(self) -> None: ...


@pytest.mark.parametrize("size", [0, 1, 3 << 20, 200 << 20])
@scripted
async def test_a_compressed_disk_is_unpacked_in_small_pieces(size: int) -> None:
    packed = gzip.compress(bytes(size) + DISK[:10], 1)
    pieces = [each async for each in disklinks.unpacked(disklinks.read(Stream(packed)))]
    assert b"".join(pieces)[-10:] == DISK[:10] and sum(map(len, pieces)) == size + 10 and max(map(len, pieces)) <= 1 << 20
    for wrong in (packed[:-4], b"no gzip"):
        with pytest.raises(PaddockError):
            [each async for each in disklinks.unpacked(disklinks.read(Stream(wrong)))]


# --- the driver -------------------------------------------------------------------------------------------------------------------


class Moving:
    """Drivers of one host with staging storage, one after the other."""

    def __init__(self, target: Target, root: Path) -> None:
        self.target, self.root, self.channel = target, root / "staging", Channel()
        self.root.mkdir()
        host = target.host
        self.receiving = host.control.storage.receiving if host.control.storage is not None else None
        uploads.install(host.api.api, host.api.parts, self.receiving)  # type: ignore[arg-type]
        self.channel.take = self._take
        self.again()

    def again(self) -> None:
        """The driver ends, and another one is started."""
        settings = msgspec.structs.replace(SETTINGS, staging=StagingSettings(claims=self.root), scratch=self.root)
        self.driver = KubeVirtDriver(self.target.host.api.client(), settings, self.channel, virtualtime.Clock())

    async def _take(self, link: DiskLink, data: bytes) -> None:
        text = link.token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

        async def chunks() -> AsyncIterator[bytes]:
            yield data

        assert self.receiving is not None
        await self.receiving.receive(Key(claims["namespace"], claims["name"]), claims["uid"], chunks(), len(data))

    async def ends(self, task: m.TaskRef | None) -> str:
        for _ in range(2000):
            if task is None:
                return ""
            state = await self.driver.task_status(m.TaskStatusRequest(task=task))
            if state.done or state.error:
                return state.error
            await asyncio.sleep(0.5)
        raise AssertionError("the task does not end")

    async def export(self, vm_id: str, **more: Any) -> m.ExportDiskResponse:
        return await self.driver.export_disk(
            m.ExportDiskRequest(**{"vm_id": vm_id, "destination_url": f"{URL}.raw", "format": "raw", **more})
        )

    def importing(self, checksum: str, **more: Any) -> m.ImportDiskRequest:
        given = {
            "source_url": f"{URL}.raw",
            "format": "raw",
            "target_name": "moved",
            "verify_checksum": True,
            "expected_checksum": checksum,
        }
        return m.ImportDiskRequest(**{**given, **more})


EXPORTS = "/apis/export.kubevirt.io/v1/namespaces/default/virtualmachineexports"
VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"


@pytest.mark.spec("virtrigaud", 87, 88)
@played
async def test_a_disk_leaves_and_becomes_a_data_disk_elsewhere(target: Target, /, tmp_path: Path) -> None:
    moving = Moving(target, tmp_path)
    vm_id = await target.made(disks=(p.DiskPayload(name="data", size_gib=1, type="thin"),))
    begun = await moving.export(vm_id, disk_id="data")
    assert (await moving.export(vm_id, disk_id="data")).task == begun.task
    assert await moving.ends(begun.task) == ""
    done = await moving.export(vm_id, disk_id="data")
    assert done.task is None and done.checksum == hashlib.sha256(DISK).hexdigest() and done.estimated_size_bytes == len(DISK)
    assert len(moving.channel.fetched) == 1 and "volumes/web-data/" in moving.channel.fetched[0].url
    assert await target.names(EXPORTS) == {"virtualmachineexports": []}
    taken = await moving.driver.import_disk(moving.importing(done.checksum))
    assert await moving.ends(taken.task) == ""
    made = await moving.driver.import_disk(moving.importing(done.checksum))
    assert (made.task, made.checksum, made.path) == (None, done.checksum, "moved") and moving.channel.received == [DISK]
    moving.again()
    known = await moving.driver.import_disk(moving.importing(done.checksum))
    assert await moving.ends(known.task) == ""
    assert len(moving.channel.received) == 1, "a driver that was started again finds the disk"
    owner = m.ObjectIdentity(uid="99999999-2222-4333-8444-555555555555", namespace="team", name="other")
    other = creation("other", owner=owner, disks=(p.DiskPayload(name="data", size_gib=1, path="moved"),))
    answer = await moving.driver.create(other)
    assert await moving.ends(answer.task) == ""
    info = await moving.driver.get_disk_info(m.GetDiskInfoRequest(vm_id=answer.id, disk_id="data"))
    assert info.path == "moved"
    for each in (vm_id, answer.id):
        await moving.ends((await moving.driver.delete(m.DeleteRequest(id=each))).task)
    await moving.driver.transfer_delete(x.TransferDeleteRequest(source_url=f"{URL}.raw"))
    assert not list(tmp_path.rglob("export*"))


@pytest.mark.spec("virtrigaud", 87)
@played
async def test_a_damaged_disk_leaves_nothing_at_the_target(target: Target, /, tmp_path: Path) -> None:
    moving = Moving(target, tmp_path)
    vm_id = await target.made()
    assert await moving.ends((await moving.export(vm_id)).task) == ""
    taken = await moving.driver.import_disk(moving.importing("0" * 64))
    assert "the disk is damaged" in await moving.ends(taken.task)
    assert await target.names(VOLUMES) == {"datavolumes": ["web-rootdisk"]} and moving.channel.received == []
    right = (await moving.export(vm_id)).checksum
    assert await moving.ends((await moving.driver.import_disk(moving.importing(right))).task) == ""
    await moving.ends((await moving.driver.image_delete(x.ImageDeleteRequest(image_id="moved", image_path="moved"))).task)
    await asyncio.sleep(30)
    assert await target.names(VOLUMES) == {"datavolumes": ["web-rootdisk"]}


@pytest.mark.spec("virtrigaud", 104)
@played
async def test_exports_that_are_refused(target: Target, /, tmp_path: Path) -> None:
    moving = Moving(target, tmp_path)
    vm_id = await target.running()
    can = await moving.driver.get_capabilities(m.GetCapabilitiesRequest())
    assert can.supports_disk_export and can.supported_export_backends == can.supported_import_backends == ("pvc", "s3")
    for kind, change in (
        (ErrorKind.CONFLICT, {}),
        (ErrorKind.NOT_FOUND, {"disk_id": "other"}),
        (ErrorKind.NOT_FOUND, {"snapshot_id": "none/1"}),
        (ErrorKind.NOT_SUPPORTED, {"format": "vhd"}),
        (ErrorKind.NOT_SUPPORTED, {"compress": True}),
        (ErrorKind.NOT_SUPPORTED, {"transfer_mode": "direct"}),
        (ErrorKind.NOT_SUPPORTED, {"destination_url": "nfs://nas/e/x"}),
        (ErrorKind.INVALID_SPEC, {"destination_url": "pvc://claim/../x"}),
        (ErrorKind.INVALID_SPEC, {"backend_type": "s3"}),
    ):
        with pytest.raises(ProviderError) as error:
            await moving.export(vm_id, **change)
        assert error.value.kind is kind, (change, error.value)
    state = await moving.driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id="export:transfer/1234")))
    assert state.done and "begin it again" in state.error
    assert not list(moving.root.iterdir())

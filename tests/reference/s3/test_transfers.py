"""Objects and transfers on a real S3 server: parts, signatures, formats, checksums, and what a broken transfer leaves."""

import asyncio
import hashlib
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddock.base.clock import SystemClock
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.s3 import S3Refusal
from paddock_drivers.kit import staging, transfers
from paddock_drivers.kit.staging import StagedObject, StagingSettings
from paddock_drivers.kit.transfers import DiskSink, ExportOrder, ImportOrder
from tests.coroutines import scripted
from tests.reference.s3.gateway import BUCKET, KEY, REGION, SECRET, Gateway

pytestmark = pytest.mark.long

MIB = 1 << 20
NAME = "vm migrations/ns/a+b/export.vmdk"
# What S3 takes as the smallest part but the last.
SMALLEST = 5 * MIB
DISK = b"".join(hashlib.sha256(b"%d" % number).digest() * 64 for number in range(4096)) + bytes(4 * MIB)


async def pieces(data: bytes = DISK, *, breaks: bool = False) -> AsyncIterator[bytes]:
    for at in range(0, len(data), MIB):
        yield data[at : at + MIB]
        await asyncio.sleep(0)
    if breaks:
        raise ConnectionError("the source is gone")


def staged(gateway: Gateway, name: str, secret: str = SECRET) -> StagedObject:
    """An address as a migration gives it to a provider."""
    options = {"backend": "s3", "bucket": BUCKET, "endpoint": gateway.endpoint, "region": REGION, "usePathStyle": True}
    keys = {"accessKeyID": KEY, "secretAccessKey": secret}
    return staging.find(StagingSettings(), f"s3://{BUCKET}/vmmigrations/ns/move/{name}", keys, json.dumps(options), "relay")


def order(target: StagedObject, scratch: Path, format: str = "raw") -> ExportOrder:
    return ExportOrder(target=target, format=format, compress=False, size=len(DISK), scratch=scratch)


class Taken:
    """A target that keeps what it gets, if it gets all of it."""

    def __init__(self) -> None:
        self.data = b""
        self.disk_size = 0

    async def sink(self, size: int) -> DiskSink:
        self.disk_size = size

        async def take(chunks: AsyncIterator[bytes], length: int) -> None:
            data = b"".join([chunk async for chunk in chunks])
            assert len(data) == length
            self.data = data

        return take


@scripted
async def test_an_object_comes_back_as_it_was_stored(gateway: Gateway) -> None:
    async with gateway.object(NAME, part=SMALLEST) as found:
        await found.write(pieces(), len(DISK))
        assert gateway.objects() == [NAME] and not gateway.unfinished()
        size, chunks = await found.open()
        assert size == len(DISK) and b"".join([each async for each in chunks]) == DISK
        await found.delete()
        await found.delete()
        assert gateway.objects() == []
        with pytest.raises(S3Refusal) as error:
            await found.open()
        assert error.value.status == 404


@scripted
async def test_a_broken_upload_leaves_nothing(gateway: Gateway) -> None:
    async with gateway.object(NAME, part=SMALLEST) as found:
        with pytest.raises(ConnectionError):
            await found.write(pieces(breaks=True), len(DISK))
    assert gateway.objects() == [] and not gateway.unfinished()


@scripted
async def test_a_wrong_key_is_refused_and_nothing_secret_is_said(gateway: Gateway) -> None:
    async with gateway.object(NAME, secret="another") as found:
        with pytest.raises(S3Refusal) as error:
            await found.write(pieces(), len(DISK))
    assert error.value.status == 403 and "another" not in str(error.value)
    assert gateway.objects() == [] and SECRET not in gateway.log


@pytest.mark.spec("virtrigaud", 87)
@pytest.mark.parametrize("format", ["raw", "qcow2", "vmdk"])
@scripted
async def test_a_disk_arrives_in_every_format(gateway: Gateway, tmp_path: Path, format: str) -> None:
    target, taken = staged(gateway, f"export.{format}"), Taken()
    made = await transfers.export(order(target, tmp_path, format), pieces(), SystemClock())
    (name,) = gateway.objects()
    stored = gateway.folder / BUCKET / name
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == made.checksum and made.disk_size == len(DISK)
    found = await transfers.import_(ImportOrder(source=target, checksum=made.checksum), SystemClock(), taken.sink)
    assert found.checksum == made.checksum and taken.disk_size == len(DISK)
    read, raw = tmp_path / "read", tmp_path / "raw"
    read.write_bytes(taken.data)
    subprocess.run(["qemu-img", "convert", "-f", format, "-O", "raw", read, raw], check=True)
    assert raw.read_bytes() == DISK
    await staging.remove(target, SystemClock())
    await staging.remove(target, SystemClock())
    assert gateway.objects() == []


@pytest.mark.spec("virtrigaud", 87)
@scripted
async def test_a_damaged_object_is_not_taken(gateway: Gateway, tmp_path: Path) -> None:
    target, taken = staged(gateway, "export.raw"), Taken()
    made = await transfers.export(order(target, tmp_path), pieces(), SystemClock())
    (name,) = gateway.objects()
    with (gateway.folder / BUCKET / name).open("r+b") as file:
        file.write(b"X")
    with pytest.raises(ProviderError) as error:
        await transfers.import_(ImportOrder(source=target, checksum=made.checksum), SystemClock(), taken.sink)
    assert error.value.kind is ErrorKind.INVALID_SPEC and taken.data == b""


@pytest.mark.spec("virtrigaud", 87)
@scripted
async def test_a_refusal_of_the_bucket_is_the_transfer_s(gateway: Gateway, tmp_path: Path) -> None:
    running = transfers.StagingTransfers()

    async def work() -> transfers.TransferResult:
        return await transfers.export(order(staged(gateway, "export.raw", secret="another"), tmp_path), pieces(), SystemClock())

    task, _ = running.begin("export", "s3", "disk", work)
    while not (state := running.status(task)).done:
        await asyncio.sleep(0.05)
    assert "the bucket refused the request" in state.error and "another" not in state.error

"""Exports and imports of the fake driver: URLs, checksums, and nothing outside of its directory."""

import hashlib
from pathlib import Path

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock_drivers.fake.settings import RpcFault
from tests import virtualtime
from tests.coroutines import run_by, timeless
from tests.unit.drivers.fake.driving import create, driver, ended, error, kind, made


@pytest.mark.parametrize(
    "url",
    [
        "",
        "pvc://",
        "pvc://claim",
        "pvc://claim/",
        "pvc://claim/../other",
        "pvc://../claim/x",
        "pvc://claim/a//b",
        "s3://bucket/x",
        "pvc://Claim/x",
    ],
)
@run_by(virtualtime.run)
async def test_a_url_that_leads_elsewhere_is_refused(url: str, tmp_path: Path) -> None:
    fake = driver(directory=str(tmp_path / "claims"))
    vm = await made(fake)
    problem = await error(fake.export_disk(m.ExportDiskRequest(vm_id=vm, destination_url=url)))
    assert problem.kind is ErrorKind.INVALID_SPEC
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["qcow2", "raw"])
@run_by(virtualtime.run)
async def test_an_export_is_a_file_with_the_checksum(format: str, tmp_path: Path) -> None:
    fake = driver(directory=str(tmp_path))
    small = '{"CPU":1,"MemoryMiB":512,"DiskDefaults":{"SizeGiB":1}}'
    vm = await made(fake, create(class_json=small))
    await ended(fake, (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task)
    # An imported disk of 1 GiB: the raw file has to be read to its end.
    answer = await fake.export_disk(m.ExportDiskRequest(vm_id=vm, destination_url="pvc://claim/d", format=format))
    assert not (tmp_path / "claim" / "d").exists()
    assert await ended(fake, answer.task) == ""
    with (tmp_path / "claim" / "d").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == answer.checksum
    assert [each.name for each in (tmp_path / "claim").iterdir()] == ["d"]


@timeless
async def test_an_image_with_the_right_checksum_is_prepared() -> None:
    fake, url = driver(), "https://images.example/x.qcow2"
    digest = hashlib.sha256(url.encode()).hexdigest()
    text = f'{{"source":{{"http":{{"url":"{url}","checksum":"{digest}"}}}}}}'
    prepared = await fake.image_prepare(m.ImagePrepareRequest(image_json=text, target_name="x"))
    assert await ended(fake, prepared.task) == ""
    vm = await made(fake, create(image_json=f'{{"Path":"{prepared.prepared_image_path}"}}'))
    assert (await fake.get_disk_info(m.GetDiskInfoRequest(vm_id=vm))).virtual_size_bytes == 10 << 30


@run_by(virtualtime.run)
async def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    fake = driver(directory=str(tmp_path), faults=(RpcFault(rpc="ExportDisk", effect="task-error"),))
    vm = await made(fake)
    answer = await fake.export_disk(m.ExportDiskRequest(vm_id=vm, destination_url="pvc://claim/d"))
    assert await ended(fake, answer.task)
    assert list((tmp_path / "claim").iterdir()) == []


@run_by(virtualtime.run)
async def test_an_unreadable_disk_is_refused_and_not_imported(tmp_path: Path) -> None:
    fake = driver(directory=str(tmp_path), paths=())
    (tmp_path / "claim").mkdir()
    (tmp_path / "claim" / "d").write_bytes(b"no disk")
    request = m.ImportDiskRequest(source_url="pvc://claim/d", format="qcow2", target_name="d")
    assert await kind(fake.import_disk(request)) is ErrorKind.INVALID_SPEC
    assert await kind(fake.create(create(image_json='{"Path":"/fake/imported/d.qcow2"}'))) is ErrorKind.INVALID_SPEC

"""Imported disks and images: from staging storage and from addresses, with checksums, taken by machines and cleared away."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played_by
from tests.unit.drivers.proxmox.conftest import IMAGE_URL, Stage, play, play_in, qcow2

SUM = hashlib.sha256(qcow2()).hexdigest()


def stored(folder: Path, data: bytes = qcow2()) -> m.ImportDiskRequest:
    """An export in a staging claim, and the request that imports it."""
    (folder / "claim").mkdir(exist_ok=True)
    (folder / "claim" / "disk.qcow2").write_bytes(data)
    return m.ImportDiskRequest(
        source_url="pvc://claim/disk.qcow2",
        format="qcow2",
        target_name="web-disk",
        verify_checksum=True,
        expected_checksum=SUM,
        backend_type="pvc",
        transfer_mode="relay",
    )


async def imported(stage: Stage, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
    """Import a disk as a manager does: the call is made again for the result."""
    answer = await stage.driver.import_disk(request)
    assert await stage.finish(answer.task) == ""
    return await stage.driver.import_disk(request)


async def refused(call: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


def files(stage: Stage) -> list[str]:
    return [each.volid for each in stage.simulator.cluster.volumes.values() if each.kind == "import"]


@pytest.mark.spec("virtrigaud", 51, 87)
@played_by(play_in, "tmp_path")
async def test_an_imported_disk_becomes_a_machines_and_is_cleared_away(stage: Stage, /, tmp_path: Path) -> None:
    answer = await imported(stage, stored(tmp_path))
    assert (answer.task, answer.checksum, answer.actual_size_bytes) == (None, SUM, 1 << 30)
    assert files(stage) == [answer.path]
    image = p.encode(p.ImagePayload(path=answer.path, format="qcow2"))
    data = p.encode_list((p.DiskPayload(name="data", size_gib=2),))
    vm = await stage.make(stage.request(image_json=image, disks_json=data))
    assert "size=1G" in stage.conf(vm)["scsi0"] and files(stage) == []
    assert (await stage.driver.create(stage.request(image_json=image, disks_json=data))).id == vm


@played_by(play_in, "tmp_path")
async def test_an_imported_disk_becomes_a_data_disk(stage: Stage, /, tmp_path: Path) -> None:
    answer = await imported(stage, stored(tmp_path))
    data = p.encode_list((p.DiskPayload(name="data", size_gib=3, path=answer.path),))
    vm = await stage.make(stage.request(disks_json=data))
    assert "size=3G" in stage.conf(vm)["scsi1"] and "serial=data" in stage.conf(vm)["scsi1"] and files(stage) == []


@played_by(play_in, "tmp_path")
async def test_a_repeated_import_is_one_upload_also_after_a_restart(stage: Stage, /, tmp_path: Path) -> None:
    request = stored(tmp_path)
    answer = await imported(stage, request)
    stage.restart()
    again = await stage.driver.import_disk(request)
    assert (again.path, again.task, again.checksum) == (answer.path, None, SUM)
    assert stage.count(r"POST .*/upload") == 1


@played_by(play_in, "tmp_path")
async def test_a_damaged_disk_is_not_taken(stage: Stage, /, tmp_path: Path) -> None:
    request = stored(tmp_path, qcow2()[:-1] + b"x")
    answer = await stage.driver.import_disk(request)
    assert "damaged" in await stage.finish(answer.task)
    assert files(stage) == []


@played_by(play_in, "tmp_path")
async def test_the_cluster_downloads_from_an_address_itself(stage: Stage, /) -> None:
    request = m.ImportDiskRequest(source_url=IMAGE_URL, target_name="web-disk", verify_checksum=True, expected_checksum=SUM)
    answer = await stage.driver.import_disk(request)
    stage.restart()
    assert await stage.finish(answer.task) == "" and files(stage) == [answer.path]
    wrong = msgspec.structs.replace(request, target_name="other", expected_checksum="0" * 64)
    answer = await stage.driver.import_disk(wrong)
    assert "checksum mismatch" in await stage.finish(answer.task) and len(files(stage)) == 1


@pytest.mark.spec("virtrigaud", 57)
@played_by(play_in, "tmp_path")
async def test_an_image_is_downloaded_once_and_deleted_once(stage: Stage, /) -> None:
    spec = {"source": {"http": {"url": IMAGE_URL, "checksum": SUM, "checksumType": "sha256"}}}
    request = m.ImagePrepareRequest(image_json=p.encode_manifest(spec), target_name="ns.image")
    answer = await stage.driver.image_prepare(request)
    stage.restart()
    assert await stage.finish(answer.task) == ""
    again = await stage.driver.image_prepare(request)
    assert (again.prepared_image_path, again.task) == (answer.prepared_image_path, None)
    gone = x.ImageDeleteRequest(image_path=answer.prepared_image_path)
    for _ in range(2):
        assert (await stage.driver.image_delete(gone)).task is None
    assert files(stage) == []
    for foreign in ("local:iso/debian.iso", "local-lvm:vm-9000-disk-0"):
        assert (await refused(stage.driver.image_delete(x.ImageDeleteRequest(image_path=foreign)))).kind is ErrorKind.CONFLICT


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"http": {"url": IMAGE_URL, "headers": {"x": "y"}}}, "sends no headers"),
        ({"http": {"url": "https://x.example/a.qcow2.xz"}}, "not compressed"),
        ({"registry": {"image": "quay.io/a:b"}}, "registry"),
        ({"vsphere": {"templateName": "t"}}, "vsphere"),
        ({}, "no source"),
    ],
)
@played_by(play)
async def test_what_the_cluster_cannot_download_is_refused(stage: Stage, /, source: dict[str, Any], words: str) -> None:
    text = p.encode_manifest({"source": source})
    error = await refused(stage.driver.image_prepare(m.ImagePrepareRequest(image_json=text)))
    assert error.kind is ErrorKind.NOT_SUPPORTED and words in str(error)


@played_by(play)
async def test_a_template_needs_no_preparation(stage: Stage, /) -> None:
    text = p.encode_manifest({"source": {"proxmox": {"templateID": 9000}}})
    answer = await stage.driver.image_prepare(m.ImagePrepareRequest(image_json=text))
    assert (answer.prepared_image_id, answer.task) == ("9000", None)


@played_by(play_in, "tmp_path")
async def test_without_a_storage_for_imports_nothing_is_imported(stage: Stage, /, tmp_path: Path) -> None:
    for each in stage.simulator.cluster.storages.values():
        each.content = tuple(kind for kind in each.content if kind != "import")
    can = await stage.driver.get_capabilities(m.GetCapabilitiesRequest())
    assert not can.supports_image_import and not can.supports_disk_import
    error = await refused(stage.driver.import_disk(stored(tmp_path)))
    assert error.kind is ErrorKind.NOT_SUPPORTED and "import" in str(error)

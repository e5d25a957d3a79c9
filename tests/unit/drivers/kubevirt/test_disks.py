"""Disks: what they are, and importing them."""

import asyncio
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kubevirt import observed
from tests.coroutines import played
from tests.kit.engine.fakehost import GIB
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, IMAGE, OWNER, Target, creation

VOLUMES = EVERYTHING[2]
KEYS = {"accessKeyID": "me", "secretAccessKey": "k3y"}
OTHER = m.ObjectIdentity(uid="99999999-2222-4333-8444-555555555555", namespace="team", name="other")


def importing(**change: Any) -> m.ImportDiskRequest:
    return m.ImportDiskRequest(**{"source_url": IMAGE.url, "format": "qcow2", "target_name": "web-migrated", **change})


@played
async def test_disks_are_described(target: Target, /) -> None:
    vm_id = await target.running(disks=(p.DiskPayload(name="data", size_gib=1, type="thin"),))
    await target.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm_id, name_hint="one"))
    root = await target.driver.get_disk_info(m.GetDiskInfoRequest(vm_id=vm_id))
    assert (root.disk_id, root.path, root.format, root.is_bootable) == ("rootdisk", "web-rootdisk", "raw", True)
    assert (root.virtual_size_bytes, len(root.snapshots)) == (2 * GIB, 1) and root.metadata["storageClass"] == "paddock"
    for name in ("data", "web-data"):
        data = await target.driver.get_disk_info(m.GetDiskInfoRequest(vm_id=vm_id, disk_id=name))
        assert (data.disk_id, data.virtual_size_bytes, data.is_bootable) == ("data", GIB, False)
    for request in (m.GetDiskInfoRequest(vm_id=vm_id, disk_id="x"), m.GetDiskInfoRequest(vm_id=vm_id, snapshot_id="x/1")):
        with pytest.raises(ProviderError) as error:
            await target.driver.get_disk_info(request)
        assert error.value.kind is ErrorKind.NOT_FOUND


@played
async def test_an_imported_disk_is_one_and_goes_with_its_machine(target: Target, /) -> None:
    request = importing(verify_checksum=True, expected_checksum="C" * 64)
    answers = await asyncio.gather(*(target.driver.import_disk(request) for _ in range(3)))
    answer = answers[0]
    assert len(set(map(str, answers))) == 1 and (answer.disk_id, answer.checksum) == ("web-migrated", "c" * 64)
    assert await target.ends(answer.task) == ""
    source = (await target.host.api.get(f"{VOLUMES}/web-migrated")).data["spec"]["source"]
    assert source == {"http": {"url": IMAGE.url, "checksum": f"sha256:{'c' * 64}"}}
    image = p.ImagePayload(path=answer.path, format="qcow2", checksum_type="sha256")
    vm_id = await target.made(image=image)
    assert await target.power(vm_id, m.PowerOp.ON) == ""
    with pytest.raises(ProviderError, match="the disk web-migrated belongs to machine web") as error:
        await target.driver.create(creation("other", owner=OTHER, image=image))
    assert error.value.kind is ErrorKind.CONFLICT
    for each in (vm_id, (await target.driver.list_vms(m.ListVMsRequest())).vms[0].id):
        await target.ends((await target.driver.delete(m.DeleteRequest(id=each))).task)
    await asyncio.sleep(30)
    assert not any((await target.names(*EVERYTHING)).values())


@played
async def test_another_content_is_not_the_same_disk(target: Target, /) -> None:
    await target.driver.import_disk(importing())
    with pytest.raises(ProviderError, match="a disk web-migrated exists and has another content") as error:
        await target.driver.import_disk(importing(source_url="https://images.example/other"))
    assert error.value.kind is ErrorKind.CONFLICT


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"source_url": "pvc://claim/export.qcow2", "backend_type": "pvc"}, ErrorKind.NOT_SUPPORTED),
        ({"source_url": "s3://b/k", "backend_type": "nfs", "credentials": KEYS}, ErrorKind.INVALID_SPEC),
        ({"source_url": "nfs://server/export"}, ErrorKind.NOT_SUPPORTED),
        ({"source_url": ""}, ErrorKind.INVALID_SPEC),
        ({"transfer_mode": "direct"}, ErrorKind.NOT_SUPPORTED),
        ({"format": "ova"}, ErrorKind.NOT_SUPPORTED),
        ({"source_url": "s3://b/k"}, ErrorKind.INVALID_SPEC),
        ({"source_url": "s3:///k", "credentials": KEYS}, ErrorKind.INVALID_SPEC),
        ({"verify_checksum": True, "expected_checksum": "short"}, ErrorKind.INVALID_SPEC),
        ({"target_name": "---"}, ErrorKind.INVALID_SPEC),
    ],
)
@played
async def test_refusals(target: Target, /, change: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as error:
        await target.driver.import_disk(importing(**change))
    assert error.value.kind is kind and "k3y" not in str(error.value)
    assert (await target.names(VOLUMES)) == {"datavolumes": []}


@played
async def test_what_the_driver_does_not_do_is_refused(target: Target, /) -> None:
    vm_id = await target.made(owner=OWNER)
    for call in (
        target.driver.hardware_upgrade(m.HardwareUpgradeRequest(id=vm_id, target_version=19)),
        target.driver.export_disk(m.ExportDiskRequest(vm_id=vm_id, destination_url="nfs://b/k", backend_type="nfs", credentials=KEYS)),
    ):
        with pytest.raises(ProviderError) as error:
            await call
        assert error.value.kind is ErrorKind.NOT_SUPPORTED and "k3y" not in str(error.value)


def test_an_imported_disk_has_the_size_of_its_content() -> None:
    """The claim of an imported disk is larger than the disk, by what a file system takes."""
    claim = from_data(
        {
            "metadata": {"name": "imported", "annotations": {"paddock.dev/guest-size": f"{1 << 30}/1138166334"}},
            "spec": {"resources": {"requests": {"storage": "1138166334"}}},
            "status": {"phase": "Bound", "capacity": {"storage": "1138166334"}},
        },
        PersistentVolumeClaim,
    )
    machine = from_data(
        {
            "metadata": {"name": "web"},
            "spec": {
                "template": {
                    "spec": {
                        "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
                        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "imported"}}],
                    }
                }
            },
        },
        VirtualMachine,
    )
    (disk,) = observed.disks(machine, None, {"imported": claim})
    assert disk.size == 1 << 30

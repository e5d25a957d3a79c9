"""The storage of the libvirt driver on a real libvirtd: bytes that are written are found again, and nothing is made twice or left."""

import asyncio
import hashlib
import json
import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.conformance import suite
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind
from paddock_drivers.libvirt.volumes import VolumeStore
from tests.coroutines import played_by
from tests.host.drivers.libvirtd import Libvirtd
from tests.host.drivers.libvirtdisks import GIB, MIB, DiskBench, Refused, appears, back, bench, holds, make_disk, play, same_disk, write
from tests.host.guests import Shelf
from tests.kit.providers import providerruns

pytestmark = [pytest.mark.needs("libvirtd", "root", "qemu"), pytest.mark.slow]
STORAGE = ("snapshots", "images", "transfers")


@played_by(play, "libvirtd")
async def test_a_machine_has_a_copy_of_its_image_and_grows_with_its_data(found: DiskBench, /) -> None:
    vm = await found.create("grows", data=("data",))
    root, data = await found.path(vm), await found.path(vm, "data")
    assert holds(root, 7, 5) and (await found.info(vm)).virtual_size_bytes == 64 * MIB
    write(data, 9, 100)
    desired = p.DesiredPayload(
        name="grows",
        machine_class=p.ClassPayload(cpu=1, memory_mib=64, disk_defaults=p.DiskDefaultsPayload(size_gib=2)),
        disks=(p.DiskPayload(name="data", size_gib=3),),
    )
    await found.finish((await found.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=p.encode(desired)))).task)
    assert ((await found.info(vm)).virtual_size_bytes, (await found.info(vm, "data")).virtual_size_bytes) == (2 * GIB, 3 * GIB)
    assert holds(root, 7, 5) and holds(data, 9, 100) and holds(data, 0, 2500)
    await found.delete(vm)


@played_by(play, "libvirtd")
async def test_a_disk_that_is_detached_keeps_its_data(found: DiskBench, /) -> None:
    vm = await found.create("detached", data=("data",))
    data = await found.path(vm, "data")
    write(data, 13, 2)
    for disks in ((), (p.DiskPayload(name="data", size_gib=1),)):
        desired = p.DesiredPayload(name="detached", machine_class=p.ClassPayload(cpu=1, memory_mib=64), disks=disks)
        await found.finish((await found.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=p.encode(desired)))).task)
        with Refused(ErrorKind.CONFLICT):
            await found.create("thief", image=str(data))
    assert await found.path(vm, "data") == data and holds(data, 13, 2)
    await found.delete(vm)


@pytest.mark.parametrize("disk", ["root", "data"])
@played_by(play, "libvirtd")
async def test_a_volume_of_somebody_else_is_never_written(found: DiskBench, /, libvirtd: Libvirtd, disk: str) -> None:
    foreign = libvirtd.pool / f"taken-{disk}.qcow2"
    make_disk(foreign)
    write(foreign, 3, 1)
    for _ in range(2):
        with Refused(ErrorKind.CONFLICT):
            await found.create("taken", data=("data",))
        assert holds(foreign, 3, 1)
        assert not any(each.endswith(".making") for each in found.files())
        # The second time, libvirt knows of it.
        await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    foreign.unlink()


@pytest.mark.spec("virtrigaud", 168)
@pytest.mark.parametrize("disk", ["root", "data"])
@played_by(play, "libvirtd")
async def test_a_volume_that_appears_after_the_plan_is_never_taken(found: DiskBench, /, libvirtd: Libvirtd, disk: str) -> None:
    storage = VolumeStore(found.connection)
    image = p.ImagePayload(path=str(libvirtd.pool / "template.qcow2"))
    data = (p.DiskPayload(name="data", size_gib=1),)
    given = MachineDescription(name=f"late-{disk}", hardware=p.ClassPayload(cpu=1, memory_mib=64), image=image, disks=data)
    planned = await storage.plan(given, "0a7c1f7e-0000-4000-8000-000000000001")
    foreign = libvirtd.pool / f"late-{disk}-{disk}.qcow2"
    make_disk(foreign)
    write(foreign, 3, 1)
    await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    with Refused(ErrorKind.CONFLICT):
        await storage.make(planned)
    # The machine that could not be made goes, and what was in its way stays.
    await storage.delete([each.path for each in planned])
    assert holds(foreign, 3, 1)
    assert [each for each in found.files() if each.startswith(f"late-{disk}-")] == [foreign.name]
    foreign.unlink()


@played_by(play, "libvirtd")
async def test_a_copy_that_was_cut_off_is_made_again(found: DiskBench, /, libvirtd: Libvirtd) -> None:
    vm = await found.create("cut")
    root = await found.path(vm)
    # As a host leaves it that fails in the middle of the copy: a valid file without the data, and the note beside it.
    root.unlink()
    make_disk(root)
    (libvirtd.pool / "cut-root.qcow2.making").write_bytes(bytes(4096))
    await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    storage = VolumeStore(found.connection)
    image = p.ImagePayload(path=str(libvirtd.pool / "template.qcow2"))
    given = MachineDescription(name="cut", hardware=p.ClassPayload(cpu=1, memory_mib=64), image=image)
    await storage.make(await storage.plan(given, vm))
    assert holds(root, 7, 5) and "cut-root.qcow2.making" not in found.files()
    await found.delete(vm)


@played_by(play, "libvirtd")
async def test_a_full_clone_has_the_data_and_goes_its_own_way(found: DiskBench, /, libvirtd: Libvirtd) -> None:
    source = await found.create("full", data=("data",))
    write(await found.path(source, "data"), 11, 3)
    foreign = libvirtd.pool / "full-copy-data.qcow2"
    make_disk(foreign)
    write(foreign, 3, 1)
    with Refused(ErrorKind.CONFLICT):
        await found.clone(source, "full-copy")
    assert holds(foreign, 3, 1)
    foreign.unlink()
    clone = await found.clone(source, "full-copy")
    assert holds(await found.path(clone), 7, 5) and holds(await found.path(clone, "data"), 11, 3)
    write(await found.path(clone, "data"), 12, 3)
    assert holds(await found.path(source, "data"), 11, 3)
    assert await found.clone(source, "full-copy") == clone
    await found.delete(source)
    assert await found.clone(source, "full-copy") == clone
    with Refused(ErrorKind.NOT_FOUND):
        await found.clone(source, "full-other")
    await found.delete(clone)


@pytest.mark.parametrize("first", ["source", "clone"])
@played_by(play, "libvirtd")
async def test_linked_clones_share_what_was_and_nothing_since(found: DiskBench, /, libvirtd: Libvirtd, first: str) -> None:
    source = await found.create("linked", data=("data",))
    write(await found.path(source, "data"), 21, 1)
    clone = await found.clone(source, "linked-one", linked=True)
    other = await found.clone(source, "linked-two", linked=True)
    assert (await found.info(clone)).backing_file == "/".join((str(libvirtd.pool), "linked-root.qcow2"))
    # What they stand on is nobody's image, and is not deleted as one.
    for call in (
        found.create("thief", image="linked-data.qcow2"),
        found.driver.image_delete(x.ImageDeleteRequest(image_id="linked-data")),
    ):
        with Refused(ErrorKind.CONFLICT):
            await call
    for each, pattern in ((source, 22), (clone, 23), (other, 24)):
        write(await found.path(each, "data"), pattern, 2)
    for each, pattern in ((source, 22), (clone, 23), (other, 24)):
        assert holds(await found.path(each), 7, 5) and holds(await found.path(each, "data"), 21, 1)
        assert holds(await found.path(each, "data"), pattern, 2)
    ids = {"source": [source, other], "clone": [other, source]}[first]
    await found.delete(*ids)
    assert holds(await found.path(clone), 7, 5) and holds(await found.path(clone, "data"), 23, 2)
    await found.power(clone, m.PowerOp.ON)
    await found.delete(clone)


@played_by(play, "libvirtd")
async def test_a_snapshot_brings_back_data_and_hardware(found: DiskBench, /) -> None:
    vm = await found.create("back", data=("data",))
    data = await found.path(vm, "data")
    write(data, 31, 1)
    first = await found.snapshot(vm, "first")
    assert await found.snapshot(vm, "first") == first
    write(data, 32, 1)
    desired = p.DesiredPayload(
        name="back", machine_class=p.ClassPayload(cpu=2, memory_mib=128), disks=(p.DiskPayload(name="data", size_gib=2),)
    )
    await found.finish((await found.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=p.encode(desired)))).task)
    second = await found.snapshot(vm, "second")
    await found.revert(vm, first)
    (listed,) = [each for each in (await found.driver.list_vms(m.ListVMsRequest())).vms if each.id == vm]
    assert (listed.cpu, listed.memory_mib, holds(data, 31, 1)) == (1, 64, True)
    assert (await found.info(vm, "data")).virtual_size_bytes == GIB
    await found.revert(vm, second)
    assert holds(data, 32, 1) and (await found.info(vm, "data")).virtual_size_bytes == 2 * GIB
    await found.finish((await found.driver.snapshot_delete(m.SnapshotDeleteRequest(vm_id=vm, snapshot_id=first))).task)
    assert (await found.info(vm)).snapshots == ("second",) and holds(data, 32, 1)
    await found.delete(vm)


@pytest.mark.parametrize("firmware", ["", "UEFI"])
@played_by(play, "libvirtd")
async def test_the_disks_of_a_running_machine_are_kept_while_it_runs(found: DiskBench, /, firmware: str) -> None:
    vm = await found.create("live", data=("data",), firmware=firmware)
    data = await found.path(vm, "data")
    write(data, 41, 1)
    await found.power(vm, m.PowerOp.ON)
    snapshot = await found.snapshot(vm, "live")
    assert (await found.driver.describe(m.DescribeRequest(id=vm))).power_state == "On"
    # A copy of what the snapshot has, while the machine runs.
    clone = await found.clone(vm, "live-copy", customize_json=json.dumps({"snapshotId": snapshot}))
    assert holds(await found.path(clone, "data"), 41, 1) and holds(await found.path(clone), 7, 5)
    with Refused(ErrorKind.CONFLICT):
        await found.clone(vm, "live-other", linked=True)
    await found.power(vm, m.PowerOp.OFF)
    write(data, 42, 1)
    await found.revert(vm, snapshot)
    assert holds(data, 41, 1) and (await found.driver.describe(m.DescribeRequest(id=vm))).power_state == "Off"
    await found.delete(vm, clone)


@played_by(play, "libvirtd")
async def test_a_snapshot_with_memory_brings_a_machine_back_running(found: DiskBench, /) -> None:
    vm = await found.create("memory")
    await found.power(vm, m.PowerOp.ON)
    snapshot = await found.snapshot(vm, "memory", memory=True)
    await found.power(vm, m.PowerOp.OFF)
    await found.revert(vm, snapshot)
    assert (await found.driver.describe(m.DescribeRequest(id=vm))).power_state == "On"
    await found.delete(vm)
    flash = await found.create("flash", firmware="UEFI")
    await found.power(flash, m.PowerOp.ON)
    with Refused(ErrorKind.NOT_SUPPORTED):
        await found.snapshot(flash, "memory", memory=True)
    await found.delete(flash)


@played_by(play, "libvirtd")
async def test_disks_that_came_after_a_snapshot_go_with_the_machine(found: DiskBench, /) -> None:
    vm = await found.create("later")
    snapshot = await found.snapshot(vm, "before")
    desired = p.DesiredPayload(
        name="later", machine_class=p.ClassPayload(cpu=1, memory_mib=64), disks=(p.DiskPayload(name="more", size_gib=1),)
    )
    await found.finish((await found.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=p.encode(desired)))).task)
    assert "later-more.qcow2" in found.files()
    await found.revert(vm, snapshot)
    await found.delete(vm)


# --- images and transfers ---------------------------------------------------------------------------------------------------


async def _prepare(found: DiskBench, spec: Mapping[str, object], name: str = "image") -> m.ImagePrepareResponse:
    made = await found.driver.image_prepare(m.ImagePrepareRequest(image_json=json.dumps(spec), target_name=name))
    await found.finish(made.task)
    return made


@played_by(play, "libvirtd")
async def test_an_image_is_stored_once_and_machines_have_its_bytes(
    found: DiskBench, /, libvirtd: Libvirtd, web: Shelf, tmp_path: Path
) -> None:
    disk = tmp_path / "image.qcow2"
    make_disk(disk)
    write(disk, 51, 9)
    spec = {"source": {"http": {"url": web.put(disk), "checksum": hashlib.sha256(disk.read_bytes()).hexdigest()}}}
    made = await _prepare(found, spec)
    inode = Path(made.prepared_image_path).stat().st_ino
    async with bench(libvirtd) as other:
        # Another process finds what is there, and judges the task by it.
        assert await _prepare(other, spec) == m.ImagePrepareResponse(
            prepared_image_id=made.prepared_image_id, prepared_image_path=made.prepared_image_path
        )
        task = m.TaskRef(id=f"image:{'0' * 32}:default/{made.prepared_image_id}")
        assert not await other.outcome(task)
        assert await other.outcome(m.TaskRef(id=f"image:{'0' * 32}:default/missing.qcow2"))
    assert Path(made.prepared_image_path).stat().st_ino == inode
    vm = await found.create("imaged", image=made.prepared_image_path)
    assert same_disk(disk, await found.path(vm))
    await found.finish((await found.driver.image_delete(x.ImageDeleteRequest(image_id=made.prepared_image_id))).task)
    assert holds(await found.path(vm), 51, 9)
    await found.delete(vm)


@played_by(play, "libvirtd")
async def test_hostile_images_are_Refused(found: DiskBench, /, libvirtd: Libvirtd, web: Shelf, tmp_path: Path) -> None:
    secret = tmp_path / "secret.raw"
    secret.write_bytes(b"secret" * 1000)
    backed, data = tmp_path / "backed.qcow2", tmp_path / "data.qcow2"
    make_disk(backed, "qcow2", "-F", "raw", "-b", str(secret))
    make_disk(data, "qcow2", "-o", f"data_file={tmp_path}/outside")
    for each in (backed, data):
        with Refused(ErrorKind.INVALID_SPEC):
            await _prepare(found, {"source": {"http": {"url": web.put(each)}}}, each.stem)
        placed = libvirtd.pool / each.name
        placed.write_bytes(each.read_bytes())
        with Refused(ErrorKind.INVALID_SPEC):
            await found.create("hostile", image=each.name)
        placed.unlink()
    with Refused(ErrorKind.NOT_FOUND):
        await found.create("hostile", image="/etc/shadow")
    vm = await found.create("victim")
    with Refused(ErrorKind.CONFLICT):
        await found.create("hostile", image=str(await found.path(vm)))
    await found.delete(vm)


@played_by(play, "libvirtd")
async def test_an_import_writes_no_file_of_somebody_else(found: DiskBench, /, libvirtd: Libvirtd, web: Shelf, tmp_path: Path) -> None:
    disk, foreign = tmp_path / "plain.qcow2", libvirtd.pool / "mine.qcow2"
    make_disk(disk)
    make_disk(foreign)
    write(foreign, 3, 1)
    for _ in range(2):
        with Refused(ErrorKind.CONFLICT):
            await found.driver.import_disk(m.ImportDiskRequest(source_url=web.put(disk), target_name="mine"))
        assert holds(foreign, 3, 1)
        await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    foreign.unlink()


async def _export(found: DiskBench, vm: str, kind: str, snapshot: str = "") -> tuple[Path, str]:
    url = f"pvc://claim/out/disk.{kind}"
    request = m.ExportDiskRequest(vm_id=vm, destination_url=url, format=kind, backend_type="pvc", snapshot_id=snapshot)
    made = await found.driver.export_disk(request)
    await found.finish(made.task)
    answer = await found.driver.export_disk(request)
    return found.daemon.work / "staging" / "claim" / "out" / f"disk.{kind}", answer.checksum


@pytest.mark.parametrize("kind", ["qcow2", "raw", "vmdk"])
@played_by(play, "libvirtd")
async def test_a_disk_is_exported_and_imported_byte_for_byte(found: DiskBench, /, kind: str) -> None:
    source = await found.create("exported")
    clone = await found.clone(source, "exported-linked", linked=True)
    write(await found.path(clone), 61, 40)
    file, checksum = await _export(found, clone, kind)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == checksum
    assert same_disk(file, await found.path(clone), (kind, "qcow2"))
    order = m.ImportDiskRequest(
        source_url=f"pvc://claim/out/disk.{kind}", target_name="in", format=kind, verify_checksum=True, expected_checksum=checksum
    )
    made = await found.driver.import_disk(order)
    await found.finish(made.task)
    again = await found.driver.import_disk(order)
    assert (again.path, again.actual_size_bytes, again.checksum) == (made.path, 64 * MIB, checksum)
    vm = await found.create("imported", image=made.path)
    assert await found.path(vm) == Path(made.path) and same_disk(Path(made.path), await found.path(clone))
    with Refused(ErrorKind.CONFLICT):
        await found.create("imported-twice", image=made.path)
    await found.delete(vm, clone, source)
    url = x.TransferDeleteRequest(source_url=order.source_url, backend_type="pvc")
    await found.finish((await found.driver.transfer_delete(url)).task)
    assert not file.exists()


@played_by(play, "libvirtd")
async def test_a_running_machine_is_exported_by_its_snapshot(found: DiskBench, /, libvirtd: Libvirtd) -> None:
    vm = await found.create("running")
    before = libvirtd.work / "before.qcow2"
    before.write_bytes((await found.path(vm)).read_bytes())
    await found.power(vm, m.PowerOp.ON)
    with Refused(ErrorKind.CONFLICT):
        await _export(found, vm, "qcow2")
    snapshot = await found.snapshot(vm, "moving")
    file, checksum = await _export(found, vm, "qcow2", snapshot)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == checksum and same_disk(file, before)
    await found.delete(vm)


@played_by(play, "libvirtd")
async def test_an_import_with_another_checksum_leaves_nothing(found: DiskBench, /, libvirtd: Libvirtd, tmp_path: Path) -> None:
    staged = libvirtd.work / "staging" / "claim" / "wrong.qcow2"
    make_disk(staged)
    order = m.ImportDiskRequest(source_url="pvc://claim/wrong.qcow2", target_name="wrong", verify_checksum=True, expected_checksum="0" * 64)
    with Refused(ErrorKind.INVALID_SPEC):
        await found.driver.import_disk(order)


@played_by(play, "libvirtd")
async def test_a_daemon_that_goes_in_the_middle_leaves_work_to_the_next_call(
    found: DiskBench, /, libvirtd: Libvirtd, web: Shelf, tmp_path: Path
) -> None:
    disk = tmp_path / "large.raw"
    disk.write_bytes(random.Random(1).randbytes(192 * MIB))
    spec = {"source": {"http": {"url": web.put(disk)}}}
    request = m.ImagePrepareRequest(image_json=json.dumps(spec), target_name="large")
    work = asyncio.create_task(found.driver.image_prepare(request))
    await appears(libvirtd, "large-", 32 * MIB)
    libvirtd.stop()
    with Refused(ErrorKind.UNAVAILABLE):
        await work
    await back(found)
    made = await _prepare(found, spec, "large")
    create = asyncio.create_task(found.create("large", image=made.prepared_image_path))
    await appears(libvirtd, "large-root.qcow2", 32 * MIB)
    libvirtd.stop()
    with Refused(ErrorKind.UNAVAILABLE):
        await create
    await back(found)
    vm = await found.create("large", image=made.prepared_image_path)
    assert same_disk(disk, await found.path(vm), ("raw", "qcow2"))
    await found.delete(vm)
    await found.driver.image_delete(x.ImageDeleteRequest(image_id=made.prepared_image_id))


# --- machines of others -----------------------------------------------------------------------------------------------------

_FOREIGN = """<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><os><type arch='x86_64'>hvm</type></os>
<devices>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{path}'/><target dev='vda' bus='virtio'/></disk>
</devices></domain>"""


@played_by(play, "libvirtd")
async def test_the_raw_disk_of_an_adopted_machine(found: DiskBench, /, libvirtd: Libvirtd) -> None:
    disk = libvirtd.pool / "legacy.raw"
    make_disk(disk, "raw")
    write(disk, 71, 8, "raw")
    domain = await found.connection.run(lambda conn: conn.defineXML(_FOREIGN.format(name="legacy", path=disk)).UUIDString())
    await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    info = await found.info(domain)
    assert (info.format, info.virtual_size_bytes, info.disk_id, info.is_bootable) == ("raw", 64 * MIB, "vda", True)
    file, _ = await _export(found, domain, "raw")
    assert file.read_bytes() == disk.read_bytes()
    clone = await found.clone(domain, "legacy-copy")
    assert holds(await found.path(clone), 71, 8)
    for call in (found.snapshot(domain, "none"), found.clone(domain, "legacy-linked", linked=True)):
        with Refused(ErrorKind.NOT_SUPPORTED):
            await call
    # What a guest writes is no format: the disk stays raw, and what its header names is not read.
    evil = libvirtd.work / "evil.qcow2"
    make_disk(evil, "qcow2", "-F", "raw", "-b", "/etc/passwd")
    subprocess.run(["dd", f"if={evil}", f"of={disk}", "conv=notrunc", "status=none"], check=True)
    await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    with Refused(ErrorKind.NOT_SUPPORTED):
        await found.clone(domain, "legacy-evil")
    file, _ = await _export(found, domain, "raw", "")
    await found.delete(clone)
    await found.delete(domain)
    assert disk.exists()
    disk.unlink()
    await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))


@played_by(play, "libvirtd")
async def test_the_storage_keeps_the_contract(
    found: DiskBench, /, libvirtd: Libvirtd, web: Shelf, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    disk = tmp_path / "conformance.qcow2"
    make_disk(disk)
    settings = ConformanceSettings(
        image=p.ImagePayload(path=str(libvirtd.pool / "template.qcow2"), format="qcow2"),
        memory_mib=64,
        prepare={"source": {"http": {"url": web.put(disk)}}},
        transfer_url="pvc://claim/suite",
        transfer_directory=str(libvirtd.work / "staging" / "claim" / "suite"),
    )
    cases = [each for each in CASES if each.run.__module__.rpartition(".")[2] in STORAGE]
    cases += [each for each in CASES if each.name in ("features", "image-delete", "transfer-delete", "datastores")]
    result = await suite.judge(found.driver, settings, cases=cases, chance=random.Random(1))
    providerruns.keep(record_property, "libvirt", "a real libvirtd with guests", result)
    assert result.good and not result.count("skipped"), result
    for each in (await found.driver.list_datastores(x.ListDatastoresRequest())).datastores:
        assert each.accessible and each.total_bytes
    for name in found.files():
        if name.startswith("conformance-image") and not name.endswith(".json"):
            await found.driver.image_delete(x.ImageDeleteRequest(image_id=name))

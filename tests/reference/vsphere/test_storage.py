"""Snapshots, datastores and transfers of disks on a vCenter: states before and after, and the bytes themselves."""

import asyncio
import hashlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyVmomi import vim

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.vsphere import failures, snapshots
from paddock_drivers.vsphere.identifiers import VSphereTaskId
from tests.coroutines import run_by
from tests.reference.vsphere.parts import StorageParts, local_file
from tests.reference.vsphere.vcenter import Simulator, running, shrunk
from tests.reference.vsphere.vcenter import finished as ended

pytestmark = pytest.mark.reference
NAME = "DC0_H0_VM0"
MIB = 1 << 20


@pytest.fixture
def parts(simulator: Simulator, tmp_path: Path) -> Iterator[StorageParts]:
    (tmp_path / "staging").mkdir()
    made = StorageParts(simulator, tmp_path / "staging")
    yield made
    made.close()


def refused(work: object) -> ProviderError:
    assert callable(work)
    with pytest.raises(ProviderError) as caught, failures.mapped():
        work()
    return caught.value


def task_of(response: m.TaskResponse | m.SnapshotCreateResponse) -> VSphereTaskId:
    assert response.task is not None
    found = VSphereTaskId.parse(response.task.id)
    assert found is not None
    return found


def finish(parts: StorageParts, response: m.TaskResponse | m.SnapshotCreateResponse) -> VSphereTaskId:
    found = task_of(response)
    ended(vim.Task(found.task, parts.session.connection.adapter))
    return found


# --- snapshots --------------------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_known_before_it_is_there_and_taken_once(parts: StorageParts) -> None:
    machine = parts.machine(NAME)
    request = m.SnapshotCreateRequest(vm_id=machine, name_hint="before", description="for the upgrade")
    first = parts.snapshots.create(request)
    done = finish(parts, first)
    assert parts.snapshots.judge(done).error == ""
    assert parts.snapshots.create(request) == m.SnapshotCreateResponse(snapshot_id=first.snapshot_id)
    (node,) = parts.ref(NAME).snapshot.rootSnapshotList
    assert (node.name, node.description.splitlines()[0]) == ("before", "for the upgrade")
    assert snapshots.find(parts.lookup.machine(machine), first.snapshot_id) is not None


def test_the_tree_a_revert_and_a_delete_in_the_middle(parts: StorageParts) -> None:
    machine = parts.machine(NAME)
    made = [parts.snapshots.create(m.SnapshotCreateRequest(vm_id=machine, name_hint=name)) for name in ("a",)]
    finish(parts, made[0])
    ended(parts.ref(NAME).PowerOffVM_Task())
    ended(parts.ref(NAME).ReconfigVM_Task(vim.vm.ConfigSpec(numCPUs=3, memoryMB=64)))
    made.append(parts.snapshots.create(m.SnapshotCreateRequest(vm_id=machine, name_hint="b")))
    finish(parts, made[1])
    tree = list(snapshots.every(parts.lookup.machine(machine).snapshots))
    assert [(each.name, each.parent) for each in tree] == [("a", ""), ("b", made[0].snapshot_id)]
    done = finish(parts, parts.snapshots.revert(m.SnapshotRevertRequest(vm_id=machine, snapshot_id=made[0].snapshot_id)))
    assert parts.ref(NAME).config.hardware.numCPU == 1
    assert parts.snapshots.judge(done).error == ""
    # The simulator ends with a panic when a current snapshot without a parent is deleted.
    finish(parts, parts.snapshots.revert(m.SnapshotRevertRequest(vm_id=machine, snapshot_id=made[1].snapshot_id)))
    assert parts.ref(NAME).config.hardware.numCPU == 3
    gone = finish(parts, parts.snapshots.delete(m.SnapshotDeleteRequest(vm_id=machine, snapshot_id=made[0].snapshot_id)))
    assert parts.snapshots.judge(gone).error == ""
    assert [each.id for each in snapshots.every(parts.lookup.machine(machine).snapshots)] == [made[1].snapshot_id]
    assert parts.snapshots.delete(m.SnapshotDeleteRequest(vm_id=machine, snapshot_id=made[0].snapshot_id)) == m.TaskResponse()
    missing = refused(lambda: parts.snapshots.revert(m.SnapshotRevertRequest(vm_id=machine, snapshot_id=made[0].snapshot_id)))
    assert missing.kind is ErrorKind.NOT_FOUND


def test_memory_needs_a_machine_that_runs(parts: StorageParts) -> None:
    machine = parts.machine(NAME)
    request = m.SnapshotCreateRequest(vm_id=machine, name_hint="warm", include_memory=True)
    taken = parts.snapshots.create(request)
    finish(parts, taken)
    ended(parts.ref(NAME).PowerOffVM_Task())
    finish(parts, parts.snapshots.revert(m.SnapshotRevertRequest(vm_id=machine, snapshot_id=taken.snapshot_id)))
    assert parts.ref(NAME).runtime.powerState == "poweredOn"
    ended(parts.ref(NAME).PowerOffVM_Task())
    cold = m.SnapshotCreateRequest(vm_id=machine, name_hint="cold", include_memory=True)
    assert refused(lambda: parts.snapshots.create(cold)).kind is ErrorKind.CONFLICT


def test_a_call_whose_answer_was_lost_takes_no_second_snapshot(simulator: Simulator, parts: StorageParts) -> None:
    simulator.tell(works={"CreateSnapshotEx": 1500, "createSnapshotEx": 1500, "CreateSnapshot": 1500})
    machine = parts.machine(NAME)
    request = m.SnapshotCreateRequest(vm_id=machine, name_hint="slow")
    first = parts.snapshots.create(request)
    assert refused(lambda: parts.snapshots.create(request)).kind is ErrorKind.UNAVAILABLE
    finish(parts, first)
    assert len(list(snapshots.every(parts.lookup.machine(machine).snapshots))) == 1


# --- datastores -------------------------------------------------------------------------------------------------------------------


def test_datastores_and_pods(vcsim: Path, tmp_path: Path) -> None:
    with running(vcsim, tmp_path / "vcsim", {"pod": 1, "datastore": 3}) as simulator:
        parts = StorageParts(simulator, tmp_path)
        pod = parts.inventory.named(vim.StoragePod, "DC0_POD0").ref
        members = [parts.inventory.named(vim.Datastore, f"LocalDS_{number}").ref for number in (1, 2)]
        ended(pod.MoveIntoFolder_Task(members))
        every = parts.datastores.list(x.ListDatastoresRequest()).datastores
        assert {each.name: each.pod for each in every} == {"LocalDS_0": "", "LocalDS_1": "DC0_POD0", "LocalDS_2": "DC0_POD0"}
        assert all(0 < each.free_bytes <= each.total_bytes and each.accessible and not each.maintenance for each in every)
        listed = parts.datastores.list(x.ListDatastoresRequest(pod="DC0_POD0")).datastores
        assert [each.name for each in listed] == ["LocalDS_1", "LocalDS_2"]
        assert parts.datastores.list(x.ListDatastoresRequest(pod="none")).datastores == ()
        # Equal space: the first by name.
        assert parts.datastores.choose("DC0_POD0").name == "LocalDS_1"
        parts.close()


# --- disks ------------------------------------------------------------------------------------------------------------------------


def filled(parts: StorageParts, name: str) -> bytes:
    """Put bytes on the first disk of a machine that is off, and return them."""
    ref = parts.ref(name)
    if ref.runtime.powerState == "poweredOn":
        ended(ref.PowerOffVM_Task())
    disk = parts.lookup.machine(parts.machine(name)).disks[0]
    data = random.Random(7).randbytes(3 * MIB) + bytes(disk.size - 3 * MIB)
    local_file(parts, disk.path.replace(".vmdk", "-flat.vmdk")).write_bytes(data)
    return data


def small(parts: StorageParts, name: str) -> None:
    """Give a machine a small disk in place of its own."""
    ref = parts.ref(name)
    if ref.runtime.powerState == "poweredOn":
        ended(ref.PowerOffVM_Task())
    shrunk(ref)


async def awaited(parts: StorageParts, response: m.ExportDiskResponse | m.ImportDiskResponse) -> str:
    assert response.task is not None
    task = VSphereTaskId.parse(response.task.id)
    assert task is not None
    for _ in range(1000):
        state = parts.transfers.status(task)
        if state.done:
            return state.error
        await asyncio.sleep(0.02)
    raise AssertionError("the transfer does not end")


@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="needs qemu: qemu-img is not installed")
@pytest.mark.parametrize("kind", ["raw", "qcow2", "vmdk"])
@run_by(asyncio.run)
async def test_a_disk_goes_out_and_comes_back_with_its_bytes(parts: StorageParts, tmp_path: Path, kind: str) -> None:
    small(parts, NAME)
    data = filled(parts, NAME)
    machine = parts.machine(NAME)
    url = f"pvc://claim/folder/disk.{kind}"

    order = m.ExportDiskRequest(vm_id=machine, destination_url=url, format=kind, backend_type="pvc", transfer_mode="relay")
    assert await awaited(parts, await parts.transfers.export_disk(order)) == ""
    answer = await parts.transfers.export_disk(order)
    stored = tmp_path / "staging" / "claim" / "folder" / f"disk.{kind}"
    assert answer.checksum == hashlib.sha256(stored.read_bytes()).hexdigest()
    raw = tmp_path / "again.raw"
    subprocess.run(["qemu-img", "convert", "-f", kind, "-O", "raw", stored, raw], check=True, timeout=60)
    assert raw.read_bytes() == data
    back = m.ImportDiskRequest(
        source_url=url,
        format=kind,
        target_name="Moved disk",
        verify_checksum=True,
        expected_checksum=answer.checksum,
        backend_type="pvc",
    )
    response = await parts.transfers.import_disk(back)
    assert await awaited(parts, response) == ""
    again = await parts.transfers.import_disk(back)
    assert (again.task, again.path) == (None, response.path)
    path = response.path
    assert path.startswith("[LocalDS_0] paddock-disks/moved-disk-")
    flat = local_file(parts, path.replace(".vmdk", "-flat.vmdk"))
    assert flat.read_bytes() == data
    # vSphere takes it for a disk of this size.
    assert f"RW {len(data) // 512} VMFS" in local_file(parts, path).read_text()
    (old,) = [each for each in parts.ref(NAME).config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]
    backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(fileName=path, diskMode="persistent")
    new = vim.vm.device.VirtualDisk(key=-1, controllerKey=old.controllerKey, unitNumber=5, backing=backing, capacityInKB=len(data) // 1024)
    change = vim.vm.device.VirtualDeviceSpec(operation="add", device=new)
    ended(parts.ref(NAME).ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change])))
    assert [each.path for each in parts.lookup.machine(machine).disks][1] == path


@run_by(asyncio.run)
async def test_an_import_with_another_checksum_leaves_nothing(parts: StorageParts, tmp_path: Path) -> None:
    folder = tmp_path / "staging" / "claim"
    folder.mkdir()
    (folder / "disk.raw").write_bytes(random.Random(3).randbytes(2 * MIB))

    request = m.ImportDiskRequest(
        source_url="pvc://claim/disk.raw", format="raw", target_name="bad", verify_checksum=True, expected_checksum="0" * 64
    )
    assert "damaged" in await awaited(parts, await parts.transfers.import_disk(request))
    assert list(local_file(parts, "[LocalDS_0] paddock-disks/x").parent.glob("bad*")) == []


def test_a_machine_that_runs_is_exported_from_a_snapshot_alone(parts: StorageParts, tmp_path: Path) -> None:
    small(parts, NAME)
    data = filled(parts, NAME)
    ended(parts.ref(NAME).PowerOnVM_Task())
    machine = parts.machine(NAME)
    taken = parts.snapshots.create(m.SnapshotCreateRequest(vm_id=machine, name_hint="export"))
    finish(parts, taken)

    async def work() -> None:
        order = m.ExportDiskRequest(vm_id=machine, destination_url="pvc://claim/disk.raw", format="raw")
        with pytest.raises(ProviderError) as caught:
            await parts.transfers.export_disk(order)
        assert caught.value.kind is ErrorKind.CONFLICT
        named = m.ExportDiskRequest(vm_id=machine, snapshot_id=taken.snapshot_id, destination_url="pvc://claim/disk.raw", format="raw")
        assert await awaited(parts, await parts.transfers.export_disk(named)) == ""
        assert (await parts.transfers.export_disk(named)).checksum == hashlib.sha256(data).hexdigest()
        request = x.TransferDeleteRequest(source_url="pvc://claim/disk.raw", backend_type="pvc")
        await parts.transfers.delete_transfer(request)
        await parts.transfers.delete_transfer(request)

    parts.run(work)
    assert not (tmp_path / "staging" / "claim" / "disk.raw").exists()


def test_what_a_disk_is(parts: StorageParts) -> None:
    machine = parts.machine(NAME)
    found = parts.transfers.describe(m.GetDiskInfoRequest(vm_id=machine))
    assert (found.disk_id, found.format, found.is_bootable, found.snapshots) == ("root", "vmdk", True, ())
    assert found.path.endswith(".vmdk") and found.virtual_size_bytes > 0
    assert found.metadata["datastore"] == "LocalDS_0"
    taken = parts.snapshots.create(m.SnapshotCreateRequest(vm_id=machine, name_hint="one"))
    finish(parts, taken)
    assert parts.transfers.describe(m.GetDiskInfoRequest(vm_id=machine)).snapshots == (taken.snapshot_id,)
    assert parts.transfers.describe(m.GetDiskInfoRequest(vm_id=machine, snapshot_id=taken.snapshot_id)).disk_id == "root"
    unknown = m.GetDiskInfoRequest(vm_id=machine, disk_id="none")
    assert refused(lambda: parts.transfers.describe(unknown)).kind is ErrorKind.NOT_FOUND

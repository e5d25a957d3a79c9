"""Images and clones on a vCenter: made once, marked, and made of what was asked for."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from pyVmomi import vim

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.vsphere import disks, factory, marks
from paddock_drivers.vsphere.driver import VSphereDriver
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.leases import LeaseHolder
from tests.coroutines import run_by
from tests.reference.vsphere import appliances
from tests.reference.vsphere.parts import StorageParts
from tests.reference.vsphere.vcenter import Simulator, finished, template

pytestmark = pytest.mark.reference
T = TypeVar("T")


@pytest.fixture
def prepared(simulator: Simulator) -> Simulator:
    template(simulator, "DC0_H0_VM0", "golden")
    return simulator


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "web"
    folder.mkdir()
    with appliances.serving(folder) as url:
        yield url, folder


@asynccontextmanager
async def preparing(simulator: Simulator, folder: Path) -> AsyncIterator[VSphereDriver]:
    """Start a driver that may take images from this host."""
    context = msgspec.structs.replace(simulator.context(PROVIDER_IMAGE_HOSTS="127.0.0.1"), staging=folder)
    async with factory.make(context) as driver:
        assert isinstance(driver, VSphereDriver)
        yield driver


def driven(simulator: Simulator, folder: Path, work: Callable[[VSphereDriver], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with preparing(simulator, folder) as driver:
            return await work(driver)

    return asyncio.run(whole())


async def outcome(driver: VSphereDriver, task: m.TaskRef | None) -> str:
    for _ in range(1500):
        state = await driver.task_status(m.TaskStatusRequest(task=task))
        if state.done or state.error:
            return state.error
        await asyncio.sleep(0.02)
    raise AssertionError("the task does not end")


def image(**source: Any) -> m.ImagePrepareRequest:
    return m.ImagePrepareRequest(image_json=payloads.encode_manifest({"source": source}), target_name="default.tiny")


def machines(simulator: Simulator) -> dict[str, Any]:
    rows = VSphereInventory(simulator.connection()).every(vim.VirtualMachine, ("name",))
    return {each.name: each.ref for each in rows}


# --- images -----------------------------------------------------------------------------------------------------------------------


@run_by(asyncio.run)
async def test_an_appliance_becomes_one_template_whoever_asks(prepared: Simulator, web: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = web
    appliances.appliance(folder / "tiny.ova")
    whole = hashlib.sha256((folder / "tiny.ova").read_bytes()).hexdigest()
    request = image(vsphere={"ovaURL": f"{url}/tiny.ova", "checksum": whole, "checksumType": "sha256"})

    async with preparing(prepared, tmp_path) as driver:
        made = await asyncio.gather(*(driver.image_prepare(request) for _ in range(3)))
        assert [await outcome(driver, each.task) for each in made] == ["", "", ""]
        name = made[0].prepared_image_id

    # Another driver finds what this one has made.
    async with preparing(prepared, tmp_path) as driver:
        assert await driver.image_prepare(request) == m.ImagePrepareResponse(prepared_image_id=name)
    found = machines(prepared)[name]
    assert found.config.template
    assert marks.read(found.config.extraConfig)[marks.PURPOSE] == "image"
    (disk,) = disks.observed(found.config.hardware.device)
    assert disk.size == appliances.CAPACITY
    assert found.config.hardware.memoryMB == 256


def test_the_bytes_of_an_appliance_reach_the_lease(prepared: Simulator, tmp_path: Path) -> None:
    from paddock_drivers.vsphere import ovf  # noqa: PLC0415 - one test
    from paddock_drivers.vsphere.appliances import ApplianceFile, LocalAppliance  # noqa: PLC0415 - one test
    from paddock_drivers.vsphere.imports import ApplianceImport, ImageWish  # noqa: PLC0415 - one test
    from paddock_drivers.vsphere.placement import VSpherePlacement  # noqa: PLC0415 - one test
    from paddock_drivers.vsphere.target import VSphereTarget  # noqa: PLC0415 - one test

    parts = StorageParts(prepared, tmp_path)
    disk = appliances.appliance(tmp_path / "tiny.ova")
    found = ovf.archive(tmp_path / "tiny.ova")
    member = found.members["tiny-disk1.vmdk"]
    local = LocalAppliance(ovf.read(found.text("tiny.ovf")), {"tiny-disk1.vmdk": ApplianceFile(found.path, member.offset, member.size)})
    target = VSphereTarget(parts.session.connection, parts.inventory)
    place = VSpherePlacement(target, parts.datastores).find(payloads.PlacementPayload())
    wish = ImageWish(name="tiny", id="00000000-1111-2222-3333-444444444444", place=place)
    importing = ApplianceImport(parts.session, target, parts.store)
    seen: list[str] = []
    plain = LeaseHolder.__aexit__

    async def looked(self: LeaseHolder, *given: Any) -> None:
        # What vSphere has received, as it says itself before the lease ends.
        entries = await parts.session.run(lambda: self._lease.HttpNfcLeaseGetManifest())
        seen.extend(each.sha1 for each in entries)
        await plain(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LeaseHolder, "__aexit__", looked)
        parts.run(lambda: importing.carry_out(wish, local))
    parts.close()
    assert seen == [hashlib.sha1(disk, usedforsecurity=False).hexdigest()]


@pytest.mark.parametrize("fault", ["checksum", "manifest", "missing"])
@run_by(asyncio.run)
async def test_a_damaged_appliance_leaves_nothing(prepared: Simulator, web: tuple[str, Path], tmp_path: Path, fault: str) -> None:
    url, folder = web
    appliances.appliance(folder / "tiny.ova", spoilt=fault == "manifest")
    before = set(machines(prepared))
    name = "none.ova" if fault == "missing" else "tiny.ova"
    checksum = {"checksum": "0" * 64} if fault == "checksum" else {}

    async with preparing(prepared, tmp_path) as driver:
        response = await driver.image_prepare(image(vsphere={"ovaURL": f"{url}/{name}", **checksum}))
        assert await outcome(driver, response.task)
    assert set(machines(prepared)) == before


# http.client leaves the socket of an answer that nobody reads to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@run_by(asyncio.run)
async def test_a_descriptor_with_files_beside_it(prepared: Simulator, web: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = web
    disk = appliances.packed_disk(folder)
    (folder / "tiny-disk1.vmdk").write_bytes(disk)
    (folder / "tiny.ovf").write_text(appliances.DESCRIPTOR.format(size=len(disk), capacity=appliances.CAPACITY))

    async with preparing(prepared, tmp_path) as driver:
        response = await driver.image_prepare(image(vsphere={"ovaURL": f"{url}/tiny.ovf"}))
        assert await outcome(driver, response.task) == ""
    (folder / "tiny.mf").write_text(f"SHA256(tiny-disk1.vmdk)= {'0' * 64}\n")
    (folder / "other.ovf").write_text((folder / "tiny.ovf").read_text())
    (folder / "other.mf").write_text((folder / "tiny.mf").read_text())

    async with preparing(prepared, tmp_path) as driver:
        response = await driver.image_prepare(image(vsphere={"ovaURL": f"{url}/other.ovf"}))
        assert "damaged" in await outcome(driver, response.task)


@run_by(asyncio.run)
async def test_a_disk_of_an_address_becomes_a_template_with_its_bytes(prepared: Simulator, web: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = web
    content = b"some bytes" * 5000
    (folder / "disk.vmdk").write_bytes(appliances.packed_disk(folder, content))

    async with preparing(prepared, tmp_path) as driver:
        response = await driver.image_prepare(image(http={"url": f"{url}/disk.vmdk"}))
        assert await outcome(driver, response.task) == ""
        name = response.prepared_image_id
    found = machines(prepared)[name]
    (disk,) = disks.observed(found.config.hardware.device)
    store = next(each for each in found.datastore if each.name == disk.datastore)
    flat = Path(store.summary.url, disk.path.partition("] ")[2].replace(".vmdk", "-flat.vmdk"))
    assert flat.read_bytes() == content + bytes(appliances.CAPACITY - len(content))


@run_by(asyncio.run)
async def test_references_are_verified_and_others_are_refused(prepared: Simulator, tmp_path: Path) -> None:
    async with preparing(prepared, tmp_path) as driver:
        known = await driver.image_prepare(image(vsphere={"templateName": "golden"}))
        assert (known.prepared_image_id, known.task) == ("golden", None)
        for source, kind in (
            ({"vsphere": {"templateName": "none"}}, ErrorKind.NOT_FOUND),
            ({"registry": {"image": "quay.io/a:b"}}, ErrorKind.NOT_SUPPORTED),
            ({"libvirt": {"path": "/x"}}, ErrorKind.INVALID_SPEC),
        ):
            with pytest.raises(ProviderError) as caught:
                await driver.image_prepare(image(**source))
            assert caught.value.kind is kind
        with pytest.raises(ProviderError) as caught:
            await driver.image_delete(x.ImageDeleteRequest(image_id="golden"))
        assert caught.value.kind is ErrorKind.CONFLICT
    assert "golden" in machines(prepared)


# --- clones -----------------------------------------------------------------------------------------------------------------------


def source_of(simulator: Simulator) -> tuple[str, Any]:
    ref = machines(simulator)["DC0_H0_VM1"]
    if ref.runtime.powerState == "poweredOn":
        finished(ref.PowerOffVM_Task())
    return str(ref.config.instanceUuid), ref


@run_by(asyncio.run)
async def test_a_clone_is_customized_and_found_again_when_its_source_is_gone(simulator: Simulator, tmp_path: Path) -> None:
    source, ref = source_of(simulator)
    owner = [vim.option.OptionValue(key=marks.OWNER_UID, value="somebody"), vim.option.OptionValue(key=marks.OWNER, value="a/b")]
    finished(ref.ReconfigVM_Task(vim.vm.ConfigSpec(extraConfig=owner)))
    request = m.CloneRequest(
        source_vm_id=source,
        target_name="copy",
        class_json=json.dumps({"cpu": 3, "memory": "1Gi"}),
        customize_json=json.dumps({"hostname": "web-7", "userData": "#cloud-config\n{}", "tags": ["x"]}),
        target_vm=m.ObjectIdentity(namespace="apps", name="copy"),
    )

    async with preparing(simulator, tmp_path) as driver:
        made = await driver.clone(request)
        assert await outcome(driver, made.task) == ""
        await outcome(driver, (await driver.delete(m.DeleteRequest(id=source))).task)
        assert (await driver.clone(request)).target_vm_id == made.target_vm_id
        with pytest.raises(ProviderError) as caught:
            await driver.clone(msgspec.structs.replace(request, target_vm=m.ObjectIdentity(namespace="other", name="copy")))
        assert caught.value.kind is ErrorKind.NOT_FOUND
        described = await driver.describe(m.DescribeRequest(id=made.target_vm_id, owner=m.ObjectIdentity(uid="new-owner")))
        assert described.exists and described.power_state == "Off"
        assert "customization.tags" in described.provider_raw_json
    clone = machines(simulator)["copy"]
    assert (clone.config.hardware.numCPU, clone.config.hardware.memoryMB) == (3, 1024)
    has = {each.key: each.value for each in clone.config.extraConfig}
    assert marks.OWNER_UID not in marks.read(clone.config.extraConfig)
    assert {"guestinfo.userdata", "guestinfo.metadata"} <= set(has)


@run_by(asyncio.run)
async def test_what_a_linked_clone_asks_of_vsphere(simulator: Simulator, tmp_path: Path) -> None:
    """The simulator copies disks all the same, so the specification is compared."""
    source, ref = source_of(simulator)
    seen: list[tuple[str, Any]] = []
    plain = vim.VirtualMachine.CloneVM_Task

    def noted(self: Any, folder: Any, name: str, spec: Any) -> Any:
        seen.append((name, spec))
        return plain(self, folder, name, spec)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vim.VirtualMachine, "CloneVM_Task", noted)
        async with preparing(simulator, tmp_path) as driver:
            taken = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=source, name_hint="base"))
            assert await outcome(driver, taken.task) == ""
            for name, custom in (("now", "{}"), ("then", json.dumps({"snapshotId": taken.snapshot_id}))):
                made = await driver.clone(m.CloneRequest(source_vm_id=source, target_name=name, linked=True, customize_json=custom))
                assert await outcome(driver, made.task) == ""
            custom = json.dumps({"snapshotId": "snapshot-none"})
            with pytest.raises(ProviderError) as caught:
                await driver.clone(m.CloneRequest(source_vm_id=source, target_name="never", customize_json=custom))
            assert caught.value.kind is ErrorKind.NOT_FOUND
    assert [name for name, _ in seen] == ["now", "then"]
    assert {spec.location.diskMoveType for _, spec in seen} == {"createNewChildDiskBacking"}
    (base,) = ref.snapshot.rootSnapshotList
    assert seen[1][1].snapshot == base.snapshot
    # A linked clone of the machine as it is has a snapshot of its own to stand on.
    assert seen[0][1].snapshot == base.childSnapshotList[0].snapshot
    assert not any(spec.powerOn or spec.template for _, spec in seen)

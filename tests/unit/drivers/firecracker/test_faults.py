"""VMMs that end, lie, refuse or do not answer; files that are gone, damaged or do not fit; drivers that come and go."""

import asyncio
import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.firecracker import files, processes
from paddock_drivers.firecracker.driver import FirecrackerDriver
from paddock_drivers.firecracker.processes import VmmProcess
from paddock_drivers.firecracker.records import MicroVmFolder
from paddock_drivers.firecracker.store import DirectoryTaken
from tests.coroutines import run_by
from tests.unit.drivers.firecracker.conftest import Lab, disks, done, power, request, state
from tests.unit.drivers.firecracker.test_conformance import left

LAN = payloads.encode_list((payloads.NetworkPayload(name="lan", bridge="br0"),))


async def running(driver: FirecrackerDriver, name: str = "web", **changes: Any) -> str:
    made = await driver.create(request(name, **changes))
    await power(driver, made.id, m.PowerOp.ON)
    return made.id


async def refusal(call: Any, kind: ErrorKind) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    return caught.value


# --- processes --------------------------------------------------------------------------------------------------------------


@run_by("play")
async def test_machines_outlive_the_driver(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
    before = lab.pids()
    assert len(before) == 1
    async with lab.driver() as driver:
        assert await state(driver, web) == "On"
        await power(driver, web, m.PowerOp.ON)
        assert lab.pids() == before
        await power(driver, web, m.PowerOp.SHUTDOWN_GRACEFUL, seconds=5)
        assert lab.pids() == {}


@run_by("play")
async def test_a_vmm_that_was_killed_is_off_and_starts_again(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
        os.kill(lab.pids()["web"], signal.SIGKILL)
        # A process that dies answers nothing, and still holds its files for a moment.
        while (seen := await state(driver, web)) in ("On", "Unknown"):
            await asyncio.sleep(0.01)
        assert seen == "Off" and not lab.pids()
        await power(driver, web, m.PowerOp.ON)
        assert await state(driver, web) == "On"


@run_by("play")
async def test_a_number_that_was_used_again_is_not_the_machine(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
        found = processes.find(lab.folder("web"))
        assert found is not None
        await power(driver, web, m.PowerOp.OFF)
        # This process has the number now, as far as the record says.
        for other in (VmmProcess(os.getpid(), found.start, found.boot), VmmProcess(os.getpid(), found.start + 1, "another")):
            files.write(lab.folder("web") / "process.json", other)
            assert await state(driver, web) == "Off"
            await power(driver, web, m.PowerOp.OFF)
        await power(driver, web, m.PowerOp.ON)
        assert await state(driver, web) == "On"


@run_by("play")
async def test_two_starts_at_once_make_one_process(lab: Lab) -> None:
    async with lab.driver() as driver:
        made = await driver.create(request())
        order = m.PowerRequest(id=made.id, op=m.PowerOp.ON)
        await asyncio.gather(*(driver.power(order) for _ in range(5)))
        assert len(lab.pids()) == 1
        assert len([each for each in lab.calls("web") if "InstanceStart" in each]) == 1


@run_by("play")
async def test_a_shutdown_is_finished_by_the_next_driver(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver, "web-hang")
        asked = m.PowerRequest(id=web, op=m.PowerOp.SHUTDOWN_GRACEFUL, graceful_timeout_seconds=1)
        task = (await driver.power(asked)).task
    assert len(lab.pids()) == 1
    async with lab.driver() as driver:
        assert await done(driver, task) == ""
        assert (await state(driver, web), lab.pids()) == ("Off", {})


@run_by("play")
async def test_a_reboot_goes_on_with_the_next_driver(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver, "web-hang")
        before = lab.pids()["web-hang"]
        task = (await driver.power(m.PowerRequest(id=web, op=m.PowerOp.REBOOT, graceful_timeout_seconds=1))).task
    async with lab.driver() as driver:
        assert await done(driver, task) == ""
        assert await state(driver, web) == "On" and lab.pids()["web-hang"] != before


@run_by("play")
async def test_one_driver_serves_a_directory(lab: Lab) -> None:
    async with lab.driver():
        with pytest.raises(DirectoryTaken, match="another driver serves"):
            await lab.make().open()


# --- the API ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", ["PUT /boot-source", "PUT /machine-config", "PUT /drives/root", "PUT /actions", "PUT /network-interfaces/lan"]
)
@pytest.mark.parametrize("effect", ["refuse", "die", "die-after"])
@run_by("play")
async def test_a_start_that_fails_leaves_no_process(call: str, effect: str, lab: Lab) -> None:
    async with lab.driver() as driver:
        made = await driver.create(request(networks_json=LAN))
        lab.faults.write_text(json.dumps({call: effect}))
        kind = ErrorKind.CONFLICT if effect == "refuse" else ErrorKind.UNAVAILABLE
        await refusal(driver.power(m.PowerRequest(id=made.id, op=m.PowerOp.ON)), kind)
        assert (await state(driver, made.id), lab.pids()) == ("Off", {})
        lab.faults.unlink()
        await power(driver, made.id, m.PowerOp.ON)
        assert await state(driver, made.id) == "On"


@run_by("play")
async def test_a_vmm_that_ends_at_once_is_an_error_with_its_words(lab: Lab) -> None:
    async with lab.driver() as driver:
        made = await driver.create(request())
        (lab.place / "fail").touch()
        error = await refusal(driver.power(m.PowerRequest(id=made.id, op=m.PowerOp.ON)), ErrorKind.UNAVAILABLE)
        assert "the simulator was asked to fail" in str(error)
        assert await state(driver, made.id) == "Off"


@patch("paddock_drivers.firecracker.runs._QUICK", 0.2)
@run_by("play")
async def test_a_vmm_that_does_not_answer_is_unknown_and_can_be_killed(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
        lab.faults.write_text(json.dumps({"GET /": "hang"}))
        assert await state(driver, web) == "Unknown"
        response = await driver.delete(m.DeleteRequest(id=web))
        assert await done(driver, response.task) == ""
        assert (left(lab), lab.pids()) == ([], {})


@run_by("play")
async def test_a_socket_of_another_process_is_not_believed(lab: Lab) -> None:
    async with lab.driver() as driver:
        web, other = await running(driver, "web"), await running(driver, "other")
        # What a VMM that was taken over could do in its own root.
        (lab.folder("web") / "root/api.sock").unlink()
        (lab.folder("web") / "root/api.sock").symlink_to(lab.folder("other") / "root/api.sock")
        assert await state(driver, web) == "Unknown"
        asked = m.PowerRequest(id=web, op=m.PowerOp.SHUTDOWN_GRACEFUL, graceful_timeout_seconds=1)
        assert await done(driver, (await driver.power(asked)).task) == ""
        assert (await state(driver, web), await state(driver, other)) == ("Off", "On")


@run_by("play")
async def test_what_a_vmm_leaves_in_its_root_is_gone_with_its_next_start(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
        root = lab.folder("web") / "root"
        (root / "disks/root.raw").unlink()
        (root / "disks/root.raw").symlink_to("/etc/shadow")
        info = await driver.get_disk_info(m.GetDiskInfoRequest(vm_id=web))
        assert info.path == str(lab.folder("web") / "disks/root.raw") and info.virtual_size_bytes == 64 << 20
        await power(driver, web, m.PowerOp.OFF)
        await power(driver, web, m.PowerOp.ON)
        assert not (root / "disks/root.raw").is_symlink()


@run_by("play")
async def test_a_snapshot_that_is_refused_leaves_a_running_machine_and_nothing_else(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
        for effect in ("PUT /snapshot/create", "PATCH /vm"):
            lab.faults.write_text(json.dumps({effect: "refuse"}))
            await refusal(
                driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="a", include_memory=True)), ErrorKind.CONFLICT
            )
            lab.faults.unlink()
            assert await state(driver, web) == "On"
            assert not list((lab.folder("web") / "snapshots").iterdir())


@run_by("play")
async def test_a_vmm_that_dies_while_a_snapshot_is_taken(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await running(driver)
        lab.faults.write_text(json.dumps({"PUT /snapshot/create": "die"}))
        taken = driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="a", include_memory=True))
        await refusal(taken, ErrorKind.UNAVAILABLE)
        lab.faults.unlink()
        # Its connection ends a moment before the process does.
        while lab.pids():
            await asyncio.sleep(0.01)
        assert await state(driver, web) == "Off"
        await power(driver, web, m.PowerOp.ON)


# --- files ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["copy", "create_disk"])
@run_by("play")
async def test_a_full_disk_is_a_quota_and_leaves_nothing(victim: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        with files.failures("write a disk"):
            raise OSError(errno.ENOSPC, "No space left on device")

    async with lab.driver() as driver:
        with monkeypatch.context() as patch:
            patch.setattr(files, victim, full)
            error = await refusal(driver.create(request(disks_json=disks(data=1))), ErrorKind.QUOTA_EXCEEDED)
            assert "full" in str(error)
            assert left(lab) == []
        assert (await driver.create(request(disks_json=disks(data=1)))).id


@run_by("play")
async def test_a_full_disk_spares_the_record_that_is_there(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request())).id

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            desired = payloads.encode(payloads.DesiredPayload(machine_class=payloads.ClassPayload(cpu=2, memory_mib=512)))
            await refusal(driver.reconfigure(m.ReconfigureRequest(id=web, desired_json=desired)), ErrorKind.QUOTA_EXCEEDED)
        (found,) = (await driver.list_vms(m.ListVMsRequest())).vms
        assert (found.cpu, found.memory_mib) == (1, 256)
        assert not list(lab.folder("web").glob(".*.new"))


@run_by("play")
async def test_a_damaged_record_is_trouble_and_not_a_missing_machine(lab: Lab) -> None:
    async with lab.driver() as driver:
        web, other = (await driver.create(request("web"))).id, (await driver.create(request("other"))).id
        (lab.folder("web") / "machine.json").write_text("{")
        await refusal(driver.describe(m.DescribeRequest(id=web)), ErrorKind.INTERNAL)
        await refusal(driver.delete(m.DeleteRequest(id=web)), ErrorKind.INTERNAL)
        await refusal(driver.create(request("web")), ErrorKind.INTERNAL)
        assert [each.id for each in (await driver.list_vms(m.ListVMsRequest())).vms] == [other]


@run_by("play")
async def test_a_machine_that_somebody_removed_does_not_exist(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request())).id
        files.discard(lab.folder("web"))
        assert not (await driver.describe(m.DescribeRequest(id=web))).exists
        again = (await driver.create(request())).id
        # Another machine of the name is another machine.
        assert again != web and not (await driver.describe(m.DescribeRequest(id=web))).exists


@run_by("play")
async def test_a_disk_that_somebody_removed_is_an_error_of_the_start(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request())).id
        (lab.folder("web") / "disks/root.raw").unlink()
        await refusal(driver.power(m.PowerRequest(id=web, op=m.PowerOp.ON)), ErrorKind.UNAVAILABLE)
        assert (await state(driver, web), lab.pids()) == ("Off", {})


@run_by("play")
async def test_an_imported_disk_is_given_back_by_a_create_that_fails(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab.driver() as driver:
        content = b"moved" * 1000
        (lab.directory / "disks/moved.raw").write_bytes(content)
        (lab.directory / "disks/moved.json").write_text('{"name": "moved", "size": 5000}')
        image = payloads.encode(payloads.ImagePayload(path="moved", format="qcow2"))
        with monkeypatch.context() as patch:
            patch.setattr(files, "create_disk", lambda *_, **__: (_ for _ in ()).throw(ProviderError(ErrorKind.QUOTA_EXCEEDED, "full")))
            await refusal(driver.create(request(image_json=image, disks_json=disks(data=1))), ErrorKind.QUOTA_EXCEEDED)
        assert (lab.directory / "disks/moved.raw").read_bytes()[:5000] == content
        web = (await driver.create(request(image_json=image))).id
        assert not (lab.directory / "disks/moved.raw").exists()
        assert (await driver.get_disk_info(m.GetDiskInfoRequest(vm_id=web))).virtual_size_bytes == 5000


# --- the host ---------------------------------------------------------------------------------------------------------------


@run_by("play")
async def test_without_kvm_validate_says_so_and_nothing_starts(lab: Lab) -> None:
    lab.kvm = "KVM on this host interprets instructions in software"
    async with lab.driver() as driver:
        found = await driver.validate(m.ValidateRequest())
        assert (found.ok, found.message) == (False, lab.kvm)
        web = (await driver.create(request())).id
        error = await refusal(driver.power(m.PowerRequest(id=web, op=m.PowerOp.ON)), ErrorKind.UNAVAILABLE)
        assert lab.kvm in str(error) and lab.pids() == {}


@run_by("play")
async def test_a_kvm_that_was_mended_is_found(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab.driver() as driver:
        lab.kvm = "KVM is gone"
        assert not (await driver.validate(m.ValidateRequest())).ok
        lab.kvm = ""
        assert not (await driver.validate(m.ValidateRequest())).ok
        monkeypatch.setattr("paddock_drivers.firecracker.host._AGAIN_SECONDS", 0.0)
    async with lab.driver() as driver:
        lab.kvm = "KVM is gone"
        assert not (await driver.validate(m.ValidateRequest())).ok
        lab.kvm = ""
        assert (await driver.validate(m.ValidateRequest())).ok


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("", "no program firecracker"),
        ("/no/such/file", "cannot be run"),
        ("/bin/true", "does not say its version"),
        ("old", "Firecracker 1.0.0 is too old"),
    ],
)
@run_by("play")
async def test_a_program_that_is_no_firecracker_is_named(program: str, text: str, lab: Lab) -> None:
    old = lab.place / "old"
    old.write_text("#!/bin/sh\necho Firecracker v1.0.0\n")
    old.chmod(0o755)
    async with lab.driver(program=str(old) if program == "old" else program) as driver:
        found = await driver.validate(m.ValidateRequest())
        assert not found.ok and text in found.message


@run_by("play")
async def test_a_bridge_that_is_not_there_refuses_the_machine(lab: Lab) -> None:
    networks = payloads.encode_list((payloads.NetworkPayload(name="lan", bridge="br9"),))
    async with lab.driver() as driver:
        await refusal(driver.create(request(networks_json=networks)), ErrorKind.CONFLICT)
        assert left(lab) == []


@run_by("play")
async def test_a_thousand_machines_are_listed(lab: Lab) -> None:
    async with lab.driver() as driver:
        made = (await driver.create(request("m0", networks_json=LAN))).id
        record = MicroVmFolder(lab.folder("m0")).read()
        assert record is not None
        for number in range(1, 1000):
            name = f"m{number}"
            folder = MicroVmFolder(lab.folder(name))
            folder.path.mkdir()
            folder.write(msgspec.structs.replace(record, name=name, token=f"{number:012x}", owner=f"uid-{name}"))
        await power(driver, made, m.PowerOp.ON)
        begin = asyncio.get_running_loop().time()
        listed = (await driver.list_vms(m.ListVMsRequest())).vms
        took = asyncio.get_running_loop().time() - begin
        assert len({each.id for each in listed}) == 1000
        assert [each.name for each in listed if each.power_state == "On"] == ["m0"]
        print(f"1,000 machines listed in {took * 1000:.0f} ms")
        assert took < 5
        # A create looks for its owner among all of them.
        assert (await driver.create(request("m999"))).id == f"m999/{999:012x}"


# --- hostile images ---------------------------------------------------------------------------------------------------------


def qcow2_with_backing(path: Path) -> None:
    """A qcow2 whose data is in another file of the host."""
    name = b"/etc/passwd"
    head = b"QFI\xfb" + (3).to_bytes(4, "big") + (512).to_bytes(8, "big") + len(name).to_bytes(4, "big") + (16).to_bytes(4, "big")
    head += (1 << 20).to_bytes(8, "big") + bytes(68) + (4).to_bytes(4, "big") + (104).to_bytes(4, "big")
    path.write_bytes(head.ljust(512, b"\0") + name + bytes(1 << 17))


@pytest.mark.parametrize("make", [qcow2_with_backing, lambda path: path.write_bytes(b"\x1f\x8b" + bytes(600))], ids=["backing", "packed"])
@run_by("play")
async def test_an_image_that_would_read_other_files_is_refused(make: Callable[[Path], None], lab: Lab) -> None:
    staged = lab.place / "staging/claim/disk.qcow2"
    staged.parent.mkdir()
    make(staged)
    async with lab.driver() as driver:
        asked = m.ImportDiskRequest(source_url="pvc://claim/disk.qcow2", format="qcow2", target_name="moved", backend_type="pvc")
        response = await driver.import_disk(asked)
        assert await done(driver, response.task) != ""
    assert left(lab) == []


@run_by("play")
async def test_an_administrators_image_stays(lab: Lab) -> None:
    async with lab.driver() as driver:
        await refusal(driver.image_delete(x.ImageDeleteRequest(image_id="conformance")), ErrorKind.CONFLICT)
        assert (lab.directory / "images/conformance/disk.raw").exists()

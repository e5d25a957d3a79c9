"""The effect of what machines ask for: the calls that a VMM gets, and what a guest finds."""

import json
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.firecracker.driver import FirecrackerDriver
from tests.coroutines import run_by
from tests.unit.drivers.firecracker.conftest import GIB, Lab, beginning, disks, power, request, state

LAN = payloads.NetworkPayload(name="lan-1", bridge="br0", mac_address="02:00:00:00:00:01", static_ip="10.0.0.5", prefix=24)


def body(lab: Lab, name: str, call: str) -> Any:
    """The body of the last call of a kind that a machine's VMM got."""
    line = [each for each in lab.calls(name) if each.startswith(f"{call} ")][-1]
    return json.loads(line.removeprefix(f"{call} "))


def desired(**changes: Any) -> payloads.DesiredPayload:
    return msgspec.structs.replace(payloads.DesiredPayload(machine_class=payloads.ClassPayload(cpu=1, memory_mib=256)), **changes)


async def reconfigure(driver: FirecrackerDriver, id: str, wanted: payloads.DesiredPayload) -> None:
    await driver.reconfigure(m.ReconfigureRequest(id=id, desired_json=payloads.encode(wanted)))


async def raw(driver: FirecrackerDriver, id: str) -> dict[str, str]:
    text = (await driver.describe(m.DescribeRequest(id=id))).provider_raw_json
    return msgspec.json.decode(text, type=dict[str, str])


@pytest.mark.spec("virtrigaud", 48, 50)
@run_by("play")
async def test_a_machine_gets_its_hardware_its_network_and_its_documents(lab: Lab) -> None:
    async with lab.driver() as driver:
        asked = request(
            networks_json=payloads.encode_list((LAN,)),
            disks_json=disks(data=2),
            user_data=b"#cloud-config\nhostname: web\n",
            cpu=2,
            extra={"firecracker.diskBandwidth": "1000000", "firecracker.vsock": "true", "firecracker.metrics": "true"},
            tags=("blue",),
        )
        web = (await driver.create(asked)).id
        await power(driver, web, m.PowerOp.ON)
        assert body(lab, "web", "PUT /machine-config") == {"vcpu_count": 2, "mem_size_mib": 256}
        card = body(lab, "web", "PUT /network-interfaces/lan_1")
        assert card["guest_mac"] == LAN.mac_address and lab.network.taps == {card["host_dev_name"]: ("br0", 0)}
        assert body(lab, "web", "PUT /mmds/config") == {"version": "V2", "network_interfaces": ["lan_1"]}
        assert body(lab, "web", "PUT /mmds")["latest"]["user-data"].startswith("#cloud-config")
        root, data = body(lab, "web", "PUT /drives/root"), body(lab, "web", "PUT /drives/data")
        assert root["is_root_device"] and not data["is_root_device"]
        assert data["rate_limiter"]["bandwidth"] == {"size": 1000000, "refill_time": 1000}
        assert body(lab, "web", "PUT /vsock")["guest_cid"] >= 3
        seed = (lab.folder("web") / "seed.iso").read_bytes()
        assert b"CD001" in seed and b"hostname: web" in seed and b"10.0.0.5/24" in seed
        assert (lab.folder("web") / "console.log").read_text().startswith("guest of web-")
        assert (await raw(driver, web))["tags"] == "blue"
        lab.network.neighbours = {LAN.mac_address: "10.0.0.5"}
        assert (await driver.describe(m.DescribeRequest(id=web))).ips == ("10.0.0.5",)


@pytest.mark.spec("virtrigaud", 42)
@run_by("play")
async def test_a_disk_grows_while_the_machine_runs(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request(disks_json=disks(data=1)))).id
        await power(driver, web, m.PowerOp.ON)
        pids = lab.pids()
        await reconfigure(driver, web, desired(disks=(payloads.DiskPayload(name="data", size_gib=3),)))
        assert body(lab, "web", "PATCH /drives/data") == {"drive_id": "data", "path_on_host": "disks/data.raw"}
        assert (lab.folder("web") / "root/disks/data.raw").stat().st_size == 3 * GIB
        assert lab.pids() == pids and "restartRequired" not in await raw(driver, web)


@pytest.mark.spec("virtrigaud", 41, 43)
@run_by("play")
async def test_what_needs_a_restart_waits_for_it_and_says_so(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request())).id
        await power(driver, web, m.PowerOp.ON)
        more = desired(machine_class=payloads.ClassPayload(cpu=4, memory_mib=1024), disks=(payloads.DiskPayload(name="data", size_gib=1),))
        await reconfigure(driver, web, more)
        (listed,) = (await driver.list_vms(m.ListVMsRequest())).vms
        assert (listed.cpu, listed.memory_mib, len(listed.disks)) == (1, 256, 1)
        assert (await raw(driver, web))["restartRequired"] == "true"
        await power(driver, web, m.PowerOp.REBOOT, seconds=5)
        (listed,) = (await driver.list_vms(m.ListVMsRequest())).vms
        assert (listed.cpu, listed.memory_mib, len(listed.disks)) == (4, 1024, 2)
        assert "restartRequired" not in await raw(driver, web)


@run_by("play")
async def test_less_memory_is_taken_by_the_balloon_until_the_next_start(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request(memory=1024))).id
        await power(driver, web, m.PowerOp.ON)
        await reconfigure(driver, web, desired())
        assert body(lab, "web", "PATCH /balloon") == {"amount_mib": 768}
        found = await raw(driver, web)
        assert (found["restartRequired"], found["balloonMiB"], found["memoryMiB"]) == ("true", "768", "1024")
        await reconfigure(driver, web, desired(machine_class=payloads.ClassPayload(cpu=1, memory_mib=1024)))
        assert body(lab, "web", "PATCH /balloon") == {"amount_mib": 0}
        assert "restartRequired" not in await raw(driver, web)


@pytest.mark.spec("virtrigaud", 121)
@run_by("play")
async def test_the_limits_of_a_card_change_while_it_runs(lab: Lab) -> None:
    async with lab.driver() as driver:
        limited = msgspec.structs.replace(LAN, qos=payloads.QosPayload(ingress_limit=8_000_000, egress_limit=16_000_000, dscp=4))
        web = (await driver.create(request(networks_json=payloads.encode_list((limited,))))).id
        await power(driver, web, m.PowerOp.ON)
        card = body(lab, "web", "PUT /network-interfaces/lan_1")
        assert (card["rx_rate_limiter"]["bandwidth"]["size"], card["tx_rate_limiter"]["bandwidth"]["size"]) == (1_000_000, 2_000_000)
        assert "DSCP" in (await raw(driver, web))["limitations"]
        await reconfigure(driver, web, desired(networks=(LAN,)))
        assert body(lab, "web", "PATCH /network-interfaces/lan_1")["rx_rate_limiter"] == {"bandwidth": {"size": 0, "refill_time": 0}}
        assert "restartRequired" not in await raw(driver, web)


@run_by("play")
async def test_a_detached_disk_keeps_its_data_and_comes_back(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request(disks_json=disks(data=1)))).id
        path = lab.folder("web") / "disks/data.raw"
        with open(path, "r+b") as file:
            file.write(b"kept")
        await reconfigure(driver, web, desired())
        (listed,) = (await driver.list_vms(m.ListVMsRequest())).vms
        assert [each.id for each in listed.disks] == ["root"] and (await raw(driver, web))["detachedDisks"] == "data"
        await reconfigure(driver, web, desired(disks=(payloads.DiskPayload(name="data", size_gib=2),)))
        assert beginning(path) == b"kept" and path.stat().st_size == 2 * GIB


@run_by("play")
async def test_a_snapshot_with_memory_goes_on_in_another_process(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request(networks_json=payloads.encode_list((LAN,))))).id
        await power(driver, web, m.PowerOp.ON)
        taken = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="warm", include_memory=True))
        again = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="warm", include_memory=True))
        assert taken.snapshot_id == again.snapshot_id
        await power(driver, web, m.PowerOp.OFF)
        await driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=web, snapshot_id=taken.snapshot_id))
        assert await state(driver, web) == "On"
        calls = [line.split(" ", 2)[:2] for line in lab.calls("web") if not line.startswith("GET")]
        assert calls[:3] == [["PUT", "/snapshot/load"], ["PUT", "/mmds"], ["PATCH", "/vm"]]


@run_by("play")
async def test_memory_of_a_machine_that_is_off_is_refused(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request())).id
        with pytest.raises(ProviderError, match="has no memory to keep") as caught:
            await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="warm", include_memory=True))
        assert caught.value.kind is ErrorKind.CONFLICT


@run_by("play")
async def test_a_clone_of_a_snapshot_has_the_disks_of_then_and_its_own_identity(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = (await driver.create(request(networks_json=payloads.encode_list((LAN,)), user_data=b"#cloud-config\n"))).id
        taken = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="then"))
        (lab.folder("web") / "disks/root.raw").write_bytes(b"now")
        customize = json.dumps({"snapshotId": taken.snapshot_id, "hostname": "twin-host"})
        clone = m.CloneRequest(source_vm_id=web, target_name="twin", customize_json=customize, class_json='{"CPU": 3, "MemoryMiB": 512}')
        twin = (await driver.clone(clone)).target_vm_id
        found = {each.id: each for each in (await driver.list_vms(m.ListVMsRequest())).vms}[twin]
        assert (found.cpu, found.memory_mib) == (3, 512) and found.networks[0].mac != LAN.mac_address
        assert beginning(lab.folder("twin") / "disks/root.raw") == b"boot"
        seed = (lab.folder("twin") / "seed.iso").read_bytes()
        assert b"twin-host" in seed and b"10.0.0.5" not in seed
        # Its source may go.
        await driver.delete(m.DeleteRequest(id=web))
        assert (await driver.clone(clone)).target_vm_id == twin


REFUSED: tuple[tuple[dict[str, Any], ErrorKind, str], ...] = (
    ({"extra": {"firecracker.unknown": "1"}}, ErrorKind.INVALID_SPEC, "unknown key"),
    ({"extra": {"firecracker.vsock": "yes"}}, ErrorKind.INVALID_SPEC, '"true" or "false"'),
    ({"extra": {"firecracker.kernel": "none"}}, ErrorKind.NOT_FOUND, "no kernel none"),
    ({"extra": {"firecracker.kernel": "../kernels/vmlinux"}}, ErrorKind.INVALID_SPEC, "kernel's name"),
    ({"extra": {"firecracker.kernel": "/etc/passwd"}}, ErrorKind.NOT_SUPPORTED, "out of reach"),
    ({"extra": {"firecracker.bootArgs": "a\nb"}}, ErrorKind.INVALID_SPEC, "command line"),
    ({"cpu": 33}, ErrorKind.INVALID_SPEC, "32 at most"),
    ({"image_json": '{"Path": "/etc/shadow"}'}, ErrorKind.NOT_SUPPORTED, "out of reach"),
    ({"image_json": '{"Path": "../images/conformance"}'}, ErrorKind.INVALID_SPEC, "image's name"),
    ({"image_json": '{"TemplateName": "gone"}'}, ErrorKind.NOT_FOUND, "no image gone"),
    ({"image_json": "null"}, ErrorKind.INVALID_SPEC, "no image"),
    ({"networks_json": '[{"Name": "lan"}]'}, ErrorKind.INVALID_SPEC, "names no bridge"),
    ({"networks_json": '[{"Name": "lan", "Bridge": "br0", "VLAN": 7}]'}, ErrorKind.NOT_SUPPORTED, "VLAN"),
    ({"networks_json": '[{"Name": "lan", "Bridge": "../x"}]'}, ErrorKind.INVALID_SPEC, "no bridge"),
    ({"disks_json": '[{"Name": "root", "SizeGiB": 1}]'}, ErrorKind.INVALID_SPEC, '"root" or "seed"'),
)


@pytest.mark.parametrize(("changes", "kind", "text"), REFUSED, ids=[each[2] for each in REFUSED])
@run_by("play")
async def test_what_cannot_be_is_refused_and_makes_nothing(changes: dict[str, Any], kind: ErrorKind, text: str, lab: Lab) -> None:
    async with lab.driver() as driver:
        with pytest.raises(ProviderError, match=text) as caught:
            await driver.create(request(**changes))
        assert caught.value.kind is kind
        assert (await driver.list_vms(m.ListVMsRequest())).vms == ()


@run_by("play")
async def test_a_class_that_asks_for_more_than_there_is_has_limitations(lab: Lab) -> None:
    hardware = payloads.ClassPayload(
        cpu=1,
        memory_mib=256,
        firmware="UEFI",
        guest_tools_policy="upgrade",
        resource_limits=payloads.LimitsPayload(cpu_limit=1000),
        performance_profile=payloads.PerformancePayload(nested_virtualization=True),
        security_profile=payloads.SecurityPayload(tpm_enabled=True),
        extra_config={"vsphere.hardwareVersion": "19"},
    )
    async with lab.driver() as driver:
        placement = payloads.encode(payloads.PlacementPayload(host="a", datastore="b"))
        web = (await driver.create(request(class_json=payloads.encode(hardware), placement_json=placement))).id
        found = json.loads((await raw(driver, web))["limitations"])
        words = (
            "firmware",
            "guestToolsPolicy",
            "resourceLimits",
            "performanceProfile",
            "securityProfile",
            "vsphere",
            "host",
            "datastore",
        )
        assert [any(word in text for text in found) for word in words] == [True] * len(words)


@pytest.mark.spec("virtrigaud", 120)
@run_by("play")
async def test_encryption_that_is_demanded_is_refused(lab: Lab) -> None:
    profile = payloads.SecurityPayload(require_encryption=True)
    hardware = payloads.encode(payloads.ClassPayload(cpu=1, memory_mib=256, security_profile=profile))
    async with lab.driver() as driver:
        with pytest.raises(ProviderError, match="cannot be encrypted"):
            await driver.create(request(class_json=hardware))


@run_by("play")
async def test_documents_that_are_too_large_for_the_metadata_service_are_on_the_disk_alone(lab: Lab) -> None:
    # Each line break takes two bytes in the metadata service.
    large = b"#cloud-config\n" + b"\n" * 30_000
    async with lab.driver() as driver:
        web = (await driver.create(request(user_data=large, networks_json=payloads.encode_list((LAN,))))).id
        await power(driver, web, m.PowerOp.ON)
        assert "user-data" not in body(lab, "web", "PUT /mmds")["latest"]
        assert large in (lab.folder("web") / "seed.iso").read_bytes()
        assert "too large" in (await raw(driver, web))["limitations"]


@run_by("play")
async def test_an_image_brings_its_kernel_and_an_administrators_file_is_taken(lab: Lab) -> None:
    own = lab.directory / "images/conformance"
    (own / "kernel").write_bytes(b"own kernel")
    (own / "initrd").write_bytes(b"own initrd")
    (lab.place / "files").mkdir()
    (lab.place / "files/disk.raw").write_bytes(b"file" * 1024)
    async with lab.driver(files=(lab.place / "files",)) as driver:
        web = (await driver.create(request())).id
        await power(driver, web, m.PowerOp.ON)
        assert (lab.folder("web") / "root/kernel").read_bytes() == b"own kernel"
        assert body(lab, "web", "PUT /boot-source")["initrd_path"] == "initrd"
        image = payloads.encode(payloads.ImagePayload(path=f"{lab.place}/files/disk.raw", format="raw"))
        asked = request("other", image_json=image, extra={"firecracker.bootArgs": "console=ttyS0 root=/dev/vda1"})
        other = (await driver.create(asked)).id
        await power(driver, other, m.PowerOp.ON)
        assert beginning(lab.folder("other") / "disks/root.raw") == b"file"
        # The guest's own command line says what is mounted.
        assert not body(lab, "other", "PUT /drives/root")["is_root_device"]

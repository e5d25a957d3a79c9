"""The desired state of a machine: what reaches it while it runs, what waits for a restart, and what is refused."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played
from tests.kit.engine.fakehost import GIB, machine
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, HARDWARE, IMAGE, Target

COLD = msgspec.structs.replace(HARDWARE, performance_profile=None)


def desired(hardware: p.ClassPayload = HARDWARE, **more: Any) -> str:
    return p.encode(p.DesiredPayload(name="web", machine_class=hardware, image=IMAGE, **more))


async def changed(target: Target, vm_id: str, hardware: p.ClassPayload = HARDWARE, **more: Any) -> None:
    answer = await target.driver.reconfigure(m.ReconfigureRequest(id=vm_id, desired_json=desired(hardware, **more)))
    assert await target.ends(answer.task) == ""


async def claim(target: Target, name: str) -> dict[str, Any]:
    return dict((await target.host.api.get(f"{EVERYTHING[3]}/{name}")).data)


def sized(hardware: p.ClassPayload, cpu: int, memory: int) -> p.ClassPayload:
    return msgspec.structs.replace(hardware, cpu=cpu, memory_mib=memory)


@played
async def test_processors_and_memory_are_plugged_in(target: Target, /) -> None:
    vm_id = await target.running()
    ran = await target.host.running()
    await changed(target, vm_id, sized(HARDWARE, 4, 2048))
    assert (ran.observed.sockets, ran.observed.memory) == (4, 2 * GIB) and (await target.host.running()).id == ran.id
    told = await target.details(vm_id)
    assert (told["cpus"], told["memoryMiB"], told["restartRequired"]) == ("4", "2048", "false")


@played
async def test_what_waits_for_a_restart_is_told_with_the_size_that_the_guest_has(target: Target, /) -> None:
    vm_id = await target.running(hardware=COLD)
    await changed(target, vm_id, sized(COLD, 4, 2048))
    told = await target.details(vm_id)
    assert (told["cpus"], told["memoryMiB"]) == ("2", "1024") and told["restartRequired"] == "true" and told["restartReason"]
    assert (told["desiredCPUs"], told["desiredMemoryMiB"]) == ("4", "2048")
    listed = (await target.driver.list_vms(m.ListVMsRequest())).vms[0]
    assert (listed.cpu, listed.memory_mib) == (2, 1024)
    assert await target.power(vm_id, m.PowerOp.REBOOT) == ""
    told = await target.details(vm_id)
    assert (told["cpus"], told["memoryMiB"], told["restartRequired"]) == ("4", "2048", "false")


@played
async def test_less_waits_for_a_restart(target: Target, /) -> None:
    vm_id = await target.running()
    await changed(target, vm_id, sized(HARDWARE, 1, 1024))
    told = await target.details(vm_id)
    assert (told["cpus"], told["restartRequired"]) == ("2", "true")


@played
async def test_the_same_state_again_writes_nothing(target: Target, /) -> None:
    networks = (p.NetworkPayload(name="lan", bridge="br0"),)
    disks = (p.DiskPayload(name="data", size_gib=1, type="thin"),)
    vm_id = await target.running(networks=networks, disks=disks, tags=("red",))
    await asyncio.sleep(30)
    before = (await target.host.vm())["metadata"]["resourceVersion"]
    for _ in range(2):
        await changed(target, vm_id, networks=networks, disks=disks, tags=("red",))
    assert (await target.host.vm())["metadata"]["resourceVersion"] == before


async def sizes(target: Target, vm_id: str) -> dict[str, int]:
    """The bytes that the guest has of each disk."""
    return {each["name"]: each["size"] for each in json.loads((await target.details(vm_id))["disks"])}


@played
async def test_disks_grow_while_the_machine_is_off(target: Target, /) -> None:
    vm_id = await target.made(disks=(p.DiskPayload(name="data", size_gib=1, type="thin"),))
    assert await sizes(target, vm_id) == {"rootdisk": 2 * GIB, "data": GIB}
    larger = msgspec.structs.replace(HARDWARE, disk_defaults=p.DiskDefaultsPayload(size_gib=4))
    for _ in range(2):
        # The second time there is nothing to do, whoever asks.
        await changed(target, vm_id, larger, disks=(p.DiskPayload(name="data", size_gib=3, type="thin"),))
        target.again()
        assert await sizes(target, vm_id) == {"rootdisk": 4 * GIB, "data": 3 * GIB}
        for name, size in (("web-rootdisk", 4), ("web-data", 3)):
            assert target.host.engine.volumes.volumes[(await claim(target, name))["metadata"]["uid"]].size == size * GIB


@played
async def test_disks_grow_while_the_machine_runs(target: Target, /) -> None:
    vm_id = await target.running(disks=(p.DiskPayload(name="data", size_gib=1, type="thin"),))
    ran = await target.host.running()
    ran.observe(disks={name: msgspec.structs.replace(state, size=GIB) for name, state in ran.observed.disks.items()})
    text = desired(disks=(p.DiskPayload(name="data", size_gib=3, type="thin"),))
    answer = await target.driver.reconfigure(m.ReconfigureRequest(id=vm_id, desired_json=text))
    assert answer.task is not None
    assert await target.ends(answer.task) == "" and ran.observed.disks["data"].size == 3 * GIB
    assert (await sizes(target, vm_id)) == {"rootdisk": 2 * GIB, "data": 3 * GIB}


@played
async def test_a_disk_does_not_shrink_and_nothing_else_is_changed_then(target: Target, /) -> None:
    vm_id = await target.running(disks=(p.DiskPayload(name="data", size_gib=2, type="thin"),))
    before = (await target.host.vm())["metadata"]["resourceVersion"]
    text = desired(sized(HARDWARE, 4, 2048), disks=(p.DiskPayload(name="data", size_gib=1, type="thin"),))
    with pytest.raises(ProviderError, match="disk data of machine web cannot shrink: it has 2 GiB") as error:
        await target.driver.reconfigure(m.ReconfigureRequest(id=vm_id, desired_json=text))
    assert error.value.kind is ErrorKind.INVALID_SPEC
    assert (await target.host.vm())["metadata"]["resourceVersion"] == before
    # A smaller default of the class is no wish to shrink the root disk.
    smaller = msgspec.structs.replace(HARDWARE, disk_defaults=p.DiskDefaultsPayload(size_gib=1))
    await changed(target, vm_id, smaller, disks=(p.DiskPayload(name="data", size_gib=2, type="thin"),))


@played
async def test_a_claim_that_cannot_grow_is_refused(target: Target, /) -> None:
    classes = (await target.host.api.get("/apis/storage.k8s.io/v1/storageclasses")).data["items"]
    name = classes[0]["metadata"]["name"]
    await target.host.api.merge(f"/apis/storage.k8s.io/v1/storageclasses/{name}", {"allowVolumeExpansion": False})
    vm_id = await target.made()
    larger = msgspec.structs.replace(HARDWARE, disk_defaults=p.DiskDefaultsPayload(size_gib=4))
    with pytest.raises(ProviderError, match=f"StorageClass {name} does not allow it") as error:
        await target.driver.reconfigure(m.ReconfigureRequest(id=vm_id, desired_json=desired(larger)))
    assert error.value.kind is ErrorKind.NOT_SUPPORTED


@pytest.mark.parametrize("runs", [False, True], ids=["off", "on"])
@played
async def test_a_disk_comes_and_goes_and_keeps_its_data(target: Target, /, runs: bool) -> None:
    vm_id = await (target.running if runs else target.made)()
    more = (p.DiskPayload(name="more", size_gib=1, type="thin"),)
    await changed(target, vm_id, disks=more)
    await asyncio.sleep(20)
    if runs:
        assert {each.name for each in (await target.host.running()).config.disks} == {"rootdisk", "more"}
        assert (await target.details(vm_id))["restartRequired"] == "false"
    assert "web-more" in (await target.names(EVERYTHING[3]))["persistentvolumeclaims"]
    await changed(target, vm_id)
    await asyncio.sleep(20)
    spec = (await target.host.vm())["spec"]
    assert [each["name"] for each in spec["template"]["spec"]["volumes"]] == ["rootdisk"]
    if runs:
        assert {each.name for each in (await target.host.running()).config.disks} == {"rootdisk"}
    assert "web-more" in (await target.names(EVERYTHING[3]))["persistentvolumeclaims"]
    # What is detached still goes with the machine.
    await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task)
    await asyncio.sleep(20)
    assert (await target.names(EVERYTHING[3])) == {"persistentvolumeclaims": []}


@played
async def test_disks_of_an_adopted_machine_stay(target: Target, /) -> None:
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": name}, "spec": {"source": {"blank": {}}, "storage": storage}} for name in ("root", "old")]
    volumes = [{"name": name, "dataVolume": {"name": name}} for name in ("root", "old")]
    await target.host.make(machine(strategy="Halted", volumes=volumes, templates=templates))
    await asyncio.sleep(20)
    vm_id = f"web/{(await target.host.vm())['metadata']['uid']}"
    await changed(target, vm_id, sized(HARDWARE, 2, 512))
    spec = (await target.host.vm())["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["volumes"]] == ["root", "old"]
    assert spec["domain"]["memory"]["guest"] == "512Mi" and spec["domain"]["cpu"]["sockets"] == 2


@played
async def test_cards_of_an_adopted_machine_stay(target: Target, /) -> None:
    cards = [{"name": "one", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}, {"name": "two", "bridge": {}}]
    networks = [{"name": "one", "pod": {}}, {"name": "two", "multus": {"networkName": "lan"}}]
    await target.host.make(machine("alien", "Halted", domain={"devices": {"interfaces": cards}}, networks=networks))
    vm_id = (await target.driver.list_vms(m.ListVMsRequest())).vms[0].id
    before = (await target.host.vm("alien"))["spec"]["template"]["spec"]
    await changed(target, vm_id, sized(HARDWARE, 3, 512))
    after = (await target.host.vm("alien"))["spec"]["template"]["spec"]
    told = await target.details(vm_id)
    assert (told["cpus"], told["memoryMiB"]) == ("3", "512")
    assert after["domain"]["devices"] == before["domain"]["devices"] and after["networks"] == before["networks"]


@played
async def test_networks_tags_and_documents_follow(target: Target, /) -> None:
    vm_id = await target.made(user_data=b"#cloud-config\n", networks=(p.NetworkPayload(name="lan"),))
    await changed(
        target,
        vm_id,
        networks=(p.NetworkPayload(name="lan"), p.NetworkPayload(name="back", bridge="br1")),
        user_data=p.UserDataPayload(cloud_init_data="#cloud-config\nhostname: other\n"),
        tags=("new",),
    )
    vm = await target.host.vm()
    spec = vm["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["networks"]] == ["lan", "back"]
    assert [each["name"] for each in spec["domain"]["devices"]["interfaces"]] == ["lan", "back"]
    assert json.loads(vm["metadata"]["annotations"]["virtrigaud.io/tags"]) == ["new"]
    assert (await target.names(EVERYTHING[5]))["network-attachment-definitions"] == ["web-back-libvirt"]
    secret = (await target.host.api.get(f"{EVERYTHING[4]}/web-userdata")).data
    assert "b3RoZXI" in secret["data"]["userdata"]
    assert await target.power(vm_id, m.PowerOp.ON) == ""


@played
async def test_what_a_machine_keeps_is_named(target: Target, /) -> None:
    vm_id = await target.made()
    other = msgspec.structs.replace(HARDWARE, firmware="UEFI", security_profile=p.SecurityPayload(tpm_enabled=True, vtd_enabled=True))
    await changed(target, vm_id, other, user_data=p.UserDataPayload(cloud_init_data="#cloud-config\n"))
    told = json.loads((await target.details(vm_id))["limitations"])
    assert any(each.startswith("Class.Firmware:") for each in told) and any("vtdEnabled" in each for each in told)
    assert any(each.startswith("UserData:") for each in told)
    assert any(each.startswith("Class.SecurityProfile.TPMEnabled:") for each in told)
    assert "bios" in (await target.host.vm())["spec"]["template"]["spec"]["domain"]["firmware"]["bootloader"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{", ErrorKind.INVALID_SPEC),
        ("{}", ErrorKind.INVALID_SPEC),
        (desired(msgspec.structs.replace(HARDWARE, security_profile=p.SecurityPayload(require_encryption=True))), ErrorKind.NOT_SUPPORTED),
    ],
)
@played
async def test_a_state_that_makes_no_sense_is_refused(target: Target, /, text: str, kind: ErrorKind) -> None:
    vm_id = await target.made()
    with pytest.raises(ProviderError) as error:
        await target.driver.reconfigure(m.ReconfigureRequest(id=vm_id, desired_json=text))
    assert error.value.kind is kind

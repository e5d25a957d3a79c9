"""Clones: machines of their own, off, once, and as they are asked for."""

import asyncio
import json
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played
from tests.kit.engine.fakehost import machine
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, Target

DOCUMENT = b"#cloud-config\npassword: secret\n"


async def cloned(target: Target, vm_id: str, **more: Any) -> str:
    request = m.CloneRequest(source_vm_id=vm_id, target_name="twin", **more)
    answer = await target.driver.clone(request)
    assert await target.ends(answer.task) == ""
    target.again()
    # Asked again it is the same clone.
    assert (await target.driver.clone(request)).target_vm_id == answer.target_vm_id
    return answer.target_vm_id


@pytest.mark.parametrize("runs", [False, True], ids=["off", "on"])
@played
async def test_a_clone_is_off_and_outlives_its_source(target: Target, /, runs: bool) -> None:
    vm_id = await (target.running if runs else target.made)(user_data=DOCUMENT)
    twin = await cloned(target, vm_id)
    await asyncio.sleep(60)
    seen = await target.seen(twin)
    assert (seen.exists, seen.power_state) == (True, "Off")
    vm = await target.host.vm("twin")
    assert "virtrigaud.io/owner-uid" not in vm["metadata"]["labels"] and "virtrigaud.io/owner" not in vm["metadata"]["annotations"]
    await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task)
    await asyncio.sleep(30)
    # Its disk and its document are its own.
    assert (await target.names(EVERYTHING[4])) == {"secrets": ["twin-userdata"]}
    assert await target.power(twin, m.PowerOp.ON) == ""
    await target.ends((await target.driver.delete(m.DeleteRequest(id=twin))).task)
    await asyncio.sleep(30)
    assert not any((await target.names(*EVERYTHING)).values())


@played
async def test_two_targets_of_one_name_do_not_get_one_machine(target: Target, /) -> None:
    vm_id = await target.made()
    one, other = (m.ObjectIdentity(namespace=each, name="twin") for each in ("team", "rest"))
    twin = await cloned(target, vm_id, target_vm=one)
    with pytest.raises(ProviderError) as error:
        await target.driver.clone(m.CloneRequest(source_vm_id=vm_id, target_name="twin", target_vm=other))
    assert error.value.kind is ErrorKind.CONFLICT and (await target.seen(twin)).exists
    # A clone of the clone is nobody's yet.
    again = m.CloneRequest(source_vm_id=twin, target_name="third", target_vm=other)
    assert await target.ends((await target.driver.clone(again)).task) == ""


@played
async def test_a_clone_is_found_again_after_its_source_is_gone(target: Target, /) -> None:
    """Whoever lost the answer can still remove the machine; a stranger gets nothing."""
    vm_id = await target.made()
    one, other = (m.ObjectIdentity(namespace=each, name="twin") for each in ("team", "rest"))
    twin = await cloned(target, vm_id, target_vm=one)
    assert await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task) == ""
    await asyncio.sleep(30)
    again = await target.driver.clone(m.CloneRequest(source_vm_id=vm_id, target_name="twin", target_vm=one))
    assert again == m.CloneResponse(target_vm_id=twin)
    for name, whose in (("twin", other), ("third", one)):
        with pytest.raises(ProviderError) as error:
            await target.driver.clone(m.CloneRequest(source_vm_id=vm_id, target_name=name, target_vm=whose))
        assert error.value.kind is ErrorKind.NOT_FOUND


@played
async def test_a_snapshot_is_cloned(target: Target, /) -> None:
    vm_id = await target.made(disks=(p.DiskPayload(name="data", size_gib=1),))
    kept = await target.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm_id, name_hint="kept"))
    assert await target.ends(kept.task) == ""
    twin = await cloned(target, vm_id, customize_json=json.dumps({"snapshotId": kept.snapshot_id}))
    wish = (await target.host.api.get("/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones")).data["items"]
    assert not wish or wish[0]["spec"]["source"]["kind"] == "VirtualMachineSnapshot"
    assert await target.power(twin, m.PowerOp.ON) == ""
    for strange in ("kept/none", "kept"):
        request = m.CloneRequest(source_vm_id=vm_id, target_name="third", customize_json=json.dumps({"snapshotId": strange}))
        with pytest.raises(ProviderError) as error:
            await target.driver.clone(request)
        assert error.value.kind is ErrorKind.NOT_FOUND


@played
async def test_a_clone_is_customized(target: Target, /) -> None:
    nic = p.NetworkPayload(name="lan", bridge="br0", static_ip="10.0.0.5")
    vm_id = await target.made(user_data=DOCUMENT, networks=(nic,))
    customize = {
        "hostname": "other",
        "networks": [{"name": "lan", "ipAddress": "10.0.0.9", "subnetMask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["1.1.1.1"]}],
        "userData": {"cloudInit": {"inline": "#cloud-config\nhostname: other\n"}},
        "timeZone": "UTC",
    }
    twin = await cloned(target, vm_id, class_json=json.dumps({"cpu": 4, "memory": "2Gi"}), customize_json=json.dumps(customize))
    vm = await target.host.vm("twin")
    spec = vm["spec"]["template"]["spec"]
    assert spec["hostname"] == "other" and spec["domain"]["memory"]["guest"] == "2048Mi"
    told = await target.details(twin)
    assert (told["cpus"], told["memoryMiB"]) == ("4", "2048") and "timeZone" in told["limitations"]
    volume = next(each["cloudInitNoCloud"] for each in spec["volumes"] if "cloudInitNoCloud" in each)
    assert volume["secretRef"] == {"name": "twin-custom-userdata"}
    assert "10.0.0.9/24" in volume["networkData"] and "10.0.0.5" not in volume["networkData"]
    mac = spec["domain"]["devices"]["interfaces"][0]["macAddress"]
    assert mac in volume["networkData"]
    source = (await target.host.vm())["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]["macAddress"]
    assert mac != source
    assert await target.power(twin, m.PowerOp.ON) == ""


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"linked": True}, ErrorKind.NOT_SUPPORTED),
        ({"customize_json": '{"sysprep": {"enabled": true}}'}, ErrorKind.NOT_SUPPORTED),
        ({"customize_json": '{"guestCommands": [{"command": "ls"}]}'}, ErrorKind.NOT_SUPPORTED),
        ({"customize_json": '{"userData": {"cloudInit": {"secretRef": {"name": "a"}}}}'}, ErrorKind.NOT_SUPPORTED),
        ({"customize_json": '{"hostname": "No Name"}'}, ErrorKind.INVALID_SPEC),
        ({"customize_json": '{"networks": [{"name": "a", "subnetMask": "255.0.255.0"}]}'}, ErrorKind.INVALID_SPEC),
        ({"customize_json": "[]"}, ErrorKind.INVALID_SPEC),
        ({"class_json": '{"CPU": 1}'}, ErrorKind.INVALID_SPEC),
        ({"target_name": "No_Name"}, ErrorKind.INVALID_SPEC),
        ({"target_name": "alien"}, ErrorKind.CONFLICT),
        ({"source_vm_id": "web/gone"}, ErrorKind.NOT_FOUND),
    ],
)
@played
async def test_refusals(target: Target, /, more: dict[str, object], kind: ErrorKind) -> None:
    vm_id = await target.made()
    await target.host.make(machine("alien", "Halted"))
    with pytest.raises(ProviderError) as error:
        await target.driver.clone(m.CloneRequest(**{"source_vm_id": vm_id, "target_name": "twin", **more}))  # type: ignore[arg-type]
    assert error.value.kind is kind
    assert (await target.names(EVERYTHING[0])) == {"virtualmachines": ["alien", "web"]}

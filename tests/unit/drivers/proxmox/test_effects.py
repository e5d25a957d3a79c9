"""The effect of each member of a request at the cluster."""

import json
from typing import Any

import msgspec
import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ClassPayload, DiskPayload, NetworkPayload, PlacementPayload
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.unit.drivers.proxmox.conftest import IMAGE_URL, TEMPLATE, Stage, add_template, play, staged

HOT = p.PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True)


def desired(cpu: int = 1, memory: int = 1024, **more: Any) -> str:
    hardware = ClassPayload(cpu=cpu, memory_mib=memory, **more.pop("hardware", {}))
    return p.encode(p.DesiredPayload(name="web", machine_class=hardware, **more))


async def reconfigure(stage: Stage, vm: str, text: str) -> str:
    answer = await stage.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=text))
    return await stage.finish(answer.task)


async def refused(call: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


def image(stage: Stage, hardware: ClassPayload | None = None, **changes: Any) -> m.CreateRequest:
    """A create from an address."""
    return stage.request(
        image_json=p.encode(p.ImagePayload(url=IMAGE_URL, format="qcow2")),
        class_json=p.encode(hardware or ClassPayload(cpu=1, memory_mib=1024)),
        **changes,
    )


# --- create -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 120, 119, 145, 146, 148)
@played_by(play)
async def test_a_machine_from_an_image_has_the_hardware_of_its_class(stage: Stage, /) -> None:
    hardware = ClassPayload(
        cpu=2,
        memory_mib=2048,
        firmware="UEFI",
        disk_defaults=p.DiskDefaultsPayload(size_gib=8),
        security_profile=p.SecurityPayload(secure_boot=True, tpm_enabled=True, tpm_version="2.0", vtd_enabled=True),
        performance_profile=p.PerformancePayload(nested_virtualization=True),
        extra_config={"proxmox.onboot": "1"},
    )
    conf = stage.conf(await stage.make(image(stage, hardware)))
    assert (conf["cores"], conf["memory"], conf["bios"], conf["cpu"], conf["onboot"]) == ("2", "2048", "ovmf", "host", "1")
    assert conf["machine"] == "q35,viommu=intel" and "pre-enrolled-keys=1" in conf["efidisk0"] and "version=v2.0" in conf["tpmstate0"]
    assert "size=8G" in conf["scsi0"] and conf["boot"] == "order=scsi0" and conf["net0"].endswith("bridge=vmbr0")


@played_by(play)
async def test_a_machine_without_an_image_is_empty_and_boots_from_the_network(stage: Stage, /) -> None:
    hardware = ClassPayload(cpu=1, memory_mib=1024, disk_defaults=p.DiskDefaultsPayload(size_gib=3))
    conf = stage.conf(await stage.make(stage.request(image_json="", class_json=p.encode(hardware))))
    assert "size=3G" in conf["scsi0"] and conf["boot"] == "order=scsi0;net0"


@pytest.mark.spec("virtrigaud", 50)
@played_by(play)
async def test_networks_tags_and_addresses_reach_the_machine(stage: Stage, /) -> None:
    cards = (
        NetworkPayload(name="a", bridge="vmbr1", vlan=7, mac_address="BC:24:11:AA:BB:01", static_ip="10.0.0.5", gateway="10.0.0.1"),
        NetworkPayload(name="b", model="e1000", qos=p.QosPayload(ingress_limit=8 << 20, egress_limit=8 << 20)),
    )
    conf = stage.conf(await stage.make(stage.request(networks_json=p.encode_list(cards), tags=("Prod", "team=shop"))))
    assert conf["net0"] == "virtio=BC:24:11:AA:BB:01,bridge=vmbr1,tag=7"
    assert conf["net1"].startswith("e1000=BC:24:11:") and conf["net1"].endswith("bridge=vmbr0,rate=1")
    assert (conf["ipconfig0"], conf["ipconfig1"]) == ("ip=10.0.0.5/24,gw=10.0.0.1", "ip=dhcp")
    assert {"prod", "team-shop"} <= set(conf["tags"].split(";"))


@pytest.mark.spec("virtrigaud", 48, 49)
@played_by(play)
async def test_documents_are_on_a_disk_that_goes_with_the_machine(stage: Stage, /) -> None:
    document = b"#cloud-config\nruncmd: [reboot]\n"
    card = NetworkPayload(name="a", static_ip="10.0.0.5")
    request = stage.request(user_data=document, meta_data=b"local-hostname: shop\n", networks_json=p.encode_list((card,)))
    vm = await stage.make(request)
    slot = stage.conf(vm)["ide2"]
    assert slot.endswith("media=cdrom") or "media=cdrom" in slot
    volume = next(each for each in stage.simulator.cluster.volumes.values() if each.kind == "iso")
    assert volume.volid in slot and volume.file is not None
    assert document in volume.file and b"local-hostname: shop" in volume.file and b"10.0.0.5/24" in volume.file
    assert stage.conf(vm)["net0"].split(",")[0].partition("=")[2].lower().encode() in volume.file
    assert await stage.finish((await stage.driver.delete(m.DeleteRequest(id=vm))).task) == ""
    assert not [each for each in stage.simulator.cluster.volumes.values() if each.kind == "iso" or each.vmid not in (0, TEMPLATE)]


@played_by(play)
async def test_documents_without_a_storage_for_them_are_refused(stage: Stage, /) -> None:
    for each in stage.simulator.cluster.storages.values():
        each.content = tuple(kind for kind in each.content if kind != "iso")
    answer = await stage.driver.create(stage.request(user_data=b"#!/bin/sh\n"))
    assert 'no storage of node pve1 takes "iso"' in await stage.finish(answer.task)


@pytest.mark.spec("virtrigaud", 45)
@played_by(play, nodes=("pve1", "pve2"))
async def test_placement_chooses_node_storage_and_pool(stage: Stage, /) -> None:
    stage.admin.post("/pools", poolid="shop")
    place = PlacementPayload(datastore="shared", host="pve2", resource_pool="shop", folder="f", cluster="c")
    vm = await stage.make(image(stage, placement_json=p.encode(place)))
    machine = stage.simulator.machine(int(vm.partition("/")[0]))
    assert (machine.node, machine.pool) == ("pve2", "shop") and machine.conf["scsi0"].startswith("shared:")
    assert len(json.loads((await stage.raw(vm))["limitations"])) == 2
    for wrong in (PlacementPayload(datastore="nowhere"), PlacementPayload(host="pve9")):
        error = await refused(stage.driver.create(image(stage, name="other", placement_json=p.encode(wrong))))
        assert error.kind is ErrorKind.INVALID_SPEC


@played_by(play, nodes=("pve1", "pve2", "pve3"))
async def test_a_machine_goes_where_the_memory_is(stage: Stage, /) -> None:
    stage.simulator.cluster.nodes["pve2"].memory *= 2
    stage.simulator.cluster.nodes["pve3"].memory *= 4
    stage.simulator.cluster.nodes["pve3"].online = False
    vm = await stage.make(image(stage))
    assert stage.simulator.machine(int(vm.partition("/")[0])).node == "pve2"


@pytest.mark.parametrize("full", [True, False])
@run_by(virtualtime.run)
async def test_a_template_is_found_by_number_or_name_and_copied_or_linked(full: bool) -> None:
    async with staged(full_clones=full) as stage:
        for name, template in (("a", str(TEMPLATE)), ("b", "conformance")):
            vm = await stage.make(stage.request(name, image_json=p.encode(p.ImagePayload(template_name=template))))
            volume = stage.simulator.cluster.volume(stage.conf(vm)["scsi0"].partition(",")[0], "pve1")
            assert volume is not None and bool(volume.parent) is not full
        for wrong in ("nowhere", "99999"):
            error = await refused(stage.driver.create(stage.request("c", image_json=p.encode(p.ImagePayload(template_name=wrong)))))
            assert error.kind is ErrorKind.NOT_FOUND


@played_by(play)
async def test_a_machine_is_no_template_and_two_templates_of_a_name_are_one_too_many(stage: Stage, /) -> None:
    vm = await stage.make()
    number = p.encode(p.ImagePayload(template_name=vm.partition("/")[0]))
    assert "is no template" in str(await refused(stage.driver.create(stage.request("c", image_json=number))))
    stage.admin.post("/nodes/pve1/qemu", vmid=9001, name="conformance", scsi0="local-lvm:1")
    stage.simulator.settle()
    stage.admin.post("/nodes/pve1/qemu/9001/template")
    stage.simulator.settle()
    named = p.encode(p.ImagePayload(template_name="conformance"))
    assert "several templates" in str(await refused(stage.driver.create(stage.request("c", image_json=named))))


@played_by(play)
async def test_what_cannot_be_carried_is_refused_before_anything_is_made(stage: Stage, /) -> None:
    for changes in (
        {"class_json": p.encode(ClassPayload(cpu=1, memory_mib=512, security_profile=p.SecurityPayload(require_encryption=True)))},
        {"class_json": p.encode(ClassPayload(cpu=1, memory_mib=512, gpu=p.GpuPayload(count=1)))},
        {"networks_json": p.encode_list((NetworkPayload(name="a", model="token-ring"),))},
        {"networks_json": p.encode_list((NetworkPayload(name="a", static_ip="10.0.0.300"),))},
        {"image_json": p.encode(p.ImagePayload(path="/etc/passwd"))},
        {"image_json": p.encode(p.ImagePayload(path="shared:import/../../x.qcow2"))},
        {"disks_json": p.encode_list((DiskPayload(name="d", size_gib=1, path="/dev/sda"),))},
    ):
        error = await refused(stage.driver.create(stage.request(**changes)))
        assert error.kind in (ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED)
    assert list(stage.simulator.cluster.machines) == [TEMPLATE]


# --- reconfigure ------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 41)
@played_by(play)
async def test_a_change_that_waits_for_a_restart_is_named(stage: Stage, /) -> None:
    vm = await stage.make()
    await stage.power(vm, m.PowerOp.ON)
    assert await reconfigure(stage, vm, desired(cpu=3)) == ""
    raw = await stage.raw(vm)
    assert (raw["restartRequired"], raw["cpus"]) == ("true", "1") and "cores" in raw["restartReason"]
    await stage.power(vm, m.PowerOp.OFF)
    await stage.power(vm, m.PowerOp.ON)
    raw = await stage.raw(vm)
    assert (raw["restartRequired"], raw["cpus"]) == ("false", "3")


@pytest.mark.spec("virtrigaud", 43)
@played_by(play)
async def test_disks_are_added_grown_detached_and_attached_again_while_the_guest_runs(stage: Stage, /) -> None:
    vm = await stage.make()
    await stage.power(vm, m.PowerOp.ON)
    data = DiskPayload(name="data", size_gib=1, storage_class="tank", type="ssd")
    assert await reconfigure(stage, vm, desired(disks=(data,))) == ""
    slot = stage.conf(vm)["scsi1"]
    assert slot.startswith("tank:") and "ssd=1" in slot and "serial=data" in slot
    assert await reconfigure(stage, vm, desired(disks=(msgspec.structs.replace(data, size_gib=4),))) == ""
    assert "size=4G" in stage.conf(vm)["scsi1"]
    volume = stage.conf(vm)["scsi1"].partition(",")[0]
    assert await reconfigure(stage, vm, desired()) == ""
    assert "scsi1" not in stage.conf(vm) and volume in stage.conf(vm).values()
    assert await reconfigure(stage, vm, desired(disks=(msgspec.structs.replace(data, size_gib=4),))) == ""
    assert stage.conf(vm)["scsi1"].startswith(volume)
    assert (await stage.raw(vm))["restartRequired"] == "false"
    before = len(stage.simulator.calls)
    assert await reconfigure(stage, vm, desired(disks=(msgspec.structs.replace(data, size_gib=4),))) == ""
    assert not [each for each in stage.simulator.calls[before:] if not each.startswith("GET")]


@played_by(play)
async def test_disks_of_a_template_are_never_detached(stage: Stage, /) -> None:
    stage.admin.post("/nodes/pve1/qemu", vmid=9001, name="two", scsi0="local-lvm:1", scsi1="local-lvm:1,serial=logs", boot="order=scsi0")
    stage.simulator.settle()
    stage.admin.post("/nodes/pve1/qemu/9001/template")
    stage.simulator.settle()
    vm = await stage.make(stage.request(image_json=p.encode(p.ImagePayload(template_name="9001"))))
    assert await reconfigure(stage, vm, desired()) == ""
    assert "serial=logs" in stage.conf(vm)["scsi1"]


@pytest.mark.spec("virtrigaud", 118)
@played_by(play)
async def test_limits_hold(stage: Stage, /) -> None:
    limits = p.LimitsPayload(cpu_shares=2000, memory_reservation_mib=512)
    vm = await stage.make()
    assert await reconfigure(stage, vm, desired(hardware={"resource_limits": limits})) == ""
    assert (stage.conf(vm)["cpuunits"], stage.conf(vm)["balloon"]) == ("2000", "512")


@played_by(play)
async def test_tags_of_others_stay_and_ours_go(stage: Stage, /) -> None:
    vm = await stage.make(stage.request(tags=("prod",)))
    vmid = vm.partition("/")[0]
    stage.admin.put(f"/nodes/pve1/qemu/{vmid}/config", tags=f"{stage.conf(vm)['tags']};backup")
    assert await reconfigure(stage, vm, desired(tags=("test",))) == ""
    found = set(stage.conf(vm)["tags"].split(";"))
    assert {"test", "backup"} <= found and "prod" not in found and len(found) == 3


# --- power, snapshots, clones, guests -----------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 35)
@played_by(play)
async def test_a_suspended_machine_is_woken_and_stopped(stage: Stage, /) -> None:
    vm = await stage.make()
    vmid = vm.partition("/")[0]
    await stage.power(vm, m.PowerOp.ON)
    for form in ({}, {"todisk": 1}):
        stage.admin.done(stage.admin.post(f"/nodes/pve1/qemu/{vmid}/status/suspend", **form))
        assert (await stage.driver.describe(m.DescribeRequest(id=vm))).power_state == "Suspended"
        await stage.power(vm, m.PowerOp.ON)
        assert (await stage.driver.describe(m.DescribeRequest(id=vm))).power_state == "On"
    stage.admin.done(stage.admin.post(f"/nodes/pve1/qemu/{vmid}/status/suspend", todisk=1))
    await stage.power(vm, m.PowerOp.OFF)
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).power_state == "Off"


@played_by(play)
async def test_a_guest_that_ignores_a_reboot_is_restarted(stage: Stage, /) -> None:
    vm = await stage.make(stage.request("web-hang"))
    await stage.power(vm, m.PowerOp.ON)
    before = stage.simulator.machine(int(vm.partition("/")[0])).process
    await stage.power(vm, m.PowerOp.REBOOT)
    after = stage.simulator.machine(int(vm.partition("/")[0])).process
    assert after is not None and after is not before


@pytest.mark.spec("virtrigaud", 30)
@played_by(play)
async def test_a_running_machine_is_described(stage: Stage, /) -> None:
    vm = await stage.make()
    await stage.power(vm, m.PowerOp.ON)
    found = await stage.driver.describe(m.DescribeRequest(id=vm))
    assert found.ips and all("." in each or ":" in each for each in found.ips)
    vmid = vm.partition("/")[0]
    assert found.console_url == f"https://pve1.example:8006/?console=kvm&novnc=1&vmid={vmid}&vmname=web&node=pve1"


@played_by(play)
async def test_a_repeated_snapshot_is_the_same_and_names_are_made_fit(stage: Stage, /) -> None:
    vm = await stage.make()
    request = m.SnapshotCreateRequest(vm_id=vm, name_hint="nightly.2026/11")
    first = await stage.driver.snapshot_create(request)
    assert await stage.finish(first.task) == ""
    again = await stage.driver.snapshot_create(request)
    assert (again.snapshot_id, again.task) == (first.snapshot_id, None)


@pytest.mark.spec("virtrigaud", 80, 82)
@played_by(play)
async def test_a_clone_is_customized_and_has_no_document_of_its_source(stage: Stage, /) -> None:
    vm = await stage.make(stage.request(user_data=b"#cloud-config\nruncmd: [reboot]\n"))
    wanted = {"hostname": "shop", "networks": [{"name": "a", "ipAddress": "10.0.0.9", "subnetMask": "255.255.0.0"}]}
    request = m.CloneRequest(
        source_vm_id=vm,
        target_name="copy",
        class_json='{"CPU": 3, "MemoryMiB": 2048}',
        customize_json=json.dumps({**wanted, "userData": "#cloud-config\nbootcmd: [ls]\n"}),
        target_vm=m.ObjectIdentity(namespace="default", name="copy"),
    )
    answer = await stage.driver.clone(request)
    assert await stage.finish(answer.task) == ""
    conf = stage.conf(answer.target_vm_id)
    assert (conf["cores"], conf["memory"], conf["name"]) == ("3", "2048", "copy")
    own = [each for each in stage.simulator.cluster.volumes.values() if each.kind == "iso" and each.volid in str(conf)]
    assert len(own) == 1 and own[0].file is not None
    assert b"bootcmd" in own[0].file and b"shop" in own[0].file and b"10.0.0.9/16" in own[0].file
    assert await stage.finish((await stage.driver.delete(m.DeleteRequest(id=vm))).task) == ""
    await stage.power(answer.target_vm_id, m.PowerOp.ON)
    # The source is gone, and the same call finds the clone.
    assert (await stage.driver.clone(request)).target_vm_id == answer.target_vm_id


@played_by(play)
async def test_a_clone_of_a_snapshot_has_its_disks(stage: Stage, /) -> None:
    vm = await stage.make(stage.request(image_json=p.encode(p.ImagePayload(template_name=str(TEMPLATE)))))
    taken = await stage.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm, name_hint="before"))
    assert await stage.finish(taken.task) == ""
    request = m.CloneRequest(source_vm_id=vm, target_name="copy", customize_json=json.dumps({"snapshotId": taken.snapshot_id}))
    answer = await stage.driver.clone(request)
    error = await stage.finish(answer.task)
    assert error == ""
    missing = m.CloneRequest(source_vm_id=vm, target_name="copy2", customize_json='{"snapshotId": "none"}')
    assert (await refused(stage.driver.clone(missing))).kind is ErrorKind.NOT_FOUND


@played_by(play)
async def test_linked_clones_are_of_templates_only(stage: Stage, /) -> None:
    vm = await stage.make()
    error = await refused(stage.driver.clone(m.CloneRequest(source_vm_id=vm, target_name="copy", linked=True)))
    assert error.kind is ErrorKind.NOT_SUPPORTED and "templates only" in str(error)


@played_by(play)
async def test_a_disk_cannot_be_exported_and_the_reason_is_named(stage: Stage, /) -> None:
    error = await refused(stage.driver.export_disk(m.ExportDiskRequest(vm_id=await stage.make())))
    assert error.kind is ErrorKind.NOT_SUPPORTED and "hands out no disks" in str(error)


@played_by(play, nodes=("pve1", "pve2"))
async def test_datastores_and_pods(stage: Stage, /) -> None:
    stage.admin.post("/pools", poolid="fast")
    stage.admin.put("/pools/fast", storage="tank,shared")
    every = {each.name: each for each in (await stage.driver.list_datastores(x.ListDatastoresRequest())).datastores}
    assert {"local-lvm", "tank", "shared"} <= set(every) and every["tank"].pod == "fast" and every["shared"].accessible
    pod = (await stage.driver.list_datastores(x.ListDatastoresRequest(pod="fast"))).datastores
    assert {each.name for each in pod} == {"tank", "shared"}


@played_by(play, nodes=("pve1", "pve2"))
async def test_hosts(stage: Stage, /) -> None:
    stage.simulator.cluster.nodes["pve2"].online = False
    found = {each.id: each for each in (await stage.driver.list_hosts(m.ListHostsRequest())).hosts}
    assert found["pve1"].health is m.HostHealth.READY and found["pve1"].allocatable_cpu > 0 and found["pve1"].cpu_model
    assert found["pve2"].health is m.HostHealth.NOT_READY
    assert (await stage.driver.get_host_info(m.GetHostInfoRequest(host_id="pve1"))).id == "pve1"
    assert (await refused(stage.driver.get_host_info(m.GetHostInfoRequest(host_id="x")))).kind is ErrorKind.NOT_FOUND


@played_by(play, nodes=("pve1", "pve2"))
async def test_a_template_on_shared_storage_is_cloned_to_another_node(stage: Stage, /) -> None:
    stage.admin.done(stage.admin.delete(f"/nodes/pve1/qemu/{TEMPLATE}"))
    add_template(stage.admin, stage.simulator, "shared")
    place = p.encode(PlacementPayload(host="pve2"))
    vm = await stage.make(stage.request(placement_json=place))
    assert stage.simulator.machine(int(vm.partition("/")[0])).node == "pve2"

"""What fields of classes, images and networks do at the cluster."""

from typing import Any

import msgspec
import pytest

from paddock.contract import payloads as p
from paddock.contract.payloads import ClassPayload, DiskPayload, NetworkPayload
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.unit.drivers.proxmox.conftest import TEMPLATE, Stage, play, staged
from tests.unit.drivers.proxmox.test_effects import image, refused


@pytest.mark.spec("virtrigaud", 136)
@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ({"nic_firewall": True}, "firewall=1"),
        ({"rate_limit": 12}, "rate=12"),
        ({"rate_limit": 12, "qos": p.QosPayload(ingress_limit=8 << 20)}, "rate=1"),
        ({"mtu": 9000}, "mtu=9000"),
    ],
)
@played_by(play)
async def test_the_options_of_an_interface(stage: Stage, /, card: dict[str, Any], expected: str) -> None:
    cards = (NetworkPayload(name="a", bridge="vmbr0", **card),)
    conf = stage.conf(await stage.make(stage.request(networks_json=p.encode_list(cards))))
    assert expected in conf["net0"].split(",")


@played_by(play)
async def test_the_mtu_of_another_model_is_named(stage: Stage, /) -> None:
    cards = (NetworkPayload(name="a", bridge="vmbr0", model="e1000", mtu=9000),)
    vm = await stage.make(stage.request(networks_json=p.encode_list(cards)))
    assert "mtu" not in stage.conf(vm)["net0"] and "MTU of virtio" in (await stage.raw(vm))["limitations"]


@pytest.mark.spec("virtrigaud", 134)
@played_by(play)
async def test_the_operations_of_disks_are_limited_also_of_the_one_that_a_template_brought(stage: Stage, /) -> None:
    hardware = ClassPayload(cpu=1, memory_mib=1024, disk_defaults=p.DiskDefaultsPayload(iops=500))
    disks = p.encode_list((DiskPayload(name="data", size_gib=1),))
    copied = stage.conf(await stage.make(stage.request(class_json=p.encode(hardware), disks_json=disks)))
    fetched = stage.conf(await stage.make(image(stage, hardware, name="other")))
    slots = [copied["scsi0"], copied["scsi1"], fetched["scsi0"]]
    assert all("iops=500" in each.split(",") for each in slots), slots


@pytest.mark.spec("virtrigaud", 135)
@played_by(play, nodes=("pve1", "pve2"))
async def test_the_storage_class_of_a_class_is_the_storage_of_the_root_disk(stage: Stage, /) -> None:
    hardware = ClassPayload(cpu=1, memory_mib=1024, disk_defaults=p.DiskDefaultsPayload(storage_class="shared"))
    conf = stage.conf(await stage.make(image(stage, hardware)))
    assert conf["scsi0"].startswith("shared:")
    conf = stage.conf(await stage.make(stage.request(name="copy", class_json=p.encode(hardware))))
    assert conf["scsi0"].startswith("shared:")


@pytest.mark.spec("virtrigaud", 139)
@pytest.mark.parametrize("setting", [True, False])
@pytest.mark.parametrize("full", [True, False])
@run_by(virtualtime.run)
async def test_an_image_says_whether_its_template_is_copied(full: bool, setting: bool) -> None:
    async with staged(full_clones=setting) as stage:
        source = p.ImagePayload(template_name=str(TEMPLATE), format="qcow2", full_clone=full)
        conf = stage.conf(await stage.make(stage.request(image_json=p.encode(source))))
        volume = stage.simulator.cluster.volume(conf["scsi0"].partition(",")[0], "pve1")
        assert volume is not None and bool(volume.parent) is not full


@pytest.mark.parametrize("format", ["raw", "qcow2"])
@played_by(play, nodes=("pve1", "pve2"))
async def test_a_copy_of_a_template_has_the_format_of_the_image_on_a_storage_of_files(stage: Stage, /, format: str) -> None:
    hardware = ClassPayload(cpu=1, memory_mib=1024, disk_defaults=p.DiskDefaultsPayload(storage_class="shared"))
    source = p.ImagePayload(template_name=str(TEMPLATE), format=format, full_clone=True)
    conf = stage.conf(await stage.make(stage.request(class_json=p.encode(hardware), image_json=p.encode(source))))
    volume = stage.simulator.cluster.volume(conf["scsi0"].partition(",")[0], "pve1")
    assert volume is not None and volume.format == format


@pytest.mark.spec("virtrigaud", 133)
@played_by(play)
async def test_what_a_class_and_a_place_ask_for_in_vain_is_named(stage: Stage, /) -> None:
    hardware = ClassPayload(
        cpu=1, memory_mib=1024, disk_defaults=p.DiskDefaultsPayload(type="thick"), extra_config={"proxmox.onboot": "1", "guestinfo.a": "b"}
    )
    place = p.encode(p.PlacementPayload(storage_pod="fast"))
    vm = await stage.make(stage.request(class_json=p.encode(hardware), placement_json=place))
    said = (await stage.raw(vm))["limitations"]
    assert all(each in said for each in ("diskDefaults.type: ", "extraConfig: guestinfo.a ", "placement.storagePod: "))
    assert stage.conf(vm)["onboot"] == "1"


@played_by(play, nodes=("pve1", "pve2"))
async def test_a_template_is_looked_for_on_the_node_that_is_named(stage: Stage, /) -> None:
    source = p.ImagePayload(template_name="conformance", node="pve2")
    error = await refused(stage.driver.create(stage.request(image_json=p.encode(source))))
    assert "does not exist on node pve2" in str(error)
    assert await stage.make(stage.request(image_json=p.encode(msgspec.structs.replace(source, node="pve1"))))


@pytest.mark.spec("virtrigaud", 149, 150)
@played_by(play)
async def test_what_the_clusters_own_drive_cannot_say_of_addresses_is_on_a_disk(stage: Stage, /) -> None:
    plain = NetworkPayload(name="a", bridge="vmbr0", static_ip="10.0.0.5", search_domains=("shop.example",))
    conf = stage.conf(await stage.make(stage.request(networks_json=p.encode_list((plain,)))))
    assert conf["searchdomain"] == "shop.example"
    routed = msgspec.structs.replace(plain, routes=({"destination": "10.1.0.0/16", "gateway": "10.0.0.2"},))
    await stage.make(stage.request(name="routed", networks_json=p.encode_list((routed, NetworkPayload(name="b", ip_policy="none")))))
    volume = next(each for each in stage.simulator.cluster.volumes.values() if each.kind == "iso")
    assert volume.file is not None and b"10.1.0.0/16" in volume.file and b"dhcp4: false" in volume.file

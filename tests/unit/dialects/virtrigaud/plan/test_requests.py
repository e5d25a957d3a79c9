"""The requests for a machine (docs/spec/virtrigaud.md 2.1.2, 2.1.3, 3.4)."""

import base64
import json
from typing import Any

import pytest

from paddock.contract import payloads
from paddock.contract.payloads import PlacementPayload
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage
from paddock.dialects.virtrigaud.plan import requests, rootdisk
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.wire import from_data
from tests.unit.dialects.virtrigaud.plan.made import Data, found, image, machine, network, provider, vmclass


def secret(name: str = "doc", **values: str) -> Secret:
    data = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return from_data({"metadata": {"name": name, "namespace": "default"}, "data": data}, Secret)


def test_a_whole_machine() -> None:
    vm = machine(
        networks=[{"name": "a", "networkRef": {"name": "lan"}}],
        disks=[{"name": "data", "sizeGiB": 10, "type": "ssd"}],
        tags=["one", "two"],
        placement={"cluster": "c"},
    )
    made = requests.create(vm, found(vm, vmclass(firmware="EFI", diskDefaults={"size": "41Gi"})), None)
    assert (made.name, made.tags) == ("web", ("one", "two"))
    assert made.owner is not None and (made.owner.uid, made.owner.namespace, made.owner.name) == ("uid-web", "default", "web")
    hardware = json.loads(made.class_json)
    assert (hardware["CPU"], hardware["MemoryMiB"], hardware["Firmware"]) == (2, 4096, "UEFI")
    assert hardware["DiskDefaults"] == {"Type": "thin", "SizeGiB": 41} and hardware["SecurityProfile"] is None
    assert json.loads(made.disks_json) == [{"SizeGiB": 10, "Type": "ssd", "Name": "data"}]
    assert json.loads(made.placement_json)["Cluster"] == "c"


@pytest.mark.spec("virtrigaud", 118)
def test_each_limit_of_a_class_reaches_the_provider() -> None:
    limits = {"cpuLimit": 3000, "cpuReservation": 1000, "cpuShares": 2000, "memoryLimit": "8Gi", "memoryReservation": "2Gi"}
    vm = machine()
    made = requests.create(vm, found(vm, vmclass(resourceLimits=limits)), None)
    assert json.loads(made.class_json)["ResourceLimits"] == {
        "CPULimit": 3000,
        "CPUReservation": 1000,
        "CPUShares": 2000,
        "MemoryLimitMiB": 8192,
        "MemoryReservationMiB": 2048,
    }


@pytest.mark.spec("virtrigaud", 40, 97)
def test_nothing_to_say_is_said_as_go_does() -> None:
    vm = machine(resources={"memoryMiB": 1000})
    made = requests.create(vm, found(vm), None)
    assert (made.disks_json, made.placement_json, made.networks_json) == ("null", "", "null")
    assert json.loads(made.class_json)["MemoryMiB"] == 1000


PLACEMENTS: list[tuple[Data | None, Data | None, PlacementPayload | None]] = [
    (None, None, None),
    ({"host": "h", "cluster": "c"}, None, PlacementPayload(host="h", cluster="c")),
    ({"cluster": "own"}, {"cluster": "c", "folder": "f"}, PlacementPayload(cluster="own", folder="f")),
    ({"datastore": "d"}, {"storagePod": "p"}, PlacementPayload(datastore="d")),
    ({"storagePod": "q"}, {"datastore": "d"}, PlacementPayload(storage_pod="q")),
    (None, {"storagePod": "p"}, PlacementPayload(storage_pod="p")),
    (None, {"resourcePool": "r"}, PlacementPayload(resource_pool="r")),
    ({"resourcePool": "own"}, {"resourcePool": "r"}, PlacementPayload(resource_pool="own")),
    ({"host": "h"}, {"resourcePool": "r"}, PlacementPayload(host="h", resource_pool="r")),
]


@pytest.mark.spec("virtrigaud", 45)
@pytest.mark.parametrize(("own", "defaults", "expected"), PLACEMENTS)
def test_placement(own: Data | None, defaults: Data | None, expected: PlacementPayload | None) -> None:
    assert requests.placement(machine(placement=own), provider(defaults=defaults)) == expected


@pytest.mark.spec("virtrigaud", 43, 45)
def test_what_upstreams_contract_does_not_have_is_sent_all_the_same() -> None:
    disks = [{"name": "a", "sizeGiB": 1, "storageClass": "gold", "scsi": {"controller": 1}}, {"name": "b", "sizeGiB": 1}]
    vm = machine(disks=disks, placement={"resourcePool": "pool"})
    made = requests.create(vm, found(vm), None)
    first, second = json.loads(made.disks_json)
    assert first["StorageClass"] == "gold"
    assert first["SCSI"] == {"Controller": 1, "SharedBus": "noSharing", "ControllerType": "pvscsi"}
    assert second == {"SizeGiB": 1, "Type": "thin", "Name": "b"}
    assert json.loads(made.placement_json)["ResourcePool"] == "pool"
    changed = json.loads(requests.reconfigure(vm, found(vm), MachineSizes(2, 4096, {"a": 2, "b": 1}), None).desired_json)
    assert changed["Disks"][0]["StorageClass"] == "gold" and changed["Placement"]["ResourcePool"] == "pool"


# --- the guest's documents --------------------------------------------------------------------------------------------------

CONFIG = "#cloud-config\na: 1\n"


@pytest.mark.spec("virtrigaud", 48)
@pytest.mark.parametrize("key", ["userdata", "user-data", "cloud-init", "cloud-config"])
def test_user_data_of_a_secret(key: str) -> None:
    vm = machine(userData={"cloudInit": {"secretRef": {"name": "doc"}}})
    held = secret(**{key.replace("-", "_"): CONFIG})
    assert requests.create(vm, found(vm, held), None).user_data == CONFIG.encode()


@pytest.mark.spec("virtrigaud", 48)
def test_the_first_key_counts_and_documents_are_merged() -> None:
    vm = machine(userData={"cloudInit": {"inline": "#cloud-config\nb: 2\n", "secretRef": {"name": "doc"}}})
    made = requests.create(vm, found(vm, secret(userdata=CONFIG, cloud_config="#cloud-config\nz: 9\n")), None).user_data
    assert made.startswith(b"Content-Type: multipart/mixed") and b"a: 1" in made and b"b: 2" in made and b"z: 9" not in made


@pytest.mark.spec("virtrigaud", 48)
def test_ignition_is_delivered() -> None:
    vm = machine(userData={"ignition": {"inline": '{"ignition":{}}'}})
    assert requests.create(vm, found(vm), None).user_data == b'{"ignition":{}}'
    desired = json.loads(requests.reconfigure(vm, found(vm), MachineSizes(2, 1024), None).desired_json)
    assert desired["UserData"] == {"CloudInitData": '{"ignition":{}}', "Type": "ignition"}


@pytest.mark.spec("virtrigaud", 49)
def test_metadata_is_joined_and_needs_no_user_data() -> None:
    vm = machine(metaData={"cloudInit": {"inline": "a: 1", "secretRef": {"name": "doc"}}})
    made = requests.create(vm, found(vm, secret(meta_data="b: 2")), None)
    assert (made.meta_data, made.user_data) == (b"a: 1\nb: 2", b"")
    assert "b: 2" not in repr(made)


def test_a_secret_without_a_document_is_refused() -> None:
    vm = machine(userData={"cloudInit": {"secretRef": {"name": "doc"}}})
    with pytest.raises(Refusal, match="Secret default/doc has none of the keys userdata, user-data"):
        requests.create(vm, found(vm, secret(other="x")), None)


# --- networks ---------------------------------------------------------------------------------------------------------------


def cards(vm: Any, *others: Any) -> list[Data]:
    made: list[Data] = json.loads(requests.create(vm, found(vm, *others), None).networks_json)
    return made


@pytest.mark.spec("virtrigaud", 50)
def test_static_addresses_and_macs() -> None:
    card = {"name": "a", "networkRef": {"name": "lan"}, "ipAddress": "10.0.0.5", "gateway": "10.0.0.1", "dns": "10.0.0.2"}
    vm = machine(tags=["t"], networks=[{**card, "macAddress": "02:00:00:00:00:01", "prefix": 25}])
    (made,) = cards(vm)
    assert (made["StaticIP"], made["Prefix"], made["Gateway"], made["DNS"]) == ("10.0.0.5", 25, "10.0.0.1", "10.0.0.2")
    assert (made["MacAddress"], made["IPPolicy"], made["NetworkName"]) == ("02:00:00:00:00:01", "static", "default")


def test_a_network_gives_address_and_name_servers() -> None:
    vm = machine(networks=[{"name": "a", "networkRef": {"name": "lan"}}])
    allocation = {
        "type": "Static",
        "staticConfig": {"address": "10.0.0.9/28", "gateway": "10.0.0.1"},
        "dnsConfig": {"servers": ["1.1.1.1"]},
    }
    (made,) = cards(vm, network(ipAllocation=allocation))
    assert (made["StaticIP"], made["Prefix"], made["DNS"]) == ("10.0.0.9", 28, "1.1.1.1")
    with pytest.raises(Refusal, match="VMNetworkAttachment default/lan gives no address"):
        cards(vm, network(ipAllocation={"type": "Pool", "poolConfig": {"poolRef": {"name": "p"}}}))


@pytest.mark.spec("virtrigaud", 97, 130)
@pytest.mark.parametrize(
    ("kind", "config", "expected"),
    [
        ("vsphere", {"vsphere": {"portgroup": "pg", "pciSlotNumber": 33}}, {"NetworkName": "pg", "Portgroup": "pg", "PCISlotNumber": 33}),
        ("libvirt", {"libvirt": {"bridge": {"name": "br0"}}}, {"Bridge": "br0", "NetworkName": "", "Model": "virtio"}),
        ("proxmox", {"proxmox": {"bridge": "vmbr1", "vlanTag": 5}}, {"Bridge": "vmbr1", "VLAN": 5, "name": "vmbr1", "vlan": 5}),
        ("qemu", {"libvirt": {"networkName": "n"}}, {"NetworkName": "n"}),
        ("qemu", {"type": "nat"}, {"NetworkName": "", "Bridge": ""}),
        ("qemu", {"type": "nat", "libvirt": {"networkName": "default", "bridge": {"name": "br0"}}}, {"NetworkName": "", "Bridge": ""}),
        ("libvirt", {"type": "nat", "libvirt": {"networkName": "n"}}, {"NetworkName": "n"}),
        ("libvirt", {"vsphere": {"portgroup": "pg"}}, None),
    ],
)
def test_the_block_of_the_type(kind: str, config: Data, expected: Data | None) -> None:
    vm = machine(networks=[{"name": "a", "networkRef": {"name": "lan"}}])
    disk = image({"http": {"url": "https://a/b.qcow2"}})
    if expected is None:
        with pytest.raises(Refusal, match="has no block for a Provider of type libvirt"):
            cards(vm, network(config), provider(kind), disk)
        (made,) = cards(vm, network(config), provider(kind, defaults={"network": "fallback"}), disk)
        assert made["NetworkName"] == "fallback"
        return
    (made,) = cards(vm, network(config), provider(kind), disk)
    assert {name: made[name] for name in expected} == expected
    assert kind == "proxmox" or "name" not in made


@pytest.mark.spec("virtrigaud", 15)
@pytest.mark.parametrize("kind", ["vsphere", "libvirt", "proxmox", "qemu", "firecracker"])
def test_a_card_without_a_network_is_on_the_default_one_of_the_provider(kind: str) -> None:
    vm = machine(networks=[{"name": "a", "ipAddress": "10.0.0.5"}])
    disk = image(
        {"http": {"url": "https://a/b.qcow2"}, "libvirt": {"path": "/a"}, "vsphere": {"templateName": "t"}, "proxmox": {"templateID": 9}}
    )
    (own,) = cards(vm, provider(kind), disk)
    (named,) = cards(vm, provider(kind, defaults={"network": "front"}), disk)
    assert own["NetworkName"] == "" and own["StaticIP"] == "10.0.0.5"
    assert named["NetworkName"] == "front" and named["StaticIP"] == "10.0.0.5"


def test_a_sealed_network_is_not_replaced_by_an_open_one() -> None:
    vm = machine(networks=[{"name": "a", "networkRef": {"name": "lan"}}])
    with pytest.raises(Refusal, match="has no block for a Provider of type qemu"):
        cards(vm, network({"type": "isolated"}), provider("qemu"), image({"http": {"url": "https://a/b.qcow2"}}))


# --- the first disk ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("libvirt", {"libvirt": {"path": "/a"}, "http": {"url": "https://b/c"}}, {"Path": "/a", "Format": "qcow2"}),
        ("vsphere", {"vsphere": {"templateName": "t"}, "libvirt": {"path": "/a"}}, {"TemplateName": "t", "Path": "", "Format": "template"}),
        ("proxmox", {"proxmox": {"templateID": 9000}}, {"TemplateName": "9000"}),
        (
            "proxmox",
            {"libvirt": {"path": "/a"}, "http": {"url": "https://b/c.img"}},
            {"URL": "https://b/c.img", "Format": "raw", "Path": ""},
        ),
        ("qemu", {"registry": {"image": "quay.io/a/b:1"}}, {"URL": "docker://quay.io/a/b:1"}),
        ("vsphere", {"vsphere": {"ovaURL": "https://a/b.ova"}}, {"URL": "https://a/b.ova", "Format": "ova"}),
    ],
)
def test_the_source_for_the_type(kind: str, source: Data, expected: Data) -> None:
    made = json.loads(payloads.encode(rootdisk.from_image(image(source), kind, None)))
    assert {name: made[name] for name in expected} == expected


def test_the_prepared_place_takes_over() -> None:
    entry = ProviderImage(available=True, id="img-1", path="/pool/img")
    url = {"libvirt": {"url": "https://a/b"}, "vsphere": {"ovaURL": "https://a/b.ova"}}
    assert rootdisk.from_image(image(url), "libvirt", entry).path == "/pool/img"
    assert rootdisk.from_image(image(url), "libvirt", entry).url == ""
    assert rootdisk.from_image(image(url), "vsphere", entry).template_name == "img-1"
    unfinished = ProviderImage(available=False, path="/pool/img")
    assert rootdisk.from_image(image(url), "libvirt", unfinished).url == "https://a/b"


@pytest.mark.parametrize(
    ("kind", "source", "why"),
    [
        ("libvirt", {"vsphere": {"templateName": "t"}}, "VMImage default/ubuntu has no usable source for a Provider of type libvirt"),
        ("vsphere", {"vsphere": {"contentLibrary": {"library": "l", "item": "i"}}}, "item of a content library"),
        ("libvirt", {"dataVolume": {"name": "d"}}, "no usable source"),
    ],
)
def test_a_source_that_cannot_be_used(kind: str, source: Data, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        rootdisk.from_image(image(source), kind, None)

"""A Machine in Vitistack's own form as KubeVirt's objects, and the way between the forms."""

import base64
from typing import Any

import pytest

from paddock.dialects.vitistack.kinds import ownform
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.translate import to_kubevirt, to_own
from paddock.dialects.vitistack.translate.errors import ConfigMapNotFound, MachineClassNotFound
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from tests.unit.dialects.vitistack.translate.making import STANDARD, Json, config_map, machine, network, secret, storage_class, typed

CLASS = {"cpu": {"cores": 3, "threads": 2}, "memory": {"quantity": "3Gi"}}


def machine_class(name: str = "small", **more: Any) -> Resource:
    return typed({"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineClass", "metadata": {"name": name}, "spec": {**CLASS, **more}})


def made(spec: Json, *others: Resource, complete: bool = False) -> list[Resource]:
    world = ObjectSet([storage_class("standard", default="true"), *others], complete=complete)
    return list(to_kubevirt(machine({"provider": "kubevirt", **spec}), world, STANDARD).value)


def instance(spec: Json, *others: Resource) -> Json:
    (vm,) = (each for each in made(spec, *others) if isinstance(each, VirtualMachine))
    found: Json = to_data(vm)["spec"]["template"]["spec"]
    return found


def size(spec: Json, *others: Resource) -> tuple[Any, ...]:
    domain = instance(spec, *others)["domain"]
    return (*(domain["cpu"][name] for name in ("cores", "threads", "sockets")), domain["memory"]["guest"])


@pytest.mark.spec("vitistack", 86)
def test_processors_and_memory_come_from_the_class_and_the_machine() -> None:
    assert size({}) == (2, 1, 1, "2Gi")
    assert size({"machineClass": "small"}) == (2, 1, 1, "8Gi")
    assert size({"machineClass": "small"}, machine_class()) == (3, 2, 1, "3Gi")
    own = {"cpu": {"cores": 4, "threadsPerCore": 1, "sockets": 5}, "memory": 3221225472}
    assert size({"machineClass": "small", **own}, machine_class()) == (4, 1, 5, "3Gi")
    assert size({"machineClass": "medium", "memory": 0}) == (4, 1, 1, "16Gi")


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("huge", {}, 'MachineClass "huge" not found; create it'),
        ("own", {"enabled": False}, 'MachineClass "own" is not enabled; enable it'),
        ("own", {"machineProviders": ["proxmox"]}, 'MachineClass "own" is for the providers proxmox; add kubevirt to them'),
        ("largecpu", {}, 'MachineClass "largecpu" is not enabled; create it with enabled: true'),
    ],
)
def test_a_class_that_cannot_be_used(name: str, more: Json, why: str) -> None:
    with pytest.raises(MachineClassNotFound) as raised:
        made({"machineClass": name}, machine_class("own", **more))
    assert str(raised.value).startswith(why) and "use small, medium, large, xlarge or largememory" in str(raised.value)
    assert raised.value.phase == "Pending"


def test_disks_have_buses_and_one_boots() -> None:
    disks = [
        {"name": "data", "sizeGB": 5, "type": "sata"},
        {"name": "sys", "sizeGB": 9, "boot": True, "type": "nvme"},
        {"name": "more", "sizeGB": 1},
    ]
    objects = made({"disks": disks})
    claims = [each for each in objects if isinstance(each, PersistentVolumeClaim)]
    assert [(each.metadata.name, to_data(each)["spec"]["resources"]["requests"]["storage"]) for each in claims] == [
        ("web-data", "5Gi"),
        ("web-sys", "9Gi"),
        ("web-more", "1Gi"),
    ]
    devices = instance({"disks": disks})["domain"]["devices"]
    assert devices["disks"] == [
        {"name": "data", "disk": {"bus": "sata"}},
        {"name": "sys", "disk": {"bus": "virtio"}, "bootOrder": 1},
        {"name": "more", "disk": {"bus": "virtio"}},
    ]
    assert devices["interfaces"][0]["bootOrder"] == 2


def test_a_machine_without_disks_has_a_root_disk_and_boots_from_the_network() -> None:
    (claim,) = (each for each in made({}) if isinstance(each, PersistentVolumeClaim))
    assert (claim.metadata.name, to_data(claim)["spec"]["resources"]["requests"]["storage"]) == ("web-root", "10Gi")


@pytest.mark.parametrize(
    ("given", "annotations"),
    [({"isoUri": "http://e.org/a.iso"}, {}), ({"imageID": "http://e.org/a.iso"}, {"kubevirt.io/boot-source": "datavolume"})],
)
def test_an_installation_image_goes_into_a_drive(given: Json, annotations: dict[str, str]) -> None:
    source = machine({"provider": "kubevirt", "os": given}, annotations=annotations)
    (vm,) = (each for each in to_kubevirt(source, ObjectSet(), STANDARD).value if isinstance(each, VirtualMachine))
    spec = to_data(vm)["spec"]
    assert spec["dataVolumeTemplates"][0]["spec"]["source"] == {"http": {"url": "http://e.org/a.iso"}}
    devices = spec["template"]["spec"]["domain"]["devices"]
    assert [(each["name"], each.get("bootOrder")) for each in devices["disks"]] == [("root", 1), ("cdrom-iso", 2)]
    assert "bootOrder" not in devices["interfaces"][0]


def test_a_card_is_on_the_network_that_is_named() -> None:
    found = instance({"network": {"networkNamespaceName": "lan"}}, network())
    assert found["networks"] == [{"name": "eth0", "multus": {"networkName": "lan"}}]
    assert found["domain"]["devices"]["interfaces"][0]["bridge"] == {}
    assert instance({})["networks"] == [{"name": "default", "pod": {}}]


def test_keys_come_with_cloud_init() -> None:
    spec = {"sshKeys": ["ssh-ed25519 AAAA a@b", "ssh-rsa BBBB"]}
    (keys,) = (each for each in made(spec) if isinstance(each, Secret))
    assert keys.metadata.name == "web-sshkeys"
    assert {key: base64.b64decode(text).decode() for key, text in (keys.data or {}).items()} == {
        "key1": "ssh-ed25519 AAAA a@b",
        "key2": "ssh-rsa BBBB",
    }
    found = instance(spec)
    (credential,) = found["accessCredentials"]
    assert credential["sshPublicKey"] == {"source": {"secret": {"secretName": "web-sshkeys"}}, "propagationMethod": {"noCloud": {}}}
    assert found["volumes"][-1] == {"name": "cloudinitdisk", "cloudInitNoCloud": {"userData": "#cloud-config"}}


@pytest.mark.parametrize(
    ("cloud_init", "volume"),
    [
        ({"userDataBase64": "aGk="}, {"userData": "hi"}),
        ({"userDataSecretRef": {"name": "keys"}}, {"secretRef": {"name": "keys"}}),
        ({"userDataSecretRef": {"name": "keys", "key": "foo"}}, {"secretRef": {"name": "web-cloudinit"}}),
        ({"userDataConfigMapRef": {"name": "texts"}}, {"userData": "text"}),
        ({"userDataConfigMapRef": {"name": "texts", "key": "bar"}}, {"userData": "bar's"}),
        (
            {"userData": "x", "networkDataSecretRef": {"name": "keys"}},
            {"userData": "x", "networkDataSecretRef": {"name": "keys"}},
        ),
        ({"userData": "x", "networkDataConfigMapRef": {"name": "texts"}}, {"userData": "x", "networkData": "version: 2"}),
        ({"userData": "x", "networkDataBase64": "dmVyc2lvbjogMg=="}, {"userData": "x", "networkData": "version: 2"}),
    ],
)
def test_documents_come_from_where_they_are(cloud_init: Json, volume: Json) -> None:
    others = (
        secret("keys", userdata="u", foo="f", networkdata="n"),
        config_map("texts", userdata="text", bar="bar's", networkdata="version: 2"),
    )
    assert instance({"cloudInit": cloud_init}, *others)["volumes"][-1]["cloudInitNoCloud"] == volume
    as_drive = instance({"cloudInit": {**cloud_init, "type": "configDrive"}}, *others)["volumes"][-1]
    assert as_drive["cloudInitConfigDrive"] == volume


def test_user_data_beside_cloud_init_keeps_the_rest_of_it() -> None:
    found = instance({"userData": "x", "cloudInit": {"type": "configDrive", "networkData": "version: 2"}})
    assert found["volumes"][-1]["cloudInitConfigDrive"] == {"userData": "x", "networkData": "version: 2"}


def test_a_config_map_that_is_not_there() -> None:
    spec = {"cloudInit": {"userDataConfigMapRef": {"name": "texts", "key": "k"}}}
    with pytest.raises(ConfigMapNotFound, match='ConfigMap "texts" not found in namespace prod'):
        made(spec, complete=True)
    with pytest.raises(ConfigMapNotFound, match='ConfigMap "texts" has no key "k"'):
        made(spec, config_map(), complete=True)


def test_the_guest_has_its_name_its_architecture_and_uefi() -> None:
    found = instance({"name": "guest", "os": {"architecture": "x86_64"}})
    assert (found["hostname"], found["architecture"]) == ("guest", "amd64")
    assert found["domain"]["firmware"] == {"bootloader": {"efi": {"secureBoot": False}}}


@pytest.mark.spec("vitistack", 88)
@pytest.mark.parametrize(
    "spec",
    [
        {"template": "medium", "domain": {"firmware": {"bootloader": {"efi": True}}}, "bootOrder": ["disk", "network"]},
        {
            "resources": {"cpu": {"cores": 2, "threads": 2, "sockets": 2}, "memory": {"size": "2Gi"}},
            "disks": [{"name": "sys", "size": "3Gi"}, {"name": "data", "size": "4Gi"}],
            "networks": [{"name": "eth0", "networkName": "lan"}],
            "bootOrder": ["disk", "network"],
            "cloudInit": {"secretRef": {"name": "keys", "key": "foo"}, "networkData": "version: 2"},
            "domain": {"firmware": {"bootloader": {"efi": True}}},
        },
    ],
)
def test_what_both_forms_can_say_comes_out_the_same(spec: Json) -> None:
    world = ObjectSet([storage_class("standard", default="true"), network(), secret("keys", foo="f")])
    before = machine(spec)
    translated = to_own(before, world)
    assert translated.losses == () and ownform.is_own(translated.value.spec)
    after = typed(to_data(translated.value))
    assert isinstance(after, Machine)
    first, second = (to_kubevirt(each, world, STANDARD).value for each in (before, after))
    template = {"vitistack.io/machine-template": spec.get("template")}

    def shown(objects: tuple[Resource, ...]) -> list[Json]:
        data = [to_data(each) for each in objects]
        for each in data:
            labels = (
                [each["metadata"]["labels"], each["spec"]["template"]["metadata"]["labels"]] if each["kind"] == "VirtualMachine" else []
            )
            for place in labels or [each["metadata"].get("labels", {})]:
                for key in template:
                    place.pop(key, None)
        return data

    assert shown(first) == shown(second)


def test_what_the_own_form_cannot_say_is_told() -> None:
    spec = {
        "template": "small",
        "disks": [{"name": "data", "size": "1500Mi", "storageClass": "fast", "accessMode": "ReadWriteMany", "volumeMode": "Block"}],
        "networks": [{"name": "a", "networkName": "lan", "model": "e1000"}, {"name": "b", "networkName": "san"}],
        "bootOrder": ["network"],
        "domain": {"features": {"hyperv": True}},
    }
    translated = to_own(machine(spec), ObjectSet())
    assert {each.field for each in translated.losses} == {
        "spec.disks[0].size",
        "spec.disks[0].storageClass",
        "spec.disks[0].accessMode",
        "spec.disks[0].volumeMode",
        "spec.networks[0].model",
        "spec.networks[1]",
        "spec.bootOrder",
        "spec.domain",
    }
    assert not any(each.unread for each in translated.losses)
    assert [each.sizeGB for each in translated.value.spec.disks] == [20, 2]

"""The references of a machine: their search, and the result when the object is missing."""

from typing import Any

import msgspec
import pytest

from paddock.base.errors import Terminal, Transient
from paddock.dialects.virtrigaud.translate import EncryptionRequired, MissingReference, MissingReferences, NothingToBoot, to_kubevirt
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.virtrigaud.translate.making import Changes, Made, Scene, at, made, plain, raw, secret, typed

KINDS = ("Provider", "VMClass", "VMImage", "VMNetworkAttachment")
PATHS = {
    "Provider": ("spec", "providerRef", "name"),
    "VMClass": ("spec", "classRef", "name"),
    "VMImage": ("spec", "imageRef", "name"),
    "VMNetworkAttachment": ("spec", "networks", 0, "networkRef", "name"),
}
NAMES = {"Provider": "local", "VMClass": "small", "VMImage": "debian", "VMNetworkAttachment": "lan"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_complete_world_lacks_an_object(kind: str) -> None:
    with pytest.raises(MissingReference) as caught:
        Scene(without=(kind,)).translated(complete=True)
    error = caught.value
    assert (error.kind, error.name, error.namespace, error.path) == (kind, NAMES[kind], "default", PATHS[kind])
    assert isinstance(error, Transient)
    assert error.error_type == "WaitingForDependencies"
    assert str(error).startswith(f'{kind} "{NAMES[kind]}" not found in namespace default; create it or correct spec.')


def test_all_that_is_missing_is_named() -> None:
    with pytest.raises(MissingReferences) as caught:
        Scene(without=KINDS).translated(complete=True)
    assert {each.kind for each in caught.value.missing} == set(KINDS)
    assert all(NAMES[kind] in str(caught.value) for kind in KINDS)


def test_without_its_class_a_machine_has_no_size() -> None:
    with pytest.raises(MissingReference) as caught:
        Scene(without=KINDS).translated()
    assert caught.value.kind == "VMClass"


@pytest.mark.parametrize(
    ("kind", "field", "instead"),
    [
        ("Provider", "spec.providerRef.name", "images and networks are read as for a provider of type qemu"),
        ("VMImage", "spec.imageRef.name", "a clone of DataSource default/debian, which has to be there"),
        ("VMNetworkAttachment", "spec.networks[0].networkRef.name", "NetworkAttachmentDefinition lan, which has to be there"),
    ],
)
def test_an_incomplete_world_lacks_an_object(kind: str, field: str, instead: str) -> None:
    result = Made(Scene(without=(kind,)).translated())
    assert result.lost() == [("VirtualMachine/web", field)]
    loss = result.losses[0]
    assert NAMES[kind] in loss.why
    assert instead in loss.instead


@pytest.mark.spec("virtrigaud", 25)
def test_references_lead_to_other_namespaces() -> None:
    refs = {
        ".providerRef.namespace": "infra",
        ".classRef.namespace": "infra",
        ".imageRef.namespace": "infra",
        ".networks[0].networkRef.namespace": "infra",
    }
    here: dict[str, Changes] = {
        "VirtualMachine": refs,
        "VMClass": {".cpu": 1},
        "VMImage": {".source": {"registry": {"image": "wrong:one"}}},
    }
    scene = Scene(here)
    there = [typed(raw(kind, {"metadata.namespace": "infra", **changes})) for kind, changes in THERE.items()]
    result = Made(to_kubevirt(scene.vm, ObjectSet([*scene.objects.values(), *there], complete=True), Rendering()))
    machine = plain(result.machine)
    assert at(machine, "spec.template.spec.domain.cpu.cores") == 7
    assert at(machine, "spec.dataVolumeTemplates.0.spec.source.http.url") == "https://infra.example.com/a.img"
    assert at(machine, "spec.template.spec.networks.0.multus.networkName") == "infra/lan-proxmox"
    assert [(each.metadata.namespace, each.metadata.name) for each in result.definitions] == [("infra", "lan-proxmox")]
    assert result.machine.metadata.annotations == {
        "virtrigaud.io/provider": "infra/local",
        "virtrigaud.io/class": "infra/small",
        "virtrigaud.io/image": "infra/debian",
        "virtrigaud.io/source": "http",
        "virtrigaud.io/networks": '{"eth0":"infra/lan"}',
    }


THERE: dict[str, dict[str, Any]] = {
    "Provider": {".type": "proxmox", ".endpoint": "https://pve"},
    "VMClass": {".cpu": 7},
    "VMImage": {".source": {"http": {"url": "https://infra.example.com/a.img"}}},
    "VMNetworkAttachment": {".network": {"proxmox": {"bridge": "vmbr0"}, "libvirt": {"bridge": {"name": "br0"}}}},
}


def test_nothing_to_boot() -> None:
    with pytest.raises(NothingToBoot) as caught:
        made({"VirtualMachine": {".imageRef": None}})
    assert isinstance(caught.value, Terminal)
    assert (caught.value.error_type, caught.value.path) == ("ValidationError", ("spec", "imageRef"))
    assert str(caught.value) == 'VirtualMachine "web" has nothing to boot from; give imageRef or importedDisk'


def test_required_encryption_is_kept() -> None:
    with pytest.raises(EncryptionRequired) as caught:
        made({"VMClass": {".securityProfile.encryptionPolicy": {"enabled": True, "requireEncryption": True}}})
    assert isinstance(caught.value, Terminal)
    assert 'VMClass "small" requires encryption' in str(caught.value)


def test_a_network_is_there_once_for_all_machines() -> None:
    """The definition is the same for whichever machine it is made, and it belongs to the network."""
    cards = [{"name": f"eth{index}", "networkRef": {"name": "lan"}} for index in range(2)]
    uid = {"metadata.uid": "6d3c"}
    results = [made({"VirtualMachine": {"metadata.name": name, ".networks": cards}, "VMNetworkAttachment": uid}) for name in ("one", "two")]
    (first,), (second,) = (result.definitions for result in results)
    assert first == second
    owners = first.metadata.ownerReferences
    assert owners is not None
    assert [(each.kind, each.name, each.uid, each.controller) for each in owners] == [("VMNetworkAttachment", "lan", "6d3c", True)]


def test_what_belongs_to_a_machine_says_so() -> None:
    documents = {".userData.cloudInit": {"inline": "#cloud-config\n" + "#" * 3000}}
    anonymous = made({"VirtualMachine": documents})
    assert all(each.metadata.ownerReferences is None for each in anonymous.resources)
    known = made({"VirtualMachine": {**documents, "metadata.uid": "6d3c"}})
    owned = {each.kind: each.metadata.ownerReferences for each in known.resources}
    assert owned["NetworkAttachmentDefinition"] is None
    for kind in ("Secret", "VirtualMachine"):
        owners = owned[kind]
        assert owners is not None
        assert [(each.kind, each.name, each.uid) for each in owners] == [("VirtualMachine", "web", "6d3c")]


def test_a_definition_of_somebody_else_is_used_as_it_is() -> None:
    foreign = typed(
        {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "lan"}, "spec": {"config": "{}"}}
    )
    result = made({}, foreign)
    assert result.definitions == []
    assert at(plain(result.machine), "spec.template.spec.networks.0.multus.networkName") == "lan"


def test_long_names_are_cut() -> None:
    name = "a" * 200 + "." + "b" * 52
    disk = {".disks": [{"name": "d" * 63, "sizeGiB": 1}]}
    machine = plain(made({"VirtualMachine": {"metadata.name": name, **disk}}).machine)
    names = [template["metadata"]["name"] for template in machine["spec"]["dataVolumeTemplates"]]
    assert all(len(each) <= 253 for each in names)
    assert len(set(names)) == 2
    assert len(machine["metadata"]["labels"]["virtrigaud.io/virtual-machine"]) <= 63


def test_a_machine_that_is_still_to_be_named() -> None:
    scene = Scene()
    unnamed = msgspec.structs.replace(scene.vm, metadata=msgspec.structs.replace(scene.vm.metadata, name="", generateName="web-"))
    result = to_kubevirt(unnamed, scene.world(), Rendering())
    assert result.value[-1].metadata.name == "web"


def test_the_same_input_gives_the_same_bytes() -> None:
    changes = {"VirtualMachine": {".userData.cloudInit": {"inline": "a", "secretRef": {"name": "s"}}, ".tags": ["b", "a"]}}
    texts = {msgspec.json.encode(made(changes, secret("s", userdata="x")).resources) for _ in range(3)}
    assert len(texts) == 1

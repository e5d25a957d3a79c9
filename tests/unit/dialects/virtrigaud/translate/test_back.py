"""KubeVirt machines that nobody has made for VirtRigaud: what they become, and what is told of the rest."""

import copy
import json
from typing import Any

import pytest

from paddock.dialects.virtrigaud.translate import from_kubevirt
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from tests.unit.dialects.virtrigaud.kinds.objects import put
from tests.unit.dialects.virtrigaud.translate.back_cases import CASES, GONE, MACHINE, D, P
from tests.unit.dialects.virtrigaud.translate.making import Json, at, plain, secret, typed


def machine(changes: Json) -> Machine:
    raw = copy.deepcopy(MACHINE)
    for path, value in changes.items():
        if value is GONE:
            *way, last = path.split(".")
            del at(raw, tuple(int(step) if step.isdigit() else step for step in way))[last]
        else:
            put(raw, path, value)
    admission = admit(raw, AdmissionSettings(target="cluster"))
    assert [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR] == []
    assert isinstance(admission.value, Machine)
    return admission.value


class Read:
    """The translation of a machine."""

    def __init__(self, changes: Json, *others: Resource, **rendering: Any) -> None:
        result = from_kubevirt(machine(changes), ObjectSet(others), Rendering(**rendering))
        self.resources = result.value
        self.losses = result.losses
        self.specs = {each.kind: plain(each).get("spec", {}) for each in result.value}
        for each in result.value:
            admission = admit(plain(each), AdmissionSettings())
            assert [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR] == []

    def lost(self) -> list[str]:
        return [loss.field for loss in self.losses]

    def __getitem__(self, path: str) -> Any:
        kind, _, rest = path.partition(".")
        return at(self.specs.get(kind), rest)


def test_the_objects_and_their_order() -> None:
    read = Read({})
    assert [(each.kind, each.metadata.name) for each in read.resources] == [
        ("Secret", "kubevirt-credentials"),
        ("Provider", "kubevirt"),
        ("VMClass", "web"),
        ("VMImage", "web"),
        ("VMNetworkAttachment", "pod-network"),
        ("VirtualMachine", "web"),
    ]
    assert read["Provider.type"] == "qemu"
    assert read["VirtualMachine.providerRef"] == {"name": "kubevirt"}
    assert read["VirtualMachine.classRef"] == {"name": "web"}
    assert read["VirtualMachine.imageRef"] == {"name": "web"}
    assert read["VirtualMachine.networks"] == [{"name": "default", "networkRef": {"name": "pod-network"}}]
    assert read.losses == ()


def test_the_provider_has_a_name_of_ones_choice_and_is_made_once() -> None:
    named = Read({}, provider="engine")
    assert named["VirtualMachine.providerRef.name"] == "engine"
    provider = next(each for each in named.resources if each.kind == "Provider")
    again = Read({}, provider, provider="engine")
    assert "Provider" not in again.specs
    assert "Secret" not in {each.kind for each in again.resources}
    assert again["VirtualMachine.providerRef.name"] == "engine"


@pytest.mark.parametrize(("what", "changes", "found", "lost"), CASES, ids=[case[0] for case in CASES])
def test_what_a_machine_becomes(what: str, changes: Json, found: Json, lost: tuple[str, ...]) -> None:
    read = Read({path.replace("[0]", ".0") if value is GONE else path: value for path, value in changes.items()})
    assert {path: read[path] for path in found} == found
    assert sorted(read.lost()) == sorted(lost)
    assert all(loss.why and loss.instead and loss.of == "VirtualMachine/web" for loss in read.losses)


def data_disk(**changes: Any) -> Json:
    template: Json = {
        "metadata": {"name": "web-data"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": changes.pop("size", "5Gi")}}}},
    }
    template["spec"].update(changes.pop("spec", {}))
    return {
        "spec.dataVolumeTemplates[1]": template,
        f"{D}.devices.disks[1]": {"name": "data", "disk": {"bus": "virtio"}, **changes},
        f"{P}.volumes[1]": {"name": "data", "dataVolume": {"name": "web-data"}},
    }


T1 = "spec.dataVolumeTemplates[1]"


@pytest.mark.parametrize(
    ("changes", "found", "lost"),
    [
        (data_disk(), {"name": "data", "sizeGiB": 5}, ()),
        (data_disk(size="5500Mi"), {"name": "data", "sizeGiB": 6}, (f"{T1}.spec.storage.resources.requests.storage",)),
        (data_disk(spec={"preallocation": True}), {"name": "data", "sizeGiB": 5, "type": "thick"}, ()),
        (data_disk(disk={"bus": "scsi"}), {"name": "data", "sizeGiB": 5, "scsi": {}}, ()),
        (data_disk(serial="x"), {"name": "data", "sizeGiB": 5}, (f"{D}.devices.disks[1].serial",)),
        (data_disk(spec={"source": {"http": {"url": "https://x/a"}}}), {"name": "data", "sizeGiB": 5}, (f"{T1}.spec.source.http",)),
        (data_disk(disk=None, cdrom={"bus": "sata"}), None, (T1, f"{D}.devices.disks[1]", f"{P}.volumes[1]")),
    ],
)
def test_data_disks(changes: Json, found: Any, lost: tuple[str, ...]) -> None:
    read = Read(changes)
    assert read["VirtualMachine.disks"] == ([found] if found else None)
    assert sorted(read.lost()) == sorted(lost)


def test_a_data_disk_in_the_default_class_beside_a_root_disk_in_another() -> None:
    read = Read({**data_disk(), "spec.dataVolumeTemplates[0].spec.storage.storageClassName": "fast"})
    assert read["VMClass.diskDefaults.storageClass"] == "fast"
    assert read.lost() == [f"{T1}.spec.storage.storageClassName"]
    assert read.losses[0].instead == "the disk is made in fast, as the root disk"


def test_names_follow_from_the_machine() -> None:
    changes = {
        "spec.dataVolumeTemplates[0].metadata.name": "my-disk",
        f"{D}.devices.disks[0].name": "root",
        f"{P}.volumes": [
            {"name": "root", "dataVolume": {"name": "my-disk"}},
            {"name": "init", "cloudInitNoCloud": {"userData": "#cloud-config\n"}},
        ],
    }
    read = Read(changes)
    assert [(loss.field, loss.value, loss.instead) for loss in read.losses] == [
        (f"{P}.volumes[0].name", "root", "it is called rootdisk"),
        (f"{P}.volumes[1].name", "init", "it is called cloudinitdisk"),
        ("spec.dataVolumeTemplates[0].metadata.name", "my-disk", "it is called web-rootdisk"),
    ]


def told(**content: Any) -> Json:
    kind = content.pop("kind", "cloudInitNoCloud")
    return {
        f"{D}.devices.disks[1]": {"name": "cloudinitdisk", "disk": {"bus": "virtio"}},
        f"{P}.volumes[1]": {"name": "cloudinitdisk", kind: content},
    }


IGNITION = '{"ignition": {"version": "3.4.0"}}'


@pytest.mark.parametrize(
    ("changes", "found", "lost"),
    [
        (told(userData="#cloud-config\n"), {"cloudInit": {"inline": "#cloud-config\n"}}, ()),
        (told(userDataBase64="I2Nsb3VkLWNvbmZpZwo="), {"cloudInit": {"inline": "#cloud-config\n"}}, ()),
        (told(userDataBase64="/w=="), None, (f"{P}.volumes[1]", f"{D}.devices.disks[1]")),
        (told(secretRef={"name": "docs"}), {"cloudInit": {"secretRef": {"name": "docs"}}}, ()),
        (
            told(kind="cloudInitConfigDrive", userData="#cloud-config\n"),
            {"cloudInit": {"inline": "#cloud-config\n"}},
            (f"{P}.volumes[1].cloudInitConfigDrive",),
        ),
        (told(kind="cloudInitConfigDrive", userData=IGNITION), {"ignition": {"inline": IGNITION}}, ()),
        (
            told(kind="cloudInitConfigDrive", userData="{not json"),
            {"cloudInit": {"inline": "{not json"}},
            (f"{P}.volumes[1].cloudInitConfigDrive",),
        ),
        (
            told(userData="#cloud-config\n", networkData="version: 2\n"),
            {"cloudInit": {"inline": "#cloud-config\n"}},
            (f"{P}.volumes[1].cloudInitNoCloud.networkData",),
        ),
    ],
)
def test_user_data(changes: Json, found: Any, lost: tuple[str, ...]) -> None:
    read = Read(changes)
    assert read["VirtualMachine.userData"] == found
    assert read.lost() == list(lost)
    assert "version" not in str(read.losses)


def test_ignition_from_a_secret() -> None:
    read = Read(told(kind="cloudInitConfigDrive", secretRef={"name": "docs"}), secret("docs", userdata=IGNITION))
    assert read["VirtualMachine.userData"] == {"ignition": {"secretRef": {"name": "docs"}}}
    assert read.losses == ()


def test_network_data() -> None:
    """Written by somebody else, in other words."""
    data = """
network:
  version: 2
  ethernets:
    lan: {match: {macaddress: "02:00:00:00:00:0A"}, addresses: [10.0.0.5/16], gateway4: 10.0.0.1, nameservers: {addresses: [10.0.0.2]}}
"""
    changes = {**told(userData="#cloud-config\n", networkData=data), f"{D}.devices.interfaces[0].macAddress": "02:00:00:00:00:0a"}
    read = Read(changes)
    assert read["VirtualMachine.networks.0"] == {
        "name": "default",
        "networkRef": {"name": "pod-network"},
        "macAddress": "02:00:00:00:00:0a",
        "ipAddress": "10.0.0.5",
        "prefix": 16,
        "gateway": "10.0.0.1",
        "dns": "10.0.0.2",
    }
    # What was written is said in other words now, and that is told.
    assert read.lost() == [f"{P}.volumes[1].cloudInitNoCloud.networkData"]


def definition(config: Any, name: str = "vlan7", namespace: str = "default") -> Any:
    text = config if isinstance(config, str) else json.dumps(config)
    metadata = {"name": name, "namespace": namespace}
    return typed(
        {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": metadata, "spec": {"config": text}}
    )


def on_multus(name: str, **interface: Any) -> Json:
    return {
        f"{D}.devices.interfaces": [{"name": "lan", "bridge": {}, **interface}],
        f"{P}.networks": [{"name": "lan", "multus": {"networkName": name}}],
    }


BY_NAME = {"network": {"libvirt": {"networkName": "vlan7"}}}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"type": "bridge", "bridge": "br7"}, {"network": {"libvirt": {"bridge": {"name": "br7"}}}}),
        ({"type": "bridge", "bridge": "br7", "mtu": 9000}, {"network": {"libvirt": {"bridge": {"name": "br7"}}, "mtu": 9000}}),
        ({"type": "bridge", "bridge": "vmbr1", "vlan": 7}, {"network": {"proxmox": {"bridge": "vmbr1", "vlanTag": 7}}}),
        ({"type": "bridge", "bridge": "vmbr1", "mtu": 9200}, {"network": {"proxmox": {"bridge": "vmbr1", "mtu": 9200}}}),
        (
            {"type": "bridge", "bridge": "br7", "vlan": 7},
            {"network": {"vsphere": {"portgroup": "br7", "vlan": {"type": "vlan", "vlanID": 7}}}},
        ),
        (
            {"type": "bridge", "bridge": "br7", "vlanTrunk": [{"id": 5}], "macspoofchk": True},
            {
                "network": {
                    "vsphere": {
                        "portgroup": "br7",
                        "vlan": {"type": "trunk", "trunkVlanIDs": [5]},
                        "security": {"allowForgedTransmits": False},
                    }
                }
            },
        ),
        (
            {"type": "bridge", "bridge": "br7", "ipam": {"type": "static", "addresses": [{"address": "10.0.0.5/24"}]}},
            {
                "network": {"libvirt": {"bridge": {"name": "br7"}}},
                "ipAllocation": {"type": "Static", "staticConfig": {"address": "10.0.0.5/24"}},
            },
        ),
        (
            {"plugins": [{"type": "bridge", "bridge": "br7"}, {"type": "bandwidth", "egressRate": 5000, "egressBurst": 5000}]},
            {"network": {"libvirt": {"bridge": {"name": "br7"}}}, "qos": {"egressLimit": 5000}},
        ),
        # What cannot be said whole is named.
        ({"type": "bridge", "bridge": "br7", "isGateway": True}, BY_NAME),
        ({"type": "bridge", "bridge": "br7", "vlanTrunk": [{"minID": 5, "maxID": 9}]}, BY_NAME),
        ({"type": "bridge", "bridge": "br7", "ipam": {"type": "static", "addresses": [{"address": "fd00::5/64"}]}}, BY_NAME),
        ({"plugins": [{"type": "bridge", "bridge": "br7"}, {"type": "bandwidth", "egressRate": 5000, "egressBurst": 1}]}, BY_NAME),
        ({"plugins": [{"type": "bridge", "bridge": "br7"}, {"type": "tuning"}]}, BY_NAME),
        ({"plugins": []}, BY_NAME),
        ({"type": "macvlan", "master": "eth0"}, BY_NAME),
        ("[1]", BY_NAME),
        ("not json", BY_NAME),
        ("", BY_NAME),
    ],
)
def test_definitions(config: Any, found: Json) -> None:
    given = config if isinstance(config, str) else {"cniVersion": "1.0.0", "name": "vlan7", **config}
    read = Read(on_multus("vlan7"), definition(given))
    assert read.specs["VMNetworkAttachment"] == found or read.specs["VMNetworkAttachment"] == {
        **found,
        "network": {**found["network"], "mtu": 1500},
    }
    assert read["VirtualMachine.networks"] == [{"name": "lan", "networkRef": {"name": "vlan7"}}]
    assert read.losses == ()


def test_a_definition_elsewhere_and_one_that_is_not_there() -> None:
    there = Read(
        on_multus("infra/vlan7"), definition({"cniVersion": "1.0.0", "name": "vlan7", "type": "bridge", "bridge": "br7"}, namespace="infra")
    )
    assert there["VirtualMachine.networks.0.networkRef"] == {"name": "vlan7", "namespace": "infra"}
    assert there["VMNetworkAttachment.network.libvirt.bridge.name"] == "br7"
    absent = Read(on_multus("infra/vlan7"))
    assert absent["VirtualMachine.networks.0.networkRef"] == {"name": "vlan7", "namespace": "infra"}
    assert absent["VMNetworkAttachment.network.libvirt.networkName"] == "vlan7"
    assert there.losses == absent.losses == ()


def test_sriov_is_lost() -> None:
    read = Read(
        {f"{D}.devices.interfaces": [{"name": "lan", "sriov": {}}], f"{P}.networks": [{"name": "lan", "multus": {"networkName": "vf"}}]}
    )
    assert read.lost() == [f"{D}.devices.interfaces[0].sriov"]


def test_too_much_of_everything() -> None:
    count = 24
    changes: Json = {}
    for index in range(1, count):
        changes[f"spec.dataVolumeTemplates[{index}]"] = {
            "metadata": {"name": f"web-d{index}"},
            "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
        }
        changes[f"{D}.devices.disks[{index}]"] = {"name": f"d{index}", "disk": {"bus": "virtio"}}
        changes[f"{P}.volumes[{index}]"] = {"name": f"d{index}", "dataVolume": {"name": f"web-d{index}"}}
    read = Read(changes)
    assert len(read["VirtualMachine.disks"]) == 20
    assert f"{D}.devices.disks[21]" in read.lost()


def test_annotations_of_somebody_else_do_no_harm() -> None:
    bad = {
        "virtrigaud.io/class": "Not A Name",
        "virtrigaud.io/class-cpu": "many",
        "virtrigaud.io/class-memory": "-1",
        "virtrigaud.io/networks": "{",
        "virtrigaud.io/tags": '{"a": 1}',
        "virtrigaud.io/image": "a/b/c",
    }
    read = Read({"metadata.annotations": bad})
    assert read["VirtualMachine.classRef"] == {"name": "web"}
    assert read["VMClass.cpu"] == 2
    assert read["VirtualMachine.tags"] is None
    assert read.losses == ()


def test_a_name_with_dots_cannot_be_referred_to() -> None:
    read = Read(
        {
            "metadata.name": "web.prod",
            "spec.dataVolumeTemplates[0].metadata.name": "web.prod-rootdisk",
            f"{P}.volumes[0].dataVolume.name": "web.prod-rootdisk",
        }
    )
    assert read["VirtualMachine.classRef"] == {"name": "web-prod"}
    assert read.losses == ()

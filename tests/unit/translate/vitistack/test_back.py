"""KubeVirt machines of any make become Vitistack's, and every value that does not fit is told."""

import copy
from typing import Any

import msgspec
import pytest
import yaml

from paddock.dialects import catalog
from paddock.dialects.admission import admit
from paddock.dialects.kubevirt.virtualmachine import VirtualMachine
from paddock.dialects.vitistack.machine import Machine
from paddock.meta.objects import Resource
from paddock.meta.rendering import Rendering
from paddock.meta.translated import Translated
from paddock.meta.wire import from_data, to_data
from paddock.meta.world import World
from paddock.schema.check import check
from paddock.schema.finding import Path, Severity, format_path
from paddock.schema.kind import Settings
from paddock.translate.vitistack import from_kubevirt
from tests.documents import fullest
from tests.unit.translate.vitistack.making import STANDARD, Json, definition, secret

ROOT = {"name": "root", "disk": {"bus": "virtio"}}
CLAIM = {"name": "root", "persistentVolumeClaim": {"claimName": "web-root"}}
POD_CARD = {"name": "default", "model": "virtio", "masquerade": {}}
POD = {"name": "default", "pod": {}}
BRIDGE = '{"cniVersion":"1.0.0","name":"lan","plugins":[{"type":"bridge","bridge":"br7","vlan":7,"mtu":1400,"ipam":{}}]}'
INSTANCE = "spec.template.spec"


def claim(name: str = "web-root", **spec: Any) -> Json:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "prod"}, "spec": asked}


def data_volume(name: str = "web-root", **spec: Any) -> Json:
    asked = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "9Gi"}}}, **spec}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name, "namespace": "prod"}, "spec": asked}


def vm(
    domain: Json | None = None, devices: Json | None = None, instance: Json | None = None, spec: Json | None = None, **metadata: Any
) -> Json:
    """A machine that fits, and what is said on top."""
    hardware = {"cpu": {"cores": 2}, "memory": {"guest": "3Gi"}, **(domain or {})}
    hardware["devices"] = {"disks": [ROOT], "interfaces": [POD_CARD], "networkInterfaceMultiqueue": True, **(devices or {})}
    inner = {"domain": hardware, "volumes": [CLAIM], "networks": [POD], **(instance or {})}
    meta = {"name": "web", "namespace": "prod", **metadata}
    outer = {"running": True, "template": {"spec": inner}, **(spec or {})}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, "spec": outer}


def typed(raw: Json) -> Any:
    """The document as its class, whether or not KubeVirt's rules would take it."""
    kind = catalog.find(raw["apiVersion"].rpartition("/")[0], raw["kind"])
    assert kind is not None
    return from_data(check(kind.cls, raw).value, kind.cls)


def back(raw: Json, *world: Json | Resource, rendering: Rendering = STANDARD) -> Translated[tuple[Resource, ...]]:
    value = typed(raw)
    assert isinstance(value, VirtualMachine)
    given = [each if isinstance(each, Resource) else typed(each) for each in world or (claim(),)]
    made = from_kubevirt(value, World(given), rendering)
    for each in made.value:
        admission = admit(to_data(each), Settings())
        assert admission.accepted, admission.findings
    return made


def machine(made: Translated[tuple[Resource, ...]]) -> Machine:
    found = made.value[-1]
    assert isinstance(found, Machine)
    return found


def spec_of(raw: Json, *world: Json | Resource, rendering: Rendering = STANDARD) -> Json:
    found: Json = to_data(machine(back(raw, *world, rendering=rendering)))["spec"]
    return found


def losses(raw: Json, *world: Json | Resource) -> list[str]:
    return [loss.field if loss.of.startswith("VirtualMachine/") else f"{loss.of} {loss.field}" for loss in back(raw, *world).losses]


def test_a_machine_that_fits_loses_nothing() -> None:
    made = back(vm())
    assert made.losses == ()
    assert to_data(machine(made)) == {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "web", "namespace": "prod"},
        "spec": {"resources": {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}, "disks": [{"name": "root", "size": "9Gi"}]},
    }


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ({"cpu": {"cores": 2, "threads": 2, "sockets": 3}}, {"cpu": {"cores": 2, "threads": 2, "sockets": 3}}),
        ({"cpu": {"cores": 2, "sockets": 17}}, {"cpu": {"cores": 34}}),
        ({"cpu": {"cores": 257}}, {"cpu": {"cores": 256}}),
        ({"cpu": {"threads": 9}}, {"cpu": {"cores": 9}}),
        ({"cpu": None, "resources": {"limits": {"cpu": "2500m"}, "requests": {"cpu": "1"}}}, {"cpu": {"cores": 1, "sockets": 3}}),
        ({"cpu": None, "resources": {"requests": {"cpu": "2"}}}, {"cpu": {"cores": 1, "sockets": 2}}),
        ({"cpu": None}, {"cpu": {"cores": 1}}),
        ({"memory": None, "resources": {"requests": {"memory": "1Gi"}}}, {"memory": {"size": "1Gi"}}),
        ({"memory": None, "resources": {"limits": {"memory": "1Gi"}}}, {"memory": {"size": "1Gi"}}),
        ({"memory": {"guest": "1Ki"}}, {"memory": {"size": "1Mi"}}),
        ({"memory": {"guest": "2147483647500m"}}, {"memory": {"size": "2Gi"}}),
        ({"memory": None}, {"memory": {"size": "2Gi"}}),
    ],
)
def test_processors_and_memory(domain: Json, expected: Json) -> None:
    whole = {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}
    assert spec_of(vm(domain))["resources"] == whole | expected


def test_memory_that_nobody_gives_is_told() -> None:
    (loss,) = back(vm({"memory": None}, spec={"instancetype": {"name": "u1.small"}})).losses[:1]
    assert (loss.field, loss.instead) == (f"{INSTANCE}.domain.memory", "the Machine has 2Gi")


@pytest.mark.parametrize(
    ("template", "disks", "expected"),
    [
        ("small", [("root", "20Gi")], {"template": "small", "resources": {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}}),
        ("small", [("root", "20Gi"), ("b", "1Gi")], {"template": "small", "disks": [{"name": "b", "size": "1Gi"}]}),
        ("small", [("root", "30Gi")], {"template": "small", "disks": [{"name": "root", "size": "30Gi"}]}),
        ("small", [("b", "1Gi"), ("root", "20Gi")], {"disks": [{"name": "b", "size": "1Gi"}, {"name": "root", "size": "20Gi"}]}),
        ("small", [("b", "1Gi")], {"disks": [{"name": "b", "size": "1Gi"}]}),
        ("huge", [("root", "20Gi")], {"disks": [{"name": "root", "size": "20Gi"}]}),
    ],
)
def test_the_template_is_found_again_where_it_fits(template: str, disks: list[tuple[str, str]], expected: Json) -> None:
    raw = vm(
        devices={"disks": [{"name": name, "disk": {"bus": "virtio"}} for name, _ in disks]},
        instance={"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": f"web-{name}"}} for name, _ in disks]},
        labels={"vitistack.io/machine-template": template},
    )
    world = [claim(f"web-{name}", resources={"requests": {"storage": size}}) for name, size in disks]
    found = spec_of(raw, *world)
    assert found.get("template") == expected.get("template")
    assert found.get("disks") == expected.get("disks")


def disk_of(raw: Json, *world: Json) -> Json:
    (found,) = spec_of(raw, *world)["disks"]
    assert found.pop("name") == "root"
    return dict(found)


@pytest.mark.parametrize(
    ("spec", "expected", "lost"),
    [
        ({}, {}, []),
        ({"storageClassName": "standard"}, {}, []),
        ({"storageClassName": "fast"}, {"storageClass": "fast"}, []),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, []),
        ({"accessModes": ["ReadWriteMany"]}, {"accessMode": "ReadWriteMany"}, []),
        ({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]}, {"accessMode": "ReadWriteMany"}, ["spec.accessModes"]),
        ({"accessModes": ["ReadWriteOncePod"]}, {}, ["spec.accessModes"]),
        ({"accessModes": ["ReadOnlyMany"]}, {}, ["spec.accessModes"]),
        ({"volumeName": "pv-1"}, {}, []),
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}, {}, ["spec.dataSource"]),
    ],
)
def test_claims(spec: Json, expected: Json, lost: list[str]) -> None:
    asked = claim(**spec)
    assert disk_of(vm(), asked) == {"size": "9Gi"} | expected
    assert losses(vm(), asked) == [f"PersistentVolumeClaim/web-root {field}" for field in lost]


def test_a_claim_of_another_name_loses_its_volume() -> None:
    raw = vm(instance={"volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "old"}}]})
    assert losses(raw, claim("old", volumeName="pv-1")) == [
        f"{INSTANCE}.volumes[0].persistentVolumeClaim.claimName",
        "PersistentVolumeClaim/old spec.volumeName",
    ]


def test_a_claim_that_is_not_in_the_input() -> None:
    made = back(vm(), secret())
    assert to_data(machine(made))["spec"]["disks"] == [{"name": "root", "size": "20Gi"}]
    assert [(loss.field, loss.instead) for loss in made.losses] == [(f"{INSTANCE}.volumes[0]", "the disk has 20Gi")]


@pytest.mark.parametrize(
    ("source", "image", "lost"),
    [
        ({"http": {"url": "https://e.org/a"}}, "https://e.org/a", []),
        ({"registry": {"url": "docker://e.org/a"}}, "docker://e.org/a", []),
        ({"http": {"url": "https://e.org/a", "secretRef": "s"}}, "https://e.org/a", ["spec.source.http.secretRef"]),
        ({"registry": {"url": "oci-archive://e.org/a"}}, None, ["spec.source"]),
        ({"pvc": {"namespace": "a", "name": "b"}}, None, ["spec.source"]),
        ({"blank": {}}, None, ["spec.source"]),
    ],
)
def test_data_volumes(source: Json, image: str | None, lost: list[str]) -> None:
    raw = vm(instance={"volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}]})
    made = back(raw, data_volume(source=source))
    found = to_data(machine(made))
    assert found["metadata"].get("annotations") == ({"vitistack.io/root-image": image} if image else None)
    assert found["spec"]["disks"] == [{"name": "root", "size": "9Gi"}]
    assert [loss.field for loss in made.losses if loss.of == "DataVolume/web-root"] == lost


def test_templates_of_data_volumes() -> None:
    template = {"metadata": {"name": "boot"}, "spec": data_volume(source={"http": {"url": "http://e.org/a"}})["spec"]}
    raw = vm(instance={"volumes": [{"name": "root", "dataVolume": {"name": "boot"}}]}, spec={"dataVolumeTemplates": [template]})
    assert spec_of(raw)["disks"] == [{"name": "root", "size": "9Gi"}]
    assert (machine(back(raw)).metadata.annotations or {}) == {"vitistack.io/root-image": "http://e.org/a"}
    assert "spec.dataVolumeTemplates" in losses(raw)


@pytest.mark.parametrize(
    ("volume", "disk", "image"),
    [
        ({"containerDisk": {"image": "e.org/a"}}, {"name": "root", "size": "20Gi"}, "docker://e.org/a"),
        ({"emptyDisk": {"capacity": "2Gi"}}, {"name": "root", "size": "2Gi"}, None),
        ({"hostDisk": {"path": "/a", "type": "DiskOrCreate", "capacity": "3Gi"}}, {"name": "root", "size": "3Gi"}, None),
        ({"hostDisk": {"path": "/a", "type": "Disk"}}, None, None),
        ({"configMap": {"name": "a"}}, None, None),
        ({"ephemeral": {"persistentVolumeClaim": {"claimName": "a"}}}, None, None),
    ],
)
def test_volumes_that_are_no_claims(volume: Json, disk: Json | None, image: str | None) -> None:
    raw = vm(instance={"volumes": [{"name": "root", **volume}]})
    made = back(raw)
    found = to_data(machine(made))
    assert found["spec"].get("disks", []) == ([disk] if disk else [])
    assert found["metadata"].get("annotations") == ({"vitistack.io/root-image": image} if image else None)
    assert any(loss.field.startswith(f"{INSTANCE}.volumes") for loss in made.losses)
    # Without a disk there is only the network to boot from.
    assert found["spec"].get("bootOrder") == (None if disk else ["network"])


def test_the_disk_that_is_booted_comes_first() -> None:
    names = ("data", "boot", "root")
    disks = [{"name": name, "disk": {"bus": "virtio"}} for name in names]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"web-{name}"}} for name in names]
    world = [claim(f"web-{name}") for name in names]
    disks[1]["bootOrder"] = 1  # type: ignore[assignment]
    raw = vm(devices={"disks": disks[:2]}, instance={"volumes": volumes[:2]})
    found = spec_of(raw, *world)
    assert ([each["name"] for each in found["disks"]], found["bootOrder"]) == (["boot", "data"], ["disk"])
    assert losses(raw, *world) == [f"{INSTANCE}.domain.devices.disks[1]"]
    # A disk called root is the root disk, whatever is booted.
    raw = vm(devices={"disks": disks}, instance={"volumes": volumes})
    assert [each["name"] for each in spec_of(raw, *world)["disks"]] == list(names)
    assert f"{INSTANCE}.domain.devices.disks[1].bootOrder" in losses(raw, *world)


def wired(*cards: Json, names: tuple[str, ...] = ("lan",)) -> Json:
    networks = [{"name": card["name"], "multus": {"networkName": name}} for card, name in zip(cards, names, strict=True)]
    return vm(devices={"interfaces": list(cards)}, instance={"networks": networks})


def test_networks_come_with_their_configuration() -> None:
    made = back(
        wired({"name": "eth0", "model": "e1000", "bridge": {}, "macAddress": "52-54-00-00-00-AA"}), claim(), definition("lan", BRIDGE)
    )
    assert made.losses == ()
    network, machine_ = (to_data(each) for each in made.value)
    assert (network["kind"], network["metadata"]) == ("NetworkConfiguration", {"name": "lan", "namespace": "prod"})
    assert network["spec"] == {"bridge": "br7", "vlan": 7, "mtu": 1400}
    expected = {"name": "eth0", "networkName": "lan", "model": "e1000", "macAddress": "52:54:00:00:00:aa"}
    assert machine_["spec"]["networks"] == [expected]


@pytest.mark.parametrize(
    "config", ["", "no json", "{}", BRIDGE.replace("bridge", "ovs", 1), BRIDGE.replace('"ipam":{}', '"ipam":{"type":"dhcp"}')]
)
def test_a_definition_of_another_kind_stays_in_use(config: str) -> None:
    made = back(wired({"name": "eth0", "bridge": {}}), claim(), definition("lan", config))
    (loss,) = made.losses
    assert (loss.of, loss.field) == ("NetworkAttachmentDefinition/lan", "spec.config")
    assert loss.instead == "the definition stays in use as it is"
    assert to_data(made.value[0])["spec"] == {}


def test_a_definition_that_is_not_in_the_input() -> None:
    raw = wired({"name": "eth0", "bridge": {}}, {"name": "eth1", "bridge": {}}, names=("lan", "other/wan"))
    made = back(raw, claim())
    assert [each.metadata.name for each in made.value] == ["lan", "wan", "web"]
    places = ("[0].multus", "[1].multus", "[1].multus.networkName")
    assert losses(raw, claim()) == [f"{INSTANCE}.networks{place}" for place in places]


@pytest.mark.parametrize(
    ("cards", "lost"),
    [
        ([{"name": "eth0", "model": "e1000e", "bridge": {}}], ["model"]),
        ([{"name": "eth0", "sriov": {}}], ["sriov"]),
        ([{"name": "eth0", "bridge": {}, "macAddress": "53:54:00:00:00:01"}], ["macAddress"]),
        ([{"name": "eth0", "bridge": {}, "macAddress": "00:00:00:00:00:00"}], ["macAddress"]),
        ([{"name": "eth0", "bridge": {}, "pciAddress": "0000:81:01.0"}], ["pciAddress"]),
    ],
)
def test_what_a_card_loses(cards: list[Json], lost: list[str]) -> None:
    assert losses(wired(*cards), claim(), definition("lan", BRIDGE)) == [f"{INSTANCE}.domain.devices.interfaces[0].{name}" for name in lost]


def test_the_pod_network_beside_others_is_lost() -> None:
    card = {"name": "eth0", "bridge": {}}
    raw = vm(devices={"interfaces": [POD_CARD, card]}, instance={"networks": [POD, {"name": "eth0", "multus": {"networkName": "lan"}}]})
    assert [each["name"] for each in spec_of(raw, claim(), definition("lan", BRIDGE))["networks"]] == ["eth0"]
    assert losses(raw, claim(), definition("lan", BRIDGE)) == [f"{INSTANCE}.domain.devices.interfaces[0]", f"{INSTANCE}.networks[0]"]


def test_an_address_on_the_pod_network_cannot_be_given() -> None:
    raw = vm(devices={"interfaces": [POD_CARD | {"macAddress": "52:54:00:00:00:01"}]})
    assert losses(raw) == [f"{INSTANCE}.domain.devices.interfaces[0].macAddress"]


USER = "#cloud-config\na: 1\n"


def told(document: Json, **volume: Any) -> Json:
    """A machine with a cloud-init disk."""
    disks = [ROOT, {"name": "ci", "disk": {"bus": "virtio"}}]
    return vm(devices={"disks": disks}, instance={"volumes": [CLAIM, {"name": "ci", **(volume or {"cloudInitNoCloud": document})}]})


@pytest.mark.parametrize(
    ("document", "expected", "lost"),
    [
        ({"userData": USER}, {"userData": USER}, []),
        ({"userData": "#cloud-config"}, {}, []),
        ({"userDataBase64": "I2Nsb3VkLWNvbmZpZwphOiAxCg=="}, {"userData": USER}, []),
        ({"userDataBase64": "!"}, {}, ["userDataBase64"]),
        ({"userDataBase64": "/w=="}, {}, ["userDataBase64"]),
        ({"userData": USER, "networkData": "version: 2"}, {"userData": USER, "networkData": "version: 2"}, []),
        ({"userData": USER, "networkDataBase64": "dmVyc2lvbjogMg=="}, {"userData": USER, "networkData": "version: 2"}, []),
        ({"secretRef": {"name": "keys"}}, {"secretRef": {"name": "keys"}}, []),
        ({"secretRef": {"name": "keys"}, "networkDataSecretRef": {"name": "keys"}}, {"secretRef": {"name": "keys"}}, []),
        (
            {"secretRef": {"name": "keys"}, "networkDataSecretRef": {"name": "net"}},
            {"secretRef": {"name": "keys"}, "networkData": "version: 1"},
            [],
        ),
        ({"userData": USER, "networkDataSecretRef": {"name": "none"}}, {"userData": USER}, ["networkDataSecretRef"]),
        ({"userData": USER, "networkDataSecretRef": {"name": "keys"}}, {"userData": USER, "networkData": "version: 2"}, []),
    ],
)
def test_cloud_init(document: Json, expected: Json, lost: list[str]) -> None:
    world: list[Any] = [claim(), secret(userdata=USER, networkdata="version: 2"), secret("net", networkdata="version: 1")]
    assert spec_of(told(document), *world)["cloudInit"] == expected
    assert losses(told(document), *world) == [f"{INSTANCE}.volumes[1].{name}" for name in lost]


def test_a_config_drive_becomes_no_cloud() -> None:
    raw = told({}, cloudInitConfigDrive={"userData": USER})
    assert spec_of(raw)["cloudInit"] == {"userData": USER}
    assert losses(raw) == [f"{INSTANCE}.volumes[1].cloudInitConfigDrive"]
    assert USER not in repr(back(raw).losses)


def test_the_secret_goes_along() -> None:
    given = typed(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys", "namespace": "prod", "uid": "x", "resourceVersion": "5", "ownerReferences": [OWNER]},
            "data": {"userdata": "YQ=="},
        }
    )
    made = back(told({"secretRef": {"name": "keys"}}), claim(), given)
    metadata = {"name": "keys", "namespace": "prod"}
    assert to_data(made.value[0]) == {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"userdata": "YQ=="}}


OWNER = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "name": "web",
    "uid": "u-1",
    "controller": True,
    "blockOwnerDeletion": True,
}


@pytest.mark.parametrize(
    ("domain", "expected", "lost"),
    [
        ({"machine": {"type": "q35"}}, {"machine": {"type": "q35"}}, []),
        ({"machine": {"type": "pc-q35-9.0"}}, {"machine": {"type": "pc-q35-9.0"}}, []),
        ({"machine": {"type": "virt"}}, None, ["machine"]),
        ({"features": {"acpi": {}}}, None, []),
        ({"features": {"acpi": {"enabled": True}}}, None, []),
        ({"features": {"acpi": {"enabled": False}}}, {"features": {"acpi": False}}, []),
        ({"features": {"apic": {}}}, {"features": {"apic": True}}, []),
        ({"features": {"apic": {"enabled": False}}}, {"features": {"apic": False}}, []),
        ({"features": {"apic": {"endOfInterrupt": True}}}, {"features": {"apic": True}}, ["features.apic.endOfInterrupt"]),
        ({"features": {"hyperv": {"relaxed": {}}}}, {"features": {"hyperv": True}}, ["features.hyperv"]),
        ({"features": {"kvm": {"hidden": True}}}, None, ["features.kvm"]),
        ({"firmware": {"bootloader": {"efi": {}}}}, {"firmware": {"bootloader": {"efi": True, "secureBoot": True}}}, []),
        ({"firmware": {"bootloader": {"efi": {"secureBoot": False}}}}, {"firmware": {"bootloader": {"efi": True}}}, []),
        ({"firmware": {"bootloader": {"bios": {}}}}, None, ["firmware"]),
        ({"firmware": {"uuid": "6a1a24a1-4061-4607-8bf4-a3963d0c5895"}}, None, ["firmware"]),
        ({"clock": {"timezone": "Europe/Oslo"}}, None, ["clock"]),
    ],
)
def test_mainboard_features_and_firmware(domain: Json, expected: Json | None, lost: list[str]) -> None:
    assert spec_of(vm(domain)).get("domain") == expected
    assert losses(vm(domain)) == [f"{INSTANCE}.domain.{name}" for name in lost]


def test_secure_boot_is_not_asked_of_the_old_chipset() -> None:
    domain = {"machine": {"type": "pc"}, "firmware": {"bootloader": {"efi": {"secureBoot": True}}}}
    assert spec_of(vm(domain))["domain"]["firmware"] == {"bootloader": {"efi": True}}
    assert losses(vm(domain)) == [f"{INSTANCE}.domain.firmware.bootloader.efi.secureBoot"]


@pytest.mark.parametrize(
    ("power", "stopped", "lost"),
    [
        ({"running": True}, False, []),
        ({"running": False}, True, []),
        ({"running": None, "runStrategy": "Always"}, False, []),
        ({"running": None, "runStrategy": "Halted"}, True, []),
        ({"running": None, "runStrategy": "Manual"}, False, ["spec.runStrategy"]),
    ],
)
def test_power(power: Json, stopped: bool, lost: list[str]) -> None:
    made = back(vm(spec=power))
    assert (machine(made).metadata.annotations or {}) == ({"vitistack.io/power-state": "stopped"} if stopped else {})
    assert [loss.field for loss in made.losses] == lost


def test_metadata() -> None:
    raw = vm(
        name="web.example",
        labels={"app": "x", "cluster.vitistack.io/cluster-name": "c1"},
        annotations={"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}", "vitistack.io/power-state": "x"},
        uid="u",
        resourceVersion="1",
        generation=3,
        creationTimestamp="2025-01-01T00:00:00Z",
        finalizers=["kubevirt.io/virtualMachineControllerFinalize", "e.org/mine"],
        ownerReferences=[{"apiVersion": "e.org/v1", "kind": "Machine", "name": "a", "uid": "b"}],
    )
    raw["status"] = {"ready": True}
    made = back(raw)
    assert to_data(machine(made).metadata) == {
        "name": "web-example",
        "namespace": "prod",
        "labels": {"app": "x", "cluster.vitistack.io/cluster-name": "c1"},
        "annotations": {"team": "a"},
    }
    renamed = [f"{INSTANCE}.volumes[0].persistentVolumeClaim.claimName"]
    told_of = ["name", "labels.app", "annotations", "ownerReferences", "finalizers"]
    assert [loss.field for loss in made.losses] == [f"metadata.{name}" for name in told_of] + renamed


def test_a_generated_name() -> None:
    raw = vm()
    raw["metadata"] = {"generateName": "web-", "namespace": "prod"}
    assert machine(back(raw)).metadata.name == "web"
    assert "metadata.generateName" in losses(raw)


def leaves(value: Any, path: Path = ()) -> list[Path]:
    entries = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [path] if not entries else [leaf for key, member in entries for leaf in leaves(member, (*path, key))]


def spread(raw: Json) -> Json:
    """The fullest machine, with one volume and disk for each source: a volume has only one."""
    made = copy.deepcopy(raw)
    inner = made["spec"]["template"]["spec"]
    (volume,) = inner["volumes"]
    inner["volumes"] = [{"name": f"v{index}", name: volume[name]} for index, name in enumerate(volume) if name != "name"]
    for each in inner["volumes"]:
        # One source for each document, too.
        if "cloudInitNoCloud" in each:
            each["cloudInitNoCloud"] = {"userData": "#!", "networkData": "version: 2"}
    (disk,) = inner["domain"]["devices"]["disks"]
    inner["domain"]["devices"]["disks"] = [
        *({"name": each["name"], "disk": {"bus": "sata"}, "serial": f"s-{each['name']}"} for each in inner["volumes"]),
        disk | {"name": "other"},
    ]
    return made


def without(raw: Json, path: Path) -> Json:
    made = copy.deepcopy(raw)
    place: Any = made
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return made


# What every Machine has, so that saying it makes no difference.
ALWAYS = (
    f"{INSTANCE}.domain.devices.networkInterfaceMultiqueue",
    f"{INSTANCE}.domain.devices.autoattachPodInterface",
    f"{INSTANCE}.domain.devices.autoattachGraphicsDevice",
    f"{INSTANCE}.domain.devices.autoattachSerialConsole",
    f"{INSTANCE}.domain.devices.autoattachMemBalloon",
    f"{INSTANCE}.domain.devices.filesystems[0].virtiofs",
    # the fullest machine has the values that hold anyway
    f"{INSTANCE}.domain.cpu.cores",
    f"{INSTANCE}.domain.cpu.sockets",
    f"{INSTANCE}.domain.cpu.threads",
    f"{INSTANCE}.domain.firmware.bootloader.efi.secureBoot",
    # with Hyper-V enlightenments
    f"{INSTANCE}.domain.clock.timer.pit.tickPolicy",
    f"{INSTANCE}.domain.clock.timer.hyperv.present",
)


def test_of_a_machine_that_says_everything_nothing_is_silent() -> None:
    """Each value of the fullest machine is taken away in turn: what is made or what is told has to be another."""
    kind = catalog.find("kubevirt.io", "VirtualMachine")
    assert kind is not None
    raw = spread(fullest(kind))

    def outcome(document: Json) -> bytes:
        made = from_kubevirt(from_data(document, VirtualMachine), World(), STANDARD)
        return msgspec.json.encode([made.value, made.losses])

    before = outcome(raw)
    places = [path for path in leaves(raw) if path[0] == "spec" and path[-1] != "enabled"]
    silent = [format_path(path) for path in places if outcome(without(raw, path)) == before]
    assert len(places) > 200
    assert set(silent) == set(ALWAYS)


def test_the_documents_example_of_kubevirt() -> None:
    made = back(yaml.safe_load(EXAMPLE))
    assert [found for found in admit(to_data(machine(made)), Settings()).findings if found.severity is Severity.ERROR] == []


EXAMPLE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: fedora-vm}
spec:
  runStrategy: Always
  dataVolumeTemplates:
  - metadata: {name: fedora-dv}
    spec:
      storage: {resources: {requests: {storage: 20Gi}}}
      source: {registry: {url: "docker://quay.io/containerdisks/fedora:38"}}
  template:
    spec:
      domain:
        cpu: {cores: 2}
        memory: {guest: 4Gi}
        devices:
          disks:
          - {name: rootdisk, disk: {bus: virtio}, bootOrder: 1}
          interfaces: [{name: default, masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: rootdisk, dataVolume: {name: fedora-dv}}
"""

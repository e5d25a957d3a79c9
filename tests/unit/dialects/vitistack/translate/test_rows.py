"""Every field that a user can write does something: it changes what is made, or it is told as a loss.

The documents below say everything that is declared (a test holds them against the declarations). Each value is taken away in
turn, or exchanged where it has to be there, and the translation has to notice. A row that is missing from the translator fails
here, whatever else is tested.
"""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machineclass import MachineClass
from paddock.dialects.vitistack.kinds.machinetemplate import MachineTemplate
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.translate import to_kubevirt
from paddock.dialects.vitistack.translate.errors import UntranslatableMachine
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.dialects.vitistack.translate.making import STANDARD, Json, config_map, network, secret

DISK: Json = {"name": "data", "size": "9Gi", "storageClass": "fast", "accessMode": "ReadWriteMany", "volumeMode": "Block"}
MACHINE: Json = {
    "template": "own",
    "resources": {"cpu": {"cores": 4, "threads": 2, "sockets": 3}, "memory": {"size": "7Gi"}},
    "disks": [DISK],
    "networks": [{"name": "eth0", "networkName": "lan", "model": "e1000", "macAddress": "52:54:00:00:00:01"}],
    "bootOrder": ["network", "disk"],
    "cloudInit": {"userData": "#cloud-config\na: 1\n", "networkData": "version: 2\n"},
    "domain": {"machine": {"type": "pc-q35"}, "features": {"acpi": False, "apic": True}, "firmware": {"bootloader": {"efi": True}}},
    "os": {"imageID": "docker://e.org/a"},
}
ANNOTATIONS = {
    "kubevirt.io/boot-source": "datavolume",
    "kubevirt.io/boot-source-type": "registry",
    "vitistack.io/boot-source-size": "1Ti",
    "vitistack.io/root-image": "https://e.org/root.qcow2",
    "vitistack.io/power-state": "stopped",
}
OTHER_MACHINE: Json = {
    "template": "own",
    "cloudInit": {"secretRef": {"name": "keys", "key": "foo"}},
    "domain": {"features": {"hyperv": True}, "firmware": {"bootloader": {"efi": True, "secureBoot": True}}},
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB a@b"
OWN_MACHINE: Json = {
    "provider": "kubevirt",
    "machineClass": "own",
    "name": "guest",
    "cpu": {"cores": 3, "threadsPerCore": 2, "sockets": 2},
    "memory": 3 * 2**30,
    "disks": [
        {"name": "data", "sizeGB": 9, "type": "sata", "device": "/dev/sdb", "iops": 3000, "throughput": 500},
        {"name": "sys", "sizeGB": 5, "type": "nvme", "boot": True},
    ],
    "network": {
        "networkNamespaceName": "lan",
        **dict.fromkeys(("vpc", "subnet", "privateIP", "publicIP"), "x"),
        "assignPublicIP": True,
        "interfaces": [{"name": "a", "subnet": "b", "securityGroups": ["c"], "primary": True}],
    },
    "sshKeys": [KEY],
    "userData": "#cloud-config\na: 1\n",
    "cloudInit": {"type": "configDrive", "networkData": "version: 2\n"},
    "os": {
        "isoUri": "http://e.org/a.iso",
        "architecture": "x86_64",
        **dict.fromkeys(("family", "distribution", "version", "imageFamily"), "x"),
    },
    **dict.fromkeys(("machineType",), "x"),
    "providerConfig": {
        **dict.fromkeys(("name", "region", "zone"), "x"),
        "config": {"a": "b"},
        "credentialsRef": {"secretName": "a", "namespace": "b"},
    },
    "tags": {"a": "b"},
    "securityGroups": ["a"],
    "monitoring": True,
    "backup": {"enabled": True, "schedule": "@daily", "retentionDays": 3},
}
IN_OBJECTS: Json = {
    "provider": "kubevirt",
    "machineClass": "own",
    "cloudInit": {"userDataSecretRef": {"name": "keys", "key": "foo"}, "networkDataConfigMapRef": {"name": "texts", "key": "bar"}},
}
IN_OTHERS: Json = {
    "provider": "kubevirt",
    "cloudInit": {"userDataConfigMapRef": {"name": "texts", "key": "bar"}, "networkDataSecretRef": {"name": "keys", "key": "foo"}},
}
IN_BASE64: Json = {"provider": "kubevirt", "cloudInit": {"userDataBase64": "I2Nsb3VkLWNvbmZpZwo=", "networkDataBase64": "dmVyc2lvbjogMgo="}}
OWN: tuple[Json, ...] = (OWN_MACHINE, IN_OBJECTS, IN_OTHERS, IN_BASE64)
# Said whole, and a disk that is not encrypted: what every disk is.
MAPS: Json = {"tags": {}, "providerConfig": {"config": {}}, "disks": [{"boot": True, "encrypted": False}]}
CLASS: Json = {
    "enabled": True,
    "default": True,
    "category": "x",
    "description": "x",
    "displayName": "x",
    "memory": {"quantity": "5Gi", "minQuantity": "1Gi", "maxQuantity": "9Gi"},
    "cpu": {"cores": 2, "threads": 4, "sockets": 5},
    "machineProviders": ["kubevirt"],
    "gpu": {"cores": 1, "manufacturer": "x"},
}
NETWORK: Json = {"bridge": "br7", "vlan": 7, "mtu": 1400, "networkId": "n", "ipam": {}, "dhcp": {}, "security": {}}
TEMPLATE: Json = {
    "resources": {"cpu": {"cores": 2, "threads": 4, "sockets": 5}, "memory": {"size": "5Gi"}},
    "disks": [{"name": "root", "size": "3Gi", "storageClass": "slow", "accessMode": "ReadWriteMany", "volumeMode": "Block"}],
}
# Another good value, for what has to be there.
INSTEAD: dict[str, Any] = {
    "spec.template": "small",
    "spec.disks[0].name": "other",
    "spec.disks[0].size": "8Gi",
    "spec.networks[0].name": "eth9",
    "spec.networks[0].networkName": "san",
    "spec.cloudInit.secretRef.name": "others",
    "spec.resources.memory.size": "6Gi",
    "spec.os.imageID": "e.org/b",
    "spec.machineClass": "small",
    "spec.disks[0].sizeGB": 8,
    "spec.disks[1].sizeGB": 8,
    "spec.disks[1].name": "other",
    "spec.memory.quantity": "6Gi",
    "spec.cpu.cores": 9,
    "spec.machineProviders[0]": "proxmox",
    "spec.enabled": False,
    "spec.gpu.cores": 2,
    "spec.cloudInit.userDataSecretRef.name": "others",
    "spec.cloudInit.networkDataSecretRef.name": "others",
    "spec.cloudInit.userDataConfigMapRef.name": "other-texts",
    "spec.cloudInit.networkDataConfigMapRef.name": "other-texts",
}
WORLD = [
    network("san", bridge="br9"),
    secret("keys", foo="a", userdata="b", networkdata="n"),
    secret("others", foo="c"),
    config_map("texts", bar="d", userdata="e", networkdata="m"),
    config_map("other-texts", bar="f"),
]


CLUSTER = "cluster.vitistack.io/cluster-name"


def document(kind: str, spec: Json, name: str, annotations: dict[str, str] | None = None) -> Json:
    meta: Json = {"name": name, "namespace": "prod", "annotations": annotations or {}, "labels": {CLUSTER: "c1"}}
    if kind == "MachineClass":
        del meta["namespace"]
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


DOCUMENTS = {
    "machine": document("Machine", MACHINE, "web", ANNOTATIONS),
    "network": document("NetworkConfiguration", NETWORK, "lan"),
    "template": document("MachineTemplate", TEMPLATE, "own"),
}
OWN_DOCUMENTS = [
    {**DOCUMENTS, "machine": document("Machine", spec, "web"), "class": document("MachineClass", CLASS, "own")} for spec in OWN
]
OTHER_DOCUMENTS = {**DOCUMENTS, "machine": document("Machine", OTHER_MACHINE, "web")}


def outcome(documents: dict[str, Json]) -> bytes | None:
    """Everything that is made and told; None when a document is refused."""
    admissions = [admit(copy.deepcopy(each), AdmissionSettings()) for each in documents.values()]
    if not all(each.accepted for each in admissions):
        return None
    given = [each.value for each in admissions if isinstance(each.value, Resource)]
    (machine,) = (each for each in given if isinstance(each, Machine))
    try:
        made = to_kubevirt(machine, ObjectSet([*given, *WORLD]), STANDARD)
    except UntranslatableMachine as error:
        return str(error).encode()
    return msgspec.json.encode([made.value, made.losses])


def leaves(value: Any, path: Path) -> Iterator[Path]:
    """Every value, and every object and list that is empty."""
    entries = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    if not entries:
        yield path
    for key, member in entries:
        yield from leaves(member, (*path, key))


def without(raw: Json, path: Path) -> Json:
    made = copy.deepcopy(raw)
    place: Any = made
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return made


def exchanged(raw: Json, path: Path, value: Any) -> Json:
    made = copy.deepcopy(raw)
    place: Any = made
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return made


# Which documents say what: a template shows where the machine says little.
SETS = (
    ("machine", DOCUMENTS),
    ("network", DOCUMENTS),
    ("machine", OTHER_DOCUMENTS),
    ("template", OTHER_DOCUMENTS),
    *(("machine", each) for each in OWN_DOCUMENTS),
    ("class", OWN_DOCUMENTS[1]),
)


def rows() -> Iterator[Any]:
    for name, documents in SETS:
        raw = documents[name]
        places = [("spec", *path) for path in leaves(raw["spec"], ())]
        if name == "machine":
            places += [("metadata", "annotations", key) for key in raw["metadata"]["annotations"]] + [("metadata", "labels", CLUSTER)]
        own = next((str(index) for index, each in enumerate(OWN_DOCUMENTS) if documents is each), "")
        which = f"own {own}" if own else "first" if documents is DOCUMENTS else "second"
        for path in places:
            yield pytest.param(documents, name, path, id=f"{which} {name} {format_path(path)}")


@pytest.mark.spec("vitistack", 91)
@pytest.mark.parametrize(("documents", "name", "path"), list(rows()))
def test_every_value_has_an_effect_or_is_told(documents: dict[str, Json], name: str, path: Path) -> None:
    before = outcome(documents)
    assert before is not None
    other = INSTEAD.get(format_path(path))
    changed = without(documents[name], path) if other is None else exchanged(documents[name], path, other)
    assert outcome({**documents, name: changed}) != before


def declared(place: shape.Shape, path: Path) -> Iterator[Path]:
    if isinstance(place, shape.ListShape):
        yield from declared(place.item, (*path, 0))
    elif isinstance(place, shape.ObjectShape):
        for name, prop in place.properties.items():
            yield from declared(prop.shape, (*path, name))
    else:
        yield path


@pytest.mark.spec("vitistack", 91)
@pytest.mark.parametrize(
    ("cls", "specs"),
    [
        (Machine, [MACHINE, OTHER_MACHINE, *OWN, MAPS]),
        (MachineTemplate, [TEMPLATE]),
        (MachineClass, [CLASS]),
        (NetworkConfiguration, [NETWORK]),
    ],
)
def test_the_documents_say_everything(cls: type[Object], specs: list[Json]) -> None:
    said = {path for spec in specs for path in leaves(spec, ("spec",))}
    spec = shape.shape_of(cls).properties["spec"].shape
    missing = [
        format_path(path)
        for path in declared(spec, ("spec",))
        # What stands below an object that is told whole is told with it.
        if not any(path[: len(each)] == each for each in said)
    ]
    assert missing == []

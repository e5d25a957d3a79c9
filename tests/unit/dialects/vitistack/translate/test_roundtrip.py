"""Machines to KubeVirt and back: the same machine in other words, and the same objects when it goes there again."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from paddock.dialects.vitistack.kinds.effective import Effective, effective
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.kinds.templates import BUILT_IN
from paddock.dialects.vitistack.translate import from_kubevirt, to_kubevirt
from paddock.kubernetes.admission import admit
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from tests.unit.dialects.vitistack.translate.making import Json, machine, network, secret

NAMES = ("a", "root", "data-1", "log")
SIZES = st.sampled_from(["1Gi", "30Gi", "100G", 5368709120, "1.5Ti", "20480Mi"])


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """An object with any of its members."""
    return st.fixed_dictionaries({}, optional=members)


DISK: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"name": st.sampled_from(NAMES), "size": SIZES},
    optional={
        "storageClass": st.sampled_from(["fast", "default", "standard", ""]),
        "accessMode": st.sampled_from(["ReadWriteOnce", "ReadWriteMany"]),
        "volumeMode": st.sampled_from(["Block", "Filesystem"]),
    },
)


def _address(card: Json) -> str:
    """Addresses are unique, and so are cards without one."""
    return str(card.get("macAddress", card["name"]))


ADDRESSES = ["52:54:00:00:00:01", "02-AA-00-00-00-02"]
CARD: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"name": st.sampled_from(["eth0", "eth1", "net_2"]), "networkName": st.sampled_from(["lan", "san"])},
    optional={
        "model": st.sampled_from(["virtio", "e1000", "rtl8139"]),
        "macAddress": st.sampled_from(["52:54:00:00:00:01", "02-AA-00-00-00-02"]),
    },
)
# Short documents, and those that just fit into a machine or just do not.
TEXT = st.builds(
    lambda text, padding: f"#!/bin/sh\n{text}" + "x" * padding,
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    st.sampled_from([0, 2018, 2038, 2039, 3000]),
)
CLOUD_INIT = some(
    userData=TEXT,
    networkData=st.sampled_from(["version: 2\n", "version: 1\n" + "#" * 3000]),
    secretRef=st.sampled_from([{"name": "keys"}, {"name": "keys", "key": "foo"}]),
)
BOOTLOADER = st.sampled_from([{}, {"efi": True}, {"efi": True, "secureBoot": True}])
DOMAIN = some(
    machine=st.sampled_from([{}, {"type": "pc-q35"}, {"type": "q35"}, {"type": "pc-q35-9.0"}]),
    features=st.sampled_from([{}, {"acpi": False}, {"apic": True}, {"apic": False}, {"hyperv": True}, {"hyperv": True, "apic": True}]),
    firmware=some(bootloader=BOOTLOADER),
)
CPU = some(cores=st.integers(1, 16), threads=st.integers(1, 4), sockets=st.integers(1, 8))
RESOURCES = st.fixed_dictionaries({"memory": st.fixed_dictionaries({"size": SIZES})}, optional={"cpu": CPU})
CARDS: st.SearchStrategy[list[Json]] = st.lists(CARD, max_size=3, unique_by=(lambda card: card["name"], _address))
SPEC: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"resources": RESOURCES},
    optional={
        "template": st.sampled_from(sorted(BUILT_IN)),
        "disks": st.lists(DISK, min_size=1, max_size=4, unique_by=lambda disk: disk["name"]),
        "networks": CARDS,
        "bootOrder": st.lists(st.sampled_from(["disk", "network"]), unique=True, max_size=2),
        "cloudInit": CLOUD_INIT,
        "domain": DOMAIN,
        "os": st.just({"imageID": "https://e.org/a.iso"}),
    },
)
ANNOTATIONS = st.fixed_dictionaries(
    {"kubevirt.io/boot-source": st.just("datavolume")},
    optional={
        "vitistack.io/power-state": st.sampled_from(["running", "stopped"]),
        "vitistack.io/root-image": st.sampled_from(["https://e.org/a", "docker://e.org/a"]),
        "vitistack.io/boot-source-size": st.sampled_from(["5900000000", "1", "10Gi"]),
    },
)
LABELS = some(**{"cluster.vitistack.io/cluster-name": st.just("c1")})
RENDERINGS = st.builds(
    Rendering, default_storage_class=st.sampled_from([None, "standard"]), power_field=st.sampled_from(["running", "runStrategy"])
)
NETWORKS = [network("lan", vlan=7, mtu=1400), network("san", bridge="br9")]
SECRETS = [secret("keys", userdata="#!a", foo="#!b", networkdata="version: 2\n")]


def there(spec: Json, rendering: Rendering, **metadata: Any) -> tuple[Machine, tuple[Resource, ...]]:
    if "template" not in spec and "disks" not in spec:
        spec = spec | {"disks": [{"name": "root", "size": "1Gi"}]}
    source = machine(spec, **metadata)
    return source, to_kubevirt(source, ObjectSet([*NETWORKS, *SECRETS]), rendering).value


def back(made: tuple[Resource, ...], rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    (vm,) = (each for each in made if isinstance(each, VirtualMachine))
    return from_kubevirt(vm, ObjectSet([*SECRETS, *made]), rendering)


def sizes(source: Machine, rendering: Rendering) -> Effective:
    """Return the sizes of a machine; the default class goes by its name."""
    found = effective(source.spec.resources, source.spec.disks, BUILT_IN.get(source.spec.template or ""))
    name = rendering.default_storage_class or "default"
    disks = (msgspec.structs.replace(disk, storageClass=disk.storageClass.replace("default", name)) for disk in found.disks)
    return msgspec.structs.replace(found, disks=tuple(disks))


def owned(front: Machine, networks: list[NetworkConfiguration]) -> tuple[Machine, list[NetworkConfiguration]]:
    """The same objects under the identities of the first."""
    named = [
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, uid=f"uid-{each.metadata.name}")) for each in networks
    ]
    return msgspec.structs.replace(front, metadata=msgspec.structs.replace(front.metadata, uid="u-1")), named


@given(SPEC, ANNOTATIONS, LABELS, RENDERINGS)
def test_there_and_back_and_there_again(spec: Json, annotations: Json, labels: Json, rendering: Rendering) -> None:
    source, made = there(spec, rendering, annotations=annotations, labels=labels)
    returned = back(made, rendering)
    assert returned.losses == ()
    front = returned.value[-1]
    assert isinstance(front, Machine)
    assert admit(to_data(front), AdmissionSettings()).accepted
    assert sizes(front, rendering) == sizes(source, rendering)
    assert front.spec.template == source.spec.template

    renamed, networks = owned(front, [each for each in returned.value if isinstance(each, NetworkConfiguration)])
    secrets = [each for each in returned.value if isinstance(each, Secret)]
    again = to_kubevirt(renamed, ObjectSet([*networks, *secrets]), rendering)
    # A Secret that was made of a document is one that is referred to, the second time.
    assert [each for each in again.value if not isinstance(each, Secret)] == [each for each in made if not isinstance(each, Secret)]
    contents = {each.metadata.name: decoded(each) for each in (*secrets, *(each for each in again.value if isinstance(each, Secret)))}
    for each in made:
        if isinstance(each, Secret):
            assert contents[each.metadata.name] == decoded(each)


@given(SPEC, ANNOTATIONS, RENDERINGS)
def test_translation_is_deterministic(spec: Json, annotations: Json, rendering: Rendering) -> None:
    _, once = there(spec, rendering, annotations=annotations)
    _, again = there(spec, rendering, annotations=annotations)
    assert msgspec.json.encode(once) == msgspec.json.encode(again)
    assert msgspec.json.encode(back(once, rendering).value) == msgspec.json.encode(back(again, rendering).value)


@given(SPEC, ANNOTATIONS, RENDERINGS)
def test_what_is_made_is_good_itself(spec: Json, annotations: Json, rendering: Rendering) -> None:
    for each in there(spec, rendering, annotations=annotations)[1]:
        admission = admit(to_data(each), AdmissionSettings())
        assert admission.accepted, admission.findings

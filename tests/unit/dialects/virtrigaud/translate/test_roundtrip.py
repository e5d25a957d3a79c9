"""To KubeVirt and back: what comes back is what went, up to the losses that were told; and it goes there again unchanged."""

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.translate import from_kubevirt, to_kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from tests.kit.declarations import strategies
from tests.kit.declarations.sampling import one_in
from tests.kit.declarations.strategies import NOTHING
from tests.unit.dialects.virtrigaud.translate.making import at, leaves, secret

GROUP = "infra.virtrigaud.io"
RENDERING = Rendering()
OTHER = st.sampled_from([None, "infra"])


def kind(name: str) -> Kind:
    found = catalog.find(GROUP, name)
    assert found is not None
    return found


def ref(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.just({"name": name})


def renamed(resource: Any, name: str) -> Any:
    return msgspec.structs.replace(resource, metadata=msgspec.structs.replace(resource.metadata, name=name))


SECRETS = (
    secret("cloud-init", **{"user-data": "#cloud-config\na: b\n"}),
    secret("own-key", userdata="#!/bin/sh\ntrue\n"),
    secret("login", username="emma", password="s3cret", token="t0ken", **{"tls.crt": "c", "tls.key": "k"}),
)
CLASS = {
    "spec.securityProfile.encryptionPolicy.requireEncryption": st.just(False),
    "spec.memory": st.sampled_from(["1Gi", "4Gi", "8192Mi", 4294967296, "4G", "512Mi", 1000]),
}
LOGIN = ref("login")
IMAGE = {
    **{f"spec.source.http.authentication.{way}.secretRef": LOGIN for way in ("basicAuth", "bearer", "clientCert")},
    "spec.source.registry.pullSecretRef": LOGIN,
    "spec.source.http.url": st.sampled_from(["https://x.example.com/a.img", "http://x.example.com:8080/b?c"]),
    "spec.source.libvirt.url": st.sampled_from(["https://x.example.com/a.img", "ftp://x.example.com/a.img"]),
    "spec.source.http.checksum": st.sampled_from(["a" * 64, "sha256:" + "b" * 64, "c" * 32, "nothing"]),
}
NETWORK = {"spec.network.libvirt.networkName": st.sampled_from(["default", "team/lan", "Not A Name"])}
CARD = st.fixed_dictionaries(
    {"name": st.sampled_from(["eth0", "eth1", "eth2"])},
    optional={
        "networkRef": st.sampled_from([{"name": "lan"}, {"name": "san"}, {"name": "wan", "namespace": "infra"}]),
        "ipAddress": st.sampled_from(["10.0.0.5", "192.168.7.9"]),
        "prefix": st.integers(1, 32),
        "gateway": st.just("10.0.0.1"),
        "dns": st.sampled_from(["10.0.0.2", "10.0.0.2,1.1.1.1"]),
        "macAddress": st.sampled_from(["02:00:00:00:00:0a", "02-00-00-00-00-0B"]),
    },
)
MACHINE: dict[str, st.SearchStrategy[Any]] = {
    "spec.providerRef": ref("hypervisor"),
    "spec.classRef": st.sampled_from([{"name": "small"}, {"name": "small", "namespace": "infra"}]),
    "spec.networks": st.lists(CARD, max_size=3, unique_by=lambda card: card["name"]),
    "spec.userData.cloudInit.secretRef": st.sampled_from([{"name": "cloud-init"}, {"name": "own-key"}]),
    "spec.userData.ignition.secretRef": ref("own-key"),
    "spec.userData.ignition.inline": st.just('{"ignition": {"version": "3.4.0"}}'),
    "spec.metaData.cloudInit.secretRef": ref("cloud-init"),
}
IMPORTED = st.fixed_dictionaries(
    {"diskID": st.sampled_from(["disk-1", "Disk_1"])},
    optional={"format": st.sampled_from(["qcow2", "raw"]), "path": st.just("/x"), "sizeGiB": st.just(5), "source": st.just("manual")},
)
BOOTS = st.sampled_from(
    [
        {"spec.imageRef": ref("debian"), "spec.importedDisk": st.just(NOTHING)},
        {"spec.imageRef": st.just({"name": "debian", "namespace": "infra"}), "spec.importedDisk": st.just(NOTHING)},
        {"spec.imageRef": st.just(NOTHING), "spec.importedDisk": IMPORTED},
    ]
)
PROVIDER = {
    "spec.type": st.sampled_from(["vsphere", "libvirt", "proxmox", "qemu"]),
    "spec.credentialSecretRef": ref("keys"),
}


@st.composite
def scenes(draw: Any) -> list[Resource]:
    """A machine, last, and what it refers to; networks and classes also in another namespace."""
    vm = renamed(draw(strategies.resources(kind("VirtualMachine"), {**MACHINE, **draw(BOOTS)}, breadth=8)), "web")
    vmclass = renamed(draw(strategies.resources(kind("VMClass"), CLASS, breadth=8)), "small")
    image = renamed(draw(strategies.resources(kind("VMImage"), IMAGE)), "debian")
    provider = renamed(draw(strategies.resources(kind("Provider"), PROVIDER)), "hypervisor")
    lan, san, wan = (renamed(draw(strategies.resources(kind("VMNetworkAttachment"), NETWORK)), name) for name in ("lan", "san", "wan"))
    return [*SECRETS, provider, *there(vmclass), *there(image), lan, san, *there(wan), vm]


def there(resource: Resource) -> tuple[Resource, ...]:
    """An object, and the same in the other namespace."""
    other = msgspec.structs.replace(resource.metadata, namespace="infra")
    return resource, msgspec.structs.replace(resource, metadata=other)


# Words that mean the same: what comes back may use the other one.
def settled(path: Path, value: Any) -> Any:
    if path[-1] == "gracefulShutdownTimeout":
        return max(0, duration.parse(value))
    if path[-1] == "firmware":
        return "UEFI" if value == "EFI" else value
    if path[-1] == "checksum":
        return str(value).rpartition(":")[2]
    if path[-1] == "dns":
        return [server.strip() for server in value.split(",")]
    if path[-2:] == ("registry", "image"):
        return value.removeprefix("docker.io/library/")
    return value


def said(resource: Resource, by: Resource) -> dict[str, Any]:
    """An object as data, with what may stand in two places in one of them: the MTU, when Proxmox's block counts."""
    data = to_data(resource)
    network = data.get("spec", {}).get("network", {})
    if "proxmox" not in to_data(by).get("spec", {}).get("network", {}) or "mtu" not in network.get("proxmox", {}):
        return data
    network["mtu"] = network["proxmox"].pop("mtu")
    return data


def differences(before: Resource, after: Resource) -> Iterator[tuple[Path, Any]]:
    """Every scalar that one has and the other lacks, unless it says the same in another word."""
    image = said(after, after)
    before, after = (from_data(said(each, after), type(each)) for each in (before, after))
    for path, value in residue(before, after):
        if path[0] != "spec":
            continue
        for below, leaf in leaves(value):
            whole = (*path, *below)
            found = at(image, whole)
            if whole[-1] in ("model", "adapterType") and at(image, "spec.network.type") == "nat":
                # The pod network is nobody's block, so the model may come back in another one.
                found = at(image, "spec.network.libvirt.model")
            if leaf not in (None, "", [], {}) and (found is None or settled(whole, leaf) != settled(whole, found)):
                yield whole, leaf


def told(loss: Loss, of: str, path: Path) -> bool:
    return loss.of == of and path[: len(loss.path)] == loss.path


def moved(vm: VirtrigaudVirtualMachine, path: Path) -> bool:
    """The class's StorageClass is each disk's own word when there is no root disk to say it for."""
    return vm.spec.importedDisk is not None and path == ("spec", "diskDefaults", "storageClass")


@one_in(3)
@given(scenes())
def test_there_and_back_and_there_again(scene: list[Resource]) -> None:
    *others, vm = scene
    assert isinstance(vm, VirtrigaudVirtualMachine)
    there = to_kubevirt(vm, ObjectSet(others), RENDERING)
    assert to_kubevirt(vm, ObjectSet(list(reversed(others))), RENDERING) == there
    assert_good(there.value)
    machine = there.value[-1]
    assert isinstance(machine, Machine)
    provider = next(each for each in others if each.kind == "Provider")
    world = ObjectSet([*there.value, provider, *SECRETS])
    back = from_kubevirt(machine, world, RENDERING)
    assert back.losses == ()
    assert_good(back.value)
    assert_what_went(scene, vm, there.losses, back.value)
    front = back.value[-1]
    assert isinstance(front, VirtrigaudVirtualMachine)
    again = to_kubevirt(front, ObjectSet([*world.everything(), *back.value]), RENDERING)
    assert [to_data(each) for each in again.value] == [to_data(each) for each in there.value]


def assert_good(objects: tuple[Resource, ...]) -> None:
    for each in objects:
        admission = admit(to_data(each), AdmissionSettings())
        assert [found for found in admission.findings if found.severity is Severity.ERROR] == []


def assert_what_went(scene: list[Resource], vm: VirtrigaudVirtualMachine, losses: tuple[Loss, ...], back: tuple[Resource, ...]) -> None:
    """Assert that the objects come back as they went, up to the reported losses."""
    known = {(each.kind, each.metadata.name, each.metadata.namespace): each for each in scene}
    for after in back:
        before = known[after.kind, after.metadata.name, after.metadata.namespace]
        of = f"{after.kind}/{after.metadata.name}"
        for path, value in differences(before, after):
            assert moved(vm, path) or any(told(loss, of, path) for loss in losses), (of, path, value)

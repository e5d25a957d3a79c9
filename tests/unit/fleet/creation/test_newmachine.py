"""The manifests of a new machine in each dialect: valid, and the same machine of KubeVirt below all of them."""

from typing import Any

import msgspec
import pytest

from paddock.dialects import translators as catalog
from paddock.fleet.creation import mounts, newmachine, userdata
from paddock.fleet.creation.imagewords import ImageWord
from paddock.fleet.creation.mounts import BadMount, HostMount
from paddock.fleet.creation.newmachine import DIALECTS, BadWish, HostPort, NewMachine
from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests import write
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGqG6cvGr3rZkEHCFVqfgCTg8Lk1R0Tr2yHxWQ0mBb8q me@here"
HTTP, REGISTRY = "https://images.paddock.internal/tiny", "docker://quay.io/containerdisks/fedora:40"
WISH = NewMachine(
    name="tiny-1",
    namespace="lab",
    dialect="kubevirt",
    image=ImageWord("library", "tiny"),
    address=HTTP,
    cpus=2,
    memory="192Mi",
    disk="3Gi",
    user_data=userdata.document([KEY], "ann"),
    ports=(HostPort(8080, 80), HostPort(5353, 53, "UDP")),
)
# What a translation reports although nothing of the wish is missing: names that the dialect gives.
RENAMED = ("it is called", "the names of generated objects")


def wish(**changes: Any) -> NewMachine:
    return msgspec.structs.replace(WISH, **changes)


def admitted(documents: list[dict[str, Any]]) -> list[Resource]:
    """The objects as the server takes them: no error, no warning."""
    values = []
    for data in documents:
        result = admission.admit(data, AdmissionSettings())
        assert [found.message for found in result.findings] == []
        assert isinstance(result.value, Resource)
        values.append(result.value)
    return values


def rendered(documents: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The machine of KubeVirt that the objects become, and everything else."""
    values = admitted(documents)
    world, made = ObjectSet(values), []
    for value, data in zip(values, documents, strict=True):
        group, _ = admission.split_api_version(data["apiVersion"])
        dialect = catalog.taken_by(group, data["kind"])
        if dialect is None:
            made += [] if catalog.is_read(group, data["kind"]) else [data]
        else:
            made += [to_data(each) for each in catalog.to_kubevirt(dialect)(value, world, Rendering()).value]
    (machine,) = [each for each in made if each["kind"] == "VirtualMachine"]
    return machine, [each for each in made if each is not machine]


@pytest.mark.parametrize("address", [HTTP, REGISTRY])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_makes_the_same_machine(dialect: str, address: str) -> None:
    documents = newmachine.manifests([wish(dialect=dialect, address=address)])
    machine, others = rendered(documents)
    assert (machine["metadata"]["name"], machine["metadata"]["namespace"]) == ("tiny-1", "lab")
    spec = machine["spec"]["template"]["spec"]
    cpu = spec["domain"]["cpu"]
    assert cpu.get("cores", 1) * cpu.get("sockets", 1) * cpu.get("threads", 1) == 2
    assert spec["domain"]["memory"]["guest"] == "192Mi"
    assert [list(each)[-1] for each in spec["networks"]] == ["pod"] and "masquerade" in spec["domain"]["devices"]["interfaces"][0]
    told = str([machine, *others, *documents])
    assert address in told or address.removeprefix("docker://") in told
    assert "3Gi" in told and (KEY.split()[1] in told or "cloudInitNoCloud" in told)
    assert any(each["kind"] == "Service" for each in others)


@pytest.mark.parametrize("dialect", ["stakater", "virtrigaud", "vitistack"])
def test_nothing_of_the_wish_is_lost_in_the_translation(dialect: str) -> None:
    one = wish(dialect=dialect)
    machine = admitted([newmachine._machine(one)])[0]
    lost = catalog.from_kubevirt(dialect)(machine, ObjectSet([machine, *admitted(newmachine._data_sources(one))]), Rendering()).losses
    others = [
        each
        for each in lost
        if not any(word in f"{each.why} {each.instead}" for word in (*RENAMED, "makes the claims of its disks itself"))
    ]
    assert [(each.path, each.why) for each in others] == []


@pytest.mark.parametrize("dialect", ["kubermatic", "stakater"])
def test_on_a_cluster_a_claim_takes_the_image_of_a_data_source(dialect: str) -> None:
    """CDI's DataSources have no address."""
    disk, source, *_ = newmachine.manifests([wish(dialect=dialect, image_claim="2Gi")])
    name = disk["metadata"]["name"]
    assert (disk["kind"], disk["spec"]["source"]) == ("DataVolume", {"http": {"url": HTTP}})
    assert disk["spec"]["storage"] == {"resources": {"requests": {"storage": "2Gi"}}}
    assert (source["kind"], source["spec"]["source"]) == ("DataSource", {"pvc": {"name": name, "namespace": "lab"}})
    assert newmachine.is_shared(disk)
    others = [wish(dialect=dialect, image_claim="3Gi"), wish(dialect=dialect, image_claim="2Gi", address=REGISTRY)]
    assert name not in [newmachine.manifests([each])[0]["metadata"]["name"] for each in others]


@pytest.mark.parametrize("dialect", ["kubevirt", "vitistack", "virtrigaud"])
def test_other_dialects_need_no_claim_of_the_image(dialect: str) -> None:
    assert newmachine.manifests([wish(dialect=dialect, image_claim="2Gi")]) == newmachine.manifests([wish(dialect=dialect)])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_manifests(dialect: str, golden: Any) -> None:
    golden(f"{dialect}.yaml", write.to_yaml(newmachine.manifests([wish(dialect=dialect)])))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_several_machines_share_what_is_not_theirs(dialect: str) -> None:
    made = newmachine.manifests([wish(dialect=dialect, name=f"web-{number}", ports=()) for number in (1, 2)])
    names = [(each["kind"], each["metadata"]["name"]) for each in made]
    assert len(names) == len(set(names))
    shared = [newmachine.is_shared(each) for each in made]
    assert shared == sorted(shared, reverse=True)


def test_without_user_data_there_is_no_seed() -> None:
    (machine,) = newmachine.manifests([wish(user_data="", ports=())])
    assert [each["name"] for each in machine["spec"]["template"]["spec"]["volumes"]] == ["root"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"memory": "2GB"}, "2G"),
        ({"disk": "big"}, "quantit"),
        ({"name": "Web"}, "DNS-1123"),
        ({"cpus": 0}, "at least one"),
        ({"address": "ftp://x/y"}, ""),
    ],
)
def test_a_bad_wish_is_refused_with_the_servers_own_reason(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(BadWish) as caught:
        newmachine.manifests([wish(**changes)])
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("8080:80", HostPort(8080, 80)),
        ("5353:53/udp", HostPort(5353, 53, "UDP")),
        ("22", HostPort(22, 22)),
    ],
)
def test_ports(text: str, port: HostPort) -> None:
    assert newmachine.port(text) == port


@pytest.mark.parametrize("text", ["", "a:b", "0:80", "80:70000", "80:80/sctp", "1:2:3"])
def test_what_is_no_port(text: str) -> None:
    with pytest.raises(BadWish):
        newmachine.port(text)


@pytest.mark.parametrize("dialect", ["kubevirt", "kubermatic"])
def test_directories_of_the_host(dialect: str) -> None:
    mounted = (HostMount("/home/ann/src", "/src"), HostMount("/srv/docs", "/docs", readonly=True))
    made = newmachine.manifests([wish(dialect=dialect, mounts=mounted, name=f"tiny-{number}") for number in (1, 2)])
    kinds = [each["kind"] for each in made]
    assert kinds.count("PersistentVolume") == kinds.count("PersistentVolumeClaim") == 4
    # A claim and its volume are there before the machine that waits for them.
    assert kinds.index("PersistentVolume") < kinds.index("PersistentVolumeClaim") < kinds.index("VirtualMachine")
    first, second = (each["spec"] for each in made if each["kind"] == "PersistentVolume" and "tiny-1" in each["metadata"]["name"])
    assert (first["hostPath"], first["accessModes"]) == ({"path": "/home/ann/src", "type": "Directory"}, ["ReadWriteMany"])
    assert second["accessModes"] == ["ReadOnlyMany"] and second["persistentVolumeReclaimPolicy"] == "Retain"
    assert second["claimRef"] == {"namespace": "lab", "name": "tiny-1-share-2"}
    claims = [each["spec"] for each in made if each["kind"] == "PersistentVolumeClaim"]
    assert [each["storageClassName"] for each in claims] == [""] * 4
    assert {each["volumeName"] for each in claims} == {each["metadata"]["name"] for each in made if each["kind"] == "PersistentVolume"}
    spec = next(each for each in made if each["kind"] == "VirtualMachine")["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["domain"]["devices"]["filesystems"]] == ["share-1", "share-2"]
    sources = [each["persistentVolumeClaim"] for each in spec["volumes"] if "persistentVolumeClaim" in each]
    assert sources[-2:] == [{"claimName": "tiny-1-share-1"}, {"claimName": "tiny-1-share-2", "readOnly": True}]


@pytest.mark.parametrize("dialect", ["stakater", "virtrigaud", "vitistack"])
def test_dialects_without_directories_refuse_them_by_name(dialect: str) -> None:
    with pytest.raises(BadWish, match=f"the dialect {dialect} can express"):
        newmachine.manifests([wish(dialect=dialect, mounts=(HostMount("/src", "/src"),))])


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("./src:/src", HostMount("./src", "/src")),
        ("/a:/b/c/:rw", HostMount("/a", "/b/c")),
        ("/a:/b:ro", HostMount("/a", "/b", readonly=True)),
        ("/with:colon:/b", HostMount("/with:colon", "/b")),
        ("~/ro:/ro", HostMount("~/ro", "/ro")),
    ],
)
def test_mounts(text: str, mount: HostMount) -> None:
    assert mounts.read(text) == mount


@pytest.mark.parametrize("text", ["", "a", "a:b", ":/b", "/a:", "/a:ro", "/a:/", "/a:/b/../c", "/a:/b c", "/a:/b,c", '/a:/b"'])
def test_what_is_no_mount(text: str) -> None:
    with pytest.raises(BadMount):
        mounts.read(text)

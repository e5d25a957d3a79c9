"""Example documents in the shapes of upstream's valid ones all apply; upstream's mistakes are refused, and the field is named."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.base.jsondata import copied
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.meta.manifests import load
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema.finding import Severity, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

Data = dict[str, Any]
FOLDER = Path(__file__).parent / "corpus"
KINDS = ("Provider", "VMClass", "VMImage", "VMNetworkAttachment", "VMMigration", "VMClone", "VirtualMachine")


def documents(file: Path) -> list[Data]:
    return list(yaml.safe_load_all(file.read_text()))


def every() -> Iterator[tuple[str, Data]]:
    for file in sorted(FOLDER.glob("*.yaml")):
        for each in documents(file):
            yield file.stem, each


CORPUS = list(every())


def errors(document: Data) -> dict[str, str]:
    found = admission.admit(document, AdmissionSettings()).findings
    return {format_path(each.path): each.message for each in found if each.severity is Severity.ERROR}


@pytest.mark.spec("virtrigaud", 112)
def test_there_are_as_many_as_upstreams() -> None:
    assert len(CORPUS) >= 51 and {each["kind"] for _, each in CORPUS} == set(KINDS)
    assert len({(each["kind"], each["metadata"]["name"]) for _, each in CORPUS}) == len(CORPUS)


@pytest.mark.spec("virtrigaud", 112)
@pytest.mark.parametrize(("stem", "document"), CORPUS, ids=lambda each: each["metadata"]["name"] if isinstance(each, dict) else each)
def test_a_document_has_no_mistake(stem: str, document: Data) -> None:
    assert errors(document) == {}


@pytest.mark.spec("virtrigaud", 112)
@run_by(asyncio.run)
async def test_a_server_takes_them_strictly() -> None:
    async with Harness() as api:
        for namespace in ("team", "infra"):
            assert (await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).status == 201
        for stem, document in CORPUS:
            kind = catalog.find("infra.virtrigaud.io", document["kind"])
            assert kind is not None
            namespace = document["metadata"].get("namespace", "default")
            path = f"/apis/infra.virtrigaud.io/v1beta1/namespaces/{namespace}/{kind.plural}?fieldValidation=Strict"
            reply = await api.post(path, copied(document))
            assert reply.status == 201, (document["metadata"]["name"], reply.data)
            assert ("networkRef: none is given" in " ".join(reply.warnings)) is (stem == "machines-without-network")


# kind -> (the name of a document that is right, what is changed, the field that the error names, a word of its message)
BROKEN: list[tuple[str, Data, str, str]] = [
    ("rack", {"defaults": {"datacenter": "one"}}, "spec.defaults.datacenter", "unknown field"),
    ("rack", {"defaults": {"storagePool": "one"}}, "spec.defaults.storagePool", "storagePod"),
    ("rack", {"runtime": None}, "spec.runtime", "Required"),
    ("rack", {"runtime": {"image": "a:1", "version": "1"}}, "spec.runtime.version", "unknown field"),
    ("rack", {"runtime": {"image": "a:1", "tls": {"enabled": True}}}, "spec.runtime.tls", "unknown field"),
    ("rack", {"type": "test"}, "spec.type", "Unsupported"),
    ("rack", {"endpoint": "test://localhost"}, "spec.endpoint", ""),
    ("rack", {"credentialSecretRef": None}, "spec.credentialSecretRef", "Required"),
    ("one", {"cpus": 2}, "spec.cpus", "write cpu"),
    ("one", {"cpu": None}, "spec.cpu", "Required"),
    ("one", {"memory": None, "memoryMiB": 2048}, "spec.memoryMiB", "unknown field"),
    ("one", {"disks": [{"name": "root"}]}, "spec.disks", "unknown field"),
    ("one", {"diskDefaults": {"sizeGiB": 40}}, "spec.diskDefaults.sizeGiB", "write size"),
    ("one", {"diskDefaults": {"type": "qcow2"}}, "spec.diskDefaults.type", "Unsupported"),
    ("by-url", {"source": "linux"}, "spec.source", "object"),
    ("by-url", {"description": "a"}, "spec.description", "unknown field"),
    ("by-url", {"libvirt": {"path": "/a"}}, "spec.libvirt", "unknown field"),
    ("by-url", {"source": {"vsphere": {"templateName": "a", "datacenter": "b"}}}, "spec.source.vsphere.datacenter", "unknown field"),
    ("by-url", {"prepare": {"onMissing": "Download"}}, "spec.prepare.onMissing", "Import"),
    ("by-url", {"prepare": {"importIfMissing": True}}, "spec.prepare.importIfMissing", "unknown field"),
    ("by-url", {"prepare": {"customization": {}}}, "spec.prepare.customization", "unknown field"),
    ("home", {"network": None, "config": {}}, "spec.config", "unknown field"),
    ("home", {"network": None}, "spec.network", "Required"),
    ("home", {"networkRef": {"name": "a"}}, "spec.networkRef", "network"),
    ("home", {"ipPolicy": "dhcp"}, "spec.ipPolicy", "unknown field"),
    ("home", {"network": {"vsphere": {"distributed": {}}}}, "spec.network.vsphere.distributed", "unknown field"),
    ("home", {"network": {"vsphere": {"vlan": {"vlanId": 5}}}}, "spec.network.vsphere.vlan.vlanId", "vlanID"),
    ("wired", {"classRef": None, "vmClassRef": {"name": "one"}}, "spec.vmClassRef", "classRef"),
    ("wired", {"vmImageRef": {"name": "a"}}, "spec.vmImageRef", "imageRef"),
    ("wired", {"providerRef": None}, "spec.providerRef", "Required"),
    ("wired", {"networkAttachmentRef": {"name": "a"}}, "spec.networkAttachmentRef", "unknown field"),
    ("wired", {"resources": {"memory": "4Gi"}}, "spec.resources.memory", "unknown field"),
    ("wired", {"placement": {"datacenter": "one"}}, "spec.placement.datacenter", "unknown field"),
    ("wired", {"metaData": {"inline": "a: b"}}, "spec.metaData.inline", "cloudInit"),
    ("wired", {"metaData": {"secretRef": {"name": "a"}}}, "spec.metaData.secretRef", "cloudInit"),
    (
        "wired",
        {"networks": [{"name": "lan", "networkRef": {"name": "a"}, "ipPolicy": "dhcp"}]},
        "spec.networks[0].ipPolicy",
        "unknown field",
    ),
    ("wired", {"networks": [{"name": "lan", "networkRef": {"name": "a"}, "ipAddress": ""}]}, "spec.networks[0].ipAddress", "IPv4"),
    ("wired", {"powerState": "Running"}, "spec.powerState", "On"),
    ("by-nfs", {"storage": {"type": "nfs"}}, "spec.storage.nfs", "Required"),
    ("by-nfs", {"target": {"providerRef": {"name": "a"}}}, "spec.target.name", "Required"),
    ("copy", {"source": None, "sourceRef": {"name": "web"}}, "spec.sourceRef", "source"),
    ("copy", {"linked": True}, "spec.linked", "unknown field"),
]
SNAPSHOT: Data = {
    "apiVersion": "infra.virtrigaud.io/v1beta1",
    "kind": "VMSnapshot",
    "metadata": {"name": "before"},
    "spec": {"vmRef": {"name": "web"}},
}
POLICY: Data = {**SNAPSHOT, "kind": "VMPlacementPolicy", "spec": {}}
OTHERS: list[tuple[Data, Data, str, str]] = [
    (SNAPSHOT, {"nameHint": "a"}, "spec.nameHint", "unknown field"),
    (SNAPSHOT, {"memory": True}, "spec.memory", "unknown field"),
    (SNAPSHOT, {"description": "a"}, "spec.description", "unknown field"),
    (SNAPSHOT, {"includeMemory": True}, "spec.includeMemory", "unknown field"),
    (POLICY, {"antiAffinity": {"hostAntiAffinity": True}}, "spec.antiAffinity.hostAntiAffinity", "object"),
]


def named(name: str) -> Data:
    return next(each for _, each in CORPUS if each["metadata"]["name"] == name)


def broken(document: Data, change: Data) -> Data:
    found: Data = copied(document)
    found["spec"] = {key: each for key, each in {**found["spec"], **change}.items() if each is not None}
    return found


@pytest.mark.spec("virtrigaud", 112)
@pytest.mark.parametrize(
    ("document", "change", "field", "word"),
    [*((named(name), *rest) for name, *rest in BROKEN), *OTHERS],
    ids=[field for *_, field, _ in [*BROKEN, *OTHERS]],
)
def test_a_mistake_names_its_field(document: Data, change: Data, field: str, word: str) -> None:
    found = errors(broken(document, change))
    assert field in found and word in found[field], found


@pytest.mark.spec("virtrigaud", 112)
def test_a_document_that_is_no_yaml_names_its_line() -> None:
    text = b"apiVersion: infra.virtrigaud.io/v1beta1\nkind: Provider\nmetadata:\n  name: a\nspec:\n  type: [vsphere\n"
    with pytest.raises(UnreadableManifest) as caught:
        list(load.load(text, "broken.yaml"))
    assert str(caught.value).startswith("broken.yaml:6:9:")

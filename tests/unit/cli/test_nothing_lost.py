"""Nothing is lost without a word: each value of a generated document is in what `convert` prints, or in what it reports.

Every document holds values that stand nowhere else: sizes are primes, names are numbered. Documents leave parts out at random, and one is
converted to every dialect.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddock.cli.exits import GOOD, LOSSES
from paddock.kubernetes.schema import finding
from tests.unit.cli.commands import Answer, paddock

Data = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
TARGETS = ("kubevirt", "kubermatic", "stakater", "virtrigaud", "vitistack")
_SIZES = (37, 41, 43, 47, 53, 59, 61, 67, 71, 73)
_NAMESPACE = "shop"


class Values:
    """Values that are told apart, and each of them."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._sizes: Iterator[int] = iter(_SIZES)
        self._count = 100
        self.given: list[str] = []

    def maybe(self) -> bool:
        """Draw the presence of an optional part."""
        return bool(self._draw(st.booleans()))

    def one_of(self, *choices: Any) -> Any:
        """One of several parts."""
        return self._draw(st.sampled_from(choices))

    def size(self) -> str:
        """A size in Gi that no other value has."""
        return self._note(f"{next(self._sizes)}Gi")

    def gibibytes(self) -> int:
        """The same as a number."""
        return int(self.size().removesuffix("Gi"))

    def name(self, word: str) -> str:
        """A name that no other value has."""
        self._count += 1
        return self._note(f"{word}-{self._count}")

    def url(self) -> str:
        """An address of an image."""
        return f"https://images.example.com/{self.name('image')}.qcow2"

    def _note(self, value: str) -> str:
        self.given.append(value)
        return value


def document(api_version: str, kind: str, name: str, spec: Data) -> Data:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": _NAMESPACE}, "spec": spec}


def stakater(values: Values) -> list[Data]:
    parameters: Data = {"memory": {"guest": values.size()}, "runStrategy": "Always"}
    if values.maybe():
        parameters["dataSource"] = {"name": values.name("os"), "namespace": values.name("images")}
    if values.maybe():
        parameters["storage"] = {"size": values.size(), "storageClassName": values.name("class")}
    disks = []
    for kind in values.one_of((), ("blank",), ("http", "pvc"), ("registry", "blank")):
        disk: Data = {"name": values.name("disk"), "size": values.size(), "storageClassName": values.name("class"), "sourceType": kind}
        sources: Data = {
            "http": {"http": {"url": values.url()}} if kind == "http" else None,
            "pvc": {"pvc": {"name": values.name("claim"), "namespace": values.name("space")}} if kind == "pvc" else None,
            "registry": {"registry": {"url": f"docker://r.example.com/{values.name('repo')}:1"}} if kind == "registry" else None,
        }
        disks.append(disk | ({"source": sources[kind]} if sources.get(kind) else {}))
    networks: list[Data] = [{"name": "default", "bindingName": "masquerade"}]
    if values.maybe():
        networks.append({"name": values.name("nic"), "bindingName": "bridge", "multus": {"networkName": values.name("net")}})
    if values.maybe():
        parameters["nodeSelector"] = {"zone": values.name("zone")}
    if values.maybe():
        parameters["additionalLabels"] = {"team": values.name("team")}
    return [
        document(
            "infrastructure.stakater.com/v1",
            "VirtualMachine",
            "web",
            {"parameters": parameters | {"additionalDisks": disks, "networks": networks}},
        )
    ]


def vitistack(values: Values) -> list[Data]:
    spec: Data = {"resources": {"memory": {"size": values.size()}, "cpu": {"cores": 3}}, "disks": [{"name": "root", "size": values.size()}]}
    if values.maybe():
        spec["disks"].append({"name": values.name("disk"), "size": values.size(), "storageClass": values.name("class")})
    if values.maybe():
        spec["disks"][0]["storageClass"] = values.name("class")
    made: list[Data] = []
    if values.maybe():
        network = values.name("net")
        wiring = {"bridge": values.name("br"), **({"vlan": 1033} if values.maybe() else {})}
        made.append(document("vitistack.io/v1alpha1", "NetworkConfiguration", network, wiring))
        spec["networks"] = [{"name": values.name("nic"), "networkName": network}]
    machine = document("vitistack.io/v1alpha1", "Machine", "web", spec)
    if values.maybe():
        machine["metadata"]["annotations"] = {"vitistack.io/root-image": values.url()}
    return [*made, machine]


def virtrigaud(values: Values) -> list[Data]:
    group = "infra.virtrigaud.io/v1beta1"
    hardware: Data = {"cpu": 3, "memory": values.size(), "diskDefaults": {"size": values.size()}}
    if values.maybe():
        hardware["diskDefaults"]["storageClass"] = values.name("class")
    source = values.one_of({"http": {"url": values.url()}}, {"registry": {"image": f"r.example.com/{values.name('repo')}:1"}})
    # One of the two was drawn and is not there.
    values.given[:] = [each for each in values.given if not each.startswith(("image-", "repo-")) or each in json.dumps(source)]
    spec: Data = {"providerRef": {"name": "p"}, "classRef": {"name": "c"}, "imageRef": {"name": "i"}, "powerState": "On"}
    made = [document(group, "VMClass", "c", hardware), document(group, "VMImage", "i", {"source": source})]
    if values.maybe():
        wiring = {"libvirt": {"bridge": {"name": values.name("br")}}, "type": "bridged"}
        made.append(document(group, "VMNetworkAttachment", "lan", {"network": wiring}))
        spec["networks"] = [{"name": values.name("nic"), "networkRef": {"name": "lan"}}]
    if values.maybe():
        disk = {"name": values.name("disk"), "sizeGiB": values.gibibytes()}
        spec["disks"] = [disk | ({"storageClass": values.name("class")} if values.maybe() else {})]
    return [*made, document(group, "VirtualMachine", "web", spec)]


def kubevirt(values: Values) -> list[Data]:
    """Disks of every origin: a template, a DataVolume beside the machine, a claim, an image."""
    volumes, disks, templates, made = [], [], [], []
    for kind in values.one_of(
        ("template",), ("template", "volume"), ("volume", "template"), ("image", "template"), ("claim", "template", "volume")
    ):
        name, claim = values.name("disk"), values.name("made")
        disks.append({"name": name, "disk": {"bus": "virtio"}})
        storage: Data = {"storage": {"resources": {"requests": {"storage": values.size()}}}} if kind in ("template", "volume") else {}
        if values.maybe() and storage:
            storage["storage"] |= {"storageClassName": values.name("class")}
        content: Data = {}
        if storage:
            content = {"http": {"url": values.url()}} if values.maybe() else {"blank": {}}
        if kind == "template":
            templates.append({"metadata": {"name": claim}, "spec": {"source": content, **storage}})
        if kind == "volume":
            made.append(document("cdi.kubevirt.io/v1beta1", "DataVolume", claim, {"source": content, **storage}))
        volume: Data = {"dataVolume": {"name": claim}}
        if kind == "claim":
            volume = {"persistentVolumeClaim": {"claimName": claim}}
        if kind == "image":
            volume = {"containerDisk": {"image": f"r.example.com/{values.name('repo')}:1"}}
            values.given.remove(claim)
        volumes.append({"name": name, **volume})
    domain: Data = {"memory": {"guest": values.size()}, "devices": {"disks": disks, "interfaces": [{"name": "default", "masquerade": {}}]}}
    hardware: Data = {"domain": domain, "volumes": volumes, "networks": [{"name": "default", "pod": {}}]}
    if values.maybe():
        hardware["hostname"] = values.name("host")
    if values.maybe():
        hardware["nodeSelector"] = {"zone": values.name("zone")}
    spec = {"runStrategy": "Always", "template": {"spec": hardware}, "dataVolumeTemplates": templates}
    return [*made, document("kubevirt.io/v1", "VirtualMachine", "web", spec)]


def kubermatic(values: Values) -> list[Data]:
    """A machine or a flat pool whose disk is of a DataSource behind an address."""
    source = document("cdi.kubevirt.io/v1beta1", "DataSource", values.name("source"), {"source": {"http": {"url": values.url()}}})
    reference = {"kind": "DataSource", "name": source["metadata"]["name"], "apiGroup": "cdi.kubevirt.io"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": values.size()}}}
    if values.maybe():
        claim["storageClassName"] = values.name("class")
    template = {"metadata": {"name": "disk"}, "spec": {"sourceRef": reference, "pvc": claim}}
    domain = {"memory": {"guest": values.size()}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}
    hardware: Data = {"domain": domain, "volumes": [{"name": "root", "dataVolume": {"name": "disk"}}]}
    shared = {"runStrategy": "Always", "dataVolumeTemplates": [template]}
    if values.maybe():
        return [source, document("kubevirt.io/v1", "VirtualMachine", "web", {**shared, "template": {"spec": hardware}})]
    labels = {"metadata": {"labels": {"of": "web"}}}
    pool = {"replicas": 2, "selector": {"matchLabels": {"of": "web"}}, "virtualMachineTemplate": {**labels, "spec": {**shared, **hardware}}}
    return [document("kubevirt.io/v1alpha1", "VirtualMachinePool", "web", pool), source]


SOURCES: tuple[Callable[[Values], list[Data]], ...] = (stakater, vitistack, virtrigaud, kubevirt, kubermatic)


def is_told(value: str, answer: Answer) -> bool:
    """Return whether a value is in the output or in the report: sizes as Gi, as a count of Gi, or in bytes."""
    text = f"{answer.out}\n{answer.err}"
    if not value.endswith("Gi"):
        return value in text
    number = int(value.removesuffix("Gi"))
    return re.search(rf"\b({value}|{number << 10}Mi|{number << 30})\b|sizeGiB: {number}\b", text) is not None


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.__name__)
@given(data=st.data())
def test_every_value_is_in_the_output_or_in_the_report(source: Callable[[Values], list[Data]], data: st.DataObject) -> None:
    values = Values(data.draw)
    documents = source(values)
    target = data.draw(st.sampled_from(TARGETS), label="target")
    with pytest.MonkeyPatch.context() as patch:
        # The report cuts long values; they are told all the same.
        patch.setattr(finding, "show", lambda value: json.dumps(value, default=str))
        answer = _converted(yaml.safe_dump_all(documents), target)
    whole = _values_of_objects_left_out(documents, answer)
    lost = [value for value in values.given if value not in whole and not is_told(value, answer)]
    assert lost == [], f"{target}\n{yaml.safe_dump_all(documents)}\n---- becomes\n{answer.out}\n---- with\n{answer.err}"


def _values_of_objects_left_out(documents: list[Data], answer: Answer) -> str:
    """Return all that objects say which the report calls lost as a whole."""
    titles = re.findall(r': loss: (\S+): "\w+": .*it is left out', answer.err)
    return yaml.safe_dump_all(each for each in documents if f"{each['kind']}/{each['metadata']['name']}" in titles)


def _converted(text: str, target: str, folder: Path = Path("/dev/shm")) -> Answer:
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".yaml") as file:
        file.write(text)
        file.flush()
        answer = paddock("convert", "-f", file.name, "--to", target, "--strict")
    assert answer.code in (GOOD, LOSSES), f"{text}\n{answer.err}"
    assert (answer.code == LOSSES) == (": loss: " in answer.err)
    return answer

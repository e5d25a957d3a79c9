"""Documents: our examples, those of the reference page, and the mistakes that are often found in others."""

from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubernetes.schema.messages import BARE_WORD
from tests.unit.dialects.virtrigaud.kinds.objects import KINDS, said, thing

EXAMPLES = Path("src/paddock/dialects/virtrigaud/examples")


def documents(text: bytes, source: str = "test.yaml") -> list[Any]:
    return [document.data for document in load(text, source)]


OURS = [raw for path in sorted(EXAMPLES.glob("*.yaml")) for raw in documents(path.read_bytes(), path.name)]


@pytest.mark.parametrize("raw", OURS, ids=lambda raw: f"{raw['kind']}/{raw['metadata']['name']}")
def test_examples_are_good(raw: Any) -> None:
    admission = admit(raw, AdmissionSettings())
    assert admission.kind is not None
    assert said(admission) == []


def test_every_kind_has_an_example() -> None:
    assert set(KINDS) <= {raw["kind"] for raw in OURS}


@pytest.mark.spec("virtrigaud", 11)
@pytest.mark.parametrize("word", ["On", "Off"])
def test_bare_words_are_power_states(word: str) -> None:
    (raw,) = documents(
        f"""
apiVersion: infra.virtrigaud.io/v1beta1
kind: VirtualMachine
metadata: {{name: web}}
spec:
  providerRef: {{name: p}}
  classRef: {{name: c}}
  imageRef: {{name: i}}
  powerState: {word}
""".encode()
    )
    admission = admit(raw, AdmissionSettings())
    assert admission.accepted
    assert admission.data["spec"]["powerState"] == word
    assert type(admission.data["spec"]["powerState"]) is str
    assert [found.field for found in admission.findings if found.rule == BARE_WORD] == ["spec.powerState"]


# Mistakes that published manifests have, by the change that makes them; each is named at its place, with what to write.
MISTAKES: tuple[tuple[str, str, dict[str, Any], str, str], ...] = (
    (
        "distributed",
        "VMNetworkAttachment",
        {".network.vsphere": {"distributed": {"name": "d"}}},
        "spec.network.vsphere.distributed",
        "write distributedSwitch",
    ),
    (
        "empty address",
        "VirtualMachine",
        {".networks": [{"name": "a", "networkRef": {"name": "n"}, "ipAddress": ""}]},
        "spec.networks[0].ipAddress",
        "must be an IPv4 address",
    ),
    ("sizeGiB of a class", "VMClass", {".diskDefaults.sizeGiB": 40}, "spec.diskDefaults.sizeGiB", 'size: "40Gi"'),
    ("memoryMiB of a class", "VMClass", {".memoryMiB": 4096}, "spec.memoryMiB", 'memory: "4Gi"'),
    ("no runtime", "Provider", {}, "spec.runtime", "Required value: the provider always runs by itself"),
    (
        "metadata one level too high",
        "VirtualMachine",
        {".metaData": {"inline": "local-hostname: a"}},
        "spec.metaData.inline",
        "metaData.cloudInit.inline",
    ),
    (
        "metadata Secret one level too high",
        "VirtualMachine",
        {".metaData": {"secretRef": {"name": "s"}}},
        "spec.metaData.secretRef",
        "metaData.cloudInit.secretRef",
    ),
    ("a number for power", "VirtualMachine", {".powerState": 1}, "spec.powerState", 'must be a string; write one of "On", "Off"'),
    (
        "a number for the TPM",
        "VMClass",
        {".securityProfile": {"tpmEnabled": True, "tpmVersion": 2.0}},
        "spec.securityProfile.tpmVersion",
        'quote it: "2.0"',
    ),
    ("a mock provider", "Provider", {".type": "mock"}, "spec.type", 'supported values: "vsphere"'),
    ("the old reference", "VirtualMachine", {".networks": [{"name": "a", "ref": {"name": "n"}}]}, "spec.networks[0].ref", "unknown field"),
    ("a size in words", "VirtualMachine", {".disks": [{"name": "a", "sizeGiB": "100Gi"}]}, "spec.disks[0].sizeGiB", "must be an integer"),
    ("a snapshot without its machine", "VMSnapshot", {}, "spec.vmRef", "Required value"),
    (
        "no storage credentials",
        "VMMigration",
        {".storage": {"type": "s3", "s3": {"bucket": "b"}}},
        "spec.storage.s3.credentialsSecretRef",
        "Required value",
    ),
    ("a list where a map is", "VMClass", {".extraConfig": ["vsphere.hardwareVersion=21"]}, "spec.extraConfig", "must be an object"),
    ("a hook without an action", "VirtualMachine", {".lifecycle.preStop": {}}, "spec.lifecycle.preStop", "exactly one of"),
)
GIVEN = {"no runtime": ".runtime", "a snapshot without its machine": ".vmRef"}


@pytest.mark.parametrize(("name", "kind", "changes", "field", "words"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_mistakes_are_named_at_their_place(name: str, kind: str, changes: dict[str, Any], field: str, words: str) -> None:
    raw = thing(kind, changes)
    if name in GIVEN:
        del raw["spec"][GIVEN[name].removeprefix(".")]
    assert any(place == field and words in message for place, message in said(admit(raw, AdmissionSettings()))), said(
        admit(raw, AdmissionSettings())
    )


def test_the_old_version_is_named() -> None:
    raw = {**thing("VirtualMachine"), "apiVersion": "infra.virtrigaud.io/v1alpha1"}
    ((field, message),) = said(admit(raw, AdmissionSettings()))
    assert field == "apiVersion"
    assert 'supported values: "infra.virtrigaud.io/v1beta1"' in message


def test_everything_wrong_is_told_at_once() -> None:
    raw = thing(
        "VirtualMachine",
        {".importedDisk": {"diskID": ""}, ".networks": [{"name": "A"}], ".disks": [{"name": "d", "sizeGiB": 0}], ".powerState": "on"},
    )
    assert {field for field, _ in said(admit(raw, AdmissionSettings()))} == {
        "spec.importedDisk",
        "spec.importedDisk.diskID",
        "spec.networks[0].name",
        "spec.disks[0].sizeGiB",
        "spec.powerState",
    }


def test_there_is_no_kind_for_adoption() -> None:
    assert catalog.find("infra.virtrigaud.io", "VMAdoption") is None


def test_notes_are_rare() -> None:
    """Everything of the dialect is meant to have an effect."""
    for raw in OURS:
        assert said(admit(raw, AdmissionSettings()), Severity.NOTE) == []

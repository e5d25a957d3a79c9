"""Differences by meaning, on the declarations of real kinds."""

from typing import Any

import pytest

from paddock.kubernetes import admission, catalog
from paddock.kubernetes.meta.redaction import HIDDEN
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.differences import FieldDifference, differences, format_named

STAKATER = {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine"}
MACHINE = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
VITISTACK = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine"}
SECRET = {"apiVersion": "v1", "kind": "Secret"}


def compare(head: dict[str, str], before: dict[str, Any], after: dict[str, Any]) -> list[FieldDifference]:
    """The differences of two objects that are checked first."""
    forms = [admission.admit({**head, "metadata": {"name": "x"}, **form}, AdmissionSettings()).data for form in (before, after)]
    kind = catalog.find(admission.split_api_version(head["apiVersion"])[0], head["kind"])
    assert kind is not None
    return list(differences(shape.shape_of(kind.cls), *forms))


def told(head: dict[str, str], before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [f"{each.how} {format_named(each.named)}" for each in compare(head, before, after)]


def parameters(**members: Any) -> dict[str, Any]:
    return {"spec": {"parameters": members}}


def instance(**members: Any) -> dict[str, Any]:
    return {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}, **members}}}}


A: dict[str, Any] = {"name": "a", "size": "1Gi"}
B: dict[str, Any] = {"name": "b", "size": "2Gi"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # the same in other words
        (parameters(), parameters(runStrategy="RerunOnFailure"), []),
        (parameters(), {"spec": {}}, []),
        (parameters(memory={"guest": "2Gi"}), parameters(memory={"guest": "2048Mi"}), []),
        (parameters(additionalLabels={}), parameters(), []),
        (parameters(additionalDisks=[{**A, "bus": "virtio"}]), parameters(additionalDisks=[A]), []),
        ({**parameters(), "status": {"vm": {"ready": True}}}, parameters(), []),
        ({"metadata": {"name": "x", "uid": "1", "generation": 3}, **parameters()}, parameters(), []),
        # numbers and quantities
        (parameters(cpu={"cores": 2}), parameters(cpu={"cores": 4}), ["up spec.parameters.cpu.cores"]),
        (parameters(memory={"guest": "4Gi"}), parameters(), ["down spec.parameters.memory.guest"]),
        (parameters(runStrategy="Halted"), parameters(), ["changed spec.parameters.runStrategy"]),
        # lists by name
        (parameters(additionalDisks=[A, B]), parameters(additionalDisks=[B, A]), ["reordered spec.parameters.additionalDisks"]),
        (parameters(additionalDisks=[A]), parameters(additionalDisks=[B, A]), ["added spec.parameters.additionalDisks[b]"]),
        (parameters(additionalDisks=[A, B]), parameters(additionalDisks=[B]), ["removed spec.parameters.additionalDisks[a]"]),
        (
            parameters(additionalDisks=[A, B]),
            parameters(additionalDisks=[{**A, "size": "3Gi"}, B]),
            ["up spec.parameters.additionalDisks[a].size"],
        ),
        # sets
        (
            parameters(additionalDisks=[{**A, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}]),
            parameters(additionalDisks=[{**A, "accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}]),
            [],
        ),
        (
            parameters(additionalDisks=[{**A, "accessModes": ["ReadWriteOnce"]}]),
            parameters(additionalDisks=[{**A, "accessModes": ["ReadWriteMany"]}]),
            [
                "removed spec.parameters.additionalDisks[a].accessModes[ReadWriteOnce]",
                "added spec.parameters.additionalDisks[a].accessModes[ReadWriteMany]",
            ],
        ),
        # a list whose absence says something else than its emptiness
        (parameters(), parameters(networks=[]), ["added spec.parameters.networks"]),
        (parameters(networks=[{"name": "n"}]), parameters(), ["removed spec.parameters.networks[n]"]),
        # objects and maps member by member
        (parameters(), parameters(nodeSelector={"a/b": "c"}), ["added spec.parameters.nodeSelector[a/b]"]),
        (parameters(), parameters(firmware={"secureBoot": True}), ["added spec.parameters.firmware.secureBoot"]),
        (
            {"metadata": {"name": "x", "labels": {"a": "1"}}, **parameters()},
            {"metadata": {"name": "x", "annotations": {"b": "2"}}, **parameters()},
            ["removed metadata.labels.a", "added metadata.annotations.b"],
        ),
    ],
)
def test_differences(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert told(STAKATER, before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # an empty object says something by being there
        (
            instance(networks=[{"name": "n", "pod": {}}]),
            instance(networks=[{"name": "n", "multus": {"networkName": "m"}}]),
            ["removed spec.template.spec.networks[n].pod", "added spec.template.spec.networks[n].multus.networkName"],
        ),
        (instance(), instance(affinity={"nodeAffinity": {}}), ["added spec.template.spec.affinity.nodeAffinity"]),
        # templates are known by the name in their metadata
        (
            {
                "spec": {
                    "dataVolumeTemplates": [{"metadata": {"name": "d"}, "spec": {"pvc": {"resources": {"requests": {"storage": "1Gi"}}}}}]
                }
            },
            {
                "spec": {
                    "dataVolumeTemplates": [{"metadata": {"name": "d"}, "spec": {"pvc": {"resources": {"requests": {"storage": "2Gi"}}}}}]
                }
            },
            ["up spec.dataVolumeTemplates[d].spec.pvc.resources.requests.storage"],
        ),
        # entries without names are compared by their number
        (
            instance(tolerations=[{"key": "a", "operator": "Exists"}]),
            instance(tolerations=[{"key": "b", "operator": "Exists"}, {"key": "c", "operator": "Exists"}]),
            ["changed spec.template.spec.tolerations[0].key", "added spec.template.spec.tolerations[1]"],
        ),
        # entries whose name stands twice, too
        (
            instance(volumes=[{"name": "v"}, {"name": "v"}]),
            instance(volumes=[{"name": "v"}]),
            ["removed spec.template.spec.volumes[1]"],
        ),
    ],
)
def test_differences_of_a_kubevirt_machine(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert told(MACHINE, before, after) == expected


def test_paths_lead_to_the_form_that_has_the_value() -> None:
    gone, moved, new = compare(
        VITISTACK, {"spec": {"disks": [A, B]}}, {"spec": {"disks": [{"name": "c", "size": "1Gi"}, {**B, "size": "3Gi"}]}}
    )
    assert (gone.path, gone.before["name"]) == (("spec", "disks", 0), "a")
    assert moved.path == ("spec", "disks", 0)
    assert new.path == ("spec", "disks", 1, "size")


def test_secrets_are_not_in_the_values() -> None:
    (changed,) = compare(STAKATER, parameters(cloudInit={"password": "one"}), parameters(cloudInit={"password": "two"}))
    assert (changed.before, changed.after) == (HIDDEN, HIDDEN)
    (added,) = compare(SECRET, {}, {"stringData": {"key": "value"}})
    assert "value" not in repr(added)
    (volume,) = compare(MACHINE, instance(), instance(volumes=[{"name": "v", "cloudInitNoCloud": {"userData": "pass"}}]))
    assert volume.after == {"name": "v", "cloudInitNoCloud": {"userData": HIDDEN}}

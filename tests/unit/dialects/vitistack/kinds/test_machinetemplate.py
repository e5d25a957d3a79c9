"""Templates of one's own: what they have to give, and which names are taken (docs/design/0004-vitistack-templates.md)."""

import copy
from typing import Any

import pytest

from paddock.dialects.vitistack.kinds.machinetemplate import MachineTemplate, find
from paddock.dialects.vitistack.kinds.templates import BUILT_IN
from paddock.kubernetes.admission import AdmissionResult, admit, admit_change
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

GOOD: dict[str, Any] = {"resources": {"memory": {"size": "1Gi"}}, "disks": [{"name": "root", "size": "1Gi"}]}


def admitted(spec: dict[str, Any], name: str = "web") -> AdmissionResult:
    metadata = {"name": name, "namespace": "prod"}
    return admit(
        {"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineTemplate", "metadata": metadata, "spec": spec}, AdmissionSettings()
    )


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("spec", "name", "field", "words"),
    [
        (GOOD, "small", "metadata.name", "reserved template name"),
        (GOOD, "none", "metadata.name", "reserved template name"),
        (GOOD, "x" * 64, "metadata.name", "must be no more than 63 characters"),
        (GOOD | {"resources": {}}, "web", "spec.resources.memory.size", "Required value: a template gives the memory"),
        (GOOD | {"disks": [{"name": "root"}]}, "web", "spec.disks[0].size", "Required value: a template gives each disk's size"),
        (GOOD | {"disks": []}, "web", "spec.disks", "must have at least 1 item"),
        ({"resources": GOOD["resources"]}, "web", "spec.disks", "Required value"),
        ({"disks": GOOD["disks"]}, "web", "spec.resources", "Required value"),
    ],
)
def test_refused(spec: dict[str, Any], name: str, field: str, words: str) -> None:
    found = dict(errors(admitted(spec, name)))
    assert words in found[field]


def test_a_template_is_found_in_its_namespace() -> None:
    admission = admitted(GOOD)
    assert errors(admission) == []
    assert isinstance(admission.value, MachineTemplate)
    world = ObjectSet([admission.value])
    assert find("web", "prod", world) == admission.value.spec
    assert find("web", "default", world) is None
    assert find("huge", "prod", world) is None


def test_built_in_templates_cannot_be_replaced() -> None:
    usurpers = [admitted(GOOD, name).value for name in ("small", "none")]
    world = ObjectSet(each for each in usurpers if isinstance(each, MachineTemplate))
    assert find("small", "prod", world) is BUILT_IN["small"]
    assert find("none", "prod", world) is None


def test_what_a_template_gives_stays() -> None:
    before = admitted(GOOD)
    assert before.value is not None
    labelled = copy.deepcopy(before.data)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert errors(admit_change(before.value, admit(labelled, AdmissionSettings()), AdmissionSettings())) == []
    larger = admitted(GOOD | {"disks": [{"name": "root", "size": "2Gi"}]})
    ((field, message),) = errors(admit_change(before.value, larger, AdmissionSettings()))
    assert field == "spec"
    assert "field is immutable; make a template of another name" in message

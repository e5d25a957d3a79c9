"""The format of conformance specs, and what its comparisons and states mean."""

from typing import Any

import pytest

from paddock.dialects.virtrigaud.plan.cases import document, judging
from paddock.dialects.virtrigaud.plan.cases.document import BadCaseSpec, CaseCheck

RESOURCE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
MACHINE: dict[str, Any] = {
    "metadata": {"generation": 2},
    "spec": {"tags": ["a", "b"], "disks": [{"name": "data", "sizeGiB": 10}]},
    "status": {
        "id": "vm-1",
        "phase": "Running",
        "powerState": "On",
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "ReconcileSuccess", "message": "well", "observedGeneration": 2},
            {"type": "Provisioning", "status": "False"},
        ],
    },
}


def case(steps: str, **more: str) -> str:
    lines = [f"  {name}: {value}" for name, value in more.items()]
    return "\n".join(["- name: one", *lines, f"  steps: [{steps}]"])


@pytest.mark.spec("virtrigaud", 109)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: b", "Expected `array`"),
        (case(""), "case one has no steps"),
        (case("{name: s, type: jump}"), "jump"),
        (case("{name: s, type: create}"), "step s: a step of type create needs a resource"),
        (case("{name: s, type: wait, waitFor: {condition: Ready}}"), "there is no resource that it is about"),
        (case(f"{{name: s, type: wait, resource: {RESOURCE}}}"), "a step of type wait needs waitFor"),
        (case(f"{{name: s, type: validate, resource: {RESOURCE}}}"), "a step of type validate needs validate"),
        (case(f"{{name: s, type: wait, resource: {RESOURCE}, waitFor: {{condition: Happy}}}}"), "Happy"),
        (case(f"{{name: s, type: create, timeout: soon, resource: {RESOURCE}}}"), "soon is no duration"),
        (case("{name: s, type: create, resource: {kind: ConfigMap}}"), "needs apiVersion, kind and metadata.name"),
        (case(f"{{name: s, type: create, resource: {RESOURCE}}}", requiredCapabilities="[vm-fly]"), "vm-fly"),
        (case(f"{{name: s, type: create, resource: {RESOURCE}, validates: []}}"), "validates"),
        (
            case(f"{{name: s, type: create, resource: {RESOURCE}}}") + "\n" + case(f"{{name: s, type: create, resource: {RESOURCE}}}"),
            "twice",
        ),
        ("- name: ${image}\n  steps: []", "--set image=VALUE"),
        ("- name: $1", "write $$"),
        ("- name: [", "cannot be read"),
    ],
)
def test_a_mistake_is_named(text: str, says: str) -> None:
    with pytest.raises(BadCaseSpec) as caught:
        document.read(text, {})
    assert says in str(caught.value)


def test_an_empty_spec_has_no_cases() -> None:
    assert document.read("", {}) == ()


@pytest.mark.spec("virtrigaud", 109)
@pytest.mark.parametrize(
    ("path", "operator", "value", "holds"),
    [
        (".status.powerState", "eq", "On", True),
        (".status.powerState", "ne", "On", False),
        (".spec.disks[0].sizeGiB", "gt", 9, True),
        (".spec.disks[0].sizeGiB", "gte", 10, True),
        (".spec.disks[0].sizeGiB", "lt", 10, False),
        (".spec.disks[0].sizeGiB", "lte", "10", False),
        (".spec.disks[1].sizeGiB", "eq", 10, False),
        (".spec.tags", "contains", "b", True),
        (".status.id", "contains", "m-", True),
        (".status.id", "matches", "^vm-[0-9]+$", True),
        (".status.id", "matches", "[", False),
        (".status.id", "exists", None, True),
        (".status.ips", "exists", None, False),
        (".status.ips", "exists", False, True),
        (".status.ips", "eq", None, False),
    ],
)
def test_comparisons(path: str, operator: Any, value: Any, holds: bool) -> None:
    problem = judging.problem(CaseCheck(path=path, operator=operator, value=value), MACHINE)
    assert (problem == "") is holds and (holds or path in problem)


@pytest.mark.spec("virtrigaud", 109)
@pytest.mark.parametrize(
    ("condition", "status", "holds"),
    [
        ("Ready", {}, True),
        ("Available", {}, True),
        ("Running", {}, True),
        ("Stopped", {}, False),
        ("Stopped", {"phase": "Stopped", "powerState": "Off"}, True),
        ("Running", {"powerState": "Off"}, False),
        ("Failed", {"phase": "Failed"}, True),
        ("Provisioned", {}, True),
        ("Provisioned", {"lastTaskRef": "t"}, False),
        ("Provisioned", {"id": ""}, False),
        ("Ready", {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}, False),
        ("Ready", {"conditions": [{"type": "ProviderAvailable", "status": "True"}]}, True),
        ("Ready", {"conditions": []}, False),
        ("Deleted", {}, False),
    ],
)
def test_states(condition: Any, status: dict[str, Any], holds: bool) -> None:
    found = {**MACHINE, "status": {**MACHINE["status"], **status}}
    assert judging.holds(condition, found) is holds
    assert judging.holds(condition, None) is (condition == "Deleted")


def test_what_an_object_is_like_is_said() -> None:
    assert judging.described(MACHINE) == "phase Running, ReconcileSuccess: well"
    assert judging.described({}) == "its status says nothing"
    assert judging.described(None) == "it is not there"

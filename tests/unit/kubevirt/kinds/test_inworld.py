"""A machine against the instancetype and the preference of the same world (docs/spec/kubevirt.md V15, V16 and 7.5)."""

from typing import Any

import pytest

from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.inworld import instancetype_of, preference_of, sizing_findings
from paddock.kubevirt.kinds.virtualmachine import InstancetypeMatcher, PreferenceMatcher
from tests.unit.dialects.kubermatic.kinds.objects import FLAT, GONE, MACHINE, NESTED, TEMPLATE, changed

SIZED = {"domain.cpu": GONE, "domain.memory": GONE, "domain.cpu.model": "host-model"}


def typed(raw: dict[str, Any]) -> Any:
    admission = admit(raw, AdmissionSettings())
    assert admission.accepted, admission.findings
    return admission.value


def size(kind: str = "VirtualMachineClusterInstancetype", name: str = "small", namespace: str | None = None, **cpu: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = {"cpu": {"guest": 2, **cpu}, "memory": {"guest": "2Gi"}}
    return {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}


def preference(kind: str = "VirtualMachineClusterPreference", **requirements: Any) -> dict[str, Any]:
    return {
        "apiVersion": "instancetype.kubevirt.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "linux"},
        "spec": {"requirements": requirements},
    }


def sized(raw: dict[str, Any], at: str, around: str, **members: Any) -> dict[str, Any]:
    """A machine that names the instancetype, and says something of its own."""
    bare = changed(raw, {f"{at}.domain.cpu": GONE, f"{at}.domain.memory": GONE})
    return changed(bare, {f"{around}.instancetype": {"name": "small"}, **{f"{at}.{path}": value for path, value in members.items()}})


PLACES = (
    (MACHINE, "spec.template.spec", "spec"),
    (FLAT, TEMPLATE, TEMPLATE),
    (NESTED, f"{TEMPLATE}.template.spec", TEMPLATE),
)


@pytest.mark.parametrize(("raw", "at", "around"), PLACES, ids=["machine", "flat", "nested"])
def test_what_the_instancetype_sets_the_machine_does_not(raw: dict[str, Any], at: str, around: str) -> None:
    world = ObjectSet([typed(size(model="host-passthrough"))])
    machine = typed(sized(raw, at, around, **{"domain.cpu": {"model": "host-model"}}))
    ((field, message),) = [(found.field, found.message) for found in sizing_findings(machine, world, AdmissionSettings())]
    assert field == f"{at}.domain.cpu.model"
    assert f"VM field(s) {field} conflicts with selected instance type" in message
    # Without the object nobody can know, and an instancetype that leaves it open does not mind.
    assert list(sizing_findings(machine, ObjectSet(), AdmissionSettings())) == []
    assert list(sizing_findings(machine, ObjectSet([typed(size())]), AdmissionSettings())) == []


@pytest.mark.parametrize(("raw", "at", "around"), PLACES, ids=["machine", "flat", "nested"])
def test_amounts_are_always_the_instancetypes(raw: dict[str, Any], at: str, around: str) -> None:
    """Without the object, a warning says so: every instancetype has them."""
    both = changed(raw, {f"{around}.instancetype": {"name": "small"}})
    amounts = {f"{at}.domain.memory.guest", f"{at}.domain.cpu.cores"}
    assert amounts <= {each.field for each in admit(both, AdmissionSettings()).findings if each.severity is Severity.WARNING}
    assert amounts <= {each.field for each in sizing_findings(typed(both), ObjectSet([typed(size())]), AdmissionSettings())}
    assert list(sizing_findings(typed(both), ObjectSet(), AdmissionSettings())) == []
    assert admit(sized(raw, at, around), AdmissionSettings()).findings == ()


def test_what_a_preference_needs() -> None:
    given = changed(MACHINE, {"spec.preference": {"name": "linux"}})
    machine = typed(given)

    def missing(**requirements: Any) -> list[str]:
        world = ObjectSet([typed(preference(**requirements)), typed(size())])
        return [found.field for found in sizing_findings(machine, world, AdmissionSettings())]

    assert missing(cpu={"guest": 1}, memory={"guest": "2Gi"}) == []
    assert missing(memory={"guest": "3Gi"}) == ["spec.template.spec.domain.memory"]
    assert missing(cpu={"guest": 4})[0].startswith("spec.template.spec.domain.cpu")
    machine = typed(changed(sized(MACHINE, "spec.template.spec", "spec"), {"spec.preference": {"name": "linux"}}))
    assert missing(cpu={"guest": 2}, memory={"guest": "2Gi"}) == []
    assert missing(cpu={"guest": 4}) == ["spec.instancetype"]


def test_without_its_instancetype_nothing_is_known_of_the_size() -> None:
    machine = typed(changed(sized(MACHINE, "spec.template.spec", "spec"), {"spec.preference": {"name": "linux"}}))
    world = ObjectSet([typed(preference(cpu={"guest": 64}))])
    assert list(sizing_findings(machine, world, AdmissionSettings())) == []


@pytest.mark.parametrize("kind", [None, "VirtualMachineClusterInstancetype", "virtualmachineclusterinstancetypes"])
def test_everywhere_is_the_default(kind: str | None) -> None:
    world = ObjectSet([typed(size())])
    found = instancetype_of(InstancetypeMatcher(name="small", kind=kind), "prod", world)
    assert found is not None
    assert found.cpu.guest == 2
    assert instancetype_of(InstancetypeMatcher(name="large", kind=kind), "prod", world) is None
    assert instancetype_of(None, "prod", world) is None


@pytest.mark.parametrize("kind", ["VirtualMachineInstancetype", "virtualmachineinstancetypes"])
def test_one_namespace_has_its_own(kind: str) -> None:
    world = ObjectSet([typed(size(name="small")), typed(size("VirtualMachineInstancetype", namespace="prod"))])
    assert instancetype_of(InstancetypeMatcher(name="small", kind=kind), "prod", world) is not None
    assert instancetype_of(InstancetypeMatcher(name="small", kind=kind), "other", world) is None


def test_preferences_are_found_the_same_way() -> None:
    world = ObjectSet([typed(preference(cpu={"guest": 1})), typed(preference("VirtualMachinePreference", cpu={"guest": 3}))])
    for kind, guest in ((None, 1), ("VirtualMachinePreference", 3)):
        found = preference_of(PreferenceMatcher(name="linux", kind=kind), "default", world)
        assert found is not None and found.requirements is not None and found.requirements.cpu is not None
        assert found.requirements.cpu.guest == guest

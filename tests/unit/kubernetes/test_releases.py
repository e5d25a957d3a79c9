"""The API of older releases of KubeVirt: fields, versions and paths that they lack."""

from typing import Any

import pytest

from paddock.kubernetes import catalog, releases
from paddock.kubernetes.schema.generate import crd
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from paddock.kubevirt.kinds.gates import RELEASES
from paddock.kubevirt.rules import gates as gaterules
from paddock.server.resources.declared import DeclaredPipeline, resources_of
from tests.unit.kubevirt.kinds.objects import machine

KINDS = [each for each in catalog.every() if each.dialect == "kubevirt"]
MACHINE = next(each for each in KINDS if each.kind == "VirtualMachine")


def kind_of(name: str) -> Kind:
    return next(each for each in KINDS if each.kind == name)


def pipeline(release: int, kind: Kind = MACHINE) -> DeclaredPipeline:
    return DeclaredPipeline(kind, AdmissionSettings(kubevirt_release=release))


def with_domain(**members: Any) -> dict[str, Any]:
    made = machine()
    made["spec"]["template"]["spec"]["domain"].update(members)
    return made


@pytest.mark.spec("kubevirt", 237)
@pytest.mark.parametrize(
    ("member", "value", "since"),
    [
        ("ioThreads", {"supplementalPoolThreadCount": 2}, 5),
        ("rebootPolicy", "Reboot", 8),
        ("memory", {"guest": "1Gi", "reservedOverhead": {"addedOverhead": "1Mi"}}, 8),
    ],
)
@pytest.mark.parametrize("release", RELEASES)
def test_a_later_field_is_unknown(member: str, value: Any, since: int, release: int) -> None:
    given = with_domain(**{member: value})
    decoded = pipeline(release).decode(given)
    domain = decoded.data["spec"]["template"]["spec"]["domain"]
    if release >= since:
        assert not decoded.unknown and domain[member] == value
        return
    path = f"spec.template.spec.domain.{member}" + (".reservedOverhead" if member == "memory" else "")
    assert [each.message for each in decoded.unknown] == [f'unknown field "{path}"']
    assert domain.get(member) == ({"guest": "1Gi"} if member == "memory" else None)
    assert given["spec"]["template"]["spec"]["domain"][member] == value, "what a client sent is not changed"


@pytest.mark.spec("kubevirt", 237)
def test_a_later_field_in_a_list_and_in_a_map_is_unknown() -> None:
    disks = [{"name": "a", "disk": {}}, {"name": "b", "disk": {}, "changedBlockTracking": True}]
    given = with_domain(devices={"disks": disks})
    assert [each.path[-2:] for each in pipeline(6).decode(given).unknown] == [(1, "changedBlockTracking")]
    assert not pipeline(7).decode(given).unknown


@pytest.mark.spec("kubevirt", 237)
@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.kind)
def test_the_published_schema_lacks_what_is_unknown(kind: Kind) -> None:
    newest, before = set(_ways(crd.schema(kind))), set[str]()
    for release in RELEASES:
        published = set(_ways(pipeline(release, kind).schema))
        assert before <= published <= newest
        before = published
    assert before == newest


def _ways(schema: dict[str, Any], way: str = "") -> list[str]:
    found = []
    for name, each in schema.get("properties", {}).items():
        found += [f"{way}.{name}", *_ways(each, f"{way}.{name}")]
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found += _ways(schema[word], way)
    return found


@pytest.mark.spec("kubevirt", 237)
def test_a_later_default_is_left_out() -> None:
    restore = kind_of("VirtualMachineRestore")
    given = {"spec": {"target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "a"}, "virtualMachineSnapshotName": "b"}}
    said = {release: pipeline(release, restore).decode(given).data["spec"].get("targetReadinessPolicy") for release in (8, 9, 0)}
    assert said == {8: None, 9: "WaitGracePeriod", 0: "WaitGracePeriod"}
    published = {release: _ways_with_defaults(pipeline(release, restore).schema) for release in (8, 9)}
    assert published[9] - published[8] == {".spec.targetReadinessPolicy"}
    asked = {"spec": {**given["spec"], "targetReadinessPolicy": "StopTarget"}}
    assert pipeline(8, restore).decode(asked).data["spec"]["targetReadinessPolicy"] == "StopTarget"


def _ways_with_defaults(schema: dict[str, Any], way: str = "") -> set[str]:
    found = {way} if "default" in schema else set()
    for name, each in schema.get("properties", {}).items():
        found |= _ways_with_defaults(each, f"{way}.{name}")
    return found


@pytest.mark.spec("kubevirt", 238)
@pytest.mark.parametrize(
    ("kind", "release", "served"),
    [
        ("VirtualMachinePool", 6, {"v1alpha1"}),
        ("VirtualMachinePool", 7, {"v1alpha1", "v1beta1"}),
        ("VirtualMachineClone", 4, {"v1alpha1"}),
        ("VirtualMachineClone", 5, {"v1alpha1", "v1beta1"}),
        ("VirtualMachineExport", 8, {"v1alpha1", "v1beta1"}),
        ("VirtualMachineExport", 9, {"v1beta1", "v1"}),
        ("VirtualMachineInstancetype", 5, {"v1alpha1", "v1alpha2", "v1beta1"}),
        ("VirtualMachineInstancetype", 6, {"v1beta1"}),
        ("VirtualMachine", 3, {"v1", "v1alpha3"}),
        ("VirtualMachineExport", 0, {"v1alpha1", "v1beta1", "v1"}),
    ],
)
def test_versions_are_those_of_the_release(kind: str, release: int, served: set[str]) -> None:
    resources = resources_of(kind_of(kind), AdmissionSettings(kubevirt_release=release))
    assert {each.version for each in resources if not each.private} == served
    assert any(each.api_version == each.stored_version for each in resources), "controllers speak the stored version"
    assert all(each.private for each in resources if each.version not in served)


@pytest.mark.spec("kubevirt", 238)
def test_a_version_is_deprecated_from_the_release_that_does_it() -> None:
    def words(release: int) -> dict[str, str]:
        return {each.name: each.deprecated for each in releases.versions_of(kind_of("VirtualMachineExport"), release)}

    assert words(8) == {"v1alpha1": "", "v1beta1": ""}
    assert words(9) == {"v1": "", "v1beta1": "export.kubevirt.io/v1beta1 is deprecated; use export.kubevirt.io/v1"}


@pytest.mark.spec("kubevirt", 239)
@pytest.mark.parametrize(
    ("path", "since"),
    [("reset", 5), ("objectgraph", 6), ("evacuate/cancel", 7), ("backup", 8), ("pause", 3), ("guestexec", 3)],
)
def test_paths_are_those_of_the_release(path: str, since: int) -> None:
    assert [each for each in RELEASES if releases.has_subresource("virtualmachineinstances", path, each)] == list(range(since, 10))
    assert releases.has_subresource("virtualmachineinstances", path, 0)


@pytest.mark.spec("kubevirt", 240)
@pytest.mark.parametrize(
    ("gate", "release", "on", "open_"),
    [
        ("GPU", 3, (), False),
        ("GPU", 3, ("GPU",), True),
        ("GPU", 4, (), True),
        ("VideoConfig", 8, (), False),
        ("VideoConfig", 9, (), True),
        ("RebootPolicy", 8, (), False),
        ("RebootPolicy", 9, (), True),
        ("HostDevices", 9, (), False),
        # The engine has no such thing, whatever the release.
        ("VSOCK", 3, ("Sidecar",), False),
        ("Sidecar", 3, ("Sidecar",), False),
    ],
)
def test_gates_are_those_of_the_release(gate: str, release: int, on: tuple[str, ...], open_: bool) -> None:
    assert gaterules.is_open(gate, AdmissionSettings(kubevirt_release=release, gates=frozenset(on))) is open_

"""The table of references: each row is a field of a declaration, and finds what stands there."""

from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.dialect import Dialect, KindId
from paddock.kubevirt.plan.changes.patterns import parse
from paddock.kubevirt.plan.changes.references import provided, references, tables_of
from tests.unit.kubevirt.plan.fields import places

MACHINE: KindId = ("kubevirt.io", "VirtualMachine")


def identifier(kind: KindId) -> str:
    return ".".join(reversed(kind))


@pytest.mark.parametrize("kind", [each for each in catalog.known() if each in tables_of(*each)[0]], ids=identifier)
def test_every_row_is_a_field(kind: KindId) -> None:
    found = catalog.find(*kind)
    assert found is not None
    known = set(places(found))
    for row in tables_of(*kind)[0][kind]:
        parts = parse(row.path)
        # A pool is declared in both of its forms, or in one of them.
        assert parts in known, row.path
        for member in (row.namespace_in, row.kind_in):
            assert not member or (*parts[:-1], member) in known, f"{row.path}: {member}"
        assert all(catalog.find(*to) is not None for to in row.to), row.path


@pytest.mark.parametrize("kind", [each for each in catalog.known() if each in tables_of(*each)[1]], ids=identifier)
def test_every_provided_name_is_a_field(kind: KindId) -> None:
    found = catalog.find(*kind)
    assert found is not None
    for row in tables_of(*kind)[1][kind]:
        place: shape.Shape = shape.shape_of(found.cls)
        for part in parse(row.path):
            if part == "[]":
                assert isinstance(place, shape.ListShape)
                place = place.item
            else:
                assert isinstance(place, shape.ObjectShape)
                place = place.properties[part].shape


VOLUMES: dict[str, Any] = {
    "spec": {
        "instancetype": {"kind": "VirtualMachineInstancetype", "name": "small"},
        "preference": {"name": "linux"},
        "dataVolumeTemplates": [
            {"metadata": {"name": "root"}, "spec": {"sourceRef": {"kind": "DataSource", "name": "os", "namespace": "images"}}}
        ],
        "template": {
            "spec": {
                "volumes": [
                    {"name": "a", "dataVolume": {"name": "root"}},
                    {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "c", "cloudInitNoCloud": {"secretRef": {"name": "user-data"}}},
                ],
                "networks": [{"name": "n", "multus": {"networkName": "lan/blue"}}, {"name": "p", "pod": {}}],
            }
        },
    }
}


@pytest.mark.parametrize("dialect", catalog.every_dialect(), ids=lambda each: each.name)
def test_a_dialect_speaks_of_its_own_kinds(dialect: Dialect) -> None:
    for kind in dialect.kinds:
        assert all({*table} <= dialect.kinds.keys() for table in tables_of(*kind))


def test_references_of_a_machine() -> None:
    found = {(".".join(map(str, each.path)), each.to[0][1], each.namespace, each.name) for each in references(*MACHINE, VOLUMES)}
    assert found == {
        ("spec.instancetype.name", "VirtualMachineInstancetype", None, "small"),
        ("spec.preference.name", "VirtualMachinePreference", None, "linux"),
        ("spec.dataVolumeTemplates.0.spec.sourceRef.name", "DataSource", "images", "os"),
        ("spec.template.spec.volumes.0.dataVolume.name", "DataVolume", None, "root"),
        ("spec.template.spec.volumes.1.persistentVolumeClaim.claimName", "PersistentVolumeClaim", None, "data"),
        ("spec.template.spec.volumes.2.cloudInitNoCloud.secretRef.name", "Secret", None, "user-data"),
        ("spec.template.spec.networks.0.multus.networkName", "NetworkAttachmentDefinition", "lan", "blue"),
    }


def test_what_a_machine_brings_along() -> None:
    assert set(provided(*MACHINE, VOLUMES)) == {(("cdi.kubevirt.io", "DataVolume"), "root"), (("", "PersistentVolumeClaim"), "root")}


@pytest.mark.parametrize("data", [{}, {"spec": None}, {"spec": {"template": []}}, {"spec": {"template": {"spec": {"volumes": [None, 5]}}}}])
def test_what_is_of_another_form_is_passed_over(data: dict[str, Any]) -> None:
    assert list(references(*MACHINE, data)) == []


def test_a_kind_without_references() -> None:
    assert list(references("apps", "Deployment", {"spec": {}})) == []

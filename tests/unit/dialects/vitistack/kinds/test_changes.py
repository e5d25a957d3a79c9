"""The permitted and the refused changes of a stored machine (docs/spec/vitistack.md section 4.2)."""

from typing import Any

import pytest

from paddock.kubernetes.admission import admit, admit_change
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

IMMUTABLE = "field is immutable"


def machine(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": "web"}, "spec": spec}


def changed(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
    before = admit(machine(old), AdmissionSettings())
    assert before.value is not None
    found = admit_change(before.value, admit(machine(new), AdmissionSettings()), AdmissionSettings()).findings
    return [(each.field, each.message) for each in found if each.severity is Severity.ERROR]


def disks(**fields: Any) -> dict[str, Any]:
    return {"template": "small", "disks": [{"name": "data", "size": "10Gi", **fields}]}


def root(**fields: Any) -> dict[str, Any]:
    return {"template": "large", "disks": [{"name": "root", **fields}]}


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (disks(), disks(size="9Gi"), "spec.disks[0].size", "Forbidden: disks cannot shrink"),
        (root(size="90Gi"), root(size="80Gi"), "spec.disks[0].size", "Forbidden: disks cannot shrink"),
        ({"template": "large"}, root(size="79Gi"), "spec.disks[0].size", "Forbidden: disks cannot shrink"),
        ({"template": "large"}, {"template": "small"}, "spec.template", "Forbidden: root disk cannot shrink from 80Gi to 20Gi"),
        (root(size="100Gi"), {"template": "large"}, "spec.template", "Forbidden: root disk cannot shrink from 100Gi to 80Gi"),
        (disks(), disks(storageClass="fast"), "spec.disks[0].storageClass", f'Invalid value: "fast": {IMMUTABLE}'),
        (disks(storageClass="fast"), disks(), "spec.disks[0].storageClass", f'Invalid value: "default": {IMMUTABLE}'),
        (disks(), disks(accessMode="ReadWriteMany"), "spec.disks[0].accessMode", f'Invalid value: "ReadWriteMany": {IMMUTABLE}'),
        (disks(), disks(volumeMode="Block"), "spec.disks[0].volumeMode", f'Invalid value: "Block": {IMMUTABLE}'),
        (root(storageClass="fast"), {"template": "large"}, "spec.disks", f'Invalid value: "default": {IMMUTABLE}'),
    ],
)
def test_refused(old: dict[str, Any], new: dict[str, Any], place: str, message: str) -> None:
    assert changed(old, new) == [(place, message)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (disks(), disks(size="11Gi")),
        (disks(), disks(size="10240Mi")),
        (disks(), disks(storageClass="default", accessMode="ReadWriteOnce")),
        (disks(), disks(storageClass="")),
        (disks(), {"template": "small"}),
        ({"template": "small"}, disks(volumeMode="Block", storageClass="fast")),
        ({"template": "small"}, {"template": "large"}),
        ({"template": "large"}, {"template": "small", "disks": [{"name": "root", "size": "80Gi"}]}),
        ({"template": "large"}, {"template": "huge"}),
        ({"template": "huge"}, {"template": "small"}),
        ({"template": "small"}, {"template": "small", "resources": {"cpu": {"cores": 8}}, "bootOrder": ["network"]}),
    ],
)
def test_allowed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert changed(old, new) == []


def test_a_wrong_size_is_refused_once_and_compared_with_nothing() -> None:
    assert [place for place, _ in changed(disks(), disks(size="much"))] == ["spec.disks[0].size"]

"""The rules of a DataVolume: every rule of docs/spec/kubevirt.md 5.1 with its place, and the accepted form beside it."""

from typing import Any

import pytest

from paddock.kubernetes.admission import AdmissionResult, admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

SIZE = {"resources": {"requests": {"storage": "1Gi"}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], **SIZE}
HTTP = {"http": {"url": "https://example.com/image.qcow2"}}
BLANK: dict[str, Any] = {"blank": {}}
REFERENCE = {"kind": "DataSource", "name": "debian"}
COPY = {"pvc": {"namespace": "a", "name": "b"}}
POPULATED = {"dataSourceRef": {"apiGroup": "cdi.kubevirt.io", "kind": "VolumeImportSource", "name": "x"}}
LOCAL = {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}


def volume(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "disk"}, "spec": spec}


def admitted(**spec: Any) -> AdmissionResult:
    return admit(volume(**spec), AdmissionSettings())


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


ACCEPTED: tuple[dict[str, Any], ...] = (
    {"source": HTTP, "pvc": CLAIM},
    {"source": HTTP, "storage": SIZE},
    {"source": HTTP, "storage": {**SIZE, "accessModes": ["ReadWriteOnce", "ReadWriteMany"], "volumeMode": "Block"}},
    {"source": BLANK, "storage": SIZE, "preallocation": True},
    {"source": {"upload": {}}, "pvc": CLAIM},
    {"source": COPY, "storage": {}},
    {"source": {"snapshot": {"namespace": "a", "name": "b"}}, "storage": {}},
    {"sourceRef": REFERENCE, "storage": {}},
    {"sourceRef": {**REFERENCE, "namespace": "images", "apiGroup": "cdi.kubevirt.io"}, "pvc": CLAIM},
    {"pvc": {**CLAIM, **POPULATED}},
    {"storage": {**SIZE, **LOCAL}},
    {"storage": POPULATED},
    {"source": {"registry": {"url": "docker://quay.io/x/y:1", "pullMethod": "node"}}, "storage": SIZE},
    {"source": {"registry": {"imageStream": "x", "pullMethod": "node"}}, "storage": SIZE},
    {"source": HTTP, "storage": SIZE, "contentType": "archive"},
    {"source": HTTP, "storage": SIZE, "checkpoints": [{"previous": "", "current": "a"}], "finalCheckpoint": True},
    {"source": HTTP, "pvc": {**CLAIM, "resources": {"requests": {"storage": "1Mi"}}}},
    {"source": HTTP, "pvc": {**CLAIM, "storageClassName": "fast"}},
)


@pytest.mark.parametrize("spec", ACCEPTED)
def test_accepted(spec: dict[str, Any]) -> None:
    admission = admitted(**spec)
    assert admission.findings == ()
    assert admission.data["spec"] == spec


REFUSED: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"source": HTTP}, "spec.pvc", "Required value: give pvc or storage"),
    ({"source": HTTP, "pvc": CLAIM, "storage": SIZE}, "spec.storage", "Forbidden: pvc is set too"),
    ({"pvc": CLAIM}, "spec.source", "Invalid value: give exactly one of source and sourceRef"),
    ({"source": HTTP, "sourceRef": REFERENCE, "pvc": CLAIM}, "spec.source", "Invalid value: give exactly one of source and sourceRef"),
    ({"source": {}, "pvc": CLAIM}, "spec.source", "Missing dataVolume valid source"),
    ({"source": {**HTTP, **BLANK}, "pvc": CLAIM}, "spec.source", "Multiple dataVolume sources: http, blank"),
    ({"source": HTTP, "pvc": {**CLAIM, **POPULATED}}, "spec.source", "leave source and sourceRef out"),
    ({"sourceRef": REFERENCE, "storage": {**SIZE, **LOCAL}}, "spec.sourceRef", "leave source and sourceRef out"),
    ({"sourceRef": {"kind": "Image", "name": "x"}, "pvc": CLAIM}, "spec.sourceRef.kind", 'supported values: "DataSource"'),
    ({"sourceRef": {"kind": "DataSource"}, "pvc": CLAIM}, "spec.sourceRef.name", "Required value"),
    ({"sourceRef": {**REFERENCE, "name": "x" * 254}, "pvc": CLAIM}, "spec.sourceRef.name", "no more than 253"),
    ({"sourceRef": {**REFERENCE, "apiGroup": "foo"}, "pvc": CLAIM}, "spec.sourceRef.apiGroup", 'only "cdi.kubevirt.io"'),
    ({"source": {"http": {}}, "pvc": CLAIM}, "spec.source.http.url", "Required value"),
    ({"source": {"http": {"url": "ftp://a/b"}}, "pvc": CLAIM}, "spec.source.http.url", "the scheme must be http or https"),
    ({"source": {"gcs": {"url": "docker://a/b"}}, "pvc": CLAIM}, "spec.source.gcs.url", "the scheme must be gs or http or https"),
    ({"source": {"registry": {"url": "https://a/b"}}, "pvc": CLAIM}, "spec.source.registry.url", "docker or oci-archive"),
    (
        {"source": {"registry": {"url": "docker://a/b", "imageStream": "c"}}, "pvc": CLAIM},
        "spec.source.registry.imageStream",
        "url is set too",
    ),
    ({"source": {"registry": {"imageStream": "c"}}, "pvc": CLAIM}, "spec.source.registry.pullMethod", "needs the pullMethod node"),
    (
        {"source": {"registry": {"url": "docker://a/b"}}, "pvc": CLAIM, "contentType": "archive"},
        "spec.contentType",
        "a registry source cannot be an archive",
    ),
    ({"source": BLANK, "pvc": CLAIM, "contentType": "archive"}, "spec.contentType", "a blank source cannot be an archive"),
    ({"source": HTTP, "pvc": {**CLAIM, "volumeMode": "Block"}, "contentType": "archive"}, "spec.contentType", "volumeMode Filesystem"),
    ({"source": HTTP, "pvc": CLAIM, "contentType": "tar"}, "spec.contentType", "Unsupported value"),
    ({"source": HTTP, "pvc": {"accessModes": ["ReadWriteOnce"]}}, "spec.pvc.resources.requests.storage", "Required value"),
    ({"source": COPY, "pvc": {"accessModes": ["ReadWriteOnce"]}}, "spec.pvc.resources.requests.storage", "Required value"),
    ({"source": HTTP, "storage": {}}, "spec.storage.resources.requests.storage", "Required value"),
    ({"source": BLANK, "storage": {}}, "spec.storage.resources.requests.storage", "Required value"),
    (
        {"source": HTTP, "pvc": {**CLAIM, "resources": {"requests": {"storage": "1000Ki"}}}},
        "spec.pvc.resources.requests.storage",
        "at least 1Mi",
    ),
    (
        {"source": HTTP, "pvc": {**CLAIM, "resources": {"requests": {"storage": "0"}}}},
        "spec.pvc.resources.requests.storage",
        "greater than 0",
    ),
    (
        {"source": HTTP, "pvc": {**CLAIM, "resources": {"requests": {"storage": "many"}}}},
        "spec.pvc.resources.requests.storage",
        "not a Kubernetes quantity",
    ),
    ({"source": HTTP, "pvc": SIZE}, "spec.pvc.accessModes", "Required value"),
    ({"source": HTTP, "pvc": {**CLAIM, "accessModes": []}}, "spec.pvc.accessModes", "Required value"),
    (
        {"source": HTTP, "pvc": {**CLAIM, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}},
        "spec.pvc.accessModes",
        "Too many: 2: must have at most 1 item",
    ),
    (
        {"source": HTTP, "pvc": {**CLAIM, "storageClassName": "fast"}, "storageClassName": "slow"},
        "spec.storageClassName",
        "pvc.storageClassName names another class",
    ),
    (
        {"source": HTTP, "pvc": {**CLAIM, "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
        "spec.pvc.selector.matchExpressions[0].values",
        "must be specified",
    ),
)


@pytest.mark.parametrize(("spec", "field", "words"), REFUSED)
def test_refused(spec: dict[str, Any], field: str, words: str) -> None:
    found = errors(admitted(**spec))
    assert len(found) == 1, found
    assert found[0][0] == field
    assert words in found[0][1]


@pytest.mark.parametrize("claim", ["pvc", "storage"])
def test_a_class_beside_the_claim_is_a_warning(claim: str) -> None:
    admission = admitted(source=HTTP, storageClassName="fast", **{claim: CLAIM})
    assert admission.accepted
    ((field, message),) = [(found.field, found.message) for found in admission.findings]
    assert field == "spec.storageClassName"
    assert f"it is read as {claim}.storageClassName" in message


def test_everything_is_told_at_once() -> None:
    found = errors(admitted(source={"http": {"url": "ftp://a"}}, pvc={}, storage={}, contentType="x"))
    assert {field for field, _ in found} == {
        "spec.source.http.url",
        "spec.storage",
        "spec.pvc.accessModes",
        "spec.pvc.resources.requests.storage",
        "spec.storage.resources.requests.storage",
        "spec.contentType",
    }


def test_every_rule_is_documented() -> None:
    """Every finding has the id of a documented rule."""
    for spec, _, _ in REFUSED:
        admission = admitted(**spec)
        assert admission.kind is not None
        known = {rule.id for rule in admission.kind.rules}
        for found in admission.findings:
            assert found.rule in known or found.rule.startswith("schema/")

"""The built-in kinds: what is refused and where, what may change, and the good objects beside them."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import AdmissionResult, admit, admit_change
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.core.storageclass import StorageClass, default_class
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

GOOD = [*yaml.safe_load_all((Path(__file__).parent / "good.yaml").read_text())]
ENCODED = base64.b64encode(b"secret words").decode()
BIG = base64.b64encode(b"x" * (1024 * 1024 + 1)).decode()
SELECTOR = {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Exists", "values": ["x"]}]}


def thing(kind: str, api_version: str = "v1", name: str = "x", **members: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members}


def claim(**spec: Any) -> dict[str, Any]:
    good = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return thing("PersistentVolumeClaim", spec={**good, **spec})


def service(**spec: Any) -> dict[str, Any]:
    return thing("Service", spec={"ports": [{"port": 80}], **spec})


def kept(name: str) -> dict[str, Any]:
    return thing("VolumeSnapshot", "snapshot.storage.k8s.io/v1", spec={"source": {"persistentVolumeClaimName": name}})


def attachment(config: str) -> dict[str, Any]:
    return thing("NetworkAttachmentDefinition", "k8s.cni.cncf.io/v1", spec={"config": config})


def admitted(raw: dict[str, Any]) -> AdmissionResult:
    return admit(raw, AdmissionSettings())


def found(admission: AdmissionResult, severity: Severity = Severity.ERROR) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in admission.findings if each.severity is severity]


@pytest.mark.parametrize("raw", GOOD, ids=lambda raw: raw["kind"])
def test_good_objects_are_accepted(raw: dict[str, Any]) -> None:
    assert admitted(raw).findings == ()


def test_there_is_a_good_object_of_every_kind() -> None:
    core = {kind.kind for kind in catalog.every() if kind.dialect == "core"}
    assert core == {raw["kind"] for raw in GOOD} | {"NetworkAttachmentDefinition"}


def test_what_kubernetes_itself_has_needs_no_definition() -> None:
    defined = {kind.group for kind in catalog.every() if kind.dialect == "core" and not kind.builtin}
    assert defined == {"k8s.cni.cncf.io", "snapshot.storage.k8s.io"}


BOTH = {"source": {"persistentVolumeClaimName": "a", "volumeSnapshotContentName": "b"}}
REFUSED = (
    (thing("VolumeSnapshot", "snapshot.storage.k8s.io/v1", spec={"source": {}}), "spec.source", "exactly one of"),
    (thing("VolumeSnapshot", "snapshot.storage.k8s.io/v1", spec=BOTH), "spec.source", "exactly one of"),
    (thing("Secret", data={"a": "no base64!"}), "data.a", "plain text belongs in stringData"),
    (thing("Secret", data={"a": BIG}), "data", "Too long: may not be more than 1048576 bytes"),
    (thing("Secret", data={"a b": ENCODED}), "data.a b", "must consist of letters, digits"),
    (thing("Secret", type="kubernetes.io/tls", data={"tls.crt": ENCODED}), "data[tls.key]", "needs tls.key"),
    (thing("Secret", type="kubernetes.io/basic-auth"), "data.username", "needs username or password"),
    (thing("ConfigMap", binaryData={"a": "?"}), "binaryData.a", "text belongs in data"),
    (thing("ConfigMap", data={"a": "x"}, binaryData={"a": ENCODED}), "binaryData.a", "the key stands in data too"),
    (thing("ConfigMap", data={"a": "x" * (1024 * 1024 + 1)}), "data", "Too long"),
    (service(ports=[]), "spec.ports", "Required value"),
    (service(ports=[{"port": 80}, {"name": "b", "port": 81}]), "spec.ports[0].name", "Required value"),
    (service(ports=[{"name": "a", "port": 80}, {"name": "a", "port": 81}]), "spec.ports[1].name", 'Duplicate value: "a"'),
    (service(ports=[{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "TCP"}]), "spec.ports[1]", "Duplicate value"),
    (service(ports=[{"port": 0}]), "spec.ports[0].port", "must be between 1 and 65535"),
    (service(type="Balancer"), "spec.type", 'supported values: "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"'),
    (service(type="ExternalName"), "spec.externalName", "Required value"),
    (claim(accessModes=[]), "spec.accessModes", "at least 1 access mode is required"),
    (claim(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]), "spec.accessModes", "may not use ReadWriteOncePod with other"),
    (claim(accessModes=["Sometimes"]), "spec.accessModes[0]", "Unsupported value"),
    (claim(resources={}), "spec.resources.requests.storage", "Required value"),
    (claim(resources={"requests": {"storage": "0"}}), "spec.resources.requests.storage", "must be greater than 0"),
    (claim(selector=SELECTOR), "spec.selector.matchExpressions[0].values", "must be specified"),
    (claim(selector=SELECTOR), "spec.selector.matchExpressions[1].values", "may not be specified"),
    (claim(storageClassName="No_Class"), "spec.storageClassName", "must be a DNS-1123 subdomain"),
    (thing("StorageClass", "storage.k8s.io/v1"), "provisioner", "Required value"),
    (thing("Namespace", name="a.b"), "metadata.name", "must be a DNS-1123 label"),
    (thing("ControllerRevision", "apps/v1"), "revision", "Required value"),
    (thing("Event"), "involvedObject", "Required value"),
)


@pytest.mark.parametrize(("raw", "field", "words"), REFUSED)
def test_refused(raw: dict[str, Any], field: str, words: str) -> None:
    assert any(at == field and words in message for at, message in found(admitted(raw))), found(admitted(raw))


@pytest.mark.parametrize("spec", [{"type": "ExternalName", "externalName": "a.example", "ports": []}, {"clusterIP": "None", "ports": []}])
def test_some_services_need_no_ports(spec: dict[str, Any]) -> None:
    assert admitted(service(**spec)).findings == ()


def test_the_empty_class_is_a_choice() -> None:
    admission = admitted(claim(storageClassName=""))
    assert admission.findings == ()
    assert admission.data["spec"]["storageClassName"] == ""


@pytest.mark.parametrize(("config", "words"), [("{", "not JSON"), ("[]", "must be a JSON object")])
def test_a_network_that_cannot_work_is_told(config: str, words: str) -> None:
    admission = admitted(attachment(config))
    assert admission.accepted
    ((field, message),) = found(admission, Severity.WARNING)
    assert field == "spec.config"
    assert words in message


def test_secrets_are_not_repeated() -> None:
    admission = admitted(thing("Secret", data={"a": "my password!"}, stringData={"b": 5}))
    assert len(found(admission)) == 2
    assert not any("my password" in each.message or "5" in each.message for each in admission.findings)


def test_what_a_secret_holds() -> None:
    secret = Secret(data={"a": ENCODED, "b": ENCODED, "c": "?"}, stringData={"b": "plain"})
    assert decoded(secret) == {"a": b"secret words", "b": b"plain"}


def test_the_class_of_machines_goes_before_the_default() -> None:
    def named(name: str, *annotations: str) -> StorageClass:
        return StorageClass(metadata=ObjectMeta(name=name, annotations=dict.fromkeys(annotations, "true")))

    plain, default = named("a"), named("c", "storageclass.kubernetes.io/is-default-class")
    other = named("b", "storageclass.kubernetes.io/is-default-class")
    machines = named("d", "storageclass.kubevirt.io/is-default-virt-class")
    assert default_class([plain]) is None
    assert default_class([plain, default, other]) is other
    assert default_class([plain, default, other, machines]) is machines


GROWS = claim(resources={"requests": {"storage": "2Gi"}}, volumeName="pv", storageClassName="fast")
CHANGES = (
    (claim(), GROWS, None, ""),
    (GROWS, claim(volumeName="pv", storageClassName="fast"), "spec.resources.requests.storage", "can not be less than previous value"),
    (claim(), claim(accessModes=["ReadWriteMany"]), "spec.accessModes", "immutable after creation except resources.requests"),
    (GROWS, {**GROWS, "spec": {**GROWS["spec"], "volumeName": "other"}}, "spec.volumeName", "immutable"),
    (thing("Secret", type="a"), thing("Secret", type="b"), "type", "field is immutable"),
    (thing("Secret"), thing("Secret", type="Opaque"), None, ""),
    (thing("Secret", immutable=True), thing("Secret"), "immutable", "immutable when"),
    (thing("Secret", immutable=True), thing("Secret", immutable=True, stringData={"a": "b"}), "data", "immutable when"),
    (thing("ConfigMap", immutable=True), thing("ConfigMap", immutable=True, data={"a": "b"}), "data", "immutable when"),
    (thing("ConfigMap"), thing("ConfigMap", data={"a": "b"}), None, ""),
    (
        thing("StorageClass", "storage.k8s.io/v1", provisioner="a"),
        thing("StorageClass", "storage.k8s.io/v1", provisioner="b"),
        "provisioner",
        "updates to this field are forbidden",
    ),
    (
        thing("ControllerRevision", "apps/v1", revision=1, data={"a": 1}),
        thing("ControllerRevision", "apps/v1", revision=2, data={"a": 2}),
        "data",
        "field is immutable",
    ),
    (kept("a"), kept("b"), "spec.source", "field is immutable"),
)


@pytest.mark.parametrize(("old", "new", "field", "words"), CHANGES)
def test_changes(old: dict[str, Any], new: dict[str, Any], field: str | None, words: str) -> None:
    before = admitted(old).value
    assert before is not None
    after = admit_change(before, admitted(new), AdmissionSettings())
    if field is None:
        assert found(after) == []
    else:
        assert any(at == field and words in message for at, message in found(after)), found(after)

"""DataSources: what is accepted, what is refused, and in which words (docs/spec/kubermatic.md 1.3)."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.kubernetes import catalog
from paddock.kubevirt.kinds import pem
from tests.unit.dialects.kubermatic.kinds.objects import (
    BODY,
    EXAMPLES,
    MACHINE,
    OTHER_BODY,
    SOURCE,
    admitted,
    certificate,
    changed,
    errors,
    http,
    source,
    warnings,
)

TLS = {"secretRef": {"name": "client"}}
PLACE = {"namespace": "default", "name": "x"}


@pytest.mark.parametrize("target", ["embedded", "cluster"])
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_good(path: Path, target: str) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        admission = admitted(document, target=target)
        assert errors(admission) == []
        # One example shows what a cluster cannot do.
        client = target == "cluster" and document["metadata"]["name"] == "guarded-image"
        assert len(admission.findings) == int(client)


def test_every_kind_has_an_example() -> None:
    shown = {raw["kind"] for path in EXAMPLES.glob("*.yaml") for raw in yaml.safe_load_all(path.read_text())}
    assert {kind.kind for kind in catalog.every() if kind.dialect == "kubermatic"} <= shown


@pytest.mark.spec("kubermatic", 1)
@pytest.mark.parametrize("target", ["embedded", "cluster"])
@pytest.mark.parametrize("raw", [MACHINE, SOURCE], ids=["machine", "source"])
def test_the_documents_machine_and_source_are_accepted(raw: dict[str, Any], target: str) -> None:
    admission = admitted(raw, target=target)
    assert admission.findings == ()
    assert admission.data == raw


@pytest.mark.spec("kubermatic", 19)
@pytest.mark.spec("kubevirt", 178)
@pytest.mark.parametrize("target", ["embedded", "cluster"])
def test_a_source_may_come_later(target: str) -> None:
    assert admitted(source({}), target=target).findings == ()


@pytest.mark.spec("kubermatic", 19)
@pytest.mark.parametrize("members", [{**http(), "pvc": PLACE}, {"pvc": PLACE, "snapshot": PLACE}])
def test_no_more_than_one_source(members: dict[str, Any]) -> None:
    ((field, message),) = errors(admitted(source(members)))
    assert field == "spec.source"
    assert "no more than one source may be set" in message
    for name in members:
        assert name in message


@pytest.mark.parametrize(
    "members",
    [
        http(),
        {"pvc": PLACE},
        {"snapshot": PLACE},
        {"dataSource": PLACE},
        {"registry": {"url": "docker://quay.io/x/y:1"}},
        {"registry": {"url": "oci-archive:///images/y.tar"}},
        {"s3": {"url": "s3://bucket/key"}},
        {"gcs": {"url": "gs://bucket/key"}},
        {"imageio": {"url": "https://engine/api", "diskId": "1"}},
        {"vddk": {"url": "https://vcenter", "uuid": "1"}},
        http(secretRef="login", certConfigMap="ca", extraHeaders=["A: b"], secretExtraHeaders=["h"]),
        http(checksum="sha256:" + "0" * 64),
        http("http://example.com:8080/path/to/image.qcow2?version=1"),
    ],
    ids=lambda members: next(iter(members)),
)
def test_every_source_is_accepted_alone(members: dict[str, Any]) -> None:
    assert admitted(source(members)).findings == ()


@pytest.mark.parametrize("name", ["blank", "upload"])
def test_what_names_no_content_is_refused_with_a_reason(name: str) -> None:
    found = errors(admitted(source({name: {}})))
    assert any(field == f"spec.source.{name}" and "a DataSource names content" in message for field, message in found)


@pytest.mark.spec("kubermatic", 20)
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.com/image.qcow2", 'Invalid value: "ftp://example.com/image.qcow2"'),
        ("https://joe:pass@example.com/image", "credentials belong in a Secret"),
        ("https://joe@example.com/image", "credentials belong in a Secret"),
        ("example.com/image", 'Invalid value: "example.com/image"'),
        ("https:///image", "must name a host"),
        ("https://[::1/image", "not a URL"),
    ],
)
def test_addresses(url: str, words: str) -> None:
    ((field, message),) = errors(admitted(source(http(url))))
    assert field == "spec.source.http.url"
    assert words in message
    assert "pass" not in message


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"registry": {"url": "https://quay.io/x"}}, "spec.source.registry.url"),
        ({"registry": {}}, "spec.source.registry.url"),
        ({"registry": {"url": "docker://a/b", "imageStream": "c", "pullMethod": "node"}}, "spec.source.registry.imageStream"),
        ({"registry": {"imageStream": "c"}}, "spec.source.registry.pullMethod"),
        ({"gcs": {"url": "s3://bucket/key"}}, "spec.source.gcs.url"),
        ({"s3": {"url": "gs://bucket/key"}}, "spec.source.s3.url"),
        ({"imageio": {"url": "ftp://engine", "diskId": "1"}}, "spec.source.imageio.url"),
        ({"pvc": {"name": "x"}}, "spec.source.pvc.namespace"),
        ({"http": {}}, "spec.source.http.url"),
    ],
)
def test_sources_are_complete(members: dict[str, Any], field: str) -> None:
    assert [place for place, _ in errors(admitted(source(members)))] == [field]


@pytest.mark.spec("kubermatic", 21)
def test_certificates_need_https() -> None:
    bundle = {"caBundle": certificate()}
    ((field, message),) = errors(admitted(source(http("http://example.com/x", certConfig=bundle))))
    assert field == "spec.source.http.certConfig"
    assert "certConfig needs an https URL" in message
    assert admitted(source(http(certConfig=bundle))).findings == ()


@pytest.mark.spec("kubermatic", 22)
def test_a_bundle_is_pem_or_base64_of_it() -> None:
    plain = certificate() + "# a comment\n" + certificate(OTHER_BODY)
    for bundle in (plain, base64.b64encode(plain.encode()).decode(), plain.replace("\n", "\r\n")):
        assert admitted(source(http(certConfig={"caBundle": bundle}))).findings == ()
        assert pem.bundle(bundle) == certificate() + certificate(OTHER_BODY)
    for garbage in ("base64encodedCABundle", "", "x" * 10, certificate("not base64!"), certificate("AAAA"), certificate()[:-10]):
        ((field, message),) = errors(admitted(source(http(certConfig={"caBundle": garbage}))))
        assert field == "spec.source.http.certConfig.caBundle"
        assert message == "Invalid value: not a PEM bundle"


def test_keys_are_no_certificates() -> None:
    key = certificate().replace("CERTIFICATE", "PRIVATE KEY")
    assert pem.bundle(key) == ""
    assert pem.bundle(certificate() + key) == ""
    assert pem.bundle(certificate() + certificate("AAAA")) == ""
    assert pem.bundle(certificate(BODY[:30] + "\n" + BODY[30:])) == certificate()


@pytest.mark.spec("kubermatic", 23)
def test_a_client_certificate_has_a_key() -> None:
    for given, missing in (("cert", "key"), ("key", "cert")):
        ((field, message),) = errors(admitted(source(http(certConfig={given: TLS}))))
        assert field == f"spec.source.http.certConfig.{missing}"
        assert "cert and key go together" in message
    both = source(http(certConfig={"cert": TLS, "key": TLS}))
    # Paddock's own engine presents them; on a cluster the user learns at once that nobody will.
    assert admitted(both).findings == ()
    ((field, message),) = warnings(admitted(both, target="cluster"))
    assert field == "spec.source.http.certConfig"
    assert "ClientCertificateUnsupported" in message


@pytest.mark.parametrize(
    "checksum", ["sha256:zz", "sha256:" + "0" * 63, "sha384:" + "0" * 96, "0" * 64, "md5:" + "0" * 40, "sha512:" + "g" * 128]
)
def test_checksums(checksum: str) -> None:
    assert [field for field, _ in errors(admitted(source(http(checksum=checksum))))] == ["spec.source.http.checksum"]


@pytest.mark.parametrize("trusted", [{"certConfigMap": "ca"}, {"certConfig": {"caBundle": certificate()}}])
def test_authorities_that_nobody_asks_are_told(trusted: dict[str, Any]) -> None:
    admission = admitted(source(http(insecureSkipVerify=True, **trusted)))
    assert admission.accepted
    assert [field for field, _ in warnings(admission)] == ["spec.source.http.insecureSkipVerify"]
    assert admitted(source(http(insecureSkipVerify=True))).findings == ()


def test_an_image_may_be_named_where_it_is_allowed() -> None:
    reference = {"kind": "Image", "name": "debian"}
    at = "spec.dataVolumeTemplates[0].spec.sourceRef"
    named = changed(MACHINE, {at: reference})
    assert [field for field, _ in errors(admitted(named))] == [f"{at}.kind"]
    assert admitted(named, image_source_ref=True).findings == ()
    grouped = changed(MACHINE, {at: {**reference, "apiGroup": "virtualization.k8c.io"}})
    assert admitted(grouped, image_source_ref=True).findings == ()
    wrong = changed(MACHINE, {at: {**reference, "apiGroup": "cdi.kubevirt.io"}})
    assert [field for field, _ in errors(admitted(wrong, image_source_ref=True))] == [f"{at}.apiGroup"]


def test_images_have_one_source() -> None:
    image = {
        "apiVersion": "virtualization.k8c.io/v1alpha1",
        "kind": "Image",
        "metadata": {"name": "x"},
        "spec": {"type": "linux", "readableName": "X", "http": {"url": "https://example.com/x"}},
    }
    assert admitted(image).findings == ()
    both = changed(image, {"spec.pvc": {"name": "y"}})
    assert errors(admitted(both)) == [("spec", "Invalid value: exactly one source must be set: http, pvc")]

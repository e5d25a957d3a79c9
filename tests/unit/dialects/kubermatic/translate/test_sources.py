"""The sources of a disk: addresses, references to DataSources, cached images, the catalogue of images."""

import base64
from typing import Any

import pytest

from paddock.dialects.kubermatic.translate.refusals import (
    ClientCertificateUnsupported,
    CrossNamespaceSecret,
    DataSourceNotFound,
    DataSourceNotReady,
)
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.dialects.kubermatic.kinds.objects import (
    FLAT,
    GONE,
    MACHINE,
    OTHER_BODY,
    SOURCE,
    admitted,
    certificate,
    changed,
    errors,
    http,
    source,
)
from tests.unit.dialects.kubermatic.translate.making import (
    MANAGED_BY,
    REFERENCE,
    TAKEN_FROM,
    URL,
    Json,
    config_map,
    machine,
    made,
    secret,
    template,
    translated,
)

BUNDLE = certificate()
CLIENT = {"secretRef": {"name": "client"}}


def test_annotations_of_a_disk_are_kept() -> None:
    raw = changed(MACHINE, {"spec.dataVolumeTemplates[0].metadata.annotations": {"a": "b"}})
    assert template(raw, SOURCE)["metadata"]["annotations"] == {"a": "b", TAKEN_FROM: "default/my-http-datasource"}
    volume = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": "disk", "annotations": {"a": "b"}},
        "spec": MACHINE["spec"]["dataVolumeTemplates"][0]["spec"],
    }
    assert made(volume, SOURCE)[0]["metadata"]["annotations"] == {"a": "b", TAKEN_FROM: "default/my-http-datasource"}


@pytest.mark.parametrize("name", ["pvc", "snapshot", "dataSource"])
def test_what_cdi_knows_is_taken_verbatim(name: str) -> None:
    raw = source({name: {"namespace": "default", "name": "golden"}})
    assert made(raw) == [raw]


@pytest.mark.parametrize(
    "member",
    [
        {"http": {"url": URL, "secretRef": "login", "certConfigMap": "ca", "extraHeaders": ["A: b"], "secretExtraHeaders": ["h"]}},
        {"http": {"url": URL, "checksum": "md5:" + "0" * 32, "insecureSkipVerify": True}},
        {"registry": {"url": "docker://quay.io/x/y:1", "secretRef": "login"}},
        {"s3": {"url": "https://s3.example.com/b/k", "secretRef": "login"}},
        {"gcs": {"url": "gs://b/k"}},
        {"imageio": {"url": "https://engine", "diskId": "1"}},
        {"vddk": {"url": "https://vcenter", "uuid": "1"}},
    ],
)
def test_every_address_is_put_into_the_disk(member: Json) -> None:
    result = template(MACHINE, source(member))
    assert result["spec"]["source"] == member
    assert result["metadata"]["annotations"] == {TAKEN_FROM: "default/my-http-datasource"}
    assert result["spec"]["pvc"] == MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]


def test_a_source_nobody_uses_is_a_loss() -> None:
    (loss,) = translated(SOURCE).losses
    assert (loss.of, loss.field, loss.value) == ("DataSource/my-http-datasource", "spec.source", "http")
    assert translated(SOURCE, MACHINE).losses == ()
    assert translated(SOURCE, FLAT).losses == ()


class TestAuthorities:
    """Certificate authorities reach CDI as a ConfigMap beside the machine."""

    def bundled(self, *bodies: str) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "my-http-datasource-ca", "namespace": "default", "labels": {MANAGED_BY: "vm-control-plane"}},
            "data": {"ca.pem": "".join(certificate(body) if body else BUNDLE for body in bodies)},
        }

    @pytest.mark.spec("kubermatic", 22)
    def test_base64_and_plain_give_the_same(self) -> None:
        for bundle in (BUNDLE, base64.b64encode(BUNDLE.encode()).decode()):
            given = source(http(certConfig={"caBundle": bundle}))
            config, result = made(MACHINE, given)
            assert config == self.bundled("")
            assert result["spec"]["dataVolumeTemplates"][0]["spec"]["source"] == {
                "http": {"url": "https://example.com/image.qcow2", "certConfigMap": "my-http-datasource-ca"}
            }
        garbage = admitted(source(http(certConfig={"caBundle": "garbage"})))
        assert errors(garbage) == [("spec.source.http.certConfig.caBundle", "Invalid value: not a PEM bundle")]

    def test_pools_bring_it_along(self) -> None:
        given = source(http(certConfig={"caBundle": BUNDLE}))
        config, result = made(FLAT, given)
        assert config == self.bundled("")
        assert result["kind"] == "VirtualMachinePool"

    def test_the_same_authority_is_trusted_once(self) -> None:
        given = source(http(certConfig={"caBundle": BUNDLE, "secretRef": {"name": "more"}}))
        config, _ = made(MACHINE, given, secret("more", **{"ca.crt": BUNDLE}))
        assert config == self.bundled("")

    @pytest.mark.parametrize("key", ["ca.crt", "ca.pem", "caBundle"])
    def test_bundle_and_secret_are_both_trusted(self, key: str) -> None:
        given = source(http(certConfig={"caBundle": BUNDLE, "secretRef": {"name": "more"}}))
        config, _ = made(MACHINE, given, secret("more", **{key: certificate(OTHER_BODY)}))
        assert config == self.bundled("", OTHER_BODY)

    def test_a_config_map_of_the_users_is_added(self) -> None:
        given = source(http(certConfigMap="mine", certConfig={"caBundle": BUNDLE}))
        packed = base64.b64encode(certificate(OTHER_BODY).encode()).decode()
        held: Json
        for held in ({"data": {"x.crt": certificate(OTHER_BODY), "readme": "no"}}, {"binaryData": {"x.pem": packed}}):
            config, result = made(MACHINE, given, config_map("mine", held))
            assert config == self.bundled("", OTHER_BODY)
            assert result["spec"]["dataVolumeTemplates"][0]["spec"]["source"]["http"]["certConfigMap"] == "my-http-datasource-ca"

    def test_a_config_map_alone_is_used_as_it_is(self) -> None:
        given = source(http(certConfigMap="mine"))
        (result,) = made(MACHINE, given)
        assert result["spec"]["dataVolumeTemplates"][0]["spec"]["source"]["http"]["certConfigMap"] == "mine"

    def test_it_goes_with_the_source_that_it_belongs_to(self) -> None:
        given = source(http(certConfig={"caBundle": BUNDLE}), uid="u-1")
        config, _ = made(MACHINE, given)
        assert config["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "cdi.kubevirt.io/v1beta1",
                "kind": "DataSource",
                "name": "my-http-datasource",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]

    def test_it_is_made_where_it_is_needed(self) -> None:
        given = source(http(certConfigMap="mine"), namespace="images", uid="u-1")
        away = changed(MACHINE, {f"{REFERENCE}.namespace": "images"})
        config, result = made(away, given, config_map("mine", {"data": {"ca.crt": BUNDLE}}, "images"))
        # An owner in another namespace is no owner.
        assert config == self.bundled("")
        assert result["spec"]["dataVolumeTemplates"][0]["metadata"]["annotations"] == {TAKEN_FROM: "images/my-http-datasource"}

    def test_two_disks_of_one_source_share_it(self) -> None:
        templates = MACHINE["spec"]["dataVolumeTemplates"]
        second = {**templates[0], "metadata": {"name": "second"}}
        both = changed(MACHINE, {"spec.dataVolumeTemplates": [templates[0], second]})
        both["spec"]["template"]["spec"]["volumes"].append({"name": "second", "dataVolume": {"name": "second"}})
        both["spec"]["template"]["spec"]["domain"]["devices"]["disks"].append({"name": "second"})
        assert [each["kind"] for each in made(both, source(http(certConfig={"caBundle": BUNDLE})))] == ["ConfigMap", "VirtualMachine"]

    def test_of_a_disk_without_a_source_of_its_own_name(self) -> None:
        inline = {"source": http(certConfig={"caBundle": BUNDLE}), "pvc": MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]}
        config, result = made(changed(MACHINE, {"spec.dataVolumeTemplates[0].spec": inline}))
        assert config["metadata"]["name"] == "my-http-data-volume-ca"
        made_of = result["spec"]["dataVolumeTemplates"][0]["spec"]["source"]["http"]
        assert made_of == {"url": "https://example.com/image.qcow2", "certConfigMap": "my-http-data-volume-ca"}


class TestRefusals:
    """Sources that do not exist yet, or cannot."""

    def refused(self, error: type[Exception], raw: Json, *others: Json) -> Any:
        with pytest.raises(error) as caught:
            translated(raw, *others)
        return caught.value

    @pytest.mark.parametrize(
        ("raw", "path"), [(MACHINE, ("spec",)), (FLAT, ("spec", "virtualMachineTemplate", "spec"))], ids=["machine", "pool"]
    )
    def test_a_missing_source_is_waited_for(self, raw: Json, path: tuple[str, ...]) -> None:
        error = self.refused(DataSourceNotFound, raw)
        assert error.error_type == "DataSourceNotFound"
        assert error.path == (*path, "dataVolumeTemplates", 0, "spec", "sourceRef")
        assert str(error).startswith("the DataSource default/my-http-datasource is not there")

    def test_without_the_group_it_may_be_in_the_cluster(self) -> None:
        """Then it is CDI's own form, and nothing needs to be resolved."""
        plain = changed(MACHINE, {f"{REFERENCE}.apiGroup": GONE})
        assert made(plain) == [plain]

    def test_a_plain_url_works_from_elsewhere_and_a_secret_does_not(self) -> None:
        away = changed(MACHINE, {f"{REFERENCE}.namespace": "images"})
        assert template(away, source(http(URL), namespace="images"))["spec"]["source"] == http(URL)
        assert len(made(away, source(http(certConfig={"caBundle": BUNDLE}), namespace="images"))) == 2
        for needs in (
            http(secretRef="login"),
            http(secretExtraHeaders=["h"]),
            http(certConfig={"secretRef": {"name": "ca"}}),
            {"s3": {"url": "s3://b/k", "secretRef": "login"}},
        ):
            error = self.refused(CrossNamespaceSecret, away, source(needs, namespace="images"))
            assert error.error_type == "CrossNamespaceSecret"
            assert "use a DataSource of the namespace default" in str(error)

    @pytest.mark.spec("kubermatic", 23)
    def test_a_client_certificate_is_not_for_clusters(self) -> None:
        both = {"cert": CLIENT, "key": CLIENT}
        error = self.refused(ClientCertificateUnsupported, MACHINE, source(http(certConfig=both)))
        assert error.error_type == "ClientCertificateUnsupported"
        assert errors(admitted(source(http(certConfig={"cert": CLIENT})))) != []
        # The engine presents them: for it, nothing is wrong.
        assert admitted(source(http(certConfig=both)), target=AdmissionSettings().target).findings == ()

    @pytest.mark.parametrize(
        ("given", "others", "reason"),
        [
            (http(certConfig={"secretRef": {"name": "ca"}}), (), "SecretNotFound"),
            (http(certConfig={"secretRef": {"name": "ca"}}), (secret("ca", other="x"),), "InvalidCertificate"),
            (http(certConfig={"secretRef": {"name": "ca"}}), (secret("ca", **{"ca.crt": "x"}),), "InvalidCertificate"),
            (http(certConfigMap="x", certConfig={"caBundle": BUNDLE}), (), "ConfigMapNotFound"),
            ({"dataSource": {"namespace": "other", "name": "x"}}, (), "CrossNamespaceReference"),
            ({"dataSource": {"namespace": "default", "name": "my-http-datasource"}}, (), "SelfReference"),
            ({"dataSource": {"namespace": "default", "name": "x"}}, (), "NotFound"),
            (
                {"dataSource": {"namespace": "default", "name": "x"}},
                (source({"dataSource": {"namespace": "default", "name": "y"}}, "x"),),
                "MaxReferenceDepthReached",
            ),
        ],
    )
    def test_a_source_that_cannot_be_used_says_why(self, given: Json, others: tuple[Json, ...], reason: str) -> None:
        error = self.refused(DataSourceNotReady, MACHINE, source(given), *others)
        assert (error.error_type, error.reason) == ("DataSourceNotReady", reason)
        assert reason in str(error)


def test_a_name_for_another_source_is_followed_once() -> None:
    alias, target = source({"dataSource": {"namespace": "default", "name": "real"}}), source(http(URL), "real")
    assert template(MACHINE, alias, target)["spec"]["source"] == http(URL)
    assert template(MACHINE, alias, target)["metadata"]["annotations"] == {TAKEN_FROM: "default/real"}
    # Neither is anything that CDI could hold.
    assert made(alias, target, MACHINE) == []
    assert made(target, alias, MACHINE) == []
    claim = source({"pvc": {"namespace": "default", "name": "golden"}}, "real")
    assert template(MACHINE, alias, claim)["spec"]["sourceRef"] == {"kind": "DataSource", "name": "my-http-datasource"}
    assert made(alias, claim, MACHINE) == [alias]


class TestCache:
    """One download for all who refer to a DataSource."""

    CACHED = source(http(URL), annotations={"virtualization.k8c.io/cache": "true"})

    def test_consumers_copy_the_golden_disk(self) -> None:
        result = template(MACHINE, self.CACHED)
        assert result["spec"]["source"] == {"pvc": {"namespace": "default", "name": "my-http-datasource-golden"}}
        assert result["metadata"]["annotations"] == {TAKEN_FROM: "default/my-http-datasource"}

    def test_the_golden_disk_is_as_large_as_the_smallest_asks(self) -> None:
        size = "spec.dataVolumeTemplates[0].spec.pvc.resources.requests.storage"
        large = changed(MACHINE, {"metadata.name": "large", size: "1Ti"})
        for others in ((large, MACHINE), (MACHINE, large), (large, FLAT)):
            (golden_disk,) = made(self.CACHED, *others)
            assert golden_disk == {
                "apiVersion": "cdi.kubevirt.io/v1beta1",
                "kind": "DataVolume",
                "metadata": {
                    "name": "my-http-datasource-golden",
                    "namespace": "default",
                    "labels": {MANAGED_BY: "vm-control-plane"},
                    "annotations": {TAKEN_FROM: "default/my-http-datasource", "cdi.kubevirt.io/storage.bind.immediate.requested": ""},
                },
                "spec": {"source": http(URL), "pvc": MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]},
            }
            assert admitted(golden_disk).findings == ()

    def test_the_class_of_the_smallest_is_in_its_claim(self) -> None:
        beside = changed(MACHINE, {"spec.dataVolumeTemplates[0].spec.storageClassName": "fast"})
        (golden_disk,) = made(self.CACHED, beside)
        assert golden_disk["spec"]["pvc"]["storageClassName"] == "fast"
        assert "storageClassName" not in golden_disk["spec"]

    def test_its_authorities_stay_with_it(self) -> None:
        cached = source(http(certConfig={"caBundle": BUNDLE}), annotations={"virtualization.k8c.io/cache": "true"})
        assert [each["kind"] for each in made(cached, MACHINE)] == ["ConfigMap", "DataVolume"]
        assert [each["kind"] for each in made(MACHINE, cached)] == ["VirtualMachine"]

    def test_what_is_a_copy_anyway_is_not_cached(self) -> None:
        claim = source({"pvc": {"namespace": "default", "name": "x"}}, annotations={"virtualization.k8c.io/cache": "true"})
        assert made(claim, MACHINE) == [claim]

    def test_without_a_consumer_there_is_none(self) -> None:
        assert translated(self.CACHED).value == ()


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({"http": {"url": URL}}, {"http": {"url": URL}}),
        ({"http": {"url": URL}, "credentials": {"name": "login"}}, {"http": {"url": URL, "secretRef": "login"}}),
        ({"registry": {"url": "docker://a/b"}}, {"registry": {"url": "docker://a/b"}}),
        ({"s3": {"url": "s3://a/b"}}, {"s3": {"url": "s3://a/b"}}),
        ({"gcs": {"url": "gs://a/b"}}, {"gcs": {"url": "gs://a/b"}}),
        ({"pvc": {"name": "x"}}, {"pvc": {"namespace": "default", "name": "x"}}),
        ({"pvc": {"name": "x", "namespace": "y"}}, {"pvc": {"namespace": "y", "name": "x"}}),
    ],
)
def test_images(members: Json, wanted: Json) -> None:
    image = {
        "apiVersion": "virtualization.k8c.io/v1alpha1",
        "kind": "Image",
        "metadata": {"name": "debian"},
        "spec": {"type": "linux", "readableName": "Debian", **members},
    }
    raw = changed(MACHINE, {REFERENCE: {"kind": "Image", "name": "debian"}})
    assert template(raw, image)["spec"]["source"] == wanted
    assert machine(raw, image)["metadata"]["labels"] == {MANAGED_BY: "vm-control-plane"}
    with pytest.raises(DataSourceNotFound, match="the Image default/debian is not there"):
        translated(raw)


def test_credentials_of_an_image_stay_in_its_namespace() -> None:
    image = {
        "apiVersion": "virtualization.k8c.io/v1alpha1",
        "kind": "Image",
        "metadata": {"name": "debian", "namespace": "images"},
        "spec": {"type": "linux", "readableName": "Debian", "http": {"url": URL}},
    }
    raw = changed(MACHINE, {REFERENCE: {"kind": "Image", "name": "debian", "namespace": "images"}})
    assert template(raw, image)["spec"]["source"] == http(URL)
    with pytest.raises(CrossNamespaceSecret):
        translated(raw, changed(image, {"spec.credentials": {"name": "login"}}))

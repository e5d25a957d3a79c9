"""Kubermatic's objects become what KubeVirt and CDI take: the worked examples to the letter, and every row of section 2."""

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from paddock.dialects.kubevirt.pool import VirtualMachinePool
from paddock.dialects.kubevirt.virtualmachine import VirtualMachine
from paddock.meta.wire import to_data
from paddock.plan import disks, pool
from paddock.schema.kind import Settings
from paddock.translate.kubermatic.refusals import (
    ClientCertificateUnsupported,
    CrossNamespaceSecret,
    DataSourceNotFound,
    DataSourceNotReady,
)
from tests.unit.dialects.kubermatic.objects import (
    FLAT,
    GONE,
    MACHINE,
    NESTED,
    OTHER_BODY,
    SOURCE,
    TEMPLATE,
    admitted,
    certificate,
    changed,
    errors,
    http,
    source,
)
from tests.unit.translate.kubermatic.making import (
    Json,
    config_map,
    machine,
    made,
    secret,
    template,
    translated,
    typed,
    world,
)

HERE = Path(__file__).parent
URL = "http://example.com/path/to/your/image.qcow2"
REFERENCE = "spec.dataVolumeTemplates[0].spec.sourceRef"
MANAGED_BY = "app.kubernetes.io/managed-by"
WAITING = "kubevirt.io/immediate-data-volume-creation"
TAKEN_FROM = "virtualization.k8c.io/data-source"
BUNDLE = certificate()
CLIENT = {"secretRef": {"name": "client"}}


def golden(name: str) -> list[Json]:
    return [*yaml.safe_load_all((HERE / name).read_text(encoding="utf-8"))]


def owned(resource: Any, uid: str) -> Any:
    """The object once a server has stored it."""
    return msgspec.structs.replace(resource, metadata=msgspec.structs.replace(resource.metadata, uid=uid))


@pytest.mark.spec("kubermatic", 2)
def test_the_documents_machine() -> None:
    wanted, *below = golden("machine.golden.yaml")
    assert made(SOURCE, MACHINE) == []
    assert made(MACHINE, SOURCE) == [wanted]
    # What KubeVirt and CDI, or the engine, make of it in turn.
    (result,) = translated(MACHINE, SOURCE).value
    assert isinstance(result, VirtualMachine)
    (volume,) = disks.data_volumes(owned(result, "<vm-uid>"))
    claim = disks.claim(owned(volume, "<dv-uid>"))
    assert claim is not None
    assert [to_data(volume), to_data(claim)] == below


@pytest.mark.spec("kubermatic", 4)
@pytest.mark.parametrize("raw", [FLAT, NESTED], ids=["flat", "nested"])
def test_the_documents_pool(raw: Json) -> None:
    wanted, first = golden("pool.golden.yaml")
    assert made(raw, SOURCE) == [wanted]
    (result,) = translated(raw, SOURCE).value
    assert isinstance(result, VirtualMachinePool)
    assert to_data(pool.replica(owned(result, "<pool-uid>"), 0)) == first


def test_both_forms_give_the_same_whatever_the_version() -> None:
    for version in ("kubevirt.io/v1alpha1", "pool.kubevirt.io/v1alpha1", "pool.kubevirt.io/v1beta1"):
        assert made({**FLAT, "apiVersion": version}, SOURCE) == made({**NESTED, "apiVersion": version}, SOURCE)


@pytest.mark.parametrize("target", ["embedded", "cluster"])
@pytest.mark.parametrize("raw", [MACHINE, FLAT], ids=["machine", "pool"])
def test_what_comes_out_is_good(raw: Json, target: str) -> None:
    (result,) = made(raw, SOURCE)
    assert admitted(result, target=target).findings == ()
    # Nothing of what KubeVirt and CDI do not know is left.
    text = yaml.safe_dump(result)
    assert "apiGroup" not in text
    assert "sourceRef" not in text


def test_translation_is_repeatable() -> None:
    """What was translated is not translated further."""
    for raw in (MACHINE, FLAT):
        (result,) = made(raw, SOURCE)
        (again,) = made(result, SOURCE)
        assert again["spec"] == result["spec"]


def test_a_plain_machine_of_kubevirts_is_left_alone() -> None:
    plain = changed(MACHINE, {"spec.dataVolumeTemplates[0].spec": {"source": http(), "storage": {"resources": {}}}})
    plain["spec"]["dataVolumeTemplates"][0]["spec"]["storage"]["resources"] = {"requests": {"storage": "1Gi"}}
    assert made(plain) == [plain]
    pool = changed(NESTED, {f"{TEMPLATE}.dataVolumeTemplates[0].spec": plain["spec"]["dataVolumeTemplates"][0]["spec"]})
    assert made(pool) == [pool]


def test_what_servers_write_is_left_to_them() -> None:
    stored = changed(
        MACHINE,
        {
            "metadata.uid": "u",
            "metadata.resourceVersion": "5",
            "metadata.generation": 3,
            "metadata.creationTimestamp": "2026-01-01T00:00:00Z",
            "metadata.generateName": "my-",
            "metadata.finalizers": ["a/b"],
            "metadata.ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}],
            "status": {"ready": True},
        },
    )
    result = machine(stored, SOURCE)
    assert "status" not in result
    said = {"name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences"}
    assert result["metadata"].keys() == said
    for member in ("generateName", "finalizers", "ownerReferences"):
        assert result["metadata"][member] == stored["metadata"][member]


def test_a_users_annotation_about_timing_wins() -> None:
    result = machine(changed(MACHINE, {"metadata.annotations": {WAITING: "true"}}), SOURCE)
    assert result["metadata"]["annotations"] == {WAITING: "true"}
    around = machine(changed(FLAT, {"spec.virtualMachineTemplate.metadata.annotations": {WAITING: "true"}}), SOURCE)
    assert around["spec"]["virtualMachineTemplate"]["metadata"]["annotations"] == {WAITING: "true"}


def test_the_mark_is_on_the_machine_only() -> None:
    labelled = changed(MACHINE, {"metadata.labels": {"a": "b"}, "metadata.namespace": "prod"})
    result = machine(labelled, source(http(), namespace="prod"))
    assert result["metadata"]["labels"] == {"a": "b", MANAGED_BY: "vm-control-plane"}
    assert MANAGED_BY not in result["spec"]["template"]["metadata"]["labels"]


@pytest.mark.spec("kubermatic", 10)
def test_the_group_never_reaches_the_cluster() -> None:
    """Whatever the DataSource is: resolved, or one that CDI follows itself."""
    place = {"namespace": "default", "name": "golden"}
    for members in ({"pvc": place}, {"snapshot": place}):
        result = template(MACHINE, source(members))
        assert result["spec"]["sourceRef"] == {"kind": "DataSource", "name": "my-http-datasource"}
        assert "annotations" not in result["metadata"]
    assert "sourceRef" not in template(MACHINE, SOURCE)["spec"]
    at = f"{REFERENCE}.apiGroup"
    assert errors(admitted(changed(MACHINE, {at: "foo"}))) == [(at, 'Unsupported value: "foo": only "cdi.kubevirt.io"')]


def test_a_group_alone_is_kubermatics_form() -> None:
    """Also where CDI can follow the reference."""
    result = machine(MACHINE, source({"pvc": {"namespace": "default", "name": "golden"}}))
    assert result["metadata"]["labels"] == {MANAGED_BY: "vm-control-plane"}
    assert result["metadata"]["annotations"] == {WAITING: "false"}


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
    """What is not there yet, or cannot be."""

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
        assert admitted(source(http(certConfig=both)), target=Settings().target).findings == ()

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
                    "annotations": {TAKEN_FROM: "default/my-http-datasource"},
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


@pytest.mark.spec("kubermatic", 17)
@pytest.mark.parametrize("claim", ["pvc", "storage"])
def test_a_class_beside_the_claim_is_moved(claim: str) -> None:
    spec = MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]
    given = {"sourceRef": spec["sourceRef"], claim: spec["pvc"], "storageClassName": "fast"}
    raw = changed(MACHINE, {"spec.dataVolumeTemplates[0].spec": given})
    assert any("storageClassName" in found.field for found in admitted(raw).findings)
    result = template(raw, SOURCE)["spec"]
    assert "storageClassName" not in result
    assert result[claim] == {**spec["pvc"], "storageClassName": "fast"}


@pytest.mark.spec("kubermatic", 18)
def test_a_class_that_is_left_out_stays_out() -> None:
    assert "storageClassName" not in yaml.safe_dump(made(MACHINE, SOURCE) + made(FLAT, SOURCE))


def test_a_disk_without_a_machine() -> None:
    spec = MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]
    volume = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "disk"}, "spec": spec}
    (result,) = made(volume, SOURCE)
    assert result["metadata"] == {"name": "disk", "namespace": "default", "annotations": {TAKEN_FROM: "default/my-http-datasource"}}
    assert result["spec"] == {"source": http(URL), "pvc": spec["pvc"]}
    assert translated(SOURCE, volume).losses == ()
    plain = {**volume, "spec": {"source": http(), "pvc": spec["pvc"]}}
    assert made(plain) == [plain]


ENGINE_ONLY = (
    ({"disk": {"bus": "ide"}}, "disk.bus", "ide", {"disk": {"bus": "sata"}}),
    ({"cdrom": {"bus": "ide"}}, "cdrom.bus", "ide", {"cdrom": {"bus": "sata"}}),
    ({"lun": {"bus": "ide"}}, "lun.bus", "ide", {"lun": {"bus": "sata"}}),
    ({"cdrom": {"bus": "virtio"}}, "cdrom.bus", "virtio", {"cdrom": {"bus": "sata"}}),
    ({"disk": {"bus": "virtio"}, "io": "io_uring"}, "io", "io_uring", {"disk": {"bus": "virtio"}}),
)


@pytest.mark.parametrize(("disk", "field", "value", "wanted"), ENGINE_ONLY)
def test_what_only_the_engine_can_do_is_a_loss(disk: Json, field: str, value: str, wanted: Json) -> None:
    """KubeVirt refuses these; what it gets instead is told."""
    for raw, at in ((MACHINE, "spec.template.spec"), (FLAT, TEMPLATE), (NESTED, f"{TEMPLATE}.template.spec")):
        place = f"{at}.domain.devices.disks[0]"
        given = changed(raw, {place: {"name": "rootdisk", **disk}})
        result = translated(given, SOURCE)
        assert [(loss.field, loss.value) for loss in result.losses] == [(f"{place}.{field}", value)]
        made_of = to_data(result.value[-1])
        found = [admission for admission in errors(admitted(made_of, target="cluster")) if "bus" in admission[0] or "io" in admission[0]]
        assert found == []
        assert f"{{'name': 'rootdisk', {str(wanted)[1:]}" in str(made_of)


def test_other_objects_pass() -> None:
    thing = typed(secret("x", a="b"))
    from_world = world(secret("x", a="b"))
    assert from_world.get(type(thing), "default", "x") == thing

"""KubeVirt's machines become Kubermatic's again: the identity, with resolved sources named, and no loss untold."""

import pytest

from paddock.dialects.kubermatic.translate import from_kubevirt
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from tests.unit.dialects.kubermatic.kinds.objects import FLAT, GONE, MACHINE, NESTED, SOURCE, TEMPLATE, certificate, changed, http, source
from tests.unit.dialects.kubermatic.translate.making import RENDERING, Json, config_map, made, translated, typed, world

WAITING = "kubevirt.io/immediate-data-volume-creation"
TAKEN_FROM = "virtualization.k8c.io/data-source"
INLINE = "spec.dataVolumeTemplates[0]"


def back(raw: Json, *others: Json) -> list[Json]:
    """Return the objects of Kubermatic for an object of a cluster, without a loss."""
    result = from_kubevirt(typed(raw), world(*others), RENDERING)
    assert result.losses == ()
    return [to_data(each) for each in result.value]


def placed(raw: Json) -> Json:
    """The document with the namespace that it leaves out."""
    return changed(raw, {"metadata.namespace": "default"})


@pytest.mark.parametrize("raw", [MACHINE, FLAT], ids=["machine", "pool"])
def test_there_and_back(raw: Json) -> None:
    (image,) = made(raw, SOURCE)
    assert back(image, SOURCE) == [SOURCE, placed(raw)]


@pytest.mark.spec("kubermatic", 8)
def test_a_pool_comes_back_as_it_was_written() -> None:
    (image,) = made(FLAT, SOURCE)
    assert back(image, SOURCE)[-1] == placed(FLAT)
    # Running machines with labels of their own cannot be said in the flat form.
    own = changed(NESTED, {f"{TEMPLATE}.template.metadata.labels": {"tier": "batch"}})
    (image,) = made(own, SOURCE)
    assert back(image, SOURCE)[-1] == {**placed(own), "apiVersion": "kubevirt.io/v1alpha1"}


@pytest.mark.parametrize("raw", [MACHINE, FLAT], ids=["machine", "pool"])
def test_a_source_that_is_gone_is_made_again(raw: Json) -> None:
    (image,) = made(raw, SOURCE)
    assert back(image) == [placed(SOURCE), placed(raw)]


def test_the_authorities_go_back_into_the_source() -> None:
    given = source(http(certConfig={"caBundle": certificate()}))
    config, image = made(MACHINE, given)
    assert back(image, config) == [placed(given), placed(MACHINE)]
    # Without the ConfigMap it is the user's own.
    (made_again, _) = back(image)
    assert made_again["spec"]["source"]["http"]["certConfigMap"] == "my-http-datasource-ca"


def test_a_source_of_another_namespace() -> None:
    away = changed(MACHINE, {f"{INLINE}.spec.sourceRef.namespace": "images"})
    given = source(http(), namespace="images")
    (image,) = made(away, given)
    assert back(image, given) == [given, placed(away)]
    assert back(image) == [given, placed(away)]


def test_a_source_with_the_same_address_is_named() -> None:
    (image,) = made(MACHINE, SOURCE)
    del image["spec"]["dataVolumeTemplates"][0]["metadata"]["annotations"]
    found, machine = back(image, source(http(), "another"), SOURCE)
    assert found == SOURCE
    assert machine["spec"]["dataVolumeTemplates"][0]["spec"]["sourceRef"]["name"] == "my-http-datasource"
    # One of another namespace is not: who wrote the machine may not know it.
    elsewhere = back(image, changed(SOURCE, {"metadata.namespace": "images"}))
    assert elsewhere == [image]


def test_a_source_that_means_something_else_now_is_left_out() -> None:
    (image,) = made(MACHINE, SOURCE)
    assert back(image, source(http("https://example.com/newer.qcow2"))) == [image]
    broken = source(http(certConfig={"secretRef": {"name": "gone"}}))
    assert back(image, broken) == [image]


def test_a_source_that_could_not_be_made_is_left_inline() -> None:
    """A Secret of this namespace is none of another one's."""
    spec = {"source": http(secretRef="login"), "pvc": MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]}
    image = changed(MACHINE, {f"{INLINE}.spec": spec, f"{INLINE}.metadata.annotations": {TAKEN_FROM: "images/x"}})
    assert back(image) == [image]


@pytest.mark.parametrize("member", [{"blank": {}}, {"upload": {}}, {"pvc": {"namespace": "a", "name": "b"}}])
def test_what_no_source_can_say_is_left_inline(member: Json) -> None:
    spec = {"source": member, "pvc": MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]}
    image = changed(MACHINE, {f"{INLINE}.spec": spec, f"{INLINE}.metadata.annotations": {TAKEN_FROM: "default/x"}})
    assert back(image) == [image]


def test_a_plain_machine_stays_as_it_is() -> None:
    """Even where it happens to carry the marks: they would not come back."""
    spec = {"source": http(), "pvc": MACHINE["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]}
    marks = {"metadata.labels": {"app.kubernetes.io/managed-by": "vm-control-plane"}, "metadata.annotations": {WAITING: "false"}}
    plain = changed(MACHINE, {f"{INLINE}.spec": spec, **marks})
    assert back(plain) == [plain]


def test_a_users_annotation_about_timing_stays() -> None:
    raw = changed(MACHINE, {"metadata.annotations": {WAITING: "true"}})
    (image,) = made(raw, SOURCE)
    assert back(image, SOURCE)[-1] == placed(raw)


def test_two_disks_of_one_source_make_it_once() -> None:
    first = MACHINE["spec"]["dataVolumeTemplates"][0]
    raw = changed(MACHINE, {"spec.dataVolumeTemplates": [first, {**first, "metadata": {"name": "second"}}]})
    raw["spec"]["template"]["spec"]["volumes"].append({"name": "second", "dataVolume": {"name": "second"}})
    raw["spec"]["template"]["spec"]["domain"]["devices"]["disks"].append({"name": "second"})
    (image,) = made(raw, SOURCE)
    assert back(image) == [placed(SOURCE), placed(raw)]


def test_one_name_for_two_sources_is_given_to_the_first() -> None:
    first = MACHINE["spec"]["dataVolumeTemplates"][0]
    mark = {TAKEN_FROM: "default/x"}
    disks = [
        {"metadata": {"name": name, "annotations": mark}, "spec": {"source": http(f"https://a/{name}"), "pvc": first["spec"]["pvc"]}}
        for name in ("my-http-data-volume", "second")
    ]
    raw = changed(MACHINE, {"spec.dataVolumeTemplates": disks})
    raw["spec"]["template"]["spec"]["volumes"].append({"name": "second", "dataVolume": {"name": "second"}})
    raw["spec"]["template"]["spec"]["domain"]["devices"]["disks"].append({"name": "second"})
    found, result = back(raw)[:2]
    assert found["spec"]["source"] == http("https://a/my-http-data-volume")
    assert "sourceRef" in result["spec"]["dataVolumeTemplates"][0]["spec"]
    assert result["spec"]["dataVolumeTemplates"][1] == disks[1]


def test_what_was_observed_is_not_said() -> None:
    assert "status" not in back(changed(MACHINE, {f"{INLINE}.spec.sourceRef.apiGroup": GONE, "status": {"ready": True}}))[-1]
    assert "status" not in back(changed(FLAT, {"status": {"replicas": 1}}), SOURCE)[-1]


def test_a_copy_of_a_cached_source() -> None:
    cached = source(http(), annotations={"virtualization.k8c.io/cache": "true"})
    (image,) = made(MACHINE, cached)
    assert back(image, cached) == [cached, placed(MACHINE)]


def test_other_peoples_config_maps_stay() -> None:
    given = source(http(certConfigMap="mine"))
    (image,) = made(MACHINE, given, config_map("mine", {"data": {"ca.pem": certificate()}}))
    held = config_map("mine", {"data": {"ca.pem": certificate()}})
    assert back(image, given, held)[0] == given
    assert back(image, held)[0] == placed(given)


def test_sources_are_typed() -> None:
    (image,) = translated(MACHINE, SOURCE).value
    assert isinstance(image, VirtualMachine)
    found = from_kubevirt(image, world(SOURCE), RENDERING).value
    assert isinstance(found[0], DataSource)
    assert found[0] == typed(SOURCE)

"""Kubermatic's objects become what KubeVirt and CDI take: the worked examples to the letter, and every row of section 2."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.pool import machines as pool
from paddock.kubevirt.plan.storage import datavolumetemplates
from tests.unit.dialects.kubermatic.kinds.objects import FLAT, MACHINE, NESTED, SOURCE, TEMPLATE, admitted, changed, errors, http, source
from tests.unit.dialects.kubermatic.translate.making import (
    MANAGED_BY,
    REFERENCE,
    TAKEN_FROM,
    URL,
    Json,
    machine,
    made,
    secret,
    template,
    translated,
    typed,
    world,
)

HERE = Path(__file__).parent
WAITING = "kubevirt.io/immediate-data-volume-creation"


def golden(name: str) -> list[Json]:
    return [*yaml.safe_load_all((HERE / name).read_text(encoding="utf-8"))]


def owned(resource: Any, uid: str) -> Any:
    """The object once a server has stored it."""
    return msgspec.structs.replace(resource, metadata=msgspec.structs.replace(resource.metadata, uid=uid))


@pytest.mark.spec("kubermatic", 2)
def test_the_documents_machine() -> None:
    wanted, wanted_volume, wanted_claim = golden("machine.golden.yaml")
    assert made(SOURCE, MACHINE) == []
    assert made(MACHINE, SOURCE) == [wanted]
    # What KubeVirt and CDI, or the engine, make of it in turn.
    (result,) = translated(MACHINE, SOURCE).value
    assert isinstance(result, VirtualMachine)
    (volume,) = datavolumetemplates.data_volumes(owned(result, "<vm-uid>"))
    assert to_data(volume) == wanted_volume
    assert volume.spec.pvc is not None and to_data(volume.spec.pvc) == wanted_claim["spec"]


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
    """A translated object is not translated further."""
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
    """For any DataSource: resolved, or one that CDI follows itself."""
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

"""The rules of docs/spec/kubermatic.md sections 1.1 and 1.2 for KubeVirt's machine and the DataVolumes in it."""

from typing import Any

import pytest

from paddock.kubernetes.schema.finding import CauseType
from tests.unit.kubevirt.kinds import cases_machine
from tests.unit.kubevirt.kinds.cases import VMI, network
from tests.unit.kubevirt.kinds.objects import GONE, admitted, errors, warnings

_AT = "spec.dataVolumeTemplates[0].spec"
_REF = {"kind": "DataSource", "name": "fedora"}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}


def template(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A machine whose disk comes from a DataSource, changed."""
    return cases_machine.template(metadata, **{"source": None, "storage": None, "sourceRef": _REF, "pvc": _CLAIM, **spec})


def refused(changes: dict[str, Any], field: str, words: str, **settings: Any) -> None:
    found = dict(errors(admitted(changes, **settings)))
    assert field in found
    assert words in found[field]


def test_the_good_one() -> None:
    assert admitted(template()).findings == ()


@pytest.mark.spec("kubermatic", 10)
def test_the_group_of_a_source() -> None:
    assert admitted(template(sourceRef={**_REF, "apiGroup": "cdi.kubevirt.io"})).findings == ()
    refused(
        template(sourceRef={**_REF, "apiGroup": "foo"}), f"{_AT}.sourceRef.apiGroup", 'Unsupported value: "foo": only "cdi.kubevirt.io"'
    )


@pytest.mark.spec("kubermatic", 11)
def test_the_kind_of_a_source() -> None:
    image = template(sourceRef={"kind": "Image", "name": "fedora"})
    refused(image, f"{_AT}.sourceRef.kind", 'Unsupported value: "Image": supported values: "DataSource"')
    assert errors(admitted(image, image_source_ref=True)) == []


@pytest.mark.spec("kubermatic", 12)
def test_the_name_of_a_source() -> None:
    refused(template(sourceRef={"kind": "DataSource"}), f"{_AT}.sourceRef.name", "Required value")


@pytest.mark.spec("kubermatic", 13)
def test_one_source() -> None:
    words = "give exactly one of source and sourceRef"
    refused(template(source={"blank": {}}), "spec.dataVolumeTemplate[0].source", words)
    refused(template(sourceRef=None), "spec.dataVolumeTemplate[0].source.sourceRef", words)


@pytest.mark.spec("kubermatic", 14)
def test_one_claim() -> None:
    storage = {"resources": {"requests": {"storage": "10Gi"}}}
    refused(template(storage=storage), "spec.dataVolumeTemplate[0].PVC.Storage", "Forbidden: pvc is set too")
    refused(template(pvc=None), "spec.dataVolumeTemplate[0].PVC.Storage", "Required value: give pvc or storage")
    refused(template(pvc={"resources": _CLAIM["resources"]}), f"{_AT}.pvc.accessModes", "Required value")
    two = {**_CLAIM, "accessModes": ["ReadWriteOnce", "ReadWriteMany"]}
    refused(template(pvc=two), f"{_AT}.pvc.accessModes", "must have at most 1 item")
    assert admitted(template(pvc=None, storage=storage)).findings == ()


@pytest.mark.spec("kubermatic", 15)
def test_templates_are_used() -> None:
    unused = {**template(), "P.volumes[0]": {"name": "root", "emptyDisk": {"capacity": "1Gi"}}}
    refused(unused, "spec.dataVolumeTemplate[0]", "no volume uses it")


@pytest.mark.spec("kubermatic", 16)
def test_disks_and_volumes_belong_together() -> None:
    disk = {"P.domain.devices.disks[1]": {"name": "x"}}
    refused(disk, "spec.template.spec.domain.devices.disks[1].name", 'Invalid value: "x": no volume of this name')
    # In the reverse case the machine gets the disk, as KubeVirt does it, and says so.
    volume = {"P.volumes[1]": {"name": "x", "emptyDisk": {"capacity": "1Gi"}}}
    assert errors(admitted(volume, VMI)) == []
    assert ["no disk or filesystem of this name" in found.message for found in admitted(volume).findings] == [True]


@pytest.mark.spec("kubermatic", 17)
def test_a_class_beside_the_claim_is_told() -> None:
    admission = admitted(template(storageClassName="fast"))
    assert admission.accepted
    ((field, message),) = warnings(admission)
    assert field == f"{_AT}.storageClassName"
    assert "pvc.storageClassName" in message


@pytest.mark.spec("kubermatic", 18)
def test_a_class_that_is_left_out_stays_out() -> None:
    claim = admitted(template()).data["spec"]["dataVolumeTemplates"][0]["spec"]["pvc"]
    assert claim == _CLAIM


@pytest.mark.spec("kubermatic", 38)
def test_when_a_machine_runs() -> None:
    refused({"spec.running": True}, "spec.running", "Forbidden: running is set too, choose one")
    refused({"spec.runStrategy": GONE}, "spec.running", "Required value")
    refused({"spec.runStrategy": "Sometimes"}, "spec.runStrategy", 'Unsupported value: "Sometimes"')


@pytest.mark.spec("kubermatic", 44)
def test_bindings() -> None:
    card = "spec.template.spec.domain.devices.interfaces"
    refused({"P.domain.devices.interfaces[0].bridge": {}}, f"{card}[0]", "needs exactly one binding, got 2")
    lan = network({"multus": {"networkName": "lan"}}, masquerade={})
    refused(lan, f"{card}[1].name", "Masquerade interface only implemented with pod network")


@pytest.mark.spec("kubermatic", 47)
def test_network_annotations_act_on_the_running_machine() -> None:
    name = "ovn.kubernetes.io/logical_switch"
    outside = {"metadata.annotations": {name: "lan"}}
    ((field, message),) = warnings(admitted(outside))
    assert field == f"metadata.annotations[{name}]"
    assert "spec.template.metadata.annotations" in message
    assert admitted({**outside, "M.annotations": {name: "lan"}}).findings == ()


def test_the_annotation_about_migration_is_kept() -> None:
    kept = {"kubevirt.io/allow-pod-bridge-network-live-migration": "true"}
    admission = admitted({"M.annotations": kept})
    assert admission.findings == ()
    assert admission.data["spec"]["template"]["metadata"]["annotations"] == kept


def test_long_names_are_told() -> None:
    assert [field for field, _ in warnings(admitted({"metadata.name": "x" * 64}))] == ["metadata.name"]
    assert admitted({"metadata.name": "x" * 63}).findings == ()


def test_names_and_amounts() -> None:
    refused({"P.domain.cpu.cores": -1}, "spec.template.spec.domain.cpu.cores", "must be greater than or equal to 0")
    refused({"P.networks[0]": {"name": "default"}}, "spec.template.spec.networks[0]", "exactly one network type")
    refused(
        template(pvc={**_CLAIM, "resources": {"requests": {"storage": "0"}}}), f"{_AT}.pvc.resources.requests.storage", "greater than 0"
    )
    refused(template(pvc={**_CLAIM, "volumeMode": "Disk"}), f"{_AT}.pvc.volumeMode", 'Unsupported value: "Disk"')
    refused(template({}), "spec.dataVolumeTemplate[0].name", "Required value")


def test_causes_are_those_of_the_words() -> None:
    found = admitted(template(pvc=None)).findings
    assert [each.cause for each in found] == [CauseType.REQUIRED]

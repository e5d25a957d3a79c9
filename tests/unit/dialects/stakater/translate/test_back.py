"""KubeVirt to Stakater: what fits comes back as it was, what does not is a loss with its place."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.translate import from_kubevirt, to_kubevirt
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.check import check
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from tests.unit.dialects.stakater.translate.test_forward import KEY, front

SIZES = st.sampled_from(["1Gi", "30G", "1.5Gi", "32212254720"])
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
CLASSES = st.one_of(st.none(), NAMES)


def without_none(value: dict[str, Any]) -> dict[str, Any]:
    return {key: member for key, member in value.items() if member is not None}


Documents = st.SearchStrategy[dict[str, Any]]
DISKS: Documents = st.fixed_dictionaries(
    {"name": NAMES.filter(lambda name: name not in ("rootdisk", "cloudinitdisk")), "size": SIZES},
    optional={
        "storageClassName": NAMES,
        "volumeMode": st.sampled_from(["Block", "Filesystem"]),
        "accessModes": st.lists(st.sampled_from(["ReadWriteOnce", "ReadWriteMany"]), min_size=1, unique=True),
        "bus": st.sampled_from(["virtio", "sata", "scsi", "usb"]),
    },
)
SOURCES: Documents = st.sampled_from(
    [
        {},
        {"sourceType": "pvc", "source": {"pvc": {"name": "a", "namespace": "b"}}},
        {"sourceType": "http", "source": {"http": {"url": "https://e.org/x", "secretRef": "s"}}},
        {"sourceType": "registry", "source": {"registry": {"url": "docker://e.org/x", "certConfigMap": "c"}}},
    ]
)
NETWORKS: Documents = st.sampled_from(
    [
        {},
        {"type": "pod", "bindingName": "masquerade"},
        {"multus": {"networkName": "a/b"}, "bindingName": "bridge", "interfaceModel": "e1000"},
        {"type": "multus", "multus": {"networkName": "b"}, "bindingName": "sriov"},
    ]
)
PARAMETERS: Documents = st.fixed_dictionaries(
    {},
    optional={
        "dataSource": st.fixed_dictionaries({}, optional={"name": NAMES, "namespace": NAMES}),
        "storage": st.fixed_dictionaries({}, optional={"size": SIZES, "storageClassName": NAMES}),
        "additionalDisks": st.lists(
            st.tuples(DISKS, SOURCES).map(lambda both: both[0] | both[1]), max_size=3, unique_by=lambda disk: disk["name"]
        ),
        "cpu": st.fixed_dictionaries({}, optional={key: st.integers(1, 8) for key in ("cores", "sockets", "threads")}),
        "memory": st.builds(lambda size: {"guest": size}, st.sampled_from(["512Mi", "2Gi", "4096M"])),
        "networks": NETWORKS.map(lambda network: [{"name": "one", **network}]),
        "cloudInit": st.one_of(
            st.fixed_dictionaries(
                {}, optional={"user": NAMES, "password": st.text("ab:#'\"{}\\ -&*", min_size=1), "passwordExpire": st.just(True)}
            ).filter(lambda given: "passwordExpire" not in given or "password" in given),
            st.builds(lambda text: {"userData": text}, st.sampled_from(["#cloud-config\n{}\n", "#!/bin/sh\ntrue\n", "#" * 3000])),
        ),
        "sshPublicKey": st.sampled_from(
            [{"data": KEY}, {"secretName": "k", "propagationMethod": "configDrive"}, {"data": KEY, "propagationMethod": "qemuGuestAgent"}]
        ),
        "runStrategy": st.sampled_from(["Always", "RerunOnFailure", "Manual", "Halted"]),
        "terminationGracePeriodSeconds": st.integers(0, 1000),
        "enableDynamicCredentials": st.booleans(),
        "firmware": st.sampled_from([{}, {"efi": False}, {"secureBoot": False}, {"secureBoot": True}]),
        "service": st.sampled_from([{}, {"enabled": True}, {"enabled": True, "port": 80, "targetPort": 8080}]),
        "nodeSelector": st.dictionaries(NAMES, NAMES, max_size=2),
        "additionalLabels": st.dictionaries(NAMES, NAMES, max_size=2),
        "additionalAnnotations": st.dictionaries(NAMES, st.text(max_size=9), max_size=2),
    },
)


def back(vm: Machine, *others: Resource) -> Translated[tuple[Resource, ...]]:
    return from_kubevirt(vm, ObjectSet([vm, *others]), Rendering())


def said(vm: StakaterVirtualMachine) -> list[dict[str, Any]]:
    """Return the meaning of a machine: every object that it becomes."""
    return [to_data(made) for made in to_kubevirt(vm, ObjectSet(), Rendering()).value]


@given(PARAMETERS)
def test_round_trip(parameters: dict[str, Any]) -> None:
    original = front(parameters, uid=None)
    made = to_kubevirt(original, ObjectSet(), Rendering()).value
    (vm,) = (each for each in made if isinstance(each, Machine))
    again = back(vm, *made)
    (returned,) = again.value
    assert isinstance(returned, StakaterVirtualMachine)
    assert again.losses == ()
    assert said(returned) == said(original)


def kubevirt(spec: dict[str, Any], **instance: Any) -> Machine:
    template = {"spec": {"domain": {"devices": {}}, **instance}}
    raw = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"template": template, **spec}}
    checked = check(Machine, raw)
    assert not checked.findings, checked.findings
    return from_data(checked.value, Machine)


def template(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"storage": {"resources": {"requests": {"storage": "1Gi"}}}, **spec}}


def lost(vm: Machine, *others: Resource) -> dict[str, Any]:
    return {loss.field: loss.value for loss in back(vm, *others).losses}


@pytest.mark.parametrize(
    ("spec", "instance", "field", "value"),
    [
        ({"runStrategy": "Once"}, {}, "spec.runStrategy", "Once"),
        ({"runStrategy": "Always", "instancetype": {"name": "u1.small"}}, {}, "spec.instancetype", {"name": "u1.small"}),
        ({"runStrategy": "Always"}, {"hostname": "h"}, "spec.template.spec.hostname", "h"),
        (
            {"runStrategy": "Always"},
            {"domain": {"devices": {"tpm": {}}}},
            "spec.template.spec.domain.devices.tpm",
            {},
        ),
        (
            {"runStrategy": "Always"},
            {
                "domain": {"devices": {"disks": [{"name": "cd", "cdrom": {"bus": "sata"}}]}},
                "volumes": [{"name": "cd", "containerDisk": {"image": "x"}}],
            },
            "spec.template.spec.volumes[0]",
            {"name": "cd", "containerDisk": {"image": "x"}},
        ),
        (
            {"runStrategy": "Always"},
            {
                "domain": {"devices": {"interfaces": [{"name": "n", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}]}},
                "networks": [{"name": "n", "pod": {}}],
            },
            "spec.template.spec.domain.devices.interfaces[0].macAddress",
            "02:00:00:00:00:01",
        ),
    ],
)
def test_what_does_not_fit_is_told(spec: dict[str, Any], instance: dict[str, Any], field: str, value: Any) -> None:
    assert lost(kubevirt(spec, **instance))[field] == value


def test_running_says_what_run_strategy_says() -> None:
    for running, strategy in ((True, "Always"), (False, "Halted")):
        raw = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
        vm = from_data(raw | {"spec": {"running": running, "template": {"spec": {"domain": {"devices": {}}}}}}, Machine)
        (returned,) = back(vm).value
        assert isinstance(returned, StakaterVirtualMachine)
        assert returned.spec.parameters.runStrategy == strategy
        assert "spec.running" not in lost(vm)


def test_a_root_disk_from_elsewhere_needs_a_data_source() -> None:
    vm = kubevirt(
        {"runStrategy": "Always", "dataVolumeTemplates": [template("img", source={"http": {"url": "https://e.org/x"}})]},
        domain={"devices": {"disks": [{"name": "boot", "disk": {"bus": "virtio"}}]}},
        volumes=[{"name": "boot", "dataVolume": {"name": "img"}}],
    )
    made = back(vm)
    (returned,) = made.value
    assert isinstance(returned, StakaterVirtualMachine)
    assert returned.spec.parameters.dataSource.name == "img"
    told = {loss.field: loss.instead for loss in made.losses}
    assert told["spec.dataVolumeTemplates[0].spec.source"] == "make a DataSource default/img of the same content first"
    assert told["spec.dataVolumeTemplates[0].metadata.name"] == "it is called web-rootdisk"
    assert told["spec.template.spec.volumes[0].name"] == "it is called rootdisk"


def test_user_data_of_a_secret_that_is_not_there() -> None:
    volume = {"name": "ci", "cloudInitNoCloud": {"secretRef": {"name": "gone"}}}
    disks = {"devices": {"disks": [{"name": "ci", "disk": {"bus": "virtio"}}]}}
    vm = kubevirt({"runStrategy": "Always"}, domain=disks, volumes=[volume])
    assert "gone" in lost(vm).values()
    data = {"userdata": base64.b64encode(b"#cloud-config\n{}\n").decode()}
    secret = from_data({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gone"}, "data": data}, Secret)
    (returned,) = back(vm, secret).value
    assert isinstance(returned, StakaterVirtualMachine)
    assert returned.spec.parameters.cloudInit.userData == "#cloud-config\n{}\n"
    assert "gone" not in lost(vm, secret).values()

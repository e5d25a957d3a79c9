"""The fields of a KubeVirt machine one by one, and their checks without the rules of section 2.11."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import paddock.kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.admission import FieldValidation, admit
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.instance import KINDS as INSTANCE_KINDS
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.kinds.virtualmachine import KINDS, PRINTABLE_STATUSES, VirtualMachine, VirtualMachineStatus
from paddock.kubevirt.rules import instance, machine
from tests.unit.kubevirt.kinds import objects
from tests.unit.kubevirt.kinds.cases import VM, VMI, disk, network, volume
from tests.unit.kubevirt.kinds.objects import GONE, admitted, errors, warnings

EXAMPLES = Path(paddock.kubevirt.__file__).parent / "examples"


@pytest.mark.parametrize("target", ["embedded", "cluster"])
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_good(path: Path, target: str) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        admission = admit(document, AdmissionSettings(target=target))
        assert errors(admission) == []
        if path.name == "fedora.yaml":
            assert admission.findings == ()
            assert admission.data == document


# Every field of the seed's own schema, with a value.
SEED = {
    "spec.runStrategy": "Manual",
    "M.labels": {"app": "x"},
    "P.hostname": "host",
    "P.terminationGracePeriodSeconds": 0,
    "P.evictionStrategy": "LiveMigrate",
    "P.nodeSelector": {"kubernetes.io/os": "linux"},
    "P.priorityClassName": "high",
    "P.domain.cpu": {
        "cores": 2,
        "sockets": 1,
        "threads": 2,
        "model": "host-model",
        "dedicatedCpuPlacement": True,
        "isolateEmulatorThread": True,
    },
    "P.domain.memory": {"guest": "2Gi", "hugepages": {"pageSize": "2Mi"}},
    "P.domain.firmware": {"bootloader": {"efi": {"secureBoot": True}}, "uuid": "6a1a24a1-4061-4607-8bf4-a3963d0c5895", "serial": "S-1"},
    "P.domain.machine": {"type": "pc-q35-rhel9.2.0"},
    "P.domain.features": {"acpi": {}, "smm": {}, "hyperv": {}},
    "P.domain.devices.autoattachPodInterface": True,
    "P.domain.devices.autoattachSerialConsole": False,
    "P.domain.devices.autoattachGraphicsDevice": False,
    "P.domain.devices.rng": {},
    "P.domain.devices.blockMultiQueue": True,
    "P.domain.devices.networkInterfaceMultiQueue": True,
    "P.domain.devices.disks": [
        {
            "name": "root",
            "bootOrder": 1,
            "disk": {"bus": "virtio", "pciAddress": "0000:81:01.0"},
            "io": "native",
            "cache": "none",
            "dedicatedIOThread": True,
        },
        {"name": "cd", "cdrom": {"bus": "scsi", "readonly": True}},
        {"name": "lun", "lun": {"bus": "scsi"}},
        *({"name": name, "disk": {"bus": "virtio"}} for name in ("dv", "nocloud", "drive", "empty", "answers")),
    ],
    "P.domain.devices.interfaces": [
        {
            "name": "default",
            "model": "e1000",
            "macAddress": "02:00:00:00:00:01",
            "masquerade": {},
            "ports": [{"name": "web", "port": 80, "protocol": "TCP"}],
        },
        {"name": "bridged", "bridge": {}},
        {"name": "fast", "sriov": {}},
        {"name": "plugged", "binding": {"name": "l2bridge"}},
    ],
    "P.networks": [
        {"name": "default", "pod": {"vmNetworkCIDR": "10.1.0.0/24"}},
        *({"name": name, "multus": {"networkName": "lan", "default": False}} for name in ("bridged", "fast", "plugged")),
    ],
    "P.volumes": [
        {"name": "root", "containerDisk": {"image": "quay.io/x/y", "imagePullPolicy": "IfNotPresent"}},
        {"name": "cd", "persistentVolumeClaim": {"claimName": "iso", "readOnly": True}},
        {"name": "lun", "persistentVolumeClaim": {"claimName": "lun"}},
        {"name": "dv", "dataVolume": {"name": "dv"}},
        {"name": "nocloud", "cloudInitNoCloud": {"networkData": "version: 2", "userDataSecretRef": {"name": "user"}}},
        {"name": "drive", "cloudInitConfigDrive": {"userData": "#!/bin/sh", "networkData": "version: 2"}},
        {"name": "empty", "emptyDisk": {"capacity": "20Gi"}},
        {"name": "answers", "sysprep": {"configMap": {"name": "answers"}, "secret": {"name": "answers"}}},
    ],
}


def test_the_seeds_fields_are_known() -> None:
    admission = admitted(SEED)
    assert admission.findings == ()
    assert admitted({"P.domain.firmware.bootloader.bios": {}, "spec.running": True, "spec.runStrategy": GONE}).accepted


@pytest.mark.spec("kubevirt", 8)
def test_other_names_are_stored_as_upstreams() -> None:
    aliased = admitted(
        {
            "P.domain.devices.networkInterfaceMultiQueue": True,
            **volume(cloudInitNoCloud={"userDataSecretRef": {"name": "a"}, "networkDataSecretRef": {"name": "b"}}),
        }
    )
    assert aliased.findings == ()
    spec = aliased.data["spec"]["template"]["spec"]
    assert spec["domain"]["devices"]["networkInterfaceMultiqueue"] is True
    assert "networkInterfaceMultiQueue" not in spec["domain"]["devices"]
    assert spec["volumes"][1]["cloudInitNoCloud"] == {"secretRef": {"name": "a"}, "networkDataSecretRef": {"name": "b"}}
    drive = admitted(volume(cloudInitConfigDrive={"userDataSecretRef": {"name": "a"}}))
    assert drive.findings == ()
    assert drive.data["spec"]["template"]["spec"]["volumes"][1]["cloudInitConfigDrive"] == {"secretRef": {"name": "a"}}


@pytest.mark.parametrize("kind", [VM, VMI])
@pytest.mark.spec("kubevirt", 12)
def test_host_names(kind: str) -> None:
    assert admitted({"P.hostname": "x" * 63}, kind).findings == ()
    for wrong in ("x" * 64, "Foo_bar"):
        ((field, message),) = errors(admitted({"P.hostname": wrong}, kind))
        assert field.endswith(".hostname")
        assert "must be a DNS-1123 label" in message


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (disk(disk={"bus": "ide"}), "P.domain.devices.disks[1].disk.bus", "IDE bus is not supported"),
        (disk(cdrom={"bus": "virtio"}), "P.domain.devices.disks[1].cdrom.bus", "Bus type virtio is invalid for CD-ROM device"),
        (disk(io="io_uring"), "P.domain.devices.disks[1].io", "native and threads only"),
    ],
)
def test_what_only_our_engine_does_is_told(changes: dict[str, Any], field: str, words: str) -> None:
    ours = admitted(changes)
    ((place, message),) = warnings(ours)
    assert ours.accepted
    assert place == objects.place(field, VM)
    assert message.startswith("KubeVirt refuses this")
    assert words in message
    assert not admitted(changes, target="cluster").accepted


@pytest.mark.spec("kubermatic", 45)
def test_ide_is_refused_with_a_hint() -> None:
    ((field, message),) = errors(admitted(disk(disk={"bus": "ide"}), target="cluster"))
    assert field == "spec.template.spec.domain.devices.disks[1].disk.bus"
    assert "use sata" in message


def test_old_versions_are_served_and_told() -> None:
    raw = objects.machine()
    raw["apiVersion"] = "kubevirt.io/v1alpha3"
    old = admit(raw, AdmissionSettings())
    assert old.accepted
    assert warnings(old) == [("apiVersion", "kubevirt.io/v1alpha3 is deprecated; use kubevirt.io/v1")]
    raw["apiVersion"] = "kubevirt.io/v2"
    assert [place for place, _ in errors(admit(raw, AdmissionSettings()))] == ["apiVersion"]


def test_running_is_deprecated_and_works() -> None:
    admission = admitted({"spec.running": True, "spec.runStrategy": GONE})
    assert admission.accepted
    assert warnings(admission) == [("spec.running", "deprecated: use runStrategy")]


@pytest.mark.spec("kubevirt", 189)
@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
@pytest.mark.parametrize(
    ("given", "stored"),
    [(2.2, "2200m"), (2222222.2, "2222222200m"), (2.0, "2"), (0.5, "500m"), (1e3, "1k"), ("1.5Gi", "1.5Gi"), ("0.5", "0.5"), (2, 2)],
)
def test_a_number_with_a_fraction_is_a_quantity_to_a_machine(kind: str, given: float | str, stored: str | int) -> None:
    admission = admit(objects.machine({"P.domain.resources": {"requests": {"example.com/thing": given}}}, kind), AdmissionSettings())
    assert [found.message for found in admission.findings if found.severity is Severity.ERROR] == []
    spec = admission.data["spec"]["template"]["spec"] if kind == "VirtualMachine" else admission.data["spec"]
    assert spec["domain"]["resources"]["requests"]["example.com/thing"] == stored


@pytest.mark.parametrize("size", [float("nan"), float("inf")])
def test_no_number_is_no_quantity(size: float) -> None:
    (found,) = errors(admitted({"P.domain.resources": {"requests": {"example.com/thing": size}}}))
    assert "a whole number or a string" in found[1]


def test_a_number_with_a_fraction_is_no_quantity_to_the_schema_of_a_definition() -> None:
    template = objects.machine({"P.domain.resources": {"requests": {"memory": 2222222.2}}})
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "virtualMachineTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": template["spec"]},
    }
    pool = {
        "apiVersion": "pool.kubevirt.io/v1beta1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": spec,
    }
    assert any("a whole number or a string such as 10Gi" in text for _, text in errors(admit(pool, AdmissionSettings())))


def test_what_is_known_and_not_honoured_is_kept_and_named() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    admission = admitted({"P.resourceClaims": claims})
    assert admission.accepted
    assert admission.data["spec"]["template"]["spec"]["resourceClaims"] == claims
    notes = [found.field for found in admission.findings if found.severity is Severity.NOTE]
    assert notes == ["spec.template.spec.resourceClaims"]


def test_all_failures_come_in_one_answer_and_rules_stand_broken_objects() -> None:
    wrong = {"P.domain.memory.guest": "much", "P.domain.devices.disks[0]": "root", "P.networks[0]": {"pod": {}}, "P.volumes": {}}
    found = errors(admitted(wrong))
    places = [place.removeprefix("spec.template.spec.") for place, _ in found]
    assert {"domain.memory.guest", "domain.devices.disks[0]", "networks[0].name", "volumes"} <= set(places)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"P.domain.memory.guest": "much"}, "P.domain.memory.guest"),
        ({"P.readinessProbe": {"exec": "true"}}, "P.readinessProbe.exec"),
        ({"P.domain.devices.sound": {"name": ["s"]}}, "P.domain.devices.sound.name"),
    ],
)
def test_what_cannot_be_read_is_not_missing_as_well(changes: dict[str, Any], field: str) -> None:
    assert [place for place, _ in errors(admitted(changes))] == [objects.place(field, VM)]


def test_unknown_fields_and_metadata_of_templates() -> None:
    changes: dict[str, Any] = {"P.domain.cpus": {}, "P.domain.devices.disk": [], "M.creationTimestamp": None, "M.finalizers": ["x"]}
    found = dict(errors(admitted(changes)))
    assert found["spec.template.spec.domain.cpus"].endswith('did you mean "cpu"?')
    assert found["spec.template.spec.domain.devices.disk"].endswith('did you mean "disks"?')
    assert len(found) == 2
    pruned = admit(objects.machine(changes), AdmissionSettings(), FieldValidation.IGNORE).data
    assert "cpus" not in pruned["spec"]["template"]["spec"]["domain"]
    # Metadata of a template is kept whole.
    assert pruned["spec"]["template"]["metadata"]["finalizers"] == ["x"]


def test_empty_words_are_none() -> None:
    empty = {
        "P.domain.devices.disks[0].cache": "",
        "P.domain.devices.disks[0].disk.bus": "",
        "P.domain.devices.interfaces[0].macAddress": "",
        "P.hostname": "",
    }
    admission = admitted(empty)
    assert admission.findings == ()
    assert admission.data == admitted({"P.domain.devices.disks[0].disk.bus": GONE}).data


def test_a_card_needs_a_binding_unless_a_preference_may_give_it() -> None:
    bare: dict[str, Any] = {"P.domain.devices.interfaces[0].masquerade": GONE}
    ((field, message),) = errors(admitted(bare))
    assert field == "spec.template.spec.domain.devices.interfaces[0]"
    assert "needs exactly one binding, got 0" in message
    assert errors(admitted({**bare, "spec.preference": {"name": "linux"}})) == []


def test_a_template_gets_the_disks_it_lacks() -> None:
    admission = admitted({"P.volumes[1]": {"name": "data", "emptyDisk": {"capacity": "1Gi"}}})
    assert [(found.severity, found.field) for found in admission.findings] == [(Severity.NOTE, "spec.template.spec.volumes[1].name")]


def test_secrets_are_never_repeated() -> None:
    bad = volume(cloudInitNoCloud={"userData": "hunter2" * 400, "networkDataBase64": "hunter2!"})
    said = " ".join(found.message for found in admitted(bad).findings)
    assert "exceeds 2048 byte limit" in said
    assert "not valid base64" in said
    assert "hunter2" not in said


def test_findings_point_into_the_document() -> None:
    found = [each for each in admitted({"P.domain.devices.sound": {"name": "s", "model": "x"}}).findings if each.rule == "kubevirt/V78"]
    assert [(each.field, each.place[-2:]) for each in found] == [("spec.template.spec.domain.devices.Sound", ("sound", "model"))]


STATUS = {
    VirtualMachineInstanceStatus: "nodeName reason conditions phase phaseTransitionTimestamps interfaces guestOSInfo migrationState "
    "migrationMethod migrationTransport qosClass launcherContainerImageVersion evacuationNodeName activePods volumeStatus "
    "kernelBootStatus fsFreezeStatus topologyHints virtualMachineRevisionName runtimeUser VSOCKCID selinuxContext machine "
    "currentCPUTopology memory migratedVolumes changedBlockTracking",
    VirtualMachineStatus: "snapshotInProgress restoreInProgress created ready printableStatus conditions stateChangeRequests "
    "volumeRequests volumeSnapshotStatuses startFailure memoryDumpRequest observedGeneration desiredGeneration runStrategy "
    "volumeUpdateState changedBlockTracking instancetypeRef preferenceRef",
}


@pytest.mark.parametrize("cls", STATUS, ids=lambda cls: cls.__name__)
def test_the_status_has_upstreams_keys(cls: Any) -> None:
    assert set(shape.shape_of(cls).properties) == set(STATUS[cls].split())


def test_printable_statuses() -> None:
    # Upstream's seventeen, and Suspended, which is Paddock's own.
    assert len(PRINTABLE_STATUSES) == len(set(PRINTABLE_STATUSES)) == 18
    fresh = admitted({"status.created": True})
    assert fresh.data["status"] == {"created": True, "printableStatus": "Stopped"}


def test_the_kinds_are_as_upstream_serves_them() -> None:
    (vm,), (vmi,) = KINDS, INSTANCE_KINDS
    assert (catalog.find("kubevirt.io", VM), catalog.find("kubevirt.io", VMI)) == (vm, vmi)
    assert (vm.cls, vmi.cls) == (VirtualMachine, VirtualMachineInstance)
    assert (vm.short_names, vmi.short_names) == (("vm", "vms"), ("vmi", "vmis"))
    assert [version.name for version in vm.versions] == ["v1", "v1alpha3"]
    assert (vm.status, vmi.status) == (True, False)
    assert [column.name for column in vm.columns] == ["Age", "Status", "Ready"]
    assert [column.name for column in vmi.columns] == ["Age", "Phase", "IP", "NodeName", "Ready", "Live-Migratable", "Paused"]
    assert [column.name for column in vmi.columns if column.wide] == ["Live-Migratable", "Paused"]


def test_lists_have_ends() -> None:
    cards = [{"name": f"n{index}", "bridge": {}} for index in range(257)]
    networks = [{"name": f"n{index}", "multus": {"networkName": "x"}} for index in range(257)]
    found = errors(admitted({"P.domain.devices.interfaces": cards, "P.networks": networks}))
    assert [message for _, message in found] == ["Too many: 257: must have at most 256 items"] * 2


def test_every_rule_has_an_id_of_its_own_and_a_text() -> None:
    for rules, transitions in ((machine.RULES, machine.TRANSITIONS), (instance.RULES, instance.TRANSITIONS)):
        told = [(each.id, each.text) for each in rules] + [(each.id, each.text) for each in transitions]
        assert len({name for name, _ in told}) == len(told)
        assert all(name.startswith("kubevirt/") and text for name, text in told)


def test_vcpus_are_limited() -> None:
    many = {"P.domain.cpu": {"sockets": 16, "cores": 16, "threads": 2}}
    assert admitted(many).accepted
    assert errors(admitted(many, max_vcpus=511)) == [
        ("spec.template.spec.domain.cpu", "Invalid value: 512: 512 vCPUs exceed the limit of 511")
    ]
    # Whoever asks for more finds no place, before and after the default topology is written.
    for kind in ("requests", "limits"):
        asked = {"P.domain.resources": {kind: {"cpu": "511500m"}}}
        assert admitted(asked, max_vcpus=511).accepted
        assert admitted({**asked, "P.domain.cpu": {"sockets": 512, "cores": 1, "threads": 1}}, VMI, max_vcpus=511).accepted
        assert not admitted({**asked, "P.domain.cpu": {"sockets": 513}}, VMI, max_vcpus=511).accepted


def test_two_networks_are_two() -> None:
    assert admitted(network({"multus": {"networkName": "lan"}}, bridge={})).findings == ()

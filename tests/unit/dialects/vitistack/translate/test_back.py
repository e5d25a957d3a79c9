"""KubeVirt machines of any make become Vitistack's: processors, memory, mainboard, power, metadata."""

import pytest
import yaml

from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.dialects.vitistack.translate.making import Json
from tests.unit.dialects.vitistack.translate.vms import INSTANCE, POD_CARD, ROOT, back, losses, machine, spec_of, vm


def test_a_machine_that_fits_loses_nothing() -> None:
    made = back(vm())
    assert made.losses == ()
    assert to_data(machine(made)) == {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "web", "namespace": "prod"},
        "spec": {"resources": {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}, "disks": [{"name": "root", "size": "9Gi"}]},
    }


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ({"cpu": {"cores": 2, "threads": 2, "sockets": 3}}, {"cpu": {"cores": 2, "threads": 2, "sockets": 3}}),
        ({"cpu": {"cores": 2, "sockets": 17}}, {"cpu": {"cores": 34}}),
        ({"cpu": {"cores": 257}}, {"cpu": {"cores": 256}}),
        ({"cpu": {"threads": 9}}, {"cpu": {"cores": 9}}),
        ({"cpu": None, "resources": {"limits": {"cpu": "2500m"}, "requests": {"cpu": "1"}}}, {"cpu": {"cores": 1, "sockets": 3}}),
        ({"cpu": None, "resources": {"requests": {"cpu": "2"}}}, {"cpu": {"cores": 1, "sockets": 2}}),
        ({"cpu": None}, {"cpu": {"cores": 1}}),
        ({"memory": None, "resources": {"requests": {"memory": "1Gi"}}}, {"memory": {"size": "1Gi"}}),
        ({"memory": None, "resources": {"limits": {"memory": "1Gi"}}}, {"memory": {"size": "1Gi"}}),
        ({"memory": {"guest": "1Ki"}}, {"memory": {"size": "1Mi"}}),
        ({"memory": {"guest": "2147483647500m"}}, {"memory": {"size": "2Gi"}}),
        ({"memory": None}, {"memory": {"size": "2Gi"}}),
    ],
)
def test_processors_and_memory(domain: Json, expected: Json) -> None:
    whole = {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}
    assert spec_of(vm(domain))["resources"] == whole | expected


def test_memory_that_nobody_gives_is_told() -> None:
    (loss,) = back(vm({"memory": None}, spec={"instancetype": {"name": "u1.small"}})).losses[:1]
    assert (loss.field, loss.instead) == (f"{INSTANCE}.domain.memory", "the Machine has 2Gi")


def test_only_the_order_of_boot_orders_counts() -> None:
    cards = [POD_CARD | {"bootOrder": 7}]
    raw = vm(devices={"disks": [ROOT | {"bootOrder": 9}], "interfaces": cards})
    assert spec_of(raw)["bootOrder"] == ["network", "disk"]
    assert losses(raw) == []


def test_what_is_switched_off_is_told() -> None:
    names = ("autoattachGraphicsDevice", "autoattachMemBalloon", "autoattachPodInterface", "autoattachSerialConsole")
    assert losses(vm(devices=dict.fromkeys(names, True))) == []
    assert sorted(losses(vm(devices=dict.fromkeys(names, False)))) == [f"{INSTANCE}.domain.devices.{name}" for name in names]


def test_a_machine_that_says_next_to_nothing() -> None:
    raw = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
    made = back(raw | {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}}})
    spec = {"resources": {"cpu": {"cores": 1}, "memory": {"size": "2Gi"}}, "bootOrder": ["network"]}
    assert to_data(machine(made))["spec"] == spec
    assert [loss.field for loss in made.losses] == [f"{INSTANCE}.domain.memory"]


@pytest.mark.parametrize(
    ("domain", "expected", "lost"),
    [
        ({"machine": {"type": "q35"}}, {"machine": {"type": "q35"}}, []),
        ({"machine": {"type": "pc-q35-9.0"}}, {"machine": {"type": "pc-q35-9.0"}}, []),
        ({"machine": {"type": "virt"}}, None, ["machine"]),
        ({"features": {"acpi": {}}}, None, []),
        ({"features": {"acpi": {"enabled": True}}}, None, []),
        ({"features": {"acpi": {"enabled": False}}}, {"features": {"acpi": False}}, []),
        ({"features": {"apic": {}}}, {"features": {"apic": True}}, []),
        ({"features": {"apic": {"enabled": False}}}, {"features": {"apic": False}}, []),
        ({"features": {"apic": {"endOfInterrupt": True}}}, {"features": {"apic": True}}, ["features.apic.endOfInterrupt"]),
        ({"features": {"hyperv": {"relaxed": {}}}}, {"features": {"hyperv": True}}, ["features.hyperv"]),
        (
            {"features": {"hyperv": {"relaxed": {}}, "apic": {"enabled": False}}},
            {"features": {"hyperv": True}},
            ["features.hyperv", "features.apic.enabled"],
        ),
        ({"features": {"kvm": {"hidden": True}}}, None, ["features.kvm"]),
        ({"firmware": {"bootloader": {"efi": {}}}}, {"firmware": {"bootloader": {"efi": True, "secureBoot": True}}}, []),
        ({"firmware": {"bootloader": {"efi": {"secureBoot": False}}}}, {"firmware": {"bootloader": {"efi": True}}}, []),
        ({"firmware": {"bootloader": {"bios": {}}}}, None, ["firmware"]),
        ({"firmware": {"uuid": "6a1a24a1-4061-4607-8bf4-a3963d0c5895"}}, None, ["firmware"]),
        ({"clock": {"timezone": "Europe/Oslo"}}, None, ["clock"]),
    ],
)
def test_mainboard_features_and_firmware(domain: Json, expected: Json | None, lost: list[str]) -> None:
    assert spec_of(vm(domain)).get("domain") == expected
    assert losses(vm(domain)) == [f"{INSTANCE}.domain.{name}" for name in lost]


@pytest.mark.parametrize(
    ("requested", "sent", "read"),
    [
        ("pc-q35", "q35", "pc-q35"),
        ("pc-i440fx", "pc", "pc-i440fx"),
        ("pc-q35", "pc", "pc"),
        ("q35", "q35", "q35"),
        ("virt", "virt", None),
    ],
)
def test_the_machine_type_that_was_asked_for(requested: str, sent: str, read: str | None) -> None:
    raw = vm({"machine": {"type": sent}}, annotations={"vitistack.io/requested-machine-type": requested})
    assert spec_of(raw).get("domain") == ({"machine": {"type": read}} if read else None)


def test_secure_boot_is_not_asked_of_the_old_chipset() -> None:
    domain = {"machine": {"type": "pc"}, "firmware": {"bootloader": {"efi": {"secureBoot": True}}}}
    assert spec_of(vm(domain))["domain"]["firmware"] == {"bootloader": {"efi": True}}
    assert losses(vm(domain)) == [f"{INSTANCE}.domain.firmware.bootloader.efi.secureBoot"]


@pytest.mark.parametrize(
    ("power", "stopped", "lost"),
    [
        ({"running": True}, False, []),
        ({"running": False}, True, []),
        ({"running": None, "runStrategy": "Always"}, False, []),
        ({"running": None, "runStrategy": "Halted"}, True, []),
        ({"running": None, "runStrategy": "Manual"}, False, ["spec.runStrategy"]),
    ],
)
def test_power(power: Json, stopped: bool, lost: list[str]) -> None:
    made = back(vm(spec=power))
    assert (machine(made).metadata.annotations or {}) == ({"vitistack.io/power-state": "stopped"} if stopped else {})
    assert [loss.field for loss in made.losses] == lost


def test_metadata() -> None:
    raw = vm(
        name="web.example",
        labels={"app": "x", "cluster.vitistack.io/cluster-name": "c1"},
        annotations={"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}", "vitistack.io/power-state": "x"},
        uid="u",
        resourceVersion="1",
        generation=3,
        creationTimestamp="2025-01-01T00:00:00Z",
        finalizers=["kubevirt.io/virtualMachineControllerFinalize", "e.org/mine"],
        ownerReferences=[{"apiVersion": "e.org/v1", "kind": "Machine", "name": "a", "uid": "b"}],
    )
    raw["status"] = {"ready": True}
    made = back(raw)
    assert to_data(machine(made).metadata) == {
        "name": "web-example",
        "namespace": "prod",
        "labels": {"app": "x", "cluster.vitistack.io/cluster-name": "c1"},
        "annotations": {"team": "a"},
    }
    renamed = [f"{INSTANCE}.volumes[0].persistentVolumeClaim.claimName"]
    told_of = ["name", "labels.app", "annotations", "ownerReferences", "finalizers"]
    assert [loss.field for loss in made.losses] == [f"metadata.{name}" for name in told_of] + renamed
    assert made.losses[4].value == ["e.org/mine"]


def test_a_generated_name() -> None:
    raw = vm()
    raw["metadata"] = {"generateName": "web-", "namespace": "prod"}
    assert machine(back(raw)).metadata.name == "web"
    assert "metadata.generateName" in losses(raw)


def test_the_documents_example_of_kubevirt() -> None:
    made = back(yaml.safe_load(EXAMPLE))
    assert [found for found in admit(to_data(machine(made)), AdmissionSettings()).findings if found.severity is Severity.ERROR] == []


EXAMPLE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: fedora-vm}
spec:
  runStrategy: Always
  dataVolumeTemplates:
  - metadata: {name: fedora-dv}
    spec:
      storage: {resources: {requests: {storage: 20Gi}}}
      source: {registry: {url: "docker://quay.io/containerdisks/fedora:38"}}
  template:
    spec:
      domain:
        cpu: {cores: 2}
        memory: {guest: 4Gi}
        devices:
          disks:
          - {name: rootdisk, disk: {bus: virtio}, bootOrder: 1}
          interfaces: [{name: default, masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: rootdisk, dataVolume: {name: fedora-dv}}
"""

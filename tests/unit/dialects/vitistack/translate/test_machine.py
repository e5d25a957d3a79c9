"""Processors, memory, mainboard, firmware, power, labels and owners of the generated machine."""

import pytest

from paddock.kubernetes.meta.rendering import Rendering
from tests.unit.dialects.vitistack.translate.making import STANDARD, Json, instance, objects, small, translated, virtual_machine

LITERAL = Rendering(default_storage_class="standard", literal=True)
STRATEGY = Rendering(default_storage_class="standard", power_field="runStrategy")
REQUESTED = "vitistack.io/requested-machine-type"


def hardware(rendering: Rendering = STANDARD, **domain: Json) -> Json:
    found: Json = instance(small(domain=domain), (), rendering)["domain"]
    return found


@pytest.mark.parametrize(
    ("template", "cpu", "memory"), [("small", (1, 1, 1), "2Gi"), ("medium", (2, 1, 1), "4Gi"), ("large", (4, 1, 1), "8Gi")]
)
@pytest.mark.spec("vitistack", 1)
def test_templates(template: str, cpu: tuple[int, int, int], memory: str) -> None:
    found = instance({"template": template})["domain"]
    assert found["cpu"] == dict(zip(("cores", "threads", "sockets"), cpu, strict=True))
    assert found["memory"] == {"guest": memory}


@pytest.mark.spec("vitistack", 6, 11)
def test_overrides() -> None:
    found = instance({"template": "medium", "resources": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}}})["domain"]
    assert (found["cpu"], found["memory"]) == ({"cores": 4, "threads": 1, "sockets": 1}, {"guest": "8Gi"})
    found = instance({"template": "medium", "resources": {"cpu": {"threads": 2}}})["domain"]
    assert found["cpu"] == {"cores": 2, "threads": 2, "sockets": 1}


@pytest.mark.parametrize("size", ["4Gi", "4096Mi", "4G", 4294967296, "1.5Gi"])
def test_memory_is_passed_as_it_is_written(size: str | int) -> None:
    assert instance(small(resources={"memory": {"size": size}}))["domain"]["memory"] == {"guest": size}


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("pc-q35", "q35"),
        ("pc-i440fx", "pc"),
        ("pc-q35-rhel9.4.0", "pc-q35-rhel9.4.0"),
        ("pc-i440fx-2.12", "pc-i440fx-2.12"),
        ("q35", "q35"),
        ("pc", "pc"),
    ],
)
@pytest.mark.spec("vitistack", 51)
def test_machine_types(asked: str, sent: str) -> None:
    made = virtual_machine(small(domain={"machine": {"type": asked}}))
    assert made["spec"]["template"]["spec"]["domain"]["machine"] == {"type": sent}
    assert made["metadata"].get("annotations") == (None if asked == sent else {REQUESTED: asked})


def test_the_literal_machine_type_is_kept_on_request() -> None:
    made = virtual_machine(small(domain={"machine": {"type": "pc-q35"}}), (), LITERAL)
    assert made["spec"]["template"]["spec"]["domain"]["machine"] == {"type": "pc-q35"}
    assert "annotations" not in made["metadata"]


def test_no_machine_type_is_left_to_the_backend() -> None:
    assert "machine" not in hardware()
    assert "machine" not in hardware(machine={})


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        pytest.param({}, {"acpi": {}}, marks=pytest.mark.spec("vitistack", 52)),
        pytest.param({"acpi": True}, {"acpi": {}}, marks=pytest.mark.spec("vitistack", 52)),
        pytest.param({"acpi": False}, {"acpi": {"enabled": False}}, marks=pytest.mark.spec("vitistack", 52)),
        ({"apic": True}, {"acpi": {}, "apic": {"enabled": True}}),
        ({"apic": False}, {"acpi": {}, "apic": {"enabled": False}}),
    ],
)
def test_features(features: Json, expected: Json) -> None:
    assert hardware(features=features)["features"] == expected
    assert "clock" not in hardware(features=features)


@pytest.mark.spec("vitistack", 53)
def test_hyperv() -> None:
    found = hardware(features={"hyperv": True})
    assert found["features"] == {
        "acpi": {},
        "apic": {"enabled": True},
        "hyperv": {
            "relaxed": {},
            "vapic": {},
            "spinlocks": {"spinlocks": 8191},
            "vpindex": {},
            "runtime": {},
            "synic": {},
            "synictimer": {"direct": {}},
            "reset": {},
            "frequencies": {},
            "tlbflush": {},
            "ipi": {},
        },
    }
    assert found["clock"] == {
        "utc": {},
        "timer": {
            "hpet": {"present": False},
            "hyperv": {"present": True},
            "pit": {"tickPolicy": "delay"},
            "rtc": {"tickPolicy": "catchup"},
        },
    }


@pytest.mark.parametrize(
    ("bootloader", "firmware", "smm"),
    [
        pytest.param({}, None, None, marks=pytest.mark.spec("vitistack", 57)),
        pytest.param({"efi": False}, None, None, marks=pytest.mark.spec("vitistack", 57)),
        pytest.param({"efi": True}, {"bootloader": {"efi": {"secureBoot": False}}}, None, marks=pytest.mark.spec("vitistack", 55)),
        pytest.param(
            {"efi": True, "secureBoot": True},
            {"bootloader": {"efi": {"secureBoot": True}}},
            {"enabled": True},
            marks=pytest.mark.spec("vitistack", 56),
        ),
    ],
)
def test_firmware(bootloader: Json, firmware: Json | None, smm: Json | None) -> None:
    found = hardware(firmware={"bootloader": bootloader})
    assert found.get("firmware") == firmware
    assert found["features"].get("smm") == smm
    assert "firmware" not in hardware(firmware={})


@pytest.mark.parametrize(
    ("annotations", "rendering", "power"),
    [
        pytest.param({}, STANDARD, {"running": True}, marks=pytest.mark.spec("vitistack", 58)),
        pytest.param({}, STRATEGY, {"runStrategy": "Always"}, marks=pytest.mark.spec("vitistack", 58)),
        ({"vitistack.io/power-state": "running"}, STANDARD, {"running": True}),
        ({"vitistack.io/power-state": "stopped"}, STANDARD, {"running": False}),
        ({"vitistack.io/power-state": "stopped"}, STRATEGY, {"runStrategy": "Halted"}),
    ],
)
def test_power(annotations: dict[str, str], rendering: Rendering, power: Json) -> None:
    spec = virtual_machine(small(), (), rendering, annotations=annotations)["spec"]
    assert {key: spec[key] for key in ("running", "runStrategy") if key in spec} == power


CLUSTER = {"cluster.vitistack.io/cluster-name": "c1"}
MANAGED = {"vitistack.io/managed-by": "kubevirt-operator"}


@pytest.mark.spec("vitistack", 59, "Labels of 2.2 on VM, template, PVC")
@pytest.mark.spec("vitistack", 60)
def test_labels_lead_from_the_machine_to_everything_that_is_made() -> None:
    """`kubectl get vm,vmi,pvc -l vitistack.io/machine=web`: the labels of the template are those of the VMI."""
    made = objects(small(disks=[{"name": "data", "size": "1Gi"}]), labels=CLUSTER | {"app": "x"})
    carried = {"vitistack.io/machine": "web", "vitistack.io/machine-template": "small"} | CLUSTER
    assert set(made) == {"PersistentVolumeClaim/web-root", "PersistentVolumeClaim/web-data", "VirtualMachine/web"}
    for each in made.values():
        assert each["metadata"]["labels"] == MANAGED | carried
    assert made["VirtualMachine/web"]["spec"]["template"]["metadata"]["labels"] == carried


def test_the_template_label_is_the_template_in_force() -> None:
    plain: Json = {"resources": {"memory": {"size": "1Gi"}}, "disks": [{"name": "root", "size": "1Gi"}]}
    asked = {"vitistack.io/machine-template": "large"}
    assert virtual_machine(plain, labels=asked)["metadata"]["labels"] == MANAGED | {"vitistack.io/machine": "web"}
    assert virtual_machine(small(), labels=asked)["metadata"]["labels"]["vitistack.io/machine-template"] == "small"


@pytest.mark.spec("vitistack", 61)
def test_the_machine_owns_what_is_made() -> None:
    owner = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "name": "web", "uid": "u-1"}
    for each in objects(small(cloudInit={"userData": "#!" + "x" * 3000})).values():
        assert each["metadata"]["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]


def test_nobody_owns_anything_without_a_uid() -> None:
    assert not any("ownerReferences" in each["metadata"] for each in objects(small(), uid="").values())


def test_the_namespace_is_the_machines_word() -> None:
    assert {each["metadata"]["namespace"] for each in objects(small()).values()} == {"prod"}
    assert not any("namespace" in each["metadata"] for each in objects(small(), namespace=None).values())


def test_what_is_not_passed_on_is_told() -> None:
    labels = {"app": "x", "vitistack.io/machine-template": "large"} | CLUSTER
    annotations = {"team": "a", "vitistack.io/retry": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    losses = translated(small(), labels=labels, annotations=annotations).losses
    assert [(loss.field, loss.value) for loss in losses] == [
        ("metadata.labels.app", "x"),
        ("metadata.labels[vitistack.io/machine-template]", "large"),
        ("metadata.annotations.team", "a"),
    ]
    assert translated(small(), labels={"vitistack.io/machine-template": "small"}).losses == ()
    assert all(loss.of == "Machine/web" and loss.why and loss.instead for loss in losses)

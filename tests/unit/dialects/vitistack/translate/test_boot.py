"""The boot of a machine: order, installation images, and a root disk that starts with one."""

import pytest

from paddock.dialects.vitistack.translate.errors import IncompleteMachine, TemplateNotFound
from paddock.kubernetes.meta.objects import Resource
from tests.unit.dialects.vitistack.translate.making import (
    CARD,
    STANDARD,
    Json,
    devices,
    instance,
    network,
    objects,
    small,
    translated,
    typed,
    virtual_machine,
)

ISO = {"kubevirt.io/boot-source": "datavolume"}
IMAGE = {"os": {"imageID": "https://e.org/install.iso"}}
ROOT_IMAGE = "vitistack.io/root-image"


def order(spec: Json, **metadata: object) -> dict[str, int]:
    found = devices(spec, [network()], STANDARD, **metadata)
    return {each["name"]: each["bootOrder"] for each in (*found["disks"], *found["interfaces"]) if "bootOrder" in each}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(small(bootOrder=["network", "disk"]), {"default": 1, "root": 2}, marks=pytest.mark.spec("vitistack", 39)),
        (small(bootOrder=["disk", "network"]), {"root": 1, "default": 2}),
        (small(bootOrder=["disk"]), {"root": 1}),
        (small(bootOrder=["network"], networks=[CARD, CARD | {"name": "eth1"}]), {"eth0": 1}),
        (small(bootOrder=["disk"], disks=[{"name": "a", "size": "1Gi"}]), {"root": 1}),
        pytest.param(small(), {}, marks=pytest.mark.spec("vitistack", 40)),
        (small(bootOrder=[]), {}),
        pytest.param(small(bootOrder=["cdrom"]), {}, marks=pytest.mark.spec("vitistack", 41)),
        (small(bootOrder=["cdrom", "disk"]), {"root": 1}),
    ],
)
def test_order(spec: Json, expected: dict[str, int]) -> None:
    assert order(spec) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, {"root": 1, "cdrom-iso": 2}),
        (["cdrom", "disk"], {"cdrom-iso": 1, "root": 2}),
        (["network", "cdrom"], {"default": 1, "cdrom-iso": 2}),
        (["disk"], {"root": 1}),
    ],
)
def test_order_with_an_installation_image(wanted: list[str] | None, expected: dict[str, int]) -> None:
    assert order(small(bootOrder=wanted, **IMAGE) if wanted else small(**IMAGE), annotations=ISO) == expected


def test_without_a_template_the_first_disk_is_the_root_disk() -> None:
    disks = [{"name": "sys", "size": "1Gi"}, {"name": "data", "size": "1Gi"}]
    spec = {"resources": {"memory": {"size": "1Gi"}}, "disks": disks, "bootOrder": ["disk"]}
    assert order(spec) == {"sys": 1}


@pytest.mark.parametrize(
    ("spec", "index"),
    [
        pytest.param(small(bootOrder=["cdrom"]), 0, marks=pytest.mark.spec("vitistack", 41)),
        ({"resources": {"memory": {"size": "1Gi"}}, "bootOrder": ["network", "disk"]}, 1),
    ],
)
def test_what_is_not_there_to_boot_is_told(spec: Json, index: int) -> None:
    losses = translated(spec).losses
    assert [loss.field for loss in losses] == [f"spec.bootOrder[{index}]"]


def test_an_installation_image() -> None:
    made = virtual_machine(small(**IMAGE), annotations=ISO)
    (template,) = made["spec"]["dataVolumeTemplates"]
    labels = {"vitistack.io/managed-by": "kubevirt-operator", "vitistack.io/machine": "web", "vitistack.io/machine-template": "small"}
    assert template == {
        "metadata": {"name": "web-iso", "labels": labels},
        "spec": {
            "source": {"http": {"url": "https://e.org/install.iso"}},
            "storage": {
                "accessModes": ["ReadWriteOnce"],
                "volumeMode": "Filesystem",
                "storageClassName": "standard",
                "resources": {"requests": {"storage": "8Gi"}},
            },
        },
    }
    found = made["spec"]["template"]["spec"]
    assert found["domain"]["devices"]["disks"][-1] == {"name": "cdrom-iso", "cdrom": {"bus": "sata"}, "bootOrder": 2}
    assert found["volumes"][-1] == {"name": "cdrom-iso", "dataVolume": {"name": "web-iso"}}


@pytest.mark.parametrize(
    ("address", "kind", "source"),
    [
        ("http://e.org/a", "http", {"http": {"url": "http://e.org/a"}}),
        ("https://e.org/a", "https", {"http": {"url": "https://e.org/a"}}),
        ("docker://e.org/a", "registry", {"registry": {"url": "docker://e.org/a"}}),
        ("e.org/a:1", "registry", {"registry": {"url": "docker://e.org/a:1"}}),
    ],
)
def test_where_an_installation_image_comes_from(address: str, kind: str, source: Json) -> None:
    made = virtual_machine(small(os={"imageID": address}), annotations=ISO | {"kubevirt.io/boot-source-type": kind})
    assert made["spec"]["dataVolumeTemplates"][0]["spec"]["source"] == source


@pytest.mark.parametrize(
    ("size", "room"), [("1", "1Gi"), ("976128930", "1Gi"), ("976128931", "2Gi"), ("5900000000", "7Gi"), ("10Gi", "11Gi")]
)
def test_room_for_an_installation_image(size: str, room: str) -> None:
    made = virtual_machine(small(**IMAGE), annotations=ISO | {"vitistack.io/boot-source-size": size})
    assert made["spec"]["dataVolumeTemplates"][0]["spec"]["storage"]["resources"] == {"requests": {"storage": room}}


@pytest.mark.parametrize(
    ("annotations", "losses"),
    [
        (ISO | {"vitistack.io/os-installed": "true"}, 0),
        (ISO | {"vitistack.io/cdrom-ejected": "true"}, 0),
        ({}, 1),
        ({"kubevirt.io/boot-source": "kernel"}, 1),
    ],
)
def test_no_drive_without_or_after_the_installation(annotations: dict[str, str], losses: int) -> None:
    made = translated(small(**IMAGE), annotations=annotations)
    assert [loss.field for loss in made.losses] == ["spec.os.imageID"] * losses
    spec = virtual_machine(small(**IMAGE), annotations=annotations)["spec"]
    assert "dataVolumeTemplates" not in spec
    assert [each["name"] for each in spec["template"]["spec"]["volumes"]] == ["root"]
    assert order(small(**IMAGE), annotations=annotations) == {}


@pytest.mark.parametrize("annotations", [{}, ISO])
def test_no_image_is_no_loss(annotations: dict[str, str]) -> None:
    assert translated(small(os={}), annotations=annotations).losses == ()
    assert order(small(os={}), annotations=annotations) == {}


def test_the_drive_stays_while_nothing_says_true() -> None:
    annotations = ISO | {"vitistack.io/os-installed": "false"}
    assert order(small(**IMAGE), annotations=annotations) == {"root": 1, "cdrom-iso": 2}


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("https://e.org/a.qcow2", {"http": {"url": "https://e.org/a.qcow2"}}),
        ("docker://e.org/a:1", {"registry": {"url": "docker://e.org/a:1"}}),
    ],
)
def test_a_root_disk_that_starts_with_an_image(address: str, source: Json) -> None:
    made = objects(small(disks=[{"name": "data", "size": "1Gi"}]), annotations={ROOT_IMAGE: address})
    assert [key for key in made if "web-" in key] == ["DataVolume/web-root", "PersistentVolumeClaim/web-data"]
    volume = made["DataVolume/web-root"]
    claim = {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    assert volume["spec"] == {"source": source, "pvc": claim}
    assert volume["metadata"]["labels"]["vitistack.io/machine"] == "web"
    assert volume["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert translated(small(), annotations={ROOT_IMAGE: address}).losses == ()
    found = instance(small(), annotations={ROOT_IMAGE: address})
    assert found["volumes"] == [{"name": "root", "dataVolume": {"name": "web-root"}}]


def test_an_image_without_a_disk_is_told() -> None:
    spec = {"resources": {"memory": {"size": "1Gi"}}, "bootOrder": ["network"]}
    (loss,) = translated(spec, annotations={ROOT_IMAGE: "http://e.org/a"}).losses
    assert loss.field == f"metadata.annotations[{ROOT_IMAGE}]"


# --- templates ----------------------------------------------------------------------------------------------------------------


def own(name: str = "web", namespace: str = "prod") -> Resource:
    meta = {"name": name, "namespace": namespace}
    spec = {
        "resources": {"cpu": {"sockets": 2}, "memory": {"size": "3Gi"}},
        "disks": [{"name": "sys", "size": "5Gi", "volumeMode": "Block"}],
    }
    return typed({"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineTemplate", "metadata": meta, "spec": spec})


@pytest.mark.parametrize("name", ["huge", "none", "Small"])
@pytest.mark.spec("vitistack", 17)
def test_a_template_that_is_missing(name: str) -> None:
    with pytest.raises(TemplateNotFound) as raised:
        translated({"template": name})
    error = raised.value
    assert str(error) == f'template "{name}" not found: use small, medium or large'
    assert (error.name, error.path, error.error_type, error.phase) == (name, ("spec", "template"), "TemplateNotFound", "Failed")


def test_a_template_of_ones_own() -> None:
    template = own()
    made = objects({"template": "web", "disks": [{"name": "sys", "size": "6Gi"}]}, [template])
    assert made["PersistentVolumeClaim/web-sys"]["spec"]["resources"] == {"requests": {"storage": "6Gi"}}
    assert made["PersistentVolumeClaim/web-sys"]["spec"]["volumeMode"] == "Block"
    found = made["VirtualMachine/web"]["spec"]["template"]["spec"]["domain"]
    assert (found["cpu"], found["memory"]) == ({"cores": 1, "threads": 1, "sockets": 2}, {"guest": "3Gi"})
    with pytest.raises(IncompleteMachine) as raised:
        translated({"template": "web", "disks": [{"name": "data"}]}, [template])
    assert raised.value.path == ("spec", "disks", 0, "size")
    assert str(raised.value) == 'disk "data" has no size: neither the machine nor its template gives it; set spec.disks[0].size'


def test_a_template_of_another_namespace_is_not_there() -> None:
    with pytest.raises(TemplateNotFound):
        translated({"template": "web"}, [own(namespace="default")])

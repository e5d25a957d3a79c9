"""Disks of KubeVirt machines become a Machine's, with everything of their claims that does not fit."""

import pytest

from paddock.kubernetes.meta.wire import to_data
from tests.unit.dialects.vitistack.translate.making import Json, secret
from tests.unit.dialects.vitistack.translate.vms import CLAIM, INSTANCE, ROOT, back, claim, data_volume, losses, machine, spec_of, vm


def disk_of(raw: Json, *world: Json) -> Json:
    (found,) = spec_of(raw, *world)["disks"]
    assert found.pop("name") == "root"
    return dict(found)


@pytest.mark.parametrize(
    ("spec", "expected", "lost"),
    [
        ({}, {}, []),
        ({"storageClassName": "standard"}, {}, []),
        ({"storageClassName": "fast"}, {"storageClass": "fast"}, []),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, []),
        ({"accessModes": ["ReadWriteMany"]}, {"accessMode": "ReadWriteMany"}, []),
        ({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]}, {"accessMode": "ReadWriteMany"}, ["spec.accessModes"]),
        ({"accessModes": ["ReadWriteOncePod"]}, {}, ["spec.accessModes"]),
        ({"accessModes": ["ReadOnlyMany"]}, {}, ["spec.accessModes"]),
        ({"volumeName": "pv-1"}, {}, []),
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}, {}, ["spec.dataSource"]),
    ],
)
def test_claims(spec: Json, expected: Json, lost: list[str]) -> None:
    asked = claim(**spec)
    assert disk_of(vm(), asked) == {"size": "9Gi"} | expected
    assert losses(vm(), asked) == [f"PersistentVolumeClaim/web-root {field}" for field in lost]


@pytest.mark.parametrize(
    ("spec", "disks"),
    [
        ({}, None),
        ({"resources": {"requests": {"storage": "10Gi"}}}, [{"name": "root", "size": "10Gi"}]),
        ({"storageClassName": "standard"}, [{"name": "root", "storageClass": "default"}]),
        ({"accessModes": ["ReadWriteOnce"]}, [{"name": "root", "accessMode": "ReadWriteOnce"}]),
        ({"volumeMode": None}, [{"name": "root", "volumeMode": "Filesystem"}]),
    ],
)
def test_what_is_said_over_a_template_of_ones_own(spec: Json, disks: list[Json] | None) -> None:
    given = {"name": "root", "size": "9Gi", "storageClass": "gold", "accessMode": "ReadWriteMany", "volumeMode": "Block"}
    template = {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "MachineTemplate",
        "metadata": {"name": "own", "namespace": "prod"},
        "spec": {"resources": {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}, "disks": [given]},
    }
    asked: Json = {"storageClassName": "gold", "accessModes": ["ReadWriteMany"], "volumeMode": "Block"} | spec
    found = spec_of(vm(labels={"vitistack.io/machine-template": "own"}), claim(**asked), template)
    assert found == {"template": "own"} | ({"disks": disks} if disks else {})


@pytest.mark.parametrize(
    ("device", "name"), [({"cdrom": {"bus": "sata"}}, "cd"), ({"disk": {"bus": "virtio"}}, "cdrom-iso"), ({"disk": {}}, "cloudinitdisk")]
)
def test_disks_that_a_machine_cannot_have(device: Json, name: str) -> None:
    volumes = [CLAIM, {"name": name, "persistentVolumeClaim": {"claimName": "a"}}]
    raw = vm(devices={"disks": [ROOT, {"name": name, **device}]}, instance={"volumes": volumes})
    assert [each["name"] for each in spec_of(raw)["disks"]] == ["root"]
    assert losses(raw) == [f"{INSTANCE}.domain.devices.disks[1]", f"{INSTANCE}.volumes[1]"]


def test_the_first_in_boot_order_is_booted() -> None:
    disks = [{"name": name, "disk": {"bus": "virtio"}, "bootOrder": order} for name, order in (("a", 3), ("b", 2), ("c", 4))]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"web-{name}"}} for name in "abc"]
    world = [claim(f"web-{name}") for name in "abc"]
    raw = vm(devices={"disks": disks}, instance={"volumes": volumes})
    assert [each["name"] for each in spec_of(raw, *world)["disks"]] == ["b", "a", "c"]


def test_a_claim_of_another_name_loses_its_volume() -> None:
    raw = vm(instance={"volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "old"}}]})
    assert losses(raw, claim("old", volumeName="pv-1")) == [
        f"{INSTANCE}.volumes[0].persistentVolumeClaim.claimName",
        "PersistentVolumeClaim/old spec.volumeName",
    ]


def test_a_claim_that_is_not_in_the_input() -> None:
    made = back(vm(), secret())
    assert to_data(machine(made))["spec"]["disks"] == [{"name": "root", "size": "20Gi"}]
    assert [(loss.field, loss.instead) for loss in made.losses] == [(f"{INSTANCE}.volumes[0]", "the disk has 20Gi")]


@pytest.mark.parametrize(
    ("source", "image", "lost"),
    [
        ({"http": {"url": "https://e.org/a"}}, "https://e.org/a", []),
        ({"registry": {"url": "docker://e.org/a"}}, "docker://e.org/a", []),
        ({"http": {"url": "https://e.org/a", "secretRef": "s"}}, "https://e.org/a", ["spec.source.http.secretRef"]),
        ({"registry": {"url": "oci-archive://e.org/a"}}, None, ["spec.source"]),
        ({"pvc": {"namespace": "a", "name": "b"}}, None, ["spec.source"]),
        ({"blank": {}}, None, ["spec.source"]),
    ],
)
def test_data_volumes(source: Json, image: str | None, lost: list[str]) -> None:
    raw = vm(instance={"volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}]})
    made = back(raw, data_volume(source=source))
    found = to_data(machine(made))
    assert found["metadata"].get("annotations") == ({"vitistack.io/root-image": image} if image else None)
    assert found["spec"]["disks"] == [{"name": "root", "size": "9Gi"}]
    assert [loss.field for loss in made.losses if loss.of == "DataVolume/web-root"] == lost


def test_templates_of_data_volumes() -> None:
    template = {"metadata": {"name": "boot"}, "spec": data_volume(source={"http": {"url": "http://e.org/a"}})["spec"]}
    raw = vm(instance={"volumes": [{"name": "root", "dataVolume": {"name": "boot"}}]}, spec={"dataVolumeTemplates": [template]})
    assert spec_of(raw)["disks"] == [{"name": "root", "size": "9Gi"}]
    assert (machine(back(raw)).metadata.annotations or {}) == {"vitistack.io/root-image": "http://e.org/a"}
    assert "spec.dataVolumeTemplates" in losses(raw)


@pytest.mark.parametrize(
    ("volume", "disk", "image"),
    [
        ({"containerDisk": {"image": "e.org/a"}}, {"name": "root", "size": "20Gi"}, "docker://e.org/a"),
        ({"emptyDisk": {"capacity": "2Gi"}}, {"name": "root", "size": "2Gi"}, None),
        ({"hostDisk": {"path": "/a", "type": "DiskOrCreate", "capacity": "3Gi"}}, {"name": "root", "size": "3Gi"}, None),
        ({"hostDisk": {"path": "/a", "type": "Disk"}}, None, None),
        ({"configMap": {"name": "a"}}, None, None),
        ({"ephemeral": {"persistentVolumeClaim": {"claimName": "a"}}}, None, None),
    ],
)
def test_volumes_that_are_no_claims(volume: Json, disk: Json | None, image: str | None) -> None:
    raw = vm(instance={"volumes": [{"name": "root", **volume}]})
    made = back(raw)
    found = to_data(machine(made))
    assert found["spec"].get("disks", []) == ([disk] if disk else [])
    assert found["metadata"].get("annotations") == ({"vitistack.io/root-image": image} if image else None)
    assert any(loss.field.startswith(f"{INSTANCE}.volumes") for loss in made.losses)
    # Without a disk there is only the network to boot from.
    assert found["spec"].get("bootOrder") == (None if disk else ["network"])


def test_the_disk_that_is_booted_comes_first() -> None:
    names = ("data", "boot", "root")
    disks = [{"name": name, "disk": {"bus": "virtio"}} for name in names]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"web-{name}"}} for name in names]
    world = [claim(f"web-{name}") for name in names]
    disks[1]["bootOrder"] = 1  # type: ignore[assignment]
    raw = vm(devices={"disks": disks[:2]}, instance={"volumes": volumes[:2]})
    found = spec_of(raw, *world)
    assert ([each["name"] for each in found["disks"]], found["bootOrder"]) == (["boot", "data"], ["disk"])
    assert losses(raw, *world) == [f"{INSTANCE}.domain.devices.disks[1]"]
    # A disk called root is the root disk, whatever is booted.
    raw = vm(devices={"disks": disks}, instance={"volumes": volumes})
    assert [each["name"] for each in spec_of(raw, *world)["disks"]] == list(names)
    assert f"{INSTANCE}.domain.devices.disks[1].bootOrder" in losses(raw, *world)


@pytest.mark.parametrize(
    ("template", "disks", "expected"),
    [
        ("small", [("root", "20Gi")], {"template": "small", "resources": {"cpu": {"cores": 2}, "memory": {"size": "3Gi"}}}),
        ("small", [("root", "20Gi"), ("b", "1Gi")], {"template": "small", "disks": [{"name": "b", "size": "1Gi"}]}),
        ("small", [("root", "30Gi")], {"template": "small", "disks": [{"name": "root", "size": "30Gi"}]}),
        ("small", [("b", "1Gi"), ("root", "20Gi")], {"disks": [{"name": "b", "size": "1Gi"}, {"name": "root", "size": "20Gi"}]}),
        ("small", [("b", "1Gi")], {"disks": [{"name": "b", "size": "1Gi"}]}),
        ("huge", [("root", "20Gi")], {"disks": [{"name": "root", "size": "20Gi"}]}),
    ],
)
def test_the_template_is_found_again_where_it_fits(template: str, disks: list[tuple[str, str]], expected: Json) -> None:
    raw = vm(
        devices={"disks": [{"name": name, "disk": {"bus": "virtio"}} for name, _ in disks]},
        instance={"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": f"web-{name}"}} for name, _ in disks]},
        labels={"vitistack.io/machine-template": template},
    )
    world = [claim(f"web-{name}", resources={"requests": {"storage": size}}) for name, size in disks]
    found = spec_of(raw, *world)
    assert found.get("template") == expected.get("template")
    assert found.get("disks") == expected.get("disks")

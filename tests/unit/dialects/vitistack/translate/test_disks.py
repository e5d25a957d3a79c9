"""Disks: claims, devices, volumes, and the class that `default` stands for."""

from typing import Any

import pytest

from paddock.dialects.vitistack.translate import to_kubevirt, unmet
from paddock.dialects.vitistack.translate.errors import StorageClassNotFound
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.vitistack.translate.making import CARD, Json, devices, instance, machine, objects, small, storage_class

DATA: Json = {"name": "data", "size": "1Gi"}


def claim(disk: Json, **metadata: Any) -> Json:
    return objects(small(disks=[disk]), **metadata)["PersistentVolumeClaim/web-data"]


@pytest.mark.spec("vitistack", 22)
def test_a_claim_is_named_after_machine_and_disk() -> None:
    made = objects(small(disks=[DATA]))
    assert [key for key in made if key.startswith("PersistentVolumeClaim/")] == [
        "PersistentVolumeClaim/web-root",
        "PersistentVolumeClaim/web-data",
    ]
    assert instance(small(disks=[DATA]))["volumes"] == [
        {"name": "root", "persistentVolumeClaim": {"claimName": "web-root"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
    ]


@pytest.mark.spec("vitistack", 23)
def test_every_disk_is_virtio() -> None:
    assert devices(small(disks=[DATA], cloudInit={}))["disks"] == [
        {"name": "root", "disk": {"bus": "virtio"}},
        {"name": "data", "disk": {"bus": "virtio"}},
        {"name": "cloudinitdisk", "disk": {"bus": "virtio"}},
    ]


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        pytest.param({}, {}, marks=pytest.mark.spec("vitistack", 20, 21)),
        ({"size": 5368709120}, {"resources": {"requests": {"storage": 5368709120}}}),
        ({"size": "1.5G"}, {"resources": {"requests": {"storage": "1.5G"}}}),
        ({"storageClass": "fast"}, {"storageClassName": "fast"}),
        pytest.param({"accessMode": "ReadWriteMany"}, {"accessModes": ["ReadWriteMany"]}, marks=pytest.mark.spec("vitistack", 20)),
        pytest.param({"accessMode": "ReadOnlyMany"}, {"accessModes": ["ReadOnlyMany"]}, marks=pytest.mark.spec("vitistack", 20)),
        pytest.param({"volumeMode": "Block"}, {"volumeMode": "Block"}, marks=pytest.mark.spec("vitistack", 21)),
    ],
)
def test_what_a_claim_asks_for(fields: Json, spec: Json) -> None:
    plain: Json = {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert claim(DATA | fields)["spec"] == plain | spec


def test_a_read_only_disk_is_read_only_in_the_guest() -> None:
    found = devices(small(disks=[DATA | {"accessMode": "ReadOnlyMany"}]))["disks"]
    assert found[1] == {"name": "data", "disk": {"bus": "virtio", "readonly": True}}


def test_no_disks_at_all() -> None:
    spec = {"resources": {"memory": {"size": "1Gi"}}, "bootOrder": ["network"]}
    assert "disks" not in devices(spec)
    assert "volumes" not in instance(spec)
    assert list(objects(spec)) == ["VirtualMachine/web"]


# --- classes ----------------------------------------------------------------------------------------------------------------

OLD, NEW = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"


def chosen(*classes: Resource, rendering: Rendering = Rendering(), disk: Json | None = None) -> Any:  # noqa: B008 - frozen
    found = to_kubevirt(machine(small(disks=[disk] if disk else [])), ObjectSet(classes, complete=True), rendering).value[0]
    return found.spec.storageClassName  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([storage_class("a"), storage_class("b", default="true")], "b", id="the default"),
        pytest.param([storage_class("a", default="true"), storage_class("b", virt="true")], "b", id="the default for machines"),
        pytest.param([storage_class("a", virt="true"), storage_class("default")], "default", id="a class of that name"),
        pytest.param([storage_class("a", virt="false"), storage_class("b", default="true")], "b", id="false is no mark"),
        pytest.param([storage_class("a", NEW, default="true"), storage_class("b", OLD, default="true")], "a", id="the newest"),
        pytest.param([storage_class("b", OLD, default="true"), storage_class("a", OLD, default="true")], "a", id="the first by name"),
    ],
)
@pytest.mark.spec("vitistack", 24)
def test_what_default_stands_for(classes: list[Resource], expected: str) -> None:
    assert chosen(*classes) == expected
    assert chosen(*classes, disk={"name": "root", "storageClass": "default"}) == expected


def test_the_installations_word_on_the_default() -> None:
    marked = [storage_class("a", default="true"), storage_class("b")]
    assert chosen(*marked, rendering=Rendering(default_storage_class="b")) == "b"
    assert chosen(*marked, storage_class("default"), rendering=Rendering(default_storage_class="b")) == "default"


@pytest.mark.parametrize(
    ("classes", "disk", "name", "place", "text"),
    [
        pytest.param(
            [storage_class("a")], None, "default", ("spec", "disks"), "no default StorageClass", marks=pytest.mark.spec("vitistack", 24)
        ),
        pytest.param(
            [storage_class("a", default="true")],
            {"name": "root", "storageClass": "fast"},
            "fast",
            ("spec", "disks", 0, "storageClass"),
            'StorageClass "fast" not found; create it or correct spec.disks[0].storageClass',
            marks=pytest.mark.spec("vitistack", 26),
        ),
    ],
)
def test_a_class_that_is_missing(classes: list[Resource], disk: Json | None, name: str, place: Any, text: str) -> None:
    with pytest.raises(StorageClassNotFound) as raised:
        chosen(*classes, disk=disk)
    error = raised.value
    assert (error.name, error.path, error.error_type, error.phase) == (name, place, "StorageClassNotFound", "Pending")
    assert text in str(error)
    assert chosen(*classes, storage_class(name), disk=disk) == name


def test_the_installations_word_may_be_missing_too() -> None:
    with pytest.raises(StorageClassNotFound) as raised:
        chosen(storage_class("a", default="true"), rendering=Rendering(default_storage_class="gone"))
    assert str(raised.value) == 'StorageClass "gone" not found; create it or correct spec.disks'


def test_the_place_of_a_missing_class_is_its_disk() -> None:
    disks = [{"name": "a", "size": "1Gi", "storageClass": "there"}, {"name": "b", "size": "1Gi", "storageClass": "gone"}]
    world = ObjectSet([storage_class("there", default="true")], complete=True)
    (error,) = unmet(machine(small(disks=disks)), world, Rendering())
    assert (error.name, error.path) == ("gone", ("spec", "disks", 1, "storageClass"))


def test_everything_that_is_missing_at_once() -> None:
    disks = [{"name": "root", "storageClass": "fast"}]
    spec = small(disks=disks, networks=[CARD], cloudInit={"secretRef": {"name": "keys"}})
    found = unmet(machine(spec), ObjectSet(complete=True), Rendering())
    assert [error.error_type for error in found] == ["NetworkConfigurationNotFound", "StorageClassNotFound", "SecretNotFound"]
    assert [error.error_type for error in unmet(machine({"template": "huge"}), ObjectSet(complete=True), Rendering())] == [
        "TemplateNotFound"
    ]
    assert unmet(machine(small()), ObjectSet([storage_class("a", default="true")], complete=True), Rendering()) == ()

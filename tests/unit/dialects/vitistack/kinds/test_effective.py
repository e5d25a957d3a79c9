"""A machine over its template: docs/spec/vitistack.md section 2.1, case by case."""

from typing import Any

import pytest

from paddock.dialects.vitistack.kinds.effective import Effective, EffectiveDisk, effective, root_index
from paddock.dialects.vitistack.kinds.fields import MachineCpu, MachineDisk, MachineMemory, MachineResources
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.templates import BUILT_IN, MachineTemplateSpec
from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.kind import AdmissionSettings

OWN = MachineTemplateSpec(
    resources=MachineResources(memory=MachineMemory(size="3Gi")),
    disks=[
        MachineDisk(name="root", size="10Gi", storageClass="gold", accessMode="ReadWriteMany", volumeMode="Block"),
        MachineDisk(name="log", size="1Gi"),
    ],
)


def merged(spec: dict[str, Any], base: MachineTemplateSpec | None = None) -> Effective:
    metadata = {"name": "web"}
    admission = admit({"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": metadata, "spec": spec}, AdmissionSettings())
    assert admission.accepted, admission.findings
    assert isinstance(admission.value, Machine)
    value = admission.value.spec
    return effective(value.resources, value.disks, base or BUILT_IN.get(value.template or ""))


def sizes(found: Effective) -> list[tuple[str, int | str | None]]:
    return [(disk.name, disk.size) for disk in found.disks]


@pytest.mark.parametrize(
    ("template", "cores", "memory", "root"), [("small", 1, "2Gi", "20Gi"), ("medium", 2, "4Gi", "40Gi"), ("large", 4, "8Gi", "80Gi")]
)
@pytest.mark.spec("vitistack", 1)
def test_a_template_alone(template: str, cores: int, memory: str, root: str) -> None:
    disk = EffectiveDisk("root", root, "default", "ReadWriteOnce", None)
    assert merged({"template": template}) == Effective(cores, 1, 1, memory, (disk,))


@pytest.mark.spec("vitistack", 6)
def test_processors_and_memory_over_a_template() -> None:
    found = merged({"template": "medium", "resources": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}}})
    assert (found.cores, found.threads, found.sockets, found.memory) == (4, 1, 1, "8Gi")
    assert sizes(found) == [("root", "40Gi")]


@pytest.mark.spec("vitistack", 11)
def test_processors_are_overridden_field_by_field() -> None:
    found = merged({"template": "medium", "resources": {"cpu": {"threads": 2}}})
    assert (found.cores, found.threads, found.sockets) == (2, 2, 1)
    found = merged({"template": "medium", "resources": {"cpu": {"sockets": 3}}})
    assert (found.cores, found.threads, found.sockets, found.memory) == (2, 1, 3, "4Gi")


@pytest.mark.parametrize(
    ("disks", "expected"),
    [
        pytest.param(
            [{"name": "data", "size": "100Gi"}],
            [("root", "20Gi"), ("data", "100Gi")],
            marks=pytest.mark.spec("vitistack", 7),
            id="a new disk",
        ),
        pytest.param([{"name": "root", "size": "50Gi"}], [("root", "50Gi")], marks=pytest.mark.spec("vitistack", 8), id="another size"),
        pytest.param(
            [{"name": "b", "size": "1Gi"}, {"name": "root", "size": "30Gi"}, {"name": "a", "size": "2Gi"}],
            [("root", "30Gi"), ("b", "1Gi"), ("a", "2Gi")],
            marks=pytest.mark.spec("vitistack", 10),
            id="the template's first, then as written",
        ),
    ],
)
def test_disks_merge_by_name(disks: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    assert sizes(merged({"template": "small", "disks": disks})) == expected


@pytest.mark.spec("vitistack", 9)
def test_the_rest_of_a_template_disk_stays() -> None:
    (root,) = merged({"template": "small", "disks": [{"name": "root", "storageClass": "fast"}]}).disks
    assert root == EffectiveDisk("root", "20Gi", "fast", "ReadWriteOnce", None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, EffectiveDisk("root", "10Gi", "gold", "ReadWriteMany", "Block")),
        ({"size": "20Gi"}, EffectiveDisk("root", "20Gi", "gold", "ReadWriteMany", "Block")),
        ({"storageClass": "fast"}, EffectiveDisk("root", "10Gi", "fast", "ReadWriteMany", "Block")),
        ({"storageClass": ""}, EffectiveDisk("root", "10Gi", "gold", "ReadWriteMany", "Block")),
        ({"accessMode": "ReadWriteOnce"}, EffectiveDisk("root", "10Gi", "gold", "ReadWriteOnce", "Block")),
        ({"volumeMode": "Filesystem"}, EffectiveDisk("root", "10Gi", "gold", "ReadWriteMany", "Filesystem")),
    ],
)
def test_each_field_of_a_disk_is_overridden_alone(fields: dict[str, Any], expected: EffectiveDisk) -> None:
    found = merged({"template": "own", "disks": [{"name": "root", **fields}]}, OWN)
    assert found.disks == (expected, EffectiveDisk("log", "1Gi", "default", "ReadWriteOnce", None))
    assert (found.cores, found.memory) == (1, "3Gi")


@pytest.mark.spec("vitistack", 12, 20, 21)
def test_without_a_template_the_defaults_hold() -> None:
    found = merged({"resources": {"memory": {"size": "1Gi"}}, "disks": [{"name": "sys", "size": "5Gi"}]})
    assert found == Effective(1, 1, 1, "1Gi", (EffectiveDisk("sys", "5Gi", "default", "ReadWriteOnce", None),))


@pytest.mark.parametrize(("names", "index"), [([], None), (["a", "b"], 0), (["a", "root"], 1)])
def test_the_root_disk(names: list[str], index: int | None) -> None:
    assert root_index(names) == index
    found = Effective(1, 1, 1, "1Gi", tuple(EffectiveDisk(name, "1Gi", "default", "ReadWriteOnce", None) for name in names))
    assert found.root == (None if index is None else found.disks[index])


def test_nothing_given_is_borne() -> None:
    assert effective(None, [MachineDisk()], None) == Effective(1, 1, 1, None, (EffectiveDisk("", None, "default", "ReadWriteOnce", None),))
    assert effective(MachineResources(cpu=MachineCpu()), [], None) == Effective(1, 1, 1, None, ())

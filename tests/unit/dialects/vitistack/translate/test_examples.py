"""The document's own examples, to the letter (docs/spec/vitistack.md sections 2.4 to 2.7)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.translate import to_kubevirt
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.vitistack.translate.making import storage_class, typed

HERE = Path(__file__).parent
EXAMPLES = Path("src/paddock/dialects/vitistack/examples")
UIDS = {
    "basic-vm": "11111111-0000-4000-8000-000000000001",
    "custom-vm": "11111111-0000-4000-8000-000000000002",
    "networked-vm": "11111111-0000-4000-8000-000000000003",
    "cloud-init-vm": "11111111-0000-4000-8000-000000000004",
    "prod-network": "uid-of-prod",
    "storage-network": "uid-of-storage",
}
CLUSTER = ObjectSet([storage_class("standard", default="true"), storage_class("fast-ssd")], complete=True)


def documents(path: Path) -> Iterator[dict[str, Any]]:
    for raw in yaml.safe_load_all(path.read_text()):
        raw["metadata"]["uid"] = UIDS.get(raw["metadata"]["name"], "other")
        yield raw


@pytest.mark.parametrize(
    ("file", "golden"),
    [
        pytest.param("basic", "basic-vm", marks=pytest.mark.spec("vitistack", 2)),
        pytest.param("overrides", "custom-vm", marks=pytest.mark.spec("vitistack", 3)),
        pytest.param("networked", "networked-vm", marks=pytest.mark.spec("vitistack", 4)),
        pytest.param("cloud-init", "cloud-init-vm", marks=pytest.mark.spec("vitistack", 5)),
    ],
)
def test_worked_examples(file: str, golden: str) -> None:
    given = [typed(raw) for raw in documents(EXAMPLES / f"{file}.yaml")]
    (machine,) = (each for each in given if isinstance(each, Machine))
    made = to_kubevirt(machine, ObjectSet([*given, *CLUSTER.all(Resource)], complete=True), Rendering(product="vm-control-plane"))
    assert [to_data(each) for each in made.value] == list(yaml.safe_load_all((HERE / f"{golden}.yaml").read_text()))
    assert made.losses == ()


def all_machines() -> list[Any]:
    return [
        pytest.param(path, raw["metadata"]["name"], id=f"{path.stem}-{raw['metadata']['name']}")
        for path in sorted(EXAMPLES.glob("*.yaml"))
        for raw in yaml.safe_load_all(path.read_text())
        if raw["kind"] == "Machine"
    ]


@pytest.mark.parametrize(("path", "name"), all_machines())
def test_every_example_becomes_objects_that_are_good_themselves(path: Path, name: str) -> None:
    given = [typed(raw) for raw in documents(path)]
    (machine,) = (each for each in given if isinstance(each, Machine) and each.metadata.name == name)
    made = to_kubevirt(machine, ObjectSet([*given, *CLUSTER.all(Resource)], complete=True), Rendering())
    for each in made.value:
        typed(to_data(each))


@pytest.mark.parametrize(("path", "name"), all_machines())
def test_the_same_input_gives_the_same_bytes(path: Path, name: str) -> None:
    def once() -> bytes:
        given = [typed(raw) for raw in documents(path)]
        (machine,) = (each for each in given if isinstance(each, Machine) and each.metadata.name == name)
        return msgspec.json.encode(to_kubevirt(machine, ObjectSet(given), Rendering()).value)

    assert once() == once()


def test_without_a_cluster_references_are_taken_at_their_word() -> None:
    (raw,) = (raw for raw in documents(EXAMPLES / "networked.yaml") if raw["kind"] == "Machine")
    machine = typed(raw)
    assert isinstance(machine, Machine)
    made = to_kubevirt(machine, ObjectSet(), Rendering())
    claim, vm = (to_data(each) for each in made.value)
    assert "storageClassName" not in claim["spec"]
    assert [each["multus"]["networkName"] for each in vm["spec"]["template"]["spec"]["networks"]] == ["prod-network", "storage-network"]
    assert [(loss.field, loss.value) for loss in made.losses] == [
        ("spec.networks[0].networkName", "prod-network"),
        ("spec.networks[1].networkName", "storage-network"),
    ]

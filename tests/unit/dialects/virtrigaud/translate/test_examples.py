"""The examples and every kind, translated as a whole: what reviewers read when a mapping changes."""

from pathlib import Path

import pytest

import paddock.dialects.virtrigaud
from paddock.dialects import translators as catalog
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.translate import from_kubevirt, to_kubevirt
from paddock.kubernetes import catalog as kinds
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.write import to_yaml
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss, Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from tests.golden import Golden

EXAMPLES = Path(paddock.dialects.virtrigaud.__file__).parent / "examples"
GROUP = "infra.virtrigaud.io"
OTHERS = ("VMSet", "VMSnapshot", "VMClone", "VMMigration", "VMPlacementPolicy")


def objects(*files: str) -> list[Resource]:
    made = []
    for file in files:
        for document in load((EXAMPLES / f"{file}.yaml").read_bytes(), file):
            value = admit(document.data, AdmissionSettings()).value
            assert isinstance(value, Resource)
            made.append(value)
    return made


def written(translated: Translated[tuple[Resource, ...]]) -> str:
    """The objects, and the losses as comments."""
    lost = "".join(f"# {told(loss)}\n" for loss in translated.losses)
    return lost + to_yaml([to_data(each) for each in translated.value])


def told(loss: Loss) -> str:
    return f"{loss.of} {loss.field}: {loss.why}; {loss.instead}"


def machine_of(scene: list[Resource], name: str) -> VirtrigaudVirtualMachine:
    return next(each for each in scene if isinstance(each, VirtrigaudVirtualMachine) and each.metadata.name == name)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (("documented",), "web-server"),
        (("local",), "debian"),
        (("virtualmachine", "classes", "images", "networks", "providers"), "database"),
    ],
    ids=["documented", "local", "database"],
)
def test_an_example_there_and_back(files: tuple[str, ...], name: str, golden: Golden) -> None:
    scene = objects(*files)
    there = to_kubevirt(machine_of(scene, name), ObjectSet(scene), Rendering())
    golden(f"{name}.golden.yaml", written(there))
    machine = there.value[-1]
    assert isinstance(machine, Machine)
    back = from_kubevirt(machine, ObjectSet(there.value), Rendering())
    golden(f"{name}.back.golden.yaml", written(back))


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_machine_becomes_nothing_and_says_so(kind: str) -> None:
    scene = [each for file in EXAMPLES.glob("*.yaml") for each in objects(file.stem)]
    each = next(each for each in scene if each.kind == kind)
    translated = to_kubevirt(each, ObjectSet(scene), Rendering())
    assert translated.value == ()
    (loss,) = translated.losses
    assert (loss.of, loss.field) == (f"{kind}/{each.metadata.name}", "")
    assert loss.why
    assert loss.instead


def test_each_kind_is_taken_or_is_read_for_a_machine() -> None:
    described = {"VMClass", "VMImage", "VMNetworkAttachment", "Provider"}
    known = {name for group, name in kinds.known() if group == GROUP}
    assert known == {"VirtualMachine", *OTHERS, *described}
    assert {name for name in known if catalog.taken_by(GROUP, name)} == {"VirtualMachine", *OTHERS}

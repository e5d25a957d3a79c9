"""The feature gates of KubeVirt that machines of Stakater, Vitistack and VirtRigaud can need: every value of every field is tried."""

from collections.abc import Iterator

import pytest

from paddock.base.errors import PaddockError
from paddock.dialects import translators as translators
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.rules.gates import needs
from paddock.kubevirt.rules.place import MachinePlace
from tests.kit.declarations import documents
from tests.unit.dialects.test_every_field import KINDS, SETTINGS, Json, admitted, examples, is_field, with_value

# The controllers of Stakater and Vitistack check no gates but this one, for which plan/stakater/plugins.py has a fallback; the
# driver of VirtRigaud checks all.
NEEDED = {
    "stakater": {"NetworkBindingPlugins"},
    "vitistack": {"MultiArchitecture"},
    "virtrigaud": {"GPU", "MultiArchitecture", "VMPersistentState"},
}


def changed(dialect: str) -> Iterator[tuple[Json, tuple[Json, ...]]]:
    """Yield documents in which every field has a value, each with the other examples."""
    for group, name in KINDS[dialect]:
        kind = catalog.find(group, name)
        assert kind is not None
        base = next(each for each in examples(dialect) if each["kind"] == name and each["apiVersion"].startswith(group))
        others = tuple(each for each in examples(dialect) if each is not base)
        for place in filter(is_field, documents.places(kind)):
            for value in (documents.full(place.shape), *(documents.valid(place.shape, number) for number in range(2))):
                document = with_value(base, place, value)
                if document is not None:
                    yield document, others


def machines(dialect: str, document: Json, others: tuple[Json, ...]) -> Iterator[VirtualMachine]:
    """Yield the machines of KubeVirt that a document becomes, or those that may refer to it."""
    value = admission.admit(document, SETTINGS).value
    if not isinstance(value, Resource):
        return
    world = ObjectSet([*(admitted(dialect)[id(each)] for each in others), value])
    fronts = [value] if is_machine(dialect, document) else [admitted(dialect)[id(each)] for each in others if is_machine(dialect, each)]
    for each in fronts:
        try:
            found = translators.to_kubevirt(dialect)(each, world, Rendering()).value
        except (PaddockError, ValueError, AttributeError, TypeError):
            continue
        yield from (made for made in found if isinstance(made, VirtualMachine))


def is_machine(dialect: str, document: Json) -> bool:
    return translators.taken_by(document["apiVersion"].rpartition("/")[0], document["kind"]) == dialect


@pytest.mark.parametrize("dialect", NEEDED)
def test_the_gates_that_a_dialect_can_need(dialect: str) -> None:
    found, seen = set(), 0
    for document, others in changed(dialect):
        for each in machines(dialect, document, others):
            seen += 1
            found |= {need.gate for need in needs(MachinePlace(spec=each.spec, path=("spec",)).hardware)}
    assert found == NEEDED[dialect]
    assert seen > 50

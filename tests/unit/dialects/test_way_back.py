"""A dialect's fields come back: its translator from KubeVirt never reports a field of its own as missing.

A field that is added to a declaration and to the way to KubeVirt, but not to the way back, is found here.
"""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from paddock.base.errors import PaddockError
from paddock.dialects import translators as translators
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import format_path
from tests.kit.declarations import documents
from tests.unit.dialects.test_every_field import SETTINGS, admitted, candidates, examples, is_field, with_value

Json = dict[str, Any]
MACHINES = {
    "stakater": ("infrastructure.stakater.com", "VirtualMachine"),
    "virtrigaud": ("infra.virtrigaud.io", "VirtualMachine"),
    "vitistack": ("vitistack.io", "Machine"),
}
NO_FIELD = "has no field for it"


def without_field(dialect: str, document: Json, base: Json) -> set[str]:
    """The fields of KubeVirt's machine for which the way back names no field of the dialect."""
    found = admission.admit(document, SETTINGS)
    if not found.accepted:
        return set()
    made: list[Any] = [found.value, *(admitted(dialect)[id(each)] for each in examples(dialect) if each is not base)]
    try:
        result = translators.to_kubevirt(dialect)(found.value, ObjectSet(reversed(made)), Rendering())
    except PaddockError:
        return set()
    machines = [each for each in result.value if each.kind == "VirtualMachine"]
    back = translators.from_kubevirt(dialect)
    losses = [loss for each in machines for loss in back(each, ObjectSet([*result.value, *made]), Rendering()).losses]
    return {loss.field for loss in losses if loss.why.endswith(NO_FIELD)}


def changed(dialect: str) -> Iterator[tuple[str, Json, Json]]:
    """Every example of a machine with every value to try in every field: the field, the document, the example."""
    group, name = MACHINES[dialect]
    kind = catalog.find(group, name)
    assert kind is not None
    fields = [place for place in documents.places(kind) if is_field(place)]
    for base in (each for each in examples(dialect) if each["kind"] == name and each["apiVersion"].startswith(group)):
        if "provider" in base["spec"]:
            # Vitistack's own form has fields that the document's has not; its way back is in vitistack/test_ownform.py.
            continue
        yield "", copy.deepcopy(base), base
        for place in fields:
            for value in candidates(place):
                if (document := with_value(base, place, value)) is not None:
                    yield format_path(place.path), document, base


@pytest.mark.parametrize("dialect", MACHINES)
def test_every_field_comes_back(dialect: str) -> None:
    assert {field: lost for field, *pair in changed(dialect) if (lost := without_field(dialect, *pair))} == {}

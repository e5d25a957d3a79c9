"""Every field there is: it changes the result, or its loss is told. Read off the declarations, so that none can be forgotten."""

from typing import Any

import pytest

from paddock.base.errors import PaddockError
from paddock.dialects.virtrigaud.translate import to_kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.finding import Path, format_path
from paddock.kubernetes.schema.kind import Kind
from tests.kit.declarations import documents
from tests.unit.dialects.virtrigaud.translate.making import Made, raw, secret, typed

GROUP = "infra.virtrigaud.io"
KINDS = ("VirtualMachine", "VMClass", "VMImage", "VMNetworkAttachment")
NESTED = shape.ObjectShape | shape.ListShape | shape.MapShape
# On is what nothing means.
ELSEWHERE = {("VirtualMachine", "spec.powerState")}


def kind_of(name: str) -> Kind:
    found = catalog.find(GROUP, name)
    assert found is not None
    return found


def places(kind: str) -> dict[Path, documents.Place]:
    return {place.path: place for place in documents.places(kind_of(kind)) if place.path[:1] == ("spec",)}


PLACES = {kind: places(kind) for kind in KINDS}
LEAVES = [
    (kind, place)
    for kind, found in PLACES.items()
    for place in found.values()
    if not isinstance(place.shape, NESTED) and (kind, format_path(place.path)) not in ELSEWHERE
]


def spoken(kind: str, place: documents.Place) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two documents that differ in one field only: one says something that is not its default, one says nothing or another thing."""
    outer, default = place.outer, shape.ABSENT
    if isinstance(outer, shape.ObjectShape):
        default = outer.properties[str(place.path[-1])].default
    values = [True, False] if isinstance(place.shape, shape.BooleanShape) else [documents.valid(place.shape, number) for number in range(3)]
    first, *others = [value for value in values if value != default]
    if not isinstance(outer, shape.ObjectShape):
        return place.wrap(first), PLACES[kind][place.path[:-1]].wrap(documents.NOTHING)
    if place.shape.field.required:
        return place.wrap(first), place.wrap(next((value for value in others if value != first), "3Gi"))
    return place.wrap(first), place.wrap(documents.NOTHING)


def translated(kind: str, document: dict[str, Any]) -> Made | str:
    """Return the translation of a scene with this object in it; the error when there is none."""
    objects = {name: typed(raw(name)) for name in (*KINDS, "Provider") if name != kind}
    declared = kind_of(kind)
    spec = document["spec"]
    if kind == "VirtualMachine" and "importedDisk" not in spec:
        spec.setdefault("imageRef", {"name": "debian"})
    document = {**document, "metadata": raw(kind)["metadata"]}
    objects[kind] = from_data(check(declared.cls, document).value, declared.cls)
    vm = objects["VirtualMachine"]
    world = ObjectSet([*objects.values(), *referred(vm), *secrets(objects)])
    try:
        return Made(to_kubevirt(vm, world, Rendering()))
    except PaddockError as error:
        return str(error)


def referred(vm: Any) -> list[Any]:
    """Return the names that a machine refers to and the scene lacks."""
    refs = [("Provider", vm.spec.providerRef), ("VMClass", vm.spec.classRef), ("VMImage", vm.spec.imageRef)]
    refs += [("VMNetworkAttachment", card.networkRef) for card in vm.spec.networks or ()]
    known = {"local", "small", "debian", "lan"}
    return [
        typed(raw(kind, {"metadata.namespace": ref.namespace or "default"}, ref.name))
        for kind, ref in refs
        if ref is not None and (ref.name not in known or ref.namespace)
    ]


def secrets(objects: dict[str, Any]) -> list[Any]:
    """A Secret of every name that somebody gives one."""
    found = set()
    for each in objects.values():
        for path, value in documents_leaves(to_data(each)):
            if len(path) > 1 and path[-2] in ("secretRef", "pullSecretRef") and path[-1] == "name":
                found.add(value)
    keys = {"userdata": "#!/bin/sh\n", "metadata": "a: b\n", "username": "c", "password": "d", "token": "e", "tls.crt": "f", "tls.key": "g"}
    return [secret(name, **keys) for name in sorted(found)]


def documents_leaves(data: Any, path: Path = ()) -> Any:
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from documents_leaves(value, (*path, key))
    else:
        yield path, data


@pytest.mark.parametrize(("kind", "place"), LEAVES, ids=lambda each: each if isinstance(each, str) else format_path(each.path))
def test_a_field_is_in_the_result_or_lost(kind: str, place: documents.Place) -> None:
    with_it, without_it = spoken(kind, place)
    result, before = translated(kind, with_it), translated(kind, without_it)
    if isinstance(result, str) or isinstance(before, str):
        assert result != before
        return
    if [to_data(each) for each in result.resources] == [to_data(each) for each in before.resources]:
        of = f"{kind}/{raw(kind)['metadata']['name']}"
        lost = [loss.path for loss in result.losses if loss.of == of]
        assert any(place.path[: len(path)] == path for path in lost), (with_it["spec"], lost)


def test_there_are_many() -> None:
    assert len(LEAVES) > 200

"""No field of a dialect is translated into nothing.

For every field of a front kind there is a machine for which another value of that field makes another outcome: other objects, a
named loss, or a refusal. A translator that stops reading a field makes both outcomes the same, and this suite names the field.
"""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from paddock.base.errors import PaddockError
from paddock.dialects import translators as translators
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.finding import Path, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.kit.declarations import documents
from tests.kit.declarations.documents import NOTHING, Place

Json = dict[str, Any]
SETTINGS = AdmissionSettings()
KINDS = {
    "stakater": [("infrastructure.stakater.com", "VirtualMachine")],
    "vitistack": [("vitistack.io", kind) for kind in ("Machine", "MachineTemplate", "NetworkConfiguration")],
    "virtrigaud": [("infra.virtrigaud.io", kind) for kind in ("VirtualMachine", "VMClass", "VMImage", "VMNetworkAttachment")],
    "kubermatic": [("kubevirt.io", "VirtualMachinePool"), ("cdi.kubevirt.io", "DataSource")],
}
# What examples cannot show, and why. Each has a test of its own beside its translator.
_CERTIFICATE = "spec.virtualMachineTemplate.spec.dataVolumeTemplates[0].spec.source.http.certConfig"
SEEN_ELSEWHERE = {
    ("virtrigaud", "VirtualMachine"): {"spec.metaData.cloudInit.secretRef.name": "no example has such a Secret"},
    ("virtrigaud", "VMImage"): {"spec.source.http.authentication.bearer.tokenKey": "no example has such a Secret"},
    ("vitistack", "Machine"): {"spec.cloudInit.networkDataConfigMapRef.key": "no example has such a ConfigMap"},
    ("kubermatic", "VirtualMachinePool"): {
        f"{_CERTIFICATE}.{member}.secretRef.name": "client certificates are refused, whatever their names" for member in ("cert", "key")
    },
}
FIELDS = [(dialect, *kind) for dialect, kinds in KINDS.items() for kind in kinds]


@cache
def examples(dialect: str) -> tuple[Json, ...]:
    """The examples of a dialect."""
    folder = catalog.folder(dialect) / "examples"
    return tuple(each.data for file in sorted(folder.glob("*.yaml")) for each in load(file.read_bytes(), str(file)))


@cache
def admitted(dialect: str) -> dict[int, Any]:
    """The examples of a dialect as objects, by the identity of their data, which lives as long as this table."""
    return {id(each): admission.admit(each, SETTINGS).value for each in examples(dialect)}


def outcome(dialect: str, changed: Json, others: tuple[Json, ...]) -> str | None:
    """Everything that becomes of a dialect's objects, one of which is changed; None when the change cannot be translated at all."""
    made: list[Any] = [admission.admit(changed, SETTINGS).value, *(admitted(dialect)[id(each)] for each in others)]
    world = ObjectSet(reversed(made))
    said = []
    for each, document in zip(made, (changed, *others), strict=True):
        group = document["apiVersion"].rpartition("/")[0]
        if translators.taken_by(group, document["kind"]) == dialect:
            one = _translated(dialect, each, world)
            if one is None:
                return None
            said.append(one)
    return repr(said)


def _translated(dialect: str, value: Any, world: ObjectSet) -> str | None:
    try:
        result = translators.to_kubevirt(dialect)(value, world, Rendering())
    except PaddockError as error:
        return f"refused: {error}"
    except Exception:
        return None
    return repr(([to_data(each) for each in result.value], result.losses))


def candidates(place: Place) -> Iterator[Any]:
    """Values to try at a place, and no value."""
    yield NOTHING
    for number in range(4):
        yield documents.valid(place.shape, number)
    yield documents.full(place.shape)
    if isinstance(place.shape, shape.BooleanShape):
        yield False
    if isinstance(place.shape, shape.QuantityShape):
        yield from ("2Gi", "4", "300Gi")


def over(base: Any, made: Any, path: Path) -> Any:
    """A document with what another one has along a path, and what goes with it."""
    if isinstance(base, dict) and isinstance(made, dict):
        more = {key: over(base[key], value, path[1:]) for key, value in made.items() if path and key == path[0] and key in base}
        return {**made, **base, **more}
    if isinstance(base, list) and isinstance(made, list) and base and made:
        return [over(base[0], made[0], path[1:]), *base[1:]]
    return made


def with_value(base: Json, place: Place, value: Any) -> Json | None:
    """The document with another value at a place; parents that are missing are made."""
    made: Any = copy.deepcopy(base)
    here = made
    for part in place.path[:-1]:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            laid: Json = over(base, place.wrap(value), place.path)
            return laid
    last = place.path[-1]
    if isinstance(here, list):
        if value is NOTHING:
            here[:1] = []
        else:
            here[:1] = [value]
    elif value is NOTHING:
        here.pop(last, None)
    else:
        here[last] = value
    return made  # type: ignore[no-any-return]


def matters(dialect: str, place: Place, bases: list[Json]) -> bool:
    """Return whether there is a machine that changes with a field."""
    for base in bases:
        others = tuple(each for each in examples(dialect) if each is not base)
        seen = set()
        for value in candidates(place):
            document = with_value(base, place, value)
            said = None if document is None else outcome(dialect, document, others)
            if said is not None:
                seen.add(said)
            if len(seen) > 1:
                return True
    return False


def is_field(place: Place) -> bool:
    """Return whether a place holds a value of the spec that is not made of others."""
    return place.path[:1] == ("spec",) and not isinstance(place.shape, shape.ObjectShape | shape.ListShape | shape.MapShape)


def unread(dialect: str, group: str, name: str) -> list[str]:
    """The fields of a kind that make no difference to any machine."""
    kind = catalog.find(group, name)
    assert kind is not None
    of_kind = [each for each in examples(dialect) if each["kind"] == name and each["apiVersion"].startswith(group)]
    bases = [*of_kind, documents.least(kind)]
    fields = (place for place in documents.places(kind) if is_field(place))
    return [format_path(place.path) for place in fields if not matters(dialect, place, bases)]


@pytest.mark.parametrize(("dialect", "group", "name"), FIELDS, ids="-".join)
def test_every_field_makes_a_difference(dialect: str, group: str, name: str) -> None:
    assert set(unread(dialect, group, name)) == set(SEEN_ELSEWHERE.get((dialect, name), {}))


@pytest.mark.parametrize("field", ["memory", "cpu", "storage", "cloudInit", "additionalDisks", "networks", "sshPublicKey", "service"])
def test_a_translator_that_does_not_read_a_field_is_found(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    group, name = KINDS["stakater"][0]
    seeing = translators.to_kubevirt("stakater")
    kind = catalog.find(group, name)
    assert kind is not None
    least = admission.admit(examples("stakater")[0], SETTINGS).value.spec.parameters  # type: ignore[union-attr]

    def blind(vm: Any, world: ObjectSet, rendering: Rendering) -> Any:
        parameters = msgspec.structs.replace(vm.spec.parameters, **{field: getattr(least, field)})
        return seeing(msgspec.structs.replace(vm, spec=msgspec.structs.replace(vm.spec, parameters=parameters)), world, rendering)

    monkeypatch.setattr(translators, "to_kubevirt", lambda dialect: blind)
    found = unread("stakater", group, name)
    assert any(each.startswith(f"spec.parameters.{field}") for each in found)

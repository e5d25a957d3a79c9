"""What `plan` says of a change of a class, an image or a network is what the controllers do with it, field by field."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from paddock.dialects.virtrigaud.plan import predictions, requests, resizing, unread
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.schema.finding import format_path
from paddock.kubevirt.plan.changes import table
from paddock.kubevirt.plan.changes.effects import Effect, EffectRow
from tests.kit.declarations import documents
from tests.kit.declarations.documents import Place
from tests.unit.dialects.test_every_field import SETTINGS, is_field
from tests.unit.dialects.virtrigaud.plan import made

GROUP = "infra.virtrigaud.io"
KINDS = ("VMClass", "VMImage", "VMNetworkAttachment")
KEPT = "changes no machine"
NEW_ONLY = ("counts when a machine", "new ones are made from it", "counts when a Provider prepares the image")


def changes(kind: str) -> Iterator[tuple[Place, Any, Any]]:
    """Each field of a kind with an object before and after a change of it."""
    found = catalog.find(GROUP, kind)
    assert found is not None
    for place in documents.places(found):
        if not is_field(place):
            continue
        pair = [admission.admit(copy.deepcopy(place.wrap(documents.valid(place.shape, number))), SETTINGS).value for number in (0, 1)]
        if place.path == ("spec", "memory"):
            pair = [admission.admit(copy.deepcopy(place.wrap(value)), SETTINGS).value for value in ("1Gi", "2Gi")]
        if pair[0] is not None and pair[1] is not None:
            yield place, pair[0], pair[1]


def said(kind: str, place: Place) -> Any:
    found = catalog.find(GROUP, kind)
    assert found is not None
    return table.row_for(found, tuple(each for each in place.path if isinstance(each, str)))


def is_true(row: EffectRow) -> bool:
    """Return whether a row says that a field reaches machines: those that exist, or those that are made."""
    return row.effect is not Effect.NONE or any(each in row.why for each in NEW_ONLY)


@pytest.mark.spec("virtrigaud", 144)
@pytest.mark.parametrize("kind", KINDS)
def test_plan_has_words_for_every_field_and_none_of_them_lies(kind: str) -> None:
    wrong = []
    for place, _, _ in changes(kind):
        row = said(kind, place)
        path = format_path(tuple("" if isinstance(each, int) else each for each in place.path))
        is_kept = unread.is_below(path, tuple(unread.STORED.get(kind, {})))
        if row is None or is_kept != (KEPT in row.why) or not (is_kept or is_true(row)):
            wrong.append((path, row and row.why))
    assert wrong == []


@pytest.mark.spec("virtrigaud", 144)
def test_a_class_changes_machines_that_exist_where_plan_says_so_and_nowhere_else() -> None:
    wrong = []
    kind = catalog.find(GROUP, "VMClass")
    assert kind is not None
    vm = made.machine(status={"id": "vm-1"})
    for place, old, new in changes("VMClass"):
        current = resizing.wanted(vm, old)
        decided = resizing.decide(current, vm, new, predictions._EVERYTHING, running=True)
        reaches = bool(decided.request or decided.pending)
        row = said("VMClass", place)
        predicted = predictions.predict_class(old, new, place.path)
        effect = predicted[0] if predicted is not None else row.effect
        if reaches != (effect is not Effect.NONE) and old != new:
            wrong.append((format_path(place.path), effect, reaches))
    assert wrong == []


@pytest.mark.spec("virtrigaud", 144)
@pytest.mark.parametrize("member", [{"iops": 500}, {"storageClass": "fast"}, {"size": "80Gi"}, {"type": "thick"}])
def test_what_counts_for_new_machines_stands_in_their_requests(member: dict[str, Any]) -> None:
    vm = made.machine()
    plain, other = (requests.create(vm, made.found(vm, made.vmclass(diskDefaults=each)), None) for each in ({}, member))
    assert plain.class_json != other.class_json

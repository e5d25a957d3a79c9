"""The used and the unused values of a translation: views, records, and worlds of both."""

from typing import Annotated, Any

import msgspec
import pytest

from paddock.kubernetes.meta.fieldrecord import UNREAD, FieldRecord, RecordedWorld
from paddock.kubernetes.meta.fieldview import is_view, viewed, whole
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.redaction import HIDDEN
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.field import Empty, Field, Object


class Card(Object):
    name: Annotated[str, Field("Name.", required=True)] = ""
    model: Annotated[str, Field("Model.")] = "virtio"
    note: Annotated[str | None, Field("Note.", secret=True)] = None


class Part(Object):
    size: Annotated[int | None, Field("Size.")] = None
    color: Annotated[str | None, Field("Color.")] = None
    switch: Annotated[Empty | None, Field("Switch.")] = None


class Spec(Object):
    part: Annotated[Part | None, Field("Part.")] = None
    cards: Annotated[list[Card], Field("Cards.")] = []
    tags: Annotated[list[str], Field("Tags.")] = []
    labels: Annotated[dict[str, str], Field("Labels.")] = {}


class Thing(Resource):
    spec: Annotated[Spec, Field("Spec.")] = Spec()


def thing(**spec: Any) -> Thing:
    return Thing(apiVersion="v1", kind="Thing", metadata=ObjectMeta(name="a"), spec=msgspec.convert(spec, Spec))


def lost(record: FieldRecord[Any]) -> dict[str, Any]:
    return {loss.field: loss.value for loss in record.settle()}


def test_what_is_read_is_no_loss() -> None:
    record = FieldRecord(thing(part={"size": 1, "color": "red"}, tags=["x"]))
    spec = record.view.spec
    assert spec.part is not None
    assert (spec.part.size, spec.part.color, spec.tags) == (1, "red", ["x"])
    assert record.settle() == ()


def test_what_nobody_reads_is_a_loss_without_a_reason() -> None:
    record = FieldRecord(thing(part={"size": 1, "color": "red"}))
    assert record.view.spec.part is not None and record.view.spec.part.size == 1
    (loss,) = record.settle()
    assert (loss.of, loss.field, loss.value, (loss.why, loss.instead), loss.unread) == ("Thing/a", "spec.part.color", "red", UNREAD, True)
    assert record.settle() == (loss,)


def test_a_reason_is_told_and_the_loss_is_known() -> None:
    record = FieldRecord(thing(part={"size": 1}), ((("spec", "part"), ("why", "instead")),))
    assert record.view is record.view
    (loss,) = record.settle()
    assert (loss.field, loss.value, loss.why, loss.instead, loss.unread) == ("spec.part", {"size": 1}, "why", "instead", False)


@pytest.mark.parametrize("spec", [{}, {"cards": []}, {"labels": {}}, {"part": None}], ids=str)
def test_what_says_nothing_is_no_loss(spec: dict[str, Any]) -> None:
    record = FieldRecord(thing(**spec))
    assert record.view.spec is not None
    assert record.settle() == ()


def test_a_default_that_is_spelled_out_is_no_loss() -> None:
    record = FieldRecord(thing(cards=[{"name": "a", "model": "virtio"}]))
    assert [each.name for each in record.view.spec.cards] == ["a"]
    assert record.settle() == ()


def test_the_outermost_value_is_told() -> None:
    record = FieldRecord(thing(part={"size": 1, "switch": {}}, cards=[{"name": "a"}, {"name": "b", "model": "e1000"}]))
    assert record.view.spec.cards[1].name == "b"
    assert record.view.spec.part is not None
    assert lost(record) == {"spec.part": {"size": 1, "switch": {}}, "spec.cards[0]": {"name": "a"}, "spec.cards[1].model": "e1000"}


def test_an_object_whose_presence_is_its_word() -> None:
    record = FieldRecord(thing(part={"size": 1, "switch": {}}))
    assert record.view.spec.part is not None and record.view.spec.part.size == 1
    assert lost(record) == {"spec.part.switch": {}}
    assert record.view.spec.part.switch is not None


def test_what_looks_at_all_members_reads_them() -> None:
    for read in (lambda part: part == Part(), lambda part: Part(size=1) == part, hash, whole):
        record = FieldRecord(thing(part={"size": 1, "color": "red"}))
        read(record.view.spec.part)
        assert record.settle() == ()


def test_a_view_equals_what_it_views() -> None:
    part = Part(size=1, color="red")
    view = viewed(part)
    assert is_view(view) and isinstance(view, Part) and not is_view(part)
    assert view == part and part == view and hash(view) == hash(part) and view != Part()
    assert whole(view) == part and not is_view(whole(view)) and whole([view]) == [part] and whole(part) is part
    assert msgspec.to_builtins(view) == {"size": 1, "color": "red"} and repr(view) == repr(part)


def test_secrets_are_not_shown() -> None:
    record = FieldRecord(thing(cards=[{"name": "a", "note": "sesame"}, {"name": "b", "note": "sesame"}]))
    assert record.view.spec.cards[0].name == "a"
    assert lost(record) == {"spec.cards[0].note": HIDDEN, "spec.cards[1]": {"name": "b", "note": HIDDEN}}


def test_values_are_taken_one_by_one_without_a_view() -> None:
    record = FieldRecord(thing(part={"size": 1, "color": "red"}, labels={"a": "1", "b": "2"}, tags=["x"]))
    record.take("spec", "part")
    record.take("spec", "part", "size")
    record.take("spec", "labels", "b")
    record.take("spec", "tags")
    assert lost(record) == {"spec.part.color": "red", "spec.labels.a": "1"}


def test_whole_values_and_named_losses_speak_for_what_is_below() -> None:
    record = FieldRecord(thing(part={"size": 1, "color": "red"}, cards=[{"name": "a", "note": "x"}]))
    record.take_whole("spec", "part")
    record.lose(("spec", "cards", 0), "a", "why", "instead")
    assert lost(record) == {"spec.cards[0]": "a"}
    assert record.is_lost(("spec", "cards", 0))


def test_an_empty_object_is_told_only_where_somebody_could_have_looked() -> None:
    assert FieldRecord(thing(part={})).settle() == ()
    record = FieldRecord(thing(part={}))
    assert record.view.spec.tags == []
    assert lost(record) == {"spec.part": {}}


class Other(Resource):
    spec: Annotated[Spec, Field("Spec.")] = Spec()


def test_a_world_records_what_is_looked_up() -> None:
    other = Other(apiVersion="v1", kind="Other", metadata=ObjectMeta(name="o"), spec=Spec(tags=["x"]))
    world = RecordedWorld(ObjectSet([thing(part={"size": 1, "color": "red"}), other], complete=True), {Thing: ()})
    assert world.settle() == () and world.complete
    found = world.get(Thing, "default", "a")
    assert found is not None and found.spec.part is not None and found.spec.part.size == 1
    assert world.get(Thing, "default", "b") is None
    assert world.get(Other, "default", "o") is other and list(world.all(Other)) == [other]
    assert [each.spec for each in world.all(Thing)] == [found.spec]
    assert [loss.field for loss in world.settle()] == ["spec.part.color"]
    again = RecordedWorld(world, {Thing: ()})
    assert again.get(Thing, "default", "a") is not None
    assert [loss.field for loss in again.settle()] == ["spec.part"]

"""Declarations read into shapes: types, bounds, defaults, keys."""

from typing import Annotated, cast

import msgspec
import pytest

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from tests.unit.kubernetes.schema.sample import Disk, Port, Sample, Spec

SPEC = shape.shape_of(Spec)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("count", shape.IntegerShape),
        ("share", shape.NumberShape),
        ("running", shape.BooleanShape),
        ("nickname", shape.StringShape),
        ("memory", shape.QuantityShape),
        ("since", shape.TimeShape),
        ("disks", shape.ListShape),
        ("labels", shape.MapShape),
        ("agent", shape.ObjectShape),
        ("extra", shape.AnyShape),
        ("anything", shape.AnyShape),
    ],
)
def test_a_type_becomes_its_shape_also_when_it_is_optional(name: str, kind: type[shape.Shape]) -> None:
    assert type(SPEC.properties[name].shape) is kind


def test_bounds_go_to_the_place_they_stand_at() -> None:
    tags = SPEC.properties["tags"].shape
    assert isinstance(tags, shape.ListShape)
    assert (tags.field.max_items, tags.field.min_length) == (3, None)
    assert (tags.item.field.max_items, tags.item.field.min_length) == (None, 1)
    labels = SPEC.properties["labels"].shape
    assert isinstance(labels, shape.MapShape)
    assert (labels.field.key_format, labels.value.field.format) == ("label-key", "label-value")


def test_a_free_object_is_an_object_and_anything_is_anything() -> None:
    assert SPEC.properties["extra"].shape.json_type == "object"
    assert SPEC.properties["anything"].shape.json_type == ""


@pytest.mark.parametrize(
    ("cls", "name", "default"),
    [
        (Spec, "count", 1),
        (Spec, "running", True),
        (Spec, "memory", "1Gi"),
        (Spec, "disks", []),
        (Spec, "modes", ["a", "b"]),
        (Spec, "nickname", shape.ABSENT),
        (Disk, "name", shape.ABSENT),
        (Disk, "bus", "virtio"),
        (Sample, "spec", shape.ABSENT),
    ],
)
def test_the_python_default_is_the_default_of_the_schema(cls: type[Object], name: str, default: object) -> None:
    assert shape.shape_of(cls).properties[name].default == default


class Zero(Object):
    """Fields whose Python default is no default of the schema."""

    given: Annotated[str, Field("Required.", required=True)] = ""
    named: Annotated[str, Field("Optional, with a zero.", zero=True)] = ""
    nested: Annotated[Disk, Field("An object.")] = Disk(bus="sata")


def test_zero_values_are_no_defaults() -> None:
    properties = shape.shape_of(Zero).properties
    assert properties["given"].default is shape.ABSENT
    assert properties["named"].default is shape.ABSENT


def test_the_default_of_an_object_holds_what_is_not_default_in_it() -> None:
    assert shape.shape_of(Zero).properties["nested"].default == {"bus": "sata"}


class Base(Object):
    """What a subclass begins with."""

    first: Annotated[int, Field("First.")] = 1


class Derived(Base):
    """A subclass."""

    second: Annotated[int, Field("Second.")] = 2
    first: Annotated[int, Field("First, told again.", ge=1)] = 3


def test_members_of_a_base_come_first_and_may_be_told_again() -> None:
    properties = shape.shape_of(Derived).properties
    assert list(properties) == ["first", "second"]
    assert properties["first"].field.ge == 1
    assert properties["first"].default == 3


def test_shapes_are_read_once() -> None:
    assert shape.shape_of(Spec) is shape.shape_of(Spec)
    assert SPEC.properties is shape.shape_of(Spec).properties


def test_other_names_lead_to_the_member() -> None:
    assert dict(SPEC.aliases) == {"multiQueue": "multiqueue"}


class Rows(Object):
    """Lists with keys of every sort."""

    ports: Annotated[list[Port] | None, Field("Both always there.", keys=("number", "protocol"))] = None
    optional: Annotated[list[Spec] | None, Field("May be absent.", keys=("nickname",))] = None
    quantity: Annotated[list[Disk] | None, Field("No scalar to Kubernetes.", keys=("size",))] = None
    words: Annotated[list[str] | None, Field("No objects.", unique=True)] = None
    aliased: Annotated[list[Spec] | None, Field("Has two names.", keys=("multiqueue",))] = None


@pytest.mark.parametrize(
    ("name", "keys"), [("ports", ("number", "protocol")), ("optional", ()), ("quantity", ()), ("words", ()), ("aliased", ())]
)
def test_entries_are_told_apart_by_scalars_that_are_always_there(name: str, keys: tuple[str, ...]) -> None:
    place = shape.shape_of(Rows).properties[name].shape
    assert isinstance(place, shape.ListShape)
    assert place.map_keys == keys


@pytest.mark.parametrize("annotation", [set[str], bytes, tuple[int, ...], dict])
def test_what_a_declaration_cannot_use_is_named(annotation: type) -> None:
    made = msgspec.defstruct("Wrong", [("field", annotation, msgspec.field(default=None))])
    with pytest.raises(TypeError, match="a declaration cannot use"):
        _ = shape.ObjectShape(Field(), cast("type[Object]", made)).properties


def test_marks_and_fields_may_stand_in_any_order() -> None:
    class Marked(Object):
        """Marks under other annotations."""

        at: Annotated[Time | None, Field("When.", required=True)] = None
        sizes: Annotated[list[Annotated[Quantity, Field("Each.", positive=True)]] | None, Field("All.", max_items=2)] = None

    properties = shape.shape_of(Marked).properties
    assert isinstance(properties["at"].shape, shape.TimeShape)
    assert properties["at"].field.required
    sizes = properties["sizes"].shape
    assert isinstance(sizes, shape.ListShape)
    assert isinstance(sizes.item, shape.QuantityShape)
    assert sizes.item.field.positive
    assert sizes.field.max_items == 2

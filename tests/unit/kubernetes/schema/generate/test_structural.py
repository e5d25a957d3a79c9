"""Shapes as structural schemas."""

from typing import Annotated, Any

import pytest

from paddock.base import quantity
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.field import Field, IntOrString, Object, Quantity, Time
from paddock.kubernetes.schema.formats import compiled
from paddock.kubernetes.schema.generate import structural
from tests.kit.declarations import structural as rules
from tests.unit.kubernetes.schema.sample import SAMPLE, Port, Sample, Spec, declare

SPEC = structural.node(shape.shape_of(Spec))["properties"]


def _schema(annotation: Any) -> structural.Schema:
    """The schema of a field with this annotation."""
    cls = declare("Holder", field=annotation)
    made: structural.Schema = structural.node(shape.shape_of(cls))["properties"]["field"]
    return made


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[str, Field("A text.")], {"description": "A text.", "type": "string"}),
        (Annotated[bool, Field()], {"type": "boolean"}),
        (Annotated[float, Field(ge=0, le=1)], {"type": "number", "minimum": 0, "maximum": 1}),
        (Annotated[int, Field(ge=1)], {"type": "integer", "format": "int64", "minimum": 1}),
        (Annotated[int, Field(bits=32)], {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1}),
        (Annotated[int, Field(bits=32, le=9)], {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 9}),
        (Annotated[str, Field(enum=("a", "b"))], {"type": "string", "enum": ["a", "b"]}),
        (Annotated[str, Field(min_length=1, max_length=9)], {"type": "string", "minLength": 1, "maxLength": 9}),
        (Annotated[str, Field(format="mac")], {"type": "string", "maxLength": 17, "pattern": "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"}),
        (
            Annotated[str, Field(pattern="^a", format="dns1123-label", max_length=9)],
            {"type": "string", "maxLength": 9, "pattern": "^a", "allOf": [{"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}]},
        ),
        (Annotated[str, Field(pattern="^a", empty_is_unset=True, min_length=2)], {"type": "string", "pattern": "^$|^a"}),
        (Annotated[str, Field(pattern="^a", empty_is_unset=True, required=True)], {"type": "string", "pattern": "^a"}),
        (Annotated[str, Field(enum=("a",), empty_is_unset=True)], {"type": "string", "enum": ["a", ""]}),
        (Annotated[str, Field(format="ip")], {"type": "string", "maxLength": 45, "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
        (Annotated[str, Field(format="cidr")], {"type": "string", "maxLength": 49, "format": "cidr"}),
        (
            Annotated[str, Field(format="cidr", empty_is_unset=True)],
            {"type": "string", "maxLength": 49, "anyOf": [{"format": "cidr"}, {"maxLength": 0}]},
        ),
        (Annotated[Time, Field()], {"type": "string", "format": "date-time"}),
        (Annotated[str | None, Field(nullable=True)], {"type": "string", "nullable": True}),
        (
            Annotated[IntOrString, Field(ge=1, pattern="^[a-z]+$")],
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "minimum": 1, "pattern": "^[a-z]+$", "x-kubernetes-int-or-string": True},
        ),
        (Annotated[dict[str, Any], Field()], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Annotated[Any, Field()], {"x-kubernetes-preserve-unknown-fields": True}),
        (
            Annotated[list[int], Field(min_items=1, max_items=2)],
            {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer", "format": "int64"}},
        ),
        (Annotated[list[str], Field(unique=True)], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (
            Annotated[dict[str, str], Field(min_items=1, max_items=2)],
            {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "string"}},
        ),
    ],
)
def test_a_field_becomes_its_schema(annotation: Any, schema: structural.Schema) -> None:
    assert _schema(annotation) == schema


def test_what_a_schema_cannot_say_stands_in_the_description() -> None:
    assert SPEC["extra"]["description"] == "Free. Accepted and kept, not honoured: nobody reads it."
    assert SPEC["legacy"]["description"] == "Old. Deprecated: use nickname."
    assert SPEC["multiqueue"]["description"] == "Several queues. Also read under the name multiQueue."
    assert SPEC["labels"]["description"] == "Labels. Each key must be a label key: name or prefix/name."


def test_entries_with_keys_are_a_map_list() -> None:
    assert SPEC["ports"]["x-kubernetes-list-type"] == "map"
    assert SPEC["ports"]["x-kubernetes-list-map-keys"] == ["number", "protocol"]


def test_defaults_are_written_and_never_for_required_fields() -> None:
    assert SPEC["count"]["default"] == 1
    assert SPEC["disks"]["default"] == []
    assert SPEC["modes"]["default"] == ["a", "b"]
    disk = SPEC["disks"]["items"]
    assert disk["required"] == ["name", "size"]
    assert "default" not in disk["properties"]["name"]
    assert disk["properties"]["bus"]["default"] == "virtio"


def test_open_objects_keep_the_unknown_and_an_empty_one_has_no_members() -> None:
    assert SPEC["template"]["x-kubernetes-preserve-unknown-fields"] is True
    assert SPEC["agent"] == {"description": "Whether there is an agent.", "type": "object"}


def test_a_second_name_is_a_field_without_a_default_and_excludes_the_first() -> None:
    assert SPEC["multiQueue"] == {"description": "Another name of multiqueue.", "type": "boolean"}
    (rule,) = structural.node(shape.shape_of(Spec))["x-kubernetes-validations"]
    assert (rule["rule"], rule["fieldPath"]) == ("!has(self.multiqueue) || !has(self.multiQueue)", ".multiQueue")


class Aliased(Object):
    """Something required under two names."""

    address: Annotated[str, Field("Where.", required=True, aliases=("addr", "ip"))] = ""
    name: Annotated[str, Field("Who.", required=True)] = ""
    bridge: Annotated[str, Field("On what.", aliases=("Bridge",))] = "br0"


def test_a_server_fills_in_no_default_beside_a_value_under_another_name() -> None:
    assert "default" not in structural.node(shape.shape_of(Aliased))["properties"]["bridge"]


def test_what_is_required_may_be_given_under_any_of_its_names() -> None:
    schema = structural.node(shape.shape_of(Aliased))
    assert schema["required"] == ["name"]
    assert schema["allOf"] == [{"anyOf": [{"required": ["address"]}, {"required": ["addr"]}, {"required": ["ip"]}]}]
    assert check(Aliased, {"addr": "x", "name": "y"}).findings == []


def test_the_check_fills_a_default_in_where_neither_name_has_a_value() -> None:
    assert check(Aliased, {"address": "x", "name": "y"}).value["bridge"] == "br0"
    assert check(Aliased, {"address": "x", "name": "y", "Bridge": "br1"}).value == {"address": "x", "name": "y", "bridge": "br1"}


def test_an_empty_object_that_is_the_same_as_none_need_not_have_what_others_must() -> None:
    assert SPEC["owner"]["anyOf"] == [{"maxProperties": 0}, {"required": ["user"]}]
    assert "required" not in SPEC["owner"]


def test_the_root_leaves_metadata_to_the_server() -> None:
    root = structural.root(shape.shape_of(Sample))
    assert root["properties"]["metadata"] == {"type": "object"}
    assert root["properties"]["apiVersion"] == {"description": "Group and version of this object.", "type": "string"}
    assert root["required"] == ["spec"]


def test_the_schema_is_structural() -> None:
    assert rules.problems(structural.root(shape.shape_of(SAMPLE.cls))) == []


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "object", "properties": {"a": {}}}, "root.a: no type"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "root.a: no items"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]},
            "root.a: a default of a required field",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {}}}},
            "root.a: properties beside additionalProperties",
        ),
        ({"type": "object", "anyOf": [{"type": "object"}]}, "root: anyOf with type"),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
            "root: metadata may restrict names only",
        ),
    ],
)
def test_the_rules_see_what_they_are_for(schema: structural.Schema, problem: str) -> None:
    assert rules.problems(schema) == [problem]


GOOD = ("1", "+1", "1.0", "1Gi", ".5Gi", "1.5Gi", "2000m", "128974848000m", "1500.0", "1e3", "1.5e3", "30G", "007")
ZERO = ("0", "0.0", "0Gi", "-1", "-1Gi", "+0", ".0")
PARTS = ("0.5", "1.5", "500m", "1500m")
NONE = ("", "1 Gi", "1gi", "Gi", "x", "1..5", "--1", "1Gi\n")


@pytest.mark.parametrize(
    ("field", "taken", "refused"),
    [
        (Field(), GOOD + ZERO + PARTS, NONE),
        (Field(positive=True), GOOD + PARTS, NONE + ZERO),
        (Field(positive=True, whole=True), GOOD, NONE + ZERO + PARTS),
        (Field(whole=True), GOOD + ZERO, NONE),
        (Field(at_least="1"), GOOD, NONE + ZERO),
        (Field(at_least="1", whole=True), GOOD, NONE + ZERO + PARTS),
        (Field(empty_is_unset=True), (*GOOD, ""), NONE[1:]),
    ],
)
def test_the_pattern_of_a_quantity(field: Field, taken: tuple[str, ...], refused: tuple[str, ...]) -> None:
    schema = _schema(Annotated[Quantity, field])
    pattern = compiled(schema["pattern"])
    assert [text for text in taken if pattern.search(text) is None] == []
    assert [text for text in refused if pattern.search(text) is not None] == []
    # A kube-apiserver must not refuse what the check takes.
    cls = declare("Holder", field=Annotated[Quantity, field])
    accepted = [text for text in (*GOOD, *ZERO, *PARTS, *NONE) if check(cls, {"field": text}).findings == []]
    assert [text for text in accepted if pattern.search(text) is None] == []


@pytest.mark.parametrize(
    ("field", "least"),
    [(Field(), None), (Field(positive=True), 1), (Field(at_least="1Mi"), 2**20), (Field(at_least="500m"), 1), (Field(at_least="-1"), -1)],
)
def test_the_bound_of_a_quantity_that_is_a_number(field: Field, least: int | None) -> None:
    assert _schema(Annotated[Quantity, field]).get("minimum") == least


def test_a_bound_in_other_units_is_a_rule_where_it_is_cheap() -> None:
    (rule,) = SPEC["memory"]["x-kubernetes-validations"]
    assert rule == {"rule": "quantity(string(self)).compareTo(quantity('1Mi')) >= 0", "message": "must be at least 1Mi"}
    in_a_list = _schema(Annotated[list[Annotated[Quantity, Field(at_least="1Mi")]], Field()])
    assert "x-kubernetes-validations" not in in_a_list["items"]
    assert quantity.parse("1Mi") == in_a_list["items"]["minimum"] * quantity.UNIT


def test_a_port_of_a_list_has_its_own_bounds() -> None:
    port = structural.node(shape.shape_of(Port))
    assert port["properties"]["number"]["maximum"] == 65535
    assert port["properties"]["protocol"]["enum"] == ["TCP", "UDP"]

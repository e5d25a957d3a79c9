"""Shapes as structural schemas: the part of OpenAPI v3 that a CustomResourceDefinition is written in.

The rule of this module: a schema never refuses what the check accepts. What a schema cannot say exactly it leaves open, and
the controllers say it.
"""

from collections.abc import Callable
from typing import Any

from paddock.base import quantity
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.formats import FORMATS
from paddock.kubernetes.schema.generate.words import describe

Schema = dict[str, Any]

# What a kube-apiserver and kubectl supply or check by themselves.
ENVELOPE = ("apiVersion", "kind", "metadata")


def root(field_shape: shape.ObjectShape) -> Schema:
    """The schema of a whole kind. Of metadata a CRD may only constrain names."""
    schema = node(field_shape)
    properties = schema["properties"]
    for name in ENVELOPE[:2]:
        properties[name] = {"description": properties[name]["description"], "type": "string"}
    properties["metadata"] = {"type": "object"}
    required = [name for name in schema.get("required", ()) if name not in ENVELOPE]
    schema.pop("required", None)
    if required:
        schema["required"] = required
    return schema


def node(field_shape: shape.Shape, *, repeated: bool = False) -> Schema:
    """The schema of one place; `repeated` when it stands in a list or a map, where rules are too dear for a kube-apiserver."""
    schema: Schema = {}
    text = describe(field_shape)
    if text:
        schema["description"] = text
    schema.update(_MAKERS[type(field_shape)](field_shape, repeated))
    if field_shape.field.nullable:
        schema["nullable"] = True
    return schema


def _string(field_shape: shape.Shape, repeated: bool) -> Schema:
    return {"type": "string", **texts(field_shape)}


def texts(field_shape: shape.Shape) -> Schema:
    """The constraints of a text."""
    field = field_shape.field
    named = field.format or ("date-time" if isinstance(field_shape, shape.TimeShape) else "")
    form = FORMATS.get(named)
    schema: Schema = {}
    lengths = [most for most in (field.max_length, form.max_length if form else None) if most is not None]
    if lengths:
        schema["maxLength"] = min(lengths)
    empty = may_be_empty(field)
    if field.min_length is not None and not empty:
        schema["minLength"] = field.min_length
    if field.enum:
        schema["enum"] = [*field.enum, *([""] if empty and "" not in field.enum else [])]
    patterns = [pattern for pattern in (field.pattern, form.pattern if form else None) if pattern]
    if empty:
        patterns = [f"^$|{pattern}" for pattern in patterns]
    if patterns:
        schema["pattern"] = patterns[0]
    if len(patterns) > 1:
        schema["allOf"] = [{"pattern": pattern} for pattern in patterns[1:]]
    if form is not None and not form.pattern:
        schema.update(_native(form.native, or_empty=empty))
    return schema


def _native(formats: tuple[str, ...], *, or_empty: bool) -> Schema:
    """Formats that a kube-apiserver knows."""
    if len(formats) == 1 and not or_empty:
        return {"format": formats[0]}
    choices: list[Schema] = [{"format": name} for name in formats]
    if choices and or_empty:
        choices.append({"maxLength": 0})
    return {"anyOf": choices} if choices else {}


def numbers(field_shape: shape.Shape) -> Schema:
    """The bounds of a number; the format of a short one alone would refuse nothing."""
    field = field_shape.field
    widest = 2 ** (field.bits - 1)
    least, most = (-widest, widest - 1) if field.bits < 64 else (None, None)
    bounds = {"minimum": least if field.ge is None else field.ge, "maximum": most if field.le is None else field.le}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _integer(field_shape: shape.Shape, repeated: bool) -> Schema:
    return {"type": "integer", "format": f"int{32 if field_shape.field.bits <= 32 else 64}", **numbers(field_shape)}


def _number(field_shape: shape.Shape, repeated: bool) -> Schema:
    return {"type": "number", **numbers(field_shape)}


def _boolean(field_shape: shape.Shape, repeated: bool) -> Schema:
    return {"type": "boolean"}


_DIGITS = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
QUANTITY_SUFFIX = r"([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,3})?"
_UNIT = r"([KMGTPE]i|[nukMGTPE]|[eE][-+]?[0-9]{1,3})"
# Digits of which at least one is not zero.
_NOT_ZERO = r"([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)"


def quantity_pattern(field_shape: shape.Shape) -> str:
    """Quantities as a pattern. It says that a value is positive, and mostly that it is whole; other bounds need arithmetic."""
    field = field_shape.field
    positive = field.positive or (field.at_least is not None and quantity.parse(field.at_least) > 0)
    if field.whole and positive:
        # A fraction without a unit is never whole; Kubernetes itself writes whole bytes as thousands of thousandths.
        pattern = rf"^[+]?([0-9]*[1-9][0-9]*(000(\.0*)?m|\.0*)?|{_NOT_ZERO}{_UNIT})$"
    else:
        pattern = f"^[+]?{_NOT_ZERO}{QUANTITY_SUFFIX}$" if positive else f"^[-+]?{_DIGITS}{QUANTITY_SUFFIX}$"
    return f"^$|{pattern}" if may_be_empty(field) else pattern


def may_be_empty(field: Field) -> bool:
    """Return whether an empty text stands for none; a required field always needs a value."""
    return field.empty_is_unset and not field.required


def quantity_minimum(field_shape: shape.Shape) -> int | None:
    """The bound of a quantity that is written as a number."""
    field = field_shape.field
    least = quantity.whole(field.at_least) if field.at_least else None
    return max(least or 1, 1) if field.positive else least


def _quantity(field_shape: shape.Shape, repeated: bool) -> Schema:
    field = field_shape.field
    schema: Schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 64,
        "pattern": quantity_pattern(field_shape),
        "x-kubernetes-int-or-string": True,
    }
    least = quantity_minimum(field_shape)
    if least is not None:
        schema["minimum"] = least
    if field.at_least and not repeated:
        rule = f"quantity(string(self)).compareTo(quantity('{field.at_least}')) >= 0"
        if may_be_empty(field):
            rule = f"self == '' || {rule}"
        schema["x-kubernetes-validations"] = [{"rule": rule, "message": f"must be at least {field.at_least}"}]
    return schema


def _int_or_string(field_shape: shape.Shape, repeated: bool) -> Schema:
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        **numbers(field_shape),
        **texts(field_shape),
        "x-kubernetes-int-or-string": True,
    }


def _any(field_shape: shape.Shape, repeated: bool) -> Schema:
    schema: Schema = {"type": "object"} if field_shape.json_type else {}
    return {**schema, "x-kubernetes-preserve-unknown-fields": True}


def _list(field_shape: shape.Shape, repeated: bool) -> Schema:
    assert isinstance(field_shape, shape.ListShape)
    field = field_shape.field
    schema: Schema = {"type": "array"}
    if field.min_items is not None:
        schema["minItems"] = field.min_items
    if field.max_items is not None:
        schema["maxItems"] = field.max_items
    schema["items"] = node(field_shape.item, repeated=True)
    if field.unique and isinstance(field_shape.item, shape.SCALARS):
        schema["x-kubernetes-list-type"] = "set"
    elif field_shape.map_keys:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(field_shape.map_keys)
    return schema


def _map(field_shape: shape.Shape, repeated: bool) -> Schema:
    assert isinstance(field_shape, shape.MapShape)
    field = field_shape.field
    schema: Schema = {"type": "object"}
    if field.min_items is not None:
        schema["minProperties"] = field.min_items
    if field.max_items is not None:
        schema["maxProperties"] = field.max_items
    return {**schema, "additionalProperties": node(field_shape.value, repeated=True)}


def _object(field_shape: shape.Shape, repeated: bool) -> Schema:
    assert isinstance(field_shape, shape.ObjectShape)
    properties: Schema = {}
    for name, prop in field_shape.properties.items():
        own = node(prop.shape, repeated=repeated)
        # A server fills in a default also where the value stands under another name, and then both are given.
        properties[name] = own if prop.field.aliases else member(prop, own)
        for alias in prop.field.aliases:
            properties[alias] = {**node(prop.shape, repeated=repeated), "description": f"Another name of {name}."}
    schema: Schema = {"type": "object"}
    if properties:
        schema["properties"] = properties
    schema.update(required_members(field_shape))
    if field_shape.open:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if field_shape.aliases:
        schema["x-kubernetes-validations"] = [_one_name(name, alias) for alias, name in field_shape.aliases.items()]
    return schema


def _one_name(name: str, alias: str) -> Schema:
    """Return the rule that forbids two names of one field: nobody could guess which one counts."""
    return {
        "rule": f"!has(self.{name}) || !has(self.{alias})",
        "message": f"it is another name of {name}, which is given, too",
        "reason": "FieldValueForbidden",
        "fieldPath": f".{alias}",
    }


def member(prop: shape.Property, schema: Schema) -> Schema:
    """The schema of a place as a member: with its default."""
    if prop.default is shape.ABSENT:
        return schema
    text = {"description": schema["description"]} if "description" in schema else {}
    return {**text, "default": prop.default, **schema}


def required_members(field_shape: shape.ObjectShape) -> Schema:
    """Return the schema of the required members, under any of their names."""
    required = [prop for prop in field_shape.properties.values() if prop.field.required]
    schema: Schema = {}
    plain = [prop.name for prop in required if not prop.field.aliases]
    if plain and may_be_empty(field_shape.field):
        return {"anyOf": [{"maxProperties": 0}, {"required": plain}]}
    if plain:
        schema["required"] = plain
    choices = [{"anyOf": [{"required": [name]} for name in (prop.name, *prop.field.aliases)]} for prop in required if prop.field.aliases]
    if choices:
        schema["allOf"] = choices
    return schema


_MAKERS: dict[type[shape.Shape], Callable[[shape.Shape, bool], Schema]] = {
    shape.StringShape: _string,
    shape.TimeShape: _string,
    shape.IntegerShape: _integer,
    shape.NumberShape: _number,
    shape.BooleanShape: _boolean,
    shape.QuantityShape: _quantity,
    shape.IntOrStringShape: _int_or_string,
    shape.AnyShape: _any,
    shape.ListShape: _list,
    shape.MapShape: _map,
    shape.ObjectShape: _object,
}

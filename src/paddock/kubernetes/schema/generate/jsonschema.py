"""JSON Schemas (draft 2020-12) for editors: completion, texts and mistakes while a manifest is written.

They say what a CRD cannot: unknown members are refused, keys of maps have a syntax, repeated entries of simple lists are found.
Objects that several places share stand once, under `$defs`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.formats import FORMATS
from paddock.kubernetes.schema.generate import structural
from paddock.kubernetes.schema.generate.structural import Schema
from paddock.kubernetes.schema.generate.words import describe
from paddock.kubernetes.schema.kind import Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Formats that a kube-apiserver and JSON Schema call by other names, or that only one of them knows.
_FORMATS = {"ipv4": "ipv4", "ipv6": "ipv6", "date-time": "date-time"}


class SchemaDefinitions:
    """The objects of one document, each under a name of its own."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[type[Object], str] = {}

    def ref(self, field_shape: shape.ObjectShape) -> Schema:
        """A reference to an object, which is described on its first use."""
        name = self._names.get(field_shape.cls)
        if name is None:
            name = self._free_name(field_shape.cls)
            self._names[field_shape.cls] = name
            # The place is reserved before the members are visited, so that the order is that of first use.
            self.schemas[name] = {}
            self.schemas[name] = members(field_shape, self)
        return {"$ref": f"#/$defs/{name}"}

    def _free_name(self, cls: type[Object]) -> str:
        taken = set(self._names.values())
        if cls.__name__ not in taken:
            return cls.__name__
        return next(name for number in range(2, len(taken) + 3) if (name := f"{cls.__name__}{number}") not in taken)


def document(kind: Kind, reference: str = "") -> dict[str, Any]:
    """The schema of a kind; `reference` is what the schema calls itself."""
    place = shape.shape_of(kind.cls)
    definitions = SchemaDefinitions()
    body = members(place, definitions)
    properties = body["properties"]
    group = f"{kind.group}/" if kind.group else ""
    api_versions = [f"{group}{version.name}" for version in kind.versions]
    properties["apiVersion"] = {**properties["apiVersion"], **_constant(api_versions)}
    properties["kind"] = {**properties["kind"], **_constant([kind.kind])}
    head: Schema = {"$schema": DIALECT}
    if reference:
        head["$id"] = reference
    head["title"] = f"{kind.kind} ({kind.group or 'core'})"
    gvks = [{"group": kind.group, "version": version.name, "kind": kind.kind} for version in kind.versions]
    return {
        **head,
        "description": kind.text,
        **body,
        "x-kubernetes-group-version-kind": gvks,
        "examples": [{"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "example"}}],
        "$defs": definitions.schemas,
    }


def _constant(values: list[str]) -> Schema:
    return {"const": values[0], "examples": values} if len(values) == 1 else {"enum": values}


def selection(paths: Iterable[tuple[Kind, str]]) -> dict[str, Any]:
    """One schema for all kinds: the schema of a document is chosen by its apiVersion and kind."""
    choices = []
    for kind, path in paths:
        group = f"{kind.group}/" if kind.group else ""
        versions = [f"{group}{version.name}" for version in kind.versions]
        condition = {"properties": {"apiVersion": {"enum": versions}, "kind": {"const": kind.kind}}, "required": ["apiVersion", "kind"]}
        choices.append({"if": condition, "then": {"$ref": path}})
    return {
        "$schema": DIALECT,
        "title": "Paddock manifests",
        "description": "Every kind that Paddock knows, chosen by apiVersion and kind.",
        "type": "object",
        "allOf": choices,
    }


def members(field_shape: shape.ObjectShape, definitions: SchemaDefinitions) -> Schema:
    """An object with its members."""
    properties: Schema = {}
    for name, prop in field_shape.properties.items():
        properties[name] = structural.member(prop, node(prop.shape, definitions))
        for alias in prop.field.aliases:
            properties[alias] = {**node(prop.shape, definitions), "description": f"Another name of {name}."}
    schema: Schema = {"type": "object", "properties": properties, **structural.required_members(field_shape)}
    both = [{"not": {"required": [name, alias]}} for alias, name in field_shape.aliases.items()]
    if both:
        schema["allOf"] = [*schema.get("allOf", ()), *both]
    if not field_shape.open:
        schema["additionalProperties"] = False
    return schema


def node(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    """One place of a document."""
    field = field_shape.field
    schema: Schema = {}
    text = describe(field_shape)
    if text:
        schema["description"] = text
    schema.update(_MAKERS[type(field_shape)](field_shape, definitions))
    if field.deprecated:
        schema["deprecated"] = True
    if field.nullable:
        description = {"description": schema.pop("description")} if "description" in schema else {}
        return {**description, "anyOf": [schema, {"type": "null"}]}
    return schema


def _string(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    return {"type": "string", **_texts(field_shape)}


def _texts(field_shape: shape.Shape) -> Schema:
    schema = structural.texts(field_shape)
    for holder in (schema, *schema.get("anyOf", ())):
        if "format" in holder and holder["format"] not in _FORMATS:
            del holder["format"]
    return schema


def _integer(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    return {"type": "integer", **structural.numbers(field_shape)}


def _number(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    return {"type": "number", **structural.numbers(field_shape)}


def _boolean(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    return {"type": "boolean"}


def _quantity(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    schema: Schema = {"type": ["string", "integer"], "maxLength": 64, "pattern": structural.quantity_pattern(field_shape)}
    least = structural.quantity_minimum(field_shape)
    return schema if least is None else {**schema, "minimum": least}


def _int_or_string(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    return {"type": ["integer", "string"], **structural.numbers(field_shape), **_texts(field_shape)}


def _any(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    return {"type": "object"} if field_shape.json_type else {}


def _list(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    assert isinstance(field_shape, shape.ListShape)
    field = field_shape.field
    schema: Schema = {"type": "array"}
    if field.min_items is not None:
        schema["minItems"] = field.min_items
    if field.max_items is not None:
        schema["maxItems"] = field.max_items
    if field.unique:
        schema["uniqueItems"] = True
    return {**schema, "items": node(field_shape.item, definitions)}


def _map(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    assert isinstance(field_shape, shape.MapShape)
    field = field_shape.field
    schema: Schema = {"type": "object"}
    if field.min_items is not None:
        schema["minProperties"] = field.min_items
    if field.max_items is not None:
        schema["maxProperties"] = field.max_items
    if field.key_format:
        form = FORMATS[field.key_format]
        bounds: Schema = {"maxLength": form.max_length} if form.max_length is not None else {}
        schema["propertyNames"] = {**bounds, **({"pattern": form.pattern} if form.pattern else {})}
    return {**schema, "additionalProperties": node(field_shape.value, definitions)}


def _object(field_shape: shape.Shape, definitions: SchemaDefinitions) -> Schema:
    assert isinstance(field_shape, shape.ObjectShape)
    return definitions.ref(field_shape)


_MAKERS: dict[type[shape.Shape], Callable[[shape.Shape, SchemaDefinitions], Schema]] = {
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

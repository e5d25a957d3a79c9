"""Requirements for the schema of a CustomResourceDefinition (docs/spec/kube-api.md section 6.2): structural, and sound in itself.

Places have the form that a kube-apiserver writes: `spec.validation.openAPIV3Schema.properties[spec].items.type`.
"""

from collections.abc import Iterator
from typing import Any

from paddock.kubernetes.schema import finding, patterns, wireformats
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural import validating
from paddock.kubernetes.schema.structural.node import SchemaNode, Trail, clone
from paddock.kubernetes.schema.structural.shaping import ShapeNotes, shape

RULE = "structural/schema"
_KINDS = ("array", "boolean", "integer", "number", "object", "string")
_SCALARS = ("boolean", "integer", "number", "string")
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "patternProperties", "id", "additionalItems")
_JUNCTIONS = ("allOf", "anyOf", "oneOf")
_PLAIN_CONSTRAINTS = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "nullable")
Schema = dict[str, Any]


def check(schema: Schema, place: str) -> Iterator[Finding]:
    """Everything wrong with the schema of a version."""
    yield from _root(schema, place)
    yield from _node(schema, place, top=True)
    yield from _defaults(schema, place, metadata=False)


def _root(schema: Schema, place: str) -> Iterator[Finding]:
    kind = schema.get("type")
    if not kind:
        yield finding.required((f"{place}.type",), RULE, "must not be empty at the root")
    elif kind != "object":
        yield finding.invalid((f"{place}.type",), kind, "must be object at the root", RULE)
    if schema.get("nullable"):
        yield finding.forbidden((f"{place}.nullable",), "nullable cannot be true at the root", RULE)
    if "additionalProperties" in schema:
        yield finding.forbidden((f"{place}.additionalProperties",), "must not be used at the root", RULE)
    yield from _envelope(schema, place)


def _envelope(schema: Schema, place: str) -> Iterator[Finding]:
    """`apiVersion`, `kind` and `metadata` are everybody's, so a schema may say little about them."""
    members = schema.get("properties") or {}
    for name, wanted in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        kind = members.get(name, {}).get("type", wanted)
        if kind != wanted:
            yield finding.invalid((f"{place}.properties[{name}].type",), kind, f"must be {wanted}", RULE)
    metadata = members.get("metadata")
    if metadata is None:
        return
    restricts = set(metadata) - {"type", "description", "properties", "default"}
    names = set(metadata.get("properties") or {}) - {"name", "generateName"}
    if restricts or names:
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield finding.forbidden((f"{place}.properties[metadata]",), why, RULE)


def _node(schema: Schema, place: str, *, top: bool = False) -> Iterator[Finding]:
    yield from _type(schema, place, top=top)
    yield from _words(schema, place)
    yield from _lists(schema, place)
    yield from _maps(schema, place)
    yield from _embedded(schema, place, top=top)
    for word in _JUNCTIONS:
        for index, choice in enumerate(schema.get(word) or ()):
            if not (schema.get("x-kubernetes-int-or-string") and _says_both(schema, word)):
                yield from _constraint(choice, f"{place}.{word}[{index}]")
    if schema.get("not"):
        yield from _constraint(schema["not"], f"{place}.not")
    for name, member in (schema.get("properties") or {}).items():
        yield from _node(member, f"{place}.properties[{name}]")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from _node(schema[word], f"{place}.{word}")


def _says_both(schema: Schema, word: str) -> bool:
    """The one junction that may name types: an integer or a string, directly or as the first of allOf."""
    both = [{"type": "integer"}, {"type": "string"}]
    if word == "anyOf":
        return bool(schema["anyOf"] == both)
    return word == "allOf" and bool(schema["allOf"][0].get("anyOf") == both)


def _type(schema: Schema, place: str, *, top: bool) -> Iterator[Finding]:
    kind = schema.get("type")
    if kind and kind not in _KINDS:
        yield finding.unsupported((f"{place}.type",), kind, _KINDS, RULE)
        if kind == "null":
            yield finding.forbidden((f"{place}.type",), "type cannot be set to null, use nullable as an alternative", RULE)
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not free and not top:
        yield finding.required((f"{place}.type",), RULE, "must not be empty for specified object fields")


def _words(schema: Schema, place: str) -> Iterator[Finding]:
    for word in _UNSUPPORTED:
        if word in schema:
            yield finding.forbidden((f"{place}.{word}",), f"{word} is not supported", RULE)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield finding.forbidden((f"{place}.uniqueItems",), why, RULE)
    if schema.get("properties") and schema.get("additionalProperties") not in (None, False):
        yield finding.forbidden((f"{place}.additionalProperties",), "additionalProperties and properties are mutual exclusive", RULE)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield finding.invalid((f"{place}.x-kubernetes-preserve-unknown-fields",), False, "must be true or undefined", RULE)
    yield from _pattern(schema, place)


def _pattern(schema: Schema, place: str) -> Iterator[Finding]:
    if schema.get("pattern"):
        try:
            patterns.check(schema["pattern"])
        except patterns.BadPattern as bad:
            why = f"must be a valid regular expression, but isn't: error parsing regexp: {bad.why}"
            yield finding.invalid((f"{place}.pattern",), schema["pattern"], why, RULE)


def _constraint(schema: Schema, place: str) -> Iterator[Finding]:
    """Below a junction values are only judged; their types stand outside."""
    for word in ("type", "description", "title"):
        if schema.get(word):
            yield finding.forbidden((f"{place}.{word}",), "must be empty to be structural", RULE)
    for word in ("default", "additionalProperties"):
        if schema.get(word) is not None:
            yield finding.forbidden((f"{place}.{word}",), "must be undefined to be structural", RULE)
    for word in _PLAIN_CONSTRAINTS:
        if schema.get(word):
            yield finding.forbidden((f"{place}.{word}",), "must be false to be structural", RULE)
    for word in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations"):
        if schema.get(word):
            yield finding.forbidden((f"{place}.{word}",), "must be empty to be structural", RULE)
    yield from _words({word: value for word, value in schema.items() if not word.startswith("x-")}, place)
    if isinstance(schema.get("items"), list):
        yield finding.forbidden((f"{place}.items",), "items must be a schema object and not an array", RULE)
    for word in _JUNCTIONS:
        for index, choice in enumerate(schema.get(word) or ()):
            yield from _constraint(choice, f"{place}.{word}[{index}]")
    for name, member in (schema.get("properties") or {}).items():
        yield from _constraint(member, f"{place}.properties[{name}]")
    for word in ("items", "not"):
        if isinstance(schema.get(word), dict):
            yield from _constraint(schema[word], f"{place}.{word}")


def _lists(schema: Schema, place: str) -> Iterator[Finding]:
    kind, list_type, keys = schema.get("type"), schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    items = schema.get("items")
    if kind == "array" and items is None:
        yield finding.required((f"{place}.items",), RULE, "must be specified")
    if isinstance(items, list):
        yield finding.forbidden((f"{place}.items",), "items must be a schema object and not an array", RULE)
        return
    if list_type is None and keys:
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield finding.required((f"{place}.x-kubernetes-list-type",), RULE, why)
    if list_type is None:
        return
    if list_type not in ("atomic", "set", "map"):
        yield finding.unsupported((f"{place}.x-kubernetes-list-type",), list_type, ("atomic", "set", "map"), RULE)
    if kind != "array":
        yield finding.invalid((f"{place}.type",), kind, "must be array if x-kubernetes-list-type is specified", RULE)
    if list_type == "set":
        yield from _set_items(items or {}, f"{place}.items")
    elif list_type == "map":
        yield from _map_list(items, keys, place)


def _set_items(items: Schema, place: str) -> Iterator[Finding]:
    if items.get("nullable"):
        yield finding.forbidden((f"{place}.nullable",), "cannot be nullable when x-kubernetes-list-type is set", RULE)
    atomic, why = items.get("x-kubernetes-map-type"), "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "object" and atomic != "atomic":
        yield finding.invalid((f"{place}.x-kubernetes-map-type",), atomic, why, RULE)
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        yield finding.invalid((f"{place}.x-kubernetes-list-type",), items["x-kubernetes-list-type"], why, RULE)


def _map_list(items: Schema | None, keys: Any, place: str) -> Iterator[Finding]:
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield finding.required((f"{place}.x-kubernetes-list-map-keys",), RULE, why)
    if items is None:
        yield finding.required((f"{place}.items",), RULE, "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield finding.invalid((f"{place}.items.type",), items.get("type"), why, RULE)
        return
    if items.get("nullable"):
        yield finding.forbidden((f"{place}.items.nullable",), "cannot be nullable when x-kubernetes-list-type is map", RULE)
    members = items.get("properties") or {}
    if any(key not in members for key in keys):
        why = "entries must all be names of item properties"
        yield finding.invalid((f"{place}.x-kubernetes-list-map-keys",), list(keys), why, RULE)
    if len(set(keys)) != len(keys):
        yield finding.invalid((f"{place}.x-kubernetes-list-map-keys",), list(keys), "must not contain duplicate entries", RULE)
    for key in dict.fromkeys(key for key in keys if key in members):
        yield from _key(items, key, f"{place}.items.properties[{key}]")


def _key(items: Schema, key: str, place: str) -> Iterator[Finding]:
    member = items["properties"][key]
    if member.get("type") not in _SCALARS and not member.get("x-kubernetes-int-or-string"):
        why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        yield finding.invalid((f"{place}.type",), member.get("type"), why, RULE)
    if member.get("nullable"):
        why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
        yield finding.forbidden((f"{place}.nullable",), why, RULE)
    if key not in (items.get("required") or ()) and member.get("default") is None:
        why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        yield finding.required((f"{place}.default",), RULE, why)


def _maps(schema: Schema, place: str) -> Iterator[Finding]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return
    if map_type not in ("atomic", "granular"):
        yield finding.unsupported((f"{place}.x-kubernetes-map-type",), map_type, ("atomic", "granular"), RULE)
    if schema.get("type") != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        yield finding.invalid((f"{place}.type",), schema.get("type"), why, RULE)


def _embedded(schema: Schema, place: str, *, top: bool) -> Iterator[Finding]:
    if not schema.get("x-kubernetes-embedded-resource"):
        return
    if not schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield finding.required((f"{place}.properties",), RULE, why)
    if schema.get("type") != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield finding.invalid((f"{place}.type",), schema.get("type"), why, RULE)
    if not top:
        yield from _envelope_below(schema, place)


def _envelope_below(schema: Schema, place: str) -> Iterator[Finding]:
    for name, wanted in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        kind = (schema.get("properties") or {}).get(name, {}).get("type", wanted)
        if kind != wanted:
            yield finding.invalid((f"{place}.properties[{name}].type",), kind, f"must be {wanted}", RULE)


def _defaults(schema: Schema, place: str, *, metadata: bool, envelope: bool = False) -> Iterator[Finding]:
    """Defaults fit their own schema and hold nothing that would be pruned; metadata of embedded objects is pruned silently."""
    default = schema.get("default")
    if default is not None and metadata:
        yield finding.forbidden((f"{place}.default",), "must not be set in top-level metadata", RULE)
    elif default is not None:
        yield from _default(schema, default, f"{place}.default") if not envelope else ()
    for name, member in (schema.get("properties") or {}).items():
        inside = metadata or (name == "metadata" and ("." not in place.rpartition("openAPIV3Schema")[2]))
        below = name == "metadata" and bool(schema.get("x-kubernetes-embedded-resource"))
        yield from _defaults(member, f"{place}.properties[{name}]", metadata=inside, envelope=below or envelope)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from _defaults(schema[word], f"{place}.{word}", metadata=metadata)


class _Outside(ShapeNotes):
    """Notes nothing of the metadata of embedded objects."""

    def misplaced(self, trail: Trail) -> None:
        pass


def _default(schema: Schema, default: Any, place: str) -> Iterator[Finding]:
    node, noted = SchemaNode(schema), _Outside()
    settled = shape(node, clone(default), noted)
    if noted.unknown:
        yield finding.invalid((place,), default, "must not have unknown fields", RULE)
        return
    if noted.broken:
        yield finding.invalid((place,), default, noted.broken[0].message, RULE)
        return
    for wrong in validating.fits(node, settled):
        name = "" if wrong.path in (("",), ("<nil>",)) else wrong.path[0]
        yield Finding(path=(f"{place}.{name}" if name else place,), message=wrong.message, rule=RULE, cause=wrong.cause)


def warnings(schema: Schema, place: str) -> Iterator[str]:
    """Yield a warning for each accepted value without effect: unknown formats."""
    form = schema.get("format")
    if form and form not in wireformats.KNOWN:
        yield f'unrecognized format "{form}"'
    for member in (schema.get("properties") or {}).values():
        yield from warnings(member, place)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from warnings(schema[word], place)

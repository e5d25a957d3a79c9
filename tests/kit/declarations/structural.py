"""The requirements of a kube-apiserver for the schema of a CRD (docs/spec/kube-api.md section 6.2).

So most mistakes show without a server; the reference tests use a real one.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_FORBIDDEN = frozenset(
    {"$ref", "definitions", "dependencies", "deprecated", "discriminator", "id", "patternProperties", "readOnly", "writeOnly", "xml"}
    | {"additionalItems", "uniqueItems", "const", "examples", "propertyNames", "$defs"}
)
_STRUCTURE = frozenset({"type", "description", "default", "nullable", "additionalProperties"})
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def problems(root: Schema) -> list[str]:
    """Everything that a kube-apiserver would refuse."""
    found = list(_node(root, "root", top=True))
    metadata = root.get("properties", {}).get("metadata", {})
    if set(metadata.get("properties", {})) - {"name", "generateName"}:
        found.append("root: metadata may restrict names only")
    return found


def _node(schema: Schema, at: str, *, top: bool = False) -> Iterator[str]:
    kind = schema.get("type")
    free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if kind is None and not free:
        yield f"{at}: no type"
    if top and (kind != "object" or "additionalProperties" in schema):
        yield f"{at}: must be an object without additionalProperties"
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield f"{at}: no items"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{at}: properties beside additionalProperties"
    yield from (f"{at}: {word}" for word in _FORBIDDEN & schema.keys())
    yield from _junctions(schema, at)
    yield from _lists(schema, at)
    yield from _defaults(schema, at)
    for name, inner in schema.get("properties", {}).items():
        yield from _node(inner, f"{at}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _node(schema[key], f"{at}.{key}")


def _junctions(schema: Schema, at: str) -> Iterator[str]:
    """Below allOf and its like stand constraints only; the two types of a quantity are the one exception."""
    for junction in ("allOf", "anyOf", "oneOf"):
        for choice in schema.get(junction, ()):
            if schema.get("x-kubernetes-int-or-string") and set(choice) == {"type"}:
                continue
            yield from (f"{at}: {junction} with {word}" for word in _STRUCTURE & choice.keys())
            yield from _junctions(choice, at)


def _lists(schema: Schema, at: str) -> Iterator[str]:
    kind, items = schema.get("x-kubernetes-list-type"), schema.get("items", {})
    if kind == "set" and items.get("type") not in _SCALARS:
        yield f"{at}: a set of {items.get('type')}"
    if kind == "map" and not schema.get("x-kubernetes-list-map-keys"):
        yield f"{at}: a map list without keys"
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        member = items.get("properties", {}).get(key, {})
        if member.get("type") not in _SCALARS or member.get("nullable"):
            yield f"{at}: the key {key} is no scalar"
        if key not in items.get("required", ()) and "default" not in member:
            yield f"{at}: the key {key} may be absent"


def _defaults(schema: Schema, at: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        member = schema.get("properties", {}).get(name)
        if member is None:
            yield f"{at}: requires {name}, which it does not have"
        elif "default" in member:
            yield f"{at}.{name}: a default of a required field"
    if isinstance(schema.get("default"), dict):
        yield from (f"{at}: default with unknown {name}" for name in schema["default"].keys() - schema.get("properties", {}).keys())

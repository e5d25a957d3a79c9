"""A structural schema, read once: everything that shaping and validation ask of a place, as plain attributes.

Children are read when a document first reaches them, because a CRD may declare ten thousand places and an object uses fifty.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from paddock.kubernetes.schema import patterns
from paddock.kubernetes.schema import wireformats as formats

Schema = dict[str, Any]
Trail = Any
ABSENT: Any = object()
_ENVELOPE = ("apiVersion", "kind", "metadata")


class SchemaNode:
    """One place of a schema."""

    def __init__(self, schema: Schema, *, root: bool = False) -> None:
        self.schema = schema
        self.root = root
        self.int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self.preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.nullable = bool(schema.get("nullable"))
        self.types = _types(schema)
        self.has_default = schema.get("default") is not None
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.list_type: str = schema.get("x-kubernetes-list-type") or "atomic"
        self.map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
        self.whole = "integer" in self.types or self.int_or_string

    @cached_property
    def properties(self) -> dict[str, "SchemaNode"]:
        return {name: SchemaNode(member) for name, member in (self.schema.get("properties") or {}).items()}

    @cached_property
    def others(self) -> "SchemaNode | None":
        """The schema of undeclared members."""
        extra = self.schema.get("additionalProperties")
        return SchemaNode(extra) if isinstance(extra, dict) else None

    @cached_property
    def open(self) -> bool:
        """True if undeclared members are kept as they are."""
        return self.preserves or self.schema.get("additionalProperties") is True

    @cached_property
    def items(self) -> "SchemaNode | None":
        """The schema of the entries of a list."""
        items = self.schema.get("items")
        return SchemaNode(items) if isinstance(items, dict) else None

    @cached_property
    def filled(self) -> tuple[tuple[str, "SchemaNode"], ...]:
        """The members that have a default."""
        return tuple((name, member) for name, member in self.properties.items() if member.has_default)

    @cached_property
    def kept(self) -> frozenset[str]:
        """Members that are there whether declared or not."""
        return frozenset(_ENVELOPE) if self.root or self.embedded else frozenset()

    @cached_property
    def pattern(self) -> "Callable[[str], bool] | None":
        """The test of a text against the pattern, or None."""
        text = self.schema.get("pattern")
        return patterns.matcher(text) if text else None

    @cached_property
    def format(self) -> "Callable[[str], bool] | None":
        """The test of a text against the format, or None."""
        return formats.FORMATS.get(self.schema.get("format") or "")

    @cached_property
    def bounded(self) -> bool:
        """True if the value itself, without its members, has any bounds."""
        return any(word in self.schema for word in _BOUNDS)

    @cached_property
    def junctions(self) -> "dict[str, tuple[SchemaNode, ...]]":
        """allOf, anyOf, oneOf and not."""
        found = {
            word: tuple(SchemaNode(each) for each in self.schema[word]) for word in ("allOf", "anyOf", "oneOf") if self.schema.get(word)
        }
        if self.schema.get("not"):
            found["not"] = (SchemaNode(self.schema["not"]),)
        return found

    @cached_property
    def shapes(self) -> bool:
        """True if there is anything to prune, to fill in or to round in a value of this place."""
        return (
            self.root
            or self.embedded
            or self.whole
            or "object" in self.types
            or "array" in self.types
            or bool(self.schema.get("properties"))
            or bool(self.schema.get("items"))
        )

    def member(self, name: str) -> "SchemaNode | None":
        """Return the schema of a member, if there is one."""
        return self.properties.get(name) or self.others


_BOUNDS = (
    *("enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not"),
)


def _types(schema: Schema) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if schema.get("x-kubernetes-int-or-string"):
        found = ("integer", "string")
    elif schema.get("type"):
        found = (schema["type"],)
    return (*found, "null") if found and schema.get("nullable") else found


def without_defaults(schema: Schema) -> Schema:
    """A schema that prunes like the given one and fills in nothing."""
    made = {word: value for word, value in schema.items() if word != "default"}
    if "properties" in made:
        made["properties"] = {name: without_defaults(member) for name, member in made["properties"].items()}
    for word in ("items", "additionalProperties"):
        if isinstance(made.get(word), dict):
            made[word] = without_defaults(made[word])
    return made


class MapKey(str):
    """A key of a map, as the path of a rule has it: in brackets. Paths of schema errors have all keys after dots."""

    __slots__ = ()


def steps(trail: Trail) -> tuple[str | int, ...]:
    """A chain of (outer place, key) as a path."""
    parts: list[str | int] = []
    while trail is not None:
        trail, key = trail
        parts.append(key)
    return tuple(reversed(parts))


def name_of(trail: Trail) -> str:
    """A chain as a kube-apiserver writes it: names after dots, whatever is in them."""
    text = ""
    for part in steps(trail):
        text += f"[{part}]" if isinstance(part, int | MapKey) else f".{part}" if text else part
    return text


def clone(value: Any) -> Any:
    """A copy of JSON data."""
    if isinstance(value, dict):
        return {key: clone(member) for key, member in value.items()}
    if isinstance(value, list):
        return [clone(entry) for entry in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; to Python true is 1."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def keys_of(node: SchemaNode, entry: Any) -> tuple[Any, ...] | None:
    """Return the key of an entry in a map-list."""
    if not isinstance(entry, dict):
        return None
    found = tuple(entry.get(key) for key in node.map_keys)
    return None if any(isinstance(each, dict | list) for each in found) else found


def correlated(node: SchemaNode, old: Any) -> Callable[[Any], Any]:
    """From an entry of a list to the entry that it was before, ABSENT where that is unknown."""
    if not isinstance(old, list) or node.list_type != "map":
        return lambda entry: ABSENT
    before = {keys: entry for entry in old if (keys := keys_of(node, entry)) is not None}

    def former(entry: Any) -> Any:
        keys = keys_of(node, entry)
        return ABSENT if keys is None else before.get(keys, ABSENT)

    return former


def has_rules(schema: Any) -> bool:
    """Return whether any place of a schema has CEL rules."""
    if not isinstance(schema, dict):
        return False
    if schema.get("x-kubernetes-validations"):
        return True
    below = (*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties"))
    return any(has_rules(each) for each in below)

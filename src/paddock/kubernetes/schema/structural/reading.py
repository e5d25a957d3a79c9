"""The schema of a CRD as a document: unknown words are dropped and noted, words of the wrong JSON type cannot be read at all.

What comes out holds together as far as types go, so that everything that reads a schema may trust it.
"""

from collections.abc import Callable
from typing import Any, Protocol

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural.node import Trail, name_of

RULE = "structural/schema-document"
# Deeper schemas are nobody's.
_DEEPEST = 100


class ReadNotes(Protocol):
    @property
    def broken(self) -> list[Finding]: ...
    def stranger(self, trail: Trail) -> None: ...


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), ((str,), "a string")),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), ((str,), "a string")),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), ((int,), "a whole number")),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), ((int, float), "a number")),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), ((bool,), "true or false")),
    **dict.fromkeys(
        ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"), ((bool,), "true or false")
    ),
    "externalDocs": ((dict,), "an object"),
    "dependencies": ((dict,), "an object"),
    "enum": ((list,), "a list"),
}
_ANY = frozenset(("default", "example"))
_WORD_LISTS = frozenset(("required", "x-kubernetes-list-map-keys"))
_SCHEMAS = frozenset(("not",))
_OPTIONAL_SCHEMAS = frozenset(("additionalProperties", "additionalItems"))
_SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf"))
_SCHEMA_MAPS = frozenset(("properties", "patternProperties", "definitions"))
_RULE_TEXTS = frozenset(("rule", "message", "messageExpression", "reason", "fieldPath"))


def read(schema: Any, trail: Trail, noted: ReadNotes, depth: int = 0) -> dict[str, Any]:
    """The schema with known words only; what is wrong goes to the notes."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        wanted = "a schema object" if depth <= _DEEPEST else f"at most {_DEEPEST} levels deep"
        noted.broken.append(_broken(trail, wanted))
        return {}
    made: dict[str, Any] = {}
    for word, value in schema.items():
        place = (trail, word)
        if value is None:
            continue
        reader = _READERS.get(word)
        if reader is None:
            noted.stranger(place)
            continue
        made[word] = reader(word, value, place, noted, depth)
    return made


def _broken(trail: Trail, wanted: str) -> Finding:
    return finding.invalid((name_of(trail),), None, f"json: cannot unmarshal: must be {wanted}", RULE)


def _scalar(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    types, wanted = _TYPES[word]
    if type(value) is float and types == (int,) and value.is_integer():
        value = int(value)
    if type(value) not in types:
        noted.broken.append(_broken(trail, wanted))
        return value
    return value


def _any(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    return value


def _words(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        noted.broken.append(_broken(trail, "a list of strings"))
    return value


def _schema(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    return read(value, trail, noted, depth + 1)


def _schema_or_bool(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    return value if isinstance(value, bool) else read(value, trail, noted, depth + 1)


def _items(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    return value if isinstance(value, list) else read(value, trail, noted, depth + 1)


def _schemas(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    if not isinstance(value, list):
        noted.broken.append(_broken(trail, "a list"))
        return []
    return [read(each, (trail, index), noted, depth + 1) for index, each in enumerate(value)]


def _schema_map(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    if not isinstance(value, dict):
        noted.broken.append(_broken(trail, "an object"))
        return {}
    return {name: read(each, (trail, name), noted, depth + 1) for name, each in value.items()}


def _rules(word: str, value: Any, trail: Trail, noted: ReadNotes, depth: int) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        noted.broken.append(_broken(trail, "a list of rules"))
        return []
    return [_rule(each, (trail, index), noted) for index, each in enumerate(value)]


def _rule(rule: dict[str, Any], trail: Trail, noted: ReadNotes) -> dict[str, Any]:
    made = {}
    for word, value in rule.items():
        if word not in _RULE_TEXTS and word != "optionalOldSelf":
            noted.stranger((trail, word))
        elif value is None:
            continue
        elif not isinstance(value, str if word in _RULE_TEXTS else bool):
            noted.broken.append(_broken((trail, word), "a string" if word in _RULE_TEXTS else "true or false"))
        else:
            made[word] = value
    return made


_READERS: dict[str, Callable[[str, Any, Trail, ReadNotes, int], Any]] = {
    **dict.fromkeys(_TYPES, _scalar),
    **dict.fromkeys(_ANY, _any),
    **dict.fromkeys(_WORD_LISTS, _words),
    **dict.fromkeys(_SCHEMAS, _schema),
    **dict.fromkeys(_OPTIONAL_SCHEMAS, _schema_or_bool),
    **dict.fromkeys(_SCHEMA_LISTS, _schemas),
    **dict.fromkeys(_SCHEMA_MAPS, _schema_map),
    "items": _items,
    "x-kubernetes-validations": _rules,
}

"""A value held against a schema, with upstream's words; and ratcheting: what an update does not touch is not judged again.

`old` is the value at the same place before the update, `ABSENT` where there was none or where nobody can say which it was:
members correlate by name, entries of map-lists by their keys, entries of other lists not at all.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema import wireformats as formats
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.structural import embedded
from paddock.kubernetes.schema.structural.node import ABSENT, SchemaNode, Trail, correlated, keys_of, name_of, same

TYPE = "structural/type"
REQUIRED = "structural/required"
ENUM = "structural/enum"
BOUNDS = "structural/bounds"
SIZE = "structural/size"
FORMAT = "structural/format"
JUNCTION = "structural/junction"
DUPLICATE = "structural/duplicate"
# What has to be right before CEL rules can be run.
BLOCKING = frozenset((TYPE, REQUIRED, ENUM, SIZE))
_NOWHERE = ("<nil>",)
Out = list[Finding]


def check(node: SchemaNode, value: Any, old: Any, trail: Trail, out: Out) -> None:
    """Add everything wrong with a value."""
    if old is not ABSENT and same(value, old):
        return
    kind = _kind(value)
    if node.types and kind not in node.types and not (kind == "integer" and "number" in node.types):
        wanted = ",".join(node.types)
        why = f'{name_of(trail)} in body must be of type {wanted}: "{kind}"'
        message = f'Invalid value: "{kind}": {why}'
        out.append(Finding(path=(name_of(trail),), message=message, rule=TYPE, cause=CauseType.TYPE_INVALID))
        if kind == "number" and node.types[0] == "integer" and not node.int_or_string:
            why = f"Checked value must be of type integer (default format) in {name_of(trail)}"
            out.append(finding.invalid(_NOWHERE, "", why, TYPE))
    elif value is None:
        return
    if node.bounded:
        _bounds(node, value, trail, out)
    if kind == "object":
        _members(node, value, old, trail, out)
    elif kind == "array":
        _entries(node, value, old, trail, out)


def fits(node: SchemaNode, value: Any, trail: Trail = None) -> Out:
    """Everything wrong with a value that has no past."""
    out: Out = []
    check(node, value, ABSENT, trail, out)
    return out


def _kind(value: Any) -> str:
    kind = _KINDS.get(type(value), "object")
    if kind == "integer" and not -(2**63) <= value < 2**63:
        return "number"
    if kind == "number" and value.is_integer() and abs(value) < 2**63:
        return "integer"
    return kind


_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"}


def _members(node: SchemaNode, value: dict[str, Any], old: Any, trail: Trail, out: Out) -> None:
    if node.embedded:
        out.extend(embedded.check(value, trail))
    for name in node.required:
        if name not in value:
            out.append(finding.required((name_of((trail, name)),), REQUIRED))
    before = old if isinstance(old, dict) and not node.atomic_map else None
    properties, others, kept = node.properties, node.others, node.kept
    for key, member in value.items():
        below = properties.get(key) or (None if key in kept else others)
        if below is not None:
            check(below, member, ABSENT if before is None else before.get(key, ABSENT), (trail, key), out)


def _entries(node: SchemaNode, value: list[Any], old: Any, trail: Trail, out: Out) -> None:
    items = node.items
    if items is not None:
        former = correlated(node, old)
        for index, entry in enumerate(value):
            check(items, entry, former(entry), (trail, index), out)
    if node.list_type in ("set", "map"):
        _repeated(node, value, trail, out)


def _repeated(node: SchemaNode, value: list[Any], trail: Trail, out: Out) -> None:
    seen: dict[Any, int] = {}
    for index, entry in enumerate(value):
        keys: Any = entry
        if node.list_type == "map":
            found = keys_of(node, entry)
            if found is None:
                continue
            keys = {name: each for name, each in zip(node.map_keys, found, strict=True) if each is not None}
        place = msgspec.json.encode(keys, order="sorted")
        seen[place] = seen.get(place, 0) + 1
        if seen[place] == 2:
            out.append(finding.duplicate((name_of((trail, index)),), keys, DUPLICATE))


def _bounds(node: SchemaNode, value: Any, trail: Trail, out: Out) -> None:
    schema = node.schema
    enum = schema.get("enum")
    if enum and not any(same(value, each) for each in enum):
        known = [each if isinstance(each, str) else finding.show(each) for each in enum]
        out.append(finding.unsupported((name_of(trail),), value, known, ENUM))
    if isinstance(value, str):
        _text(node, value, trail, out)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _number(schema, value, trail, out)
    elif isinstance(value, list):
        _size(len(value), schema.get("minItems"), schema.get("maxItems"), (trail, "items"), out)
    elif isinstance(value, dict):
        _size(len(value), schema.get("minProperties"), schema.get("maxProperties"), (trail, "properties"), out)
    if node.junctions:
        _junctions(node, value, trail, out)


def _said(trail: Trail, value: Any, why: str, rule: str) -> Finding:
    name = name_of(trail)
    return finding.invalid((name,), value, f"{name} in body {why}", rule)


def _text(node: SchemaNode, value: str, trail: Trail, out: Out) -> None:
    schema = node.schema
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        message = f"Too long: may not be more than {most} bytes"
        out.append(Finding(path=(name_of(trail),), message=message, rule=SIZE, cause=CauseType.TOO_LONG))
    if least is not None and len(value) < least:
        out.append(_said(trail, value, f"should be at least {least} chars long", BOUNDS))
    if node.pattern is not None and not node.pattern(value):
        out.append(_said(trail, value, f"should match '{schema['pattern']}'", BOUNDS))
    if node.format is not None and not node.format(value):
        name = name_of(trail)
        why = f"{name} in body must be of type {schema['format']}: {finding.show(value)}"
        out.append(msgspec.structs.replace(finding.invalid((name,), value, why, FORMAT), cause=CauseType.TYPE_INVALID))


def _number(schema: dict[str, Any], value: float, trail: Trail, out: Out) -> None:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        out.append(_said(trail, value, f"should be {word} {_plain(least)}", BOUNDS))
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        out.append(_said(trail, value, f"should be {word} {_plain(most)}", BOUNDS))
    if step and Decimal(str(value)) % Decimal(str(step)):
        out.append(_said(trail, value, f"should be a multiple of {_plain(step)}", BOUNDS))
    widest = formats.NUMBERS.get(schema.get("format") or "")
    if widest and not -widest <= value < widest:
        why = f"Checked value must be of type {schema.get('type')} with format {schema['format']} in {name_of(trail)}"
        out.append(finding.invalid(_NOWHERE, "", why, BOUNDS))


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _size(count: int, least: int | None, most: int | None, at: Trail, out: Out) -> None:
    trail, what = at
    if most is not None and count > most:
        message = f"Too many: {count}: must have at most {most} items"
        out.append(Finding(path=(name_of(trail),), message=message, rule=SIZE, cause=CauseType.TOO_MANY))
    if least is not None and count < least:
        out.append(_said(trail, count, f"should have at least {least} {what}", BOUNDS))


def _junctions(node: SchemaNode, value: Any, trail: Trail, out: Out) -> None:
    for word, choices in node.junctions.items():
        _JUNCTIONS[word](choices, value, trail, out)


def _junction(trail: Trail, why: str) -> Finding:
    return finding.invalid(_NOWHERE, "", f'"{name_of(trail)}" {why}', JUNCTION)


def _all_of(choices: tuple[SchemaNode, ...], value: Any, trail: Trail, out: Out) -> None:
    tried = [fits(each, value, trail) for each in choices]
    if any(tried):
        out.extend(wrong for each in tried for wrong in each)
        none = ". None validated" if all(tried) else ""
        out.append(_junction(trail, f"must validate all the schemas (allOf){none}"))


def _least(tried: list[Out]) -> Out:
    """Return the findings of the choice that comes nearest."""
    found = tried[0]
    for each in tried:
        found = each if len(each) < len(found) else found
    return found


def _any_of(choices: tuple[SchemaNode, ...], value: Any, trail: Trail, out: Out) -> None:
    tried = [fits(each, value, trail) for each in choices]
    if all(tried):
        out.append(_junction(trail, "must validate at least one schema (anyOf)"))
        out.extend(_least(tried))


def _one_of(choices: tuple[SchemaNode, ...], value: Any, trail: Trail, out: Out) -> None:
    tried = [fits(each, value, trail) for each in choices]
    valid = sum(not each for each in tried)
    if valid == 1:
        return
    found = f"Found {valid} valid alternatives" if valid else "Found none valid"
    out.append(_junction(trail, f"must validate one and only one schema (oneOf). {found}"))
    if not valid:
        out.extend(_least(tried))


def _not(choices: tuple[SchemaNode, ...], value: Any, trail: Trail, out: Out) -> None:
    if not fits(choices[0], value, trail):
        out.append(_junction(trail, "must not validate the schema (not)"))


_JUNCTIONS: dict[str, Callable[[tuple[SchemaNode, ...], Any, Trail, Out], None]] = {
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
}

"""What the table alone says of an object: required fields and words of an enumeration."""

from collections.abc import Iterator
from typing import Any

from paddock.apiserver.kindtable import table
from paddock.apiserver.kindtable.table import MessageField, MessageType
from paddock.schema import finding
from paddock.schema.finding import Finding
from paddock.schema.structural.node import Trail, steps

Data = dict[str, Any]
REQUIRED = "kindtable/required"
ENUM = "kindtable/enum"
# Fields that the published schema calls required, and whose absence no server minds.
_OPTIONAL = frozenset(
    (
        ("core/v1.HTTPHeader", "value"),
        ("storage/v1.CSINodeSpec", "drivers"),
        ("apps/v1.DaemonSetSpec", "selector"),
        ("core/v1.Taint", "effect"),
        ("autoscaling/v2.MetricStatus", "type"),
        ("networking/v1.HTTPIngressPath", "backend"),
    )
)
_SKIPPED = frozenset(("metadata", "status", "apiVersion", "kind"))


def check(found: MessageType, data: Data) -> Iterator[Finding]:
    """Everything wrong with an object, its metadata and status aside."""
    yield from _members(found, data, None, _SKIPPED)


def _members(found: MessageType, data: Data, trail: Trail, skipped: frozenset[str] = frozenset()) -> Iterator[Finding]:
    for name, field in found.fields.items():
        if name in skipped:
            continue
        value, place = data.get(name), (trail, name)
        if field.required and _is_missing(field, value) and (found.name, name) not in _OPTIONAL:
            yield finding.required(steps(place), REQUIRED)
        elif value is not None:
            yield from _value(field, value, place)


def _is_missing(field: MessageField, value: Any) -> bool:
    if not field.plain or field.pointer:
        return value is None or (not field.plain and not value)
    return field.type == "string" and not value


def _value(field: MessageField, value: Any, trail: Trail) -> Iterator[Finding]:
    if isinstance(value, list) and field.repeated:
        for index, each in enumerate(value):
            yield from _one(field, each, (trail, index))
    elif isinstance(value, dict) and field.mapped:
        for key, each in value.items():
            yield from _one(field, each, (trail, key))
    else:
        yield from _one(field, value, trail)


def _one(field: MessageField, value: Any, trail: Trail) -> Iterator[Finding]:
    if field.is_message:
        if isinstance(value, dict):
            yield from _members(table.message(field.type), value, trail)
    elif field.enum and isinstance(value, str) and value and value not in field.enum:
        yield finding.unsupported(steps(trail), value, field.enum, ENUM)

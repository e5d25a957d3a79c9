"""Checks that need only the table: required fields, words of an enumeration, bounds."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.formats import FORMATS
from paddock.kubernetes.schema.structural.node import Trail, steps
from paddock.server.kindtable import table
from paddock.server.kindtable.table import MessageField, MessageType

REQUIRED = "kindtable/required"
ENUM = "kindtable/enum"
LIMIT = "kindtable/limit"
# Fields that the published schema requires or lists the words of, and that no server judges by it: none at all, or the rules of the kind.
_UNJUDGED = frozenset(
    (
        ("core/v1.HTTPHeader", "value"),
        ("storage/v1.CSINodeSpec", "drivers"),
        ("apps/v1.DaemonSetSpec", "selector"),
        ("core/v1.Taint", "effect"),
        ("autoscaling/v2.MetricStatus", "type"),
        ("networking/v1.HTTPIngressPath", "backend"),
        ("core/v1.LimitRangeSpec", "limits"),
        ("core/v1.ResourceQuotaSpec", "scopes"),
        *(("core/v1.ScopedResourceSelectorRequirement", name) for name in ("scopeName", "operator")),
        ("certificates/v1.CertificateSigningRequestSpec", "usages"),
    )
)
_SKIPPED = frozenset(("metadata", "status", "apiVersion", "kind"))


class MessageChecks(NamedTuple):
    """The checks of the fields of a message."""

    required: tuple[MessageField, ...]
    # those with an enumeration, or with something to check below them
    members: tuple[MessageField, ...]
    limits: dict[str, Data]

    def __bool__(self) -> bool:
        return any(self)


def check(message_type: MessageType, data: Data) -> list[Finding]:
    """Everything wrong with an object, its metadata and status aside."""
    out: list[Finding] = []
    _message(_checks_of(message_type.name), {name: value for name, value in data.items() if name not in _SKIPPED}, None, out)
    return out


def check_member(message_type: MessageType, data: Data, name: str) -> list[Finding]:
    """Everything wrong with one member of an object."""
    out: list[Finding] = []
    if data.get(name) is not None:
        _member(message_type.fields[name], data[name], (None, name), out)
    return out


@cache
def _checks_of(name: str) -> MessageChecks:
    found = table.message(name)
    judged = [field for field in found.fields.values() if (name, field.name) not in _UNJUDGED]
    return MessageChecks(
        tuple(field for field in judged if field.required),
        # A limit with words of its own stands for the published ones.
        tuple(
            field
            for field in judged
            if (_checks_of(field.type) if field.is_message else field.enum and "enum" not in found.limits.get(field.name, {}))
        ),
        found.limits,
    )


def _message(checks: MessageChecks, data: Data, trail: Trail, out: list[Finding]) -> None:
    for field in checks.required:
        value = data.get(field.name)
        if not value and _is_missing(field, value):
            out.append(finding.required(steps((trail, field.name)), REQUIRED))
    for field in checks.members:
        value = data.get(field.name)
        if value:
            _member(field, value, (trail, field.name), out)
    for name, limits in checks.limits.items():
        value = data.get(name)
        if value is not None and value != "":
            out.extend(_limited(limits, value, (trail, name)))


def _is_missing(field: MessageField, value: Any) -> bool:
    if not field.plain or field.pointer:
        return value is None or not field.plain
    return field.type == "string"


def _member(field: MessageField, value: Any, trail: Trail, out: list[Finding]) -> None:
    if field.plain:
        _one(field, value, trail, out)
    else:
        for key, each in value.items() if field.mapped else enumerate(value):
            _one(field, each, (trail, key), out)


def _one(field: MessageField, value: Any, trail: Trail, out: list[Finding]) -> None:
    if field.is_message:
        _message(_checks_of(field.type), value, trail, out)
    elif value and value not in field.enum:
        out.append(finding.unsupported(steps(trail), value, field.enum, ENUM))


def _limited(limits: Data, value: Any, trail: Trail) -> Iterator[Finding]:
    if isinstance(value, list):
        if len(value) > limits.get("maxItems", len(value)):
            yield finding.too_many(steps(trail), len(value), limits["maxItems"], LIMIT)
        for index, each in enumerate(value) if "enum" in limits else ():
            yield from _limited(limits, each, (trail, index))
    elif isinstance(value, dict):
        form = FORMATS[limits["keys"]]
        for key, each in value.items():
            if not form.accepts(key):
                yield finding.invalid(steps((trail, key)), key, form.message, LIMIT)
            yield from _limited({"format": limits["format"]}, each, (trail, key))
    elif isinstance(value, int):
        if not limits["minimum"] <= value <= limits.get("maximum", value):
            yield finding.invalid(steps(trail), value, limits["message"], LIMIT)
    elif "enum" in limits:
        if value not in limits["enum"]:
            yield finding.unsupported(steps(trail), value, limits["enum"], LIMIT)
    elif len(value) > limits.get("maxLength", len(value)):
        yield finding.too_long(steps(trail), limits["maxLength"], LIMIT)
    elif "format" in limits and not FORMATS[limits["format"]].accepts(value):
        yield finding.invalid(steps(trail), value, FORMATS[limits["format"]].message, LIMIT)

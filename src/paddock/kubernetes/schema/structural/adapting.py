"""JSON data as expressions see it: times and bytes are values of their own, numbers are doubles where the schema says number.

Most schemas need none of this; then the data itself is what the expression sees.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

from paddock.base import duration
from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions import times
from paddock.kubernetes.schema.cel.values import Duration, Timestamp, UnorderedList
from paddock.kubernetes.schema.structural.node import SchemaNode

Adapt = Callable[[Any], Any]


def adapter(node: SchemaNode, *, gathers: bool = False) -> Adapt | None:
    """Return the conversion of the values of a place; None where they can stay as they are. `gathers`: lists are compared or joined."""
    if not _matters(node.schema, gathers):
        return None
    if node.int_or_string:
        return None
    if "number" in node.types:
        return lambda value: float(value) if type(value) is int else value
    if "string" in node.types:
        return _FORMATS.get(node.schema.get("format") or "")
    if "array" in node.types:
        return _list_adapter(node, gathers)
    return _object_adapter(node, gathers)


def _matters(schema: dict[str, Any], gathers: bool) -> bool:
    if gathers and schema.get("x-kubernetes-list-type") in ("set", "map"):
        return True
    if schema.get("type") == "number" or (schema.get("type") == "string" and schema.get("format") in _FORMATS):
        return True
    inner = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(_matters(each, gathers) for each in inner if isinstance(each, dict))


def _list_adapter(node: SchemaNode, gathers: bool) -> Adapt | None:
    below = adapter(node.items, gathers=gathers) if node.items is not None else None
    if gathers and node.list_type in ("set", "map"):
        keys = node.map_keys if node.list_type == "map" else ()
        return lambda value: UnorderedList(map(below, value) if below else value, keys) if isinstance(value, list) else value
    if below is None:
        return None
    return lambda value: [below(each) for each in value] if isinstance(value, list) else value


def _object_adapter(node: SchemaNode, gathers: bool) -> Adapt | None:
    members = {name: made for name, member in node.properties.items() if (made := adapter(member, gathers=gathers)) is not None}
    others = adapter(node.others, gathers=gathers) if node.others is not None else None

    def adapt(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: each(member) if (each := members.get(key) or others) else member for key, member in value.items()}

    return adapt


def _timestamp(value: Any) -> Any:
    try:
        return times.read_timestamp(value) if isinstance(value, str) else value
    except EvaluationError:
        return value


def _date(value: Any) -> Any:
    found = _timestamp(f"{value}T00:00:00Z") if isinstance(value, str) else value
    return found if isinstance(found, Timestamp) else value


def _duration(value: Any) -> Any:
    try:
        return Duration(duration.parse(value)) if isinstance(value, str) else value
    except duration.NotADuration:
        return value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except (binascii.Error, ValueError):
        return value


_FORMATS: dict[str, Adapt] = {"date-time": _timestamp, "datetime": _timestamp, "date": _date, "duration": _duration, "byte": _bytes}

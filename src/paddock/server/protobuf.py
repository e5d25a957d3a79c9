"""Reading protobuf bodies of built-in kinds, which typed clients send even where JSON would do (docs/spec/kube-api.md section 0.2).

The messages are those of the table of kinds. Answers are always JSON, so nothing is ever written.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import orjson

from paddock.base import protobuf
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.kindtable import table
from paddock.server.kindtable.table import MessageField, MessageType

_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1)  # always UTC
_SCHEMA = "apiextensions/v1.JSONSchemaProps"
_NUMBERS = ("int32", "int64", "bool")


def decode(body: bytes) -> Data:
    """The object of a framed body; raises a `Failure`."""
    if not body.startswith(_MAGIC):
        raise failure.bad_request("the body is not in the protobuf encoding that its media type names")
    try:
        envelope = dict(_raw(body[len(_MAGIC) :]))
        type_meta = dict(_raw(_bytes(envelope.get(1, b""))))
        api_version, kind = _bytes(type_meta.get(1, b"")).decode(), _bytes(type_meta.get(2, b"")).decode()
        found = table.message_of(api_version, kind)
        if found is None:
            raise failure.unsupported_media_type(["application/json", "application/yaml"])
        return {"apiVersion": api_version, "kind": kind, **_message(_bytes(envelope.get(2, b"")), found)}
    except (IndexError, ValueError, OverflowError, RecursionError, struct.error) as error:
        raise failure.bad_request(f"the protobuf body cannot be read: {error}") from None


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message belongs")
    return value


def _raw(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message, undecoded. No kind has fields of 32 bits."""
    return ((number, value) for number, kind, value in protobuf.fields(data) if kind != protobuf.FIXED32)


def _message(data: bytes, message_type: MessageType) -> Data:
    made: Data = {}
    for number, raw in _raw(data):
        field = message_type.wire.get(number)
        if field is None:
            continue
        if field.mapped:
            key, value = _entry(_bytes(raw), field.type)
            made.setdefault(field.name, {})[key] = value
        elif field.inline:
            made.update(_value(raw, field.type))
        elif field.repeated:
            made.setdefault(field.name, []).append(_value(raw, field.type))
        else:
            value = _value(raw, field.type)
            if _is_kept(field) or value not in ("", 0, False, None):
                made[field.name] = value
    return made


def _is_kept(field: MessageField) -> bool:
    """A zero says something: JSON would hold it, too."""
    return field.pointer or (field.always and field.type in _NUMBERS)


def _entry(data: bytes, kind: str) -> tuple[str, Any]:
    parts = dict(_raw(data))
    empty: bytes | int = b""
    return _bytes(parts.get(1, b"")).decode(), _value(parts.get(2, empty), kind)


def _value(raw: bytes | int, kind: str) -> Any:
    if kind in ("int32", "int64"):
        return protobuf.signed(raw) if isinstance(raw, int) else 0
    if kind == "bool":
        return raw not in (0, b"")
    data = _bytes(raw)
    match kind:
        case "string":
            return data.decode()
        case "bytes":
            return base64.b64encode(data).decode()
        case "Time" | "MicroTime":
            return _time(data, micro=kind == "MicroTime")
        case "Quantity":
            return _bytes(dict(_raw(data)).get(1, b"")).decode()
        case "Strings":
            return [_bytes(value).decode() for _, value in _raw(data)]
        case "IntOrString":
            parts = dict(_raw(data))
            return _bytes(parts.get(3, b"")).decode() if parts.get(1, 0) == 1 else _value(parts.get(2, 0), "int64")
        case "float64":
            number = struct.unpack("<d", data)[0]
            return int(number) if number.is_integer() else number
        case "FieldsV1" | "Json" | "Raw":
            return orjson.loads(_bytes(dict(_raw(data)).get(1, b"{}")))
        case "SchemaOrSchemas" | "SchemaOrBool" | "SchemaOrNames":
            return _alternative(data, kind)
    return _message(data, table.message(kind))


def _alternative(data: bytes, kind: str) -> Any:
    """A schema, or what may stand in its place."""
    others = []
    for number, raw in _raw(data):
        if kind == "SchemaOrBool" and number == 1:
            others.append(raw)
        elif number == (2 if kind == "SchemaOrBool" else 1):
            return _value(raw, _SCHEMA)
        else:
            others.append(_value(raw, "string" if kind == "SchemaOrNames" else _SCHEMA))
    return bool(others and others[0]) if kind == "SchemaOrBool" else others


def _time(data: bytes, *, micro: bool) -> str | None:
    parts = dict(_raw(data))
    if not parts:
        return None
    seconds, nanos = (_value(parts.get(number, 0), "int64") for number in (1, 2))
    # isoformat, for strftime writes years before 1000 with fewer than four digits, and clients do send the year 1
    moment = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    return f"{moment}.{nanos // 1000:06d}Z" if micro else f"{moment}Z"

"""Documents of OpenAPI 2 in the binary form of gnostic (`openapi.v2.Document`), which Go clients of Kubernetes ask for first.

A message is a table: member of the JSON document -> field number and type. Members whose name begins with `x-` are extensions; an
extension, a default and an enumerated value are texts in YAML, and JSON is YAML.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

Data = Mapping[str, Any]
# name -> number and type; "" holds the number of the extensions
_Table = dict[str, tuple[int, str]]


def _table(text: str, extensions: int) -> _Table:
    entries = (entry.split(":") for entry in text.split())
    return {"": (extensions, ""), **{name: (int(number), kind) for name, number, kind in entries}}


_SCHEMA = _table(
    "$ref:1:text format:2:text title:3:text description:4:text default:5:any multipleOf:6:double maximum:7:double "
    "exclusiveMaximum:8:bool minimum:9:double exclusiveMinimum:10:bool maxLength:11:int minLength:12:int pattern:13:text maxItems:14:int "
    "minItems:15:int uniqueItems:16:bool maxProperties:17:int minProperties:18:int required:19:texts enum:20:anys "
    "additionalProperties:21:schemaOrBool type:22:type items:23:items allOf:24:schemas properties:25:named discriminator:26:text "
    "readOnly:27:bool",
    31,
)
_OPERATION = _table(
    "tags:1:texts summary:2:text description:3:text operationId:5:text produces:6:texts consumes:7:texts responses:9:responses "
    "schemes:10:texts deprecated:11:bool",
    13,
)
_RESPONSE = _table("description:1:text schema:2:response", 5)
_PATH_ITEM = _table(
    "$ref:1:text get:2:operation put:3:operation post:4:operation delete:5:operation options:6:operation head:7:operation "
    "patch:8:operation",
    10,
)
_INFO = _table("title:1:text version:2:text description:3:text", 7)


def definition(name: str, schema: Data) -> bytes:
    """An entry of the definitions."""
    return _field(1, _named(name, _message(schema, _SCHEMA)))


def path(name: str, item: Data) -> bytes:
    """An entry of the paths."""
    return _field(2, _named(name, _message(item, _PATH_ITEM)))


def document(swagger: Data, paths: Iterable[bytes], definitions: Iterable[bytes]) -> bytes:
    """A document from its version and info, and the entries of its paths and definitions."""
    begin = _field(1, str(swagger["swagger"]).encode()) + _field(2, _message(swagger["info"], _INFO))
    return begin + _field(8, b"".join(paths)) + _field(9, b"".join(definitions))


def _message(value: Data, table: _Table) -> bytes:
    made = []
    for name, member in value.items():
        known = table.get(name)
        if known is not None:
            made.append(_member(known[0], known[1], member))
        elif name.startswith("x-"):
            made.append(_field(table[""][0], _named(name, _any(member))))
    return b"".join(made)


def _member(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "text":
            return _field(number, str(value).encode())
        case "texts":
            return b"".join(_field(number, str(each).encode()) for each in value)
        case "int" | "bool":
            return _varint(number << 3) + _varint(int(value) & (1 << 64) - 1)
        case "double":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case "any":
            return _field(number, _any(value))
        case "anys":
            return b"".join(_field(number, _any(each)) for each in value)
        case "schemas":
            return b"".join(_field(number, _message(each, _SCHEMA)) for each in value)
        case "operation":
            return _field(number, _message(value, _OPERATION))
    return _field(number, _wrapped(kind, value))


def _wrapped(kind: str, value: Any) -> bytes:
    """Return the bytes of a nested message."""
    match kind:
        case "type":
            return b"".join(_field(1, each.encode()) for each in (value if isinstance(value, list) else [value]))
        case "items":
            return b"".join(_field(1, _message(each, _SCHEMA)) for each in (value if isinstance(value, list) else [value]))
        case "named":
            return b"".join(definition(name, schema) for name, schema in value.items())
        case "responses":
            return b"".join(_field(1, _named(code, _field(1, _message(each, _RESPONSE)))) for code, each in value.items())
        case "schemaOrBool" if isinstance(value, bool):
            return _member(2, "bool", value)
    return _field(1, _message(value, _SCHEMA))


def _named(name: str, value: bytes) -> bytes:
    return _field(1, name.encode()) + _field(2, value)


def _any(value: Any) -> bytes:
    return _field(2, orjson.dumps(value) + b"\n")


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes(1, "little")
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)

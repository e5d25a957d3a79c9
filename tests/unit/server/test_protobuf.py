"""Bodies in protobuf: what a typed Go client means is what is read."""

import struct
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.meta.failure import Failure
from paddock.server import bodies, protobuf
from paddock.server.builtin import tabled
from paddock.server.edge.http import ConnectionPeer, HttpRequest
from paddock.server.kindtable import table


def message(*fields: tuple[int, Any]) -> bytes:
    """A message of its fields: whole numbers, floats, texts and messages."""
    made = b""
    for number, value in fields:
        if isinstance(value, bool | int):
            made += varint(number << 3) + varint(int(value) & (1 << 64) - 1)
        elif isinstance(value, float):
            made += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            made += varint(number << 3 | 2) + varint(len(data)) + data
    return made


def varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return made + bytes((value,))


def framed(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw))


def lease(acquired: bytes) -> bytes:
    return framed("coordination.k8s.io/v1", "Lease", message((1, message((1, "a"))), (2, message((3, acquired)))))


@pytest.mark.parametrize(
    ("seconds", "nanos", "text"),
    [
        (1_800_000_000, 0, "2027-01-15T08:00:00.000000Z"),
        (1_800_000_000, 1_999, "2027-01-15T08:00:00.000001Z"),
        # the zero time of Go, and a little later
        (-62_135_596_800, 0, "0001-01-01T00:00:00.000000Z"),
        (-62_135_596_798, 0, "0001-01-01T00:00:02.000000Z"),
    ],
)
def test_times(seconds: int, nanos: int, text: str) -> None:
    assert protobuf.decode(lease(message((1, seconds), (2, nanos))))["spec"]["acquireTime"] == text


def test_a_time_that_no_calendar_has_is_refused() -> None:
    with pytest.raises(Failure, match="cannot be read"):
        protobuf.decode(lease(message((1, 1 << 60))))


@pytest.mark.parametrize(("depth", "is_read"), [(100, True), (900, False)])
def test_what_nests_deeper_than_other_bodies_may_is_refused(depth: int, is_read: bool) -> None:
    fields = message((1, '{"a":' * depth + "1" + "}" * depth))
    managed = message((1, "m"), (2, "Update"), (3, "v1"), (6, "FieldsV1"), (7, fields))
    body = framed("v1", "ConfigMap", message((1, message((1, "a"), (17, managed)))))
    request = HttpRequest("PUT", "/x", {"content-type": "application/vnd.kubernetes.protobuf"}, body, ConnectionPeer("a"))
    if is_read:
        assert bodies.read_object(request).data["metadata"]["name"] == "a"
        return
    with pytest.raises(Failure, match="nested deeper than 200 levels") as refused:
        bodies.read_object(request)
    assert refused.value.code == 400


def definition(schema: bytes) -> bytes:
    version = message((1, "v1"), (2, True), (3, False), (4, message((1, schema))), (5, message((1, b""))))
    names = message((1, "crates"), (4, "Crate"))
    spec = message((1, "example.com"), (3, names), (4, "Namespaced"), (7, version))
    return framed("apiextensions.k8s.io/v1", "CustomResourceDefinition", message((1, message((1, "crates.example.com"))), (2, spec)))


def json(text: str) -> bytes:
    return message((1, text))


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ([(5, "object")], {"type": "object"}),
        ([(8, json("false")), (20, json('"a"')), (20, json("1"))], {"default": False, "enum": ["a", 1]}),
        ([(9, 1.5), (11, 0.0), (13, 0)], {"maximum": 1.5, "minimum": 0, "maxLength": 0}),
        ([(23, "a"), (23, "b")], {"required": ["a", "b"]}),
        ([(24, message((1, message((5, "string")))))], {"items": {"type": "string"}}),
        ([(29, message((1, "a"), (2, message((5, "integer")))))], {"properties": {"a": {"type": "integer"}}}),
        ([(30, message((1, True), (2, message((5, "string")))))], {"additionalProperties": {"type": "string"}}),
        ([(30, message((1, True)))], {"additionalProperties": True}),
        ([(30, message((1, False)))], {"additionalProperties": False}),
        ([(37, False), (38, True), (39, False)], {"x-kubernetes-preserve-unknown-fields": True}),
        ([(41, "name"), (42, "map")], {"x-kubernetes-list-map-keys": ["name"], "x-kubernetes-list-type": "map"}),
        ([(44, message((1, "self > 0"), (2, "too small")))], {"x-kubernetes-validations": [{"rule": "self > 0", "message": "too small"}]}),
    ],
)
def test_schemas_of_definitions(fields: list[tuple[int, Any]], schema: dict[str, Any]) -> None:
    read = protobuf.decode(definition(message(*fields)))
    assert read["spec"]["names"] == {"plural": "crates", "kind": "Crate"}
    (version,) = read["spec"]["versions"]
    assert version == {
        "name": "v1",
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


def test_every_kind_that_typed_clients_write_can_be_read() -> None:
    declared = {(kind.api_version, kind.kind) for kind in catalog.every() if kind.builtin}
    reviews = {(f"{group}/v1", kind) for group, kind in tabled.REVIEWS}
    rows = {(f"{row.group}/{version}" if row.group else version, row.kind) for row in table.kinds().values() for version in row.messages}
    for version, kind in declared | reviews | rows:
        body = framed(version, kind, message((1, message((1, "a")))))
        assert protobuf.decode(body)["metadata"] == {"name": "a"}, kind

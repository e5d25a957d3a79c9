"""Managed fields as paths."""

import pytest

from paddock.web.api import apply, managedfields


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (None, []),
        ({}, []),
        ({"f:spec": {"f:running": {}}}, ["spec.running"]),
        ({"f:spec": {".": {}, "f:a": {}, "f:b": {}}}, ["spec.a", "spec.b"]),
        ({"f:spec": {"f:volumes": {'k:{"name":"root"}': {".": {}, "f:name": {}}}}}, ["spec.volumes[name=root].name"]),
        ({"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:port": {}}}}, ["ports[port=80,protocol=TCP].port"]),
        ({"f:metadata": {"f:finalizers": {'v:"a/b"': {}}}}, ['metadata.finalizers["a/b"]']),
        ({"f:metadata": {"f:labels": {"f:kubevirt.io/vm": {}}}}, ["metadata.labels[kubevirt.io/vm]"]),
        ({"f:a": {"k:nonsense": {}}}, ["a[nonsense]"]),
        ({"f:<script>": {}}, ["<script>"]),
    ],
)
def test_paths(fields: object, expected: list[str]) -> None:
    assert [managedfields.shown(path) for path in managedfields.leaves(fields)] == expected


def test_the_newest_write_comes_first() -> None:
    entries = [{"manager": name, "operation": "Update", "time": when} for name, when in (("a", "1"), ("b", "3"), ("c", "2"))]
    assert [each.manager for each in managedfields.writes({"metadata": {"managedFields": entries}})] == ["b", "c", "a"]


META = {"name": "web", "uid": "u", "resourceVersion": "5", "generation": 2}


@pytest.mark.parametrize(
    ("edited", "now", "expected"),
    [
        ({}, {}, False),
        ({}, {"resourceVersion": "6"}, False),
        ({}, {"resourceVersion": "6", "generation": 3}, True),
        ({"generation": None}, {"resourceVersion": "6"}, True),
        ({}, {"uid": "another"}, True),
        ({"uid": ""}, {}, False),
    ],
)
def test_changes_meanwhile(edited: dict[str, object], now: dict[str, object], expected: bool) -> None:
    assert apply.changed_meanwhile({"metadata": {**META, **edited}}, {"metadata": {**META, **now}}) is expected


def test_an_object_without_generations_changes_with_its_revision() -> None:
    one = {"metadata": {"name": "a", "resourceVersion": "1"}}
    assert apply.changed_meanwhile(one, {"metadata": {"name": "a", "resourceVersion": "2"}})
    assert not apply.changed_meanwhile(one, one)


def test_culprits_are_those_who_wrote_what_differs() -> None:
    fields: dict[str, object] = {"f:spec": {"f:size": {}, "f:other": {}}}
    entries = [
        {"manager": "ada", "operation": "Update", "time": "T2", "fieldsV1": fields},
        {"manager": "status", "operation": "Update", "subresource": "status", "time": "T3", "fieldsV1": fields},
        {"manager": "ben", "operation": "Update", "time": "T1", "fieldsV1": {"f:spec": {"f:colour": {}}}},
    ]
    now = {"metadata": {"name": "a", "managedFields": entries}, "spec": {"size": 2, "other": 1}}
    assert apply.culprits({"metadata": {"name": "a"}, "spec": {"size": 3, "other": 1}}, now) == "ada wrote spec.size at T2"

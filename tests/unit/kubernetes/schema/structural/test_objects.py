"""Values held against schemas: the recorded answers of a kube-apiserver 1.36, ratcheting, and our own kinds."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.generate import crd
from paddock.kubernetes.schema.kind import Kind
from paddock.kubernetes.schema.structural import expressions, validating
from paddock.kubernetes.schema.structural.node import ABSENT, SchemaNode
from paddock.kubernetes.schema.structural.shaping import ShapeNotes, shape
from tests.kit.declarations.mutations import mutations

RECORDED = json.loads((Path(__file__).parent / "objects.json").read_text())
ROOT = SchemaNode(RECORDED["schema"], root=True)
STRING: dict[str, Any] = {"type": "string", "maxLength": 3}


def widget(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}


def said(node: SchemaNode, new: Any, old: Any = ABSENT) -> list[tuple[str, str, str]]:
    """Field, reason and message of everything wrong."""
    out: list[Any] = []
    validating.check(node, new, old, None, out)
    return [(each.field, each.cause.value, each.message) for each in out]


@pytest.mark.spec("kube-api", 106)
@pytest.mark.parametrize("case", RECORDED["objects"], ids=lambda case: json.dumps(case["spec"], ensure_ascii=False)[:60])
def test_judged_as_by_a_kube_apiserver(case: dict[str, Any]) -> None:
    noted = ShapeNotes()
    raw = widget(case["spec"])
    before = json.dumps(raw)
    shaped = shape(ROOT, raw, noted)
    assert json.dumps(raw) == before
    assert sorted(f'299 - "unknown field \\"{each.field}\\""' for each in noted.unknown) == sorted(case["warnings"])
    if case.get("code") == 400:
        assert noted.broken
        return
    assert not noted.broken
    assert sorted(said(ROOT, shaped)) == sorted(tuple(each) for each in case.get("causes", []))
    if "stored" in case:
        assert shaped.get("spec") == case["stored"]
        assert shape(ROOT, shaped, ShapeNotes()) == shaped


LISTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": STRING}},
        },
        "plain": {"type": "array", "items": STRING},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": STRING, "b": STRING}},
        "members": {"type": "object", "properties": {"a": STRING, "b": STRING}},
        "flag": {"type": "integer"},
    },
}


@pytest.mark.spec("kube-api", 108)
@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ({"members": {"a": "long", "b": "x"}}, {"members": {"a": "long", "b": "y"}}, []),
        ({"members": {"a": "long", "b": "x"}}, {"members": {"a": "longer", "b": "x"}}, ["members.a"]),
        ({"members": {"a": "long"}}, {"members": {"b": "long"}}, ["members.b"]),
        ({"keyed": [{"k": "1", "v": "long"}, {"k": "2", "v": "x"}]}, {"keyed": [{"k": "3"}, {"k": "1", "v": "long"}]}, []),
        ({"keyed": [{"k": "1", "v": "long"}]}, {"keyed": [{"k": "2", "v": "long"}]}, ["keyed[0].v"]),
        ({"plain": ["long"], "flag": 1}, {"plain": ["long"], "flag": 2}, []),
        ({"plain": ["long"]}, {"plain": ["long", "x"]}, ["plain[0]"]),
        ({"whole": {"a": "long", "b": "x"}}, {"whole": {"a": "long", "b": "y"}}, ["whole.a"]),
        ({"flag": 1}, {"flag": True}, ["flag"]),
        ({"keyed": [{"k": "1"}, {"k": "1"}], "flag": 1}, {"keyed": [{"k": "1"}, {"k": "1"}], "flag": 2}, []),
        ({"keyed": [{"k": "1"}, {"k": "1"}]}, {"keyed": [{"k": "1"}, {"k": "1"}, {"k": "2"}]}, ["keyed[1]"]),
    ],
)
def test_what_an_update_leaves_alone_is_not_judged(old: Any, new: Any, fields: list[str]) -> None:
    assert [field for field, _, _ in said(SchemaNode(LISTS), new, old)] == fields


# What the CRD of a kind cannot say and the kind's own declaration does.
UNSAYABLE = ("a key against label-key", "null", "against duration")
KINDS = [kind for kind in catalog.every() if crd.wanted(kind)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.group}")
def test_our_kinds_are_judged_by_their_crd_as_by_their_declaration(kind: Kind) -> None:
    root = SchemaNode(crd.schema(kind), root=True)
    rules = expressions.rules_of(root)
    for mutation in islice(mutations(kind), 400):
        if not isinstance(mutation.thing, dict) or mutation.path[:1] in (("metadata",), ("apiVersion",), ("kind",)):
            continue
        noted = ShapeNotes()
        shaped = shape(root, mutation.thing, noted)
        if not (noted.unknown or noted.broken or said(root, shaped) or list(rules.check(shaped, ABSENT, blocked=False))):
            assert mutation.what in UNSAYABLE, f"{mutation.path}: {mutation.what}"

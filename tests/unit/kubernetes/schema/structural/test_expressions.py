"""CEL rules of schemas: the recorded answers of a kube-apiserver 1.36, budgets, and what cannot be compiled."""

import json
from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural import expressions, limits, validating
from paddock.kubernetes.schema.structural.node import ABSENT, SchemaNode
from paddock.kubernetes.schema.structural.shaping import ShapeNotes, shape

RECORDED = json.loads((Path(__file__).parent / "expressions.json").read_text())
# One arrow points at another place.
OTHER_WORDS = frozenset(("nestedmap", "msgexpbad"))


def around(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}}


def causes(found: list[Finding]) -> list[tuple[str, str, str]]:
    return sorted((each.field, each.cause.value, each.message) for each in found)


def judged(schema: dict[str, Any], new: Any, old: Any = ABSENT) -> list[tuple[str, str, str]]:
    root = SchemaNode(around(schema), root=True)

    def whole(value: Any) -> Any:
        made = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "a"}, "spec": {"x": value}}
        return shape(root, made, ShapeNotes())

    before = ABSENT if old is ABSENT else whole(old)
    out: list[Finding] = []
    validating.check(root, whole(new), before, None, out)
    blocked = any(each.rule in validating.BLOCKING for each in out)
    out.extend(expressions.rules_of(root).check(whole(new), before, blocked=blocked))
    return causes(out)


@pytest.mark.spec("kube-api", 107, 147)
@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["case"]))
def test_judged_as_by_a_kube_apiserver(case: dict[str, Any]) -> None:
    place = "spec.validation.openAPIV3Schema"
    refused = causes([*expressions.check(around(case["schema"]), place), *limits.check(around(case["schema"]), place)])
    wanted = sorted(tuple(each) for each in case["refused"])
    if case["case"] in OTHER_WORDS:
        assert [each[:2] for each in refused] == [each[:2] for each in wanted]
    else:
        assert refused == wanted
    for each in case["values"]:
        assert judged(case["schema"], each["value"]) == sorted(tuple(cause) for cause in each["causes"]), each["value"]
    for each in case["updates"]:
        assert judged(case["schema"], each["new"], each["old"]) == sorted(tuple(cause) for cause in each["causes"])


def ruled(rule: str, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [{"rule": rule, **more}]}


@pytest.mark.spec("kube-api", 107)
def test_a_rule_that_costs_too_much_is_an_error() -> None:
    rule = "self.all(a, self.all(b, self.all(c, a + b + c != '')))"
    ((field, _, message),) = judged(ruled(rule), [str(number) for number in range(200)])
    assert field == "spec.x"
    why = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit"
    assert message == f'Invalid value: "array": {why} for rule: {rule}'


@pytest.mark.spec("kube-api", 107)
def test_all_rules_of_an_object_share_a_budget() -> None:
    schema = ruled("true")
    schema["x-kubernetes-validations"] = [{"rule": f"self.all(a, self.all(b, self.all(c, a != '{n}')))"} for n in range(20)]
    found = judged(schema, [str(number) for number in range(100, 300)])
    assert found[0][0] == "<nil>" and "running out of cost budget" in found[0][2]
    assert len(found) < 20


@pytest.mark.spec("kube-api", 107)
def test_rules_below_a_wrong_structure_wait() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 5"}]}
    found = judged(schema, {"a": "x"})
    assert found[0] == ("<nil>", "FieldValueInvalid", f"Invalid value: null: {expressions.UNCHECKED}")


def test_a_schema_without_rules_costs_nothing() -> None:
    assert judged({"type": "string"}, "x") == []


SETS = {"type": "array", "maxItems": 9, "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 9}}
ENTRY = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "maxLength": 9}, "v": {"type": "integer"}}}
MAPS = {"type": "array", "maxItems": 9, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ENTRY}
PLAIN = {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}}


def entry(key: str, value: int) -> dict[str, Any]:
    return {"k": key, "v": value}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("self.s == self.t", True),
        ("self.s != self.t", False),
        ("self.s == self.p", True),
        ("self.p == self.s", False),
        ("self.s == ['a', 'b']", True),
        ("['b', 'a'] == self.s", True),
        ("['a', 'b'] == self.s", False),
        ("self.s + ['a', 'c'] == ['c', 'a', 'b']", True),
        ("(self.s + ['a', 'c']).size() == 3", True),
        ("(self.p + ['a', 'c']).size() == 4", True),
        ("(['a', 'c'] + self.s).size() == 4", True),
        ("self.m == oldSelf.m", True),
        ("self.n == oldSelf.n", False),
        ("self.m != oldSelf.m", False),
        ("(self.n + oldSelf.n).size() == 3", True),
        ("(self.n + oldSelf.n)[0] == oldSelf.n[1]", True),
        ("(self.n + oldSelf.n)[2].k == 'z'", True),
        ("(oldSelf.n + self.n)[0].k == 'z'", True),
        ("type(self.s) == list && 'a' in self.s && self.s[0] == 'b'", True),
    ],
)
def test_sets_and_keyed_lists_have_no_order(rule: str, holds: bool) -> None:
    schema = {"type": "object", "properties": {"s": SETS, "t": SETS, "p": PLAIN, "m": MAPS, "n": MAPS, "i": {"type": "integer"}}}
    same = {"s": ["b", "a"], "t": ["a", "b"], "p": ["a", "b"]}
    new = {**same, "i": 1, "m": [entry("x", 1), entry("y", 2)], "n": [entry("x", 1), entry("y", 2)]}
    old = {**same, "m": [entry("y", 2), entry("x", 1)], "n": [entry("z", 2), entry("x", 7)]}
    found = judged({**schema, "x-kubernetes-validations": [{"rule": rule}]}, new, old)
    assert (not found) == holds, found

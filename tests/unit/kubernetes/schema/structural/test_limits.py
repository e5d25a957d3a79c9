"""Estimates of what rules may cost: a kube-apiserver's own figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes.schema.structural import limits
from tests.unit.kubernetes.schema.structural import costing

RECORDED: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("costs.json").read_text())
PLACE = "spec.validation.openAPIV3Schema"
UNBOUNDED = {"type": "array", "items": {"type": "string"}}
EXPENSIVE = "self.all(x, self.exists(y, x == y))"


def test_all_rules_are_recorded() -> None:
    assert set(RECORDED) == set(costing.RULES) and sum(map(bool, RECORDED.values())) > 100


@pytest.mark.parametrize("rule", costing.RULES)
def test_estimated_as_by_a_kube_apiserver(rule: str) -> None:
    found = limits.check(costing.schema_of(rule), PLACE)
    assert costing.factors((each.field, each.message) for each in found) == RECORDED[rule]


def with_rule(schema: dict[str, Any], rule: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}}}


def test_what_is_said_and_where() -> None:
    found = [(each.field, each.message) for each in limits.check(with_rule(UNBOUNDED, EXPENSIVE), PLACE)]
    advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    at = f"{PLACE}.properties[a].x-kubernetes-validations[0].rule"
    assert found == [
        (at, f"Forbidden: estimated rule cost exceeds budget by factor of more than 100x ({advice})"),
        (at, "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"),
        (PLACE, f"Forbidden: {total} exceeds budget by factor of more than 100x ({advice})"),
    ]


def test_rules_that_were_let_in_once_count_together_only() -> None:
    found = list(limits.check(with_rule(UNBOUNDED, EXPENSIVE), PLACE, each=False))
    assert not any("estimated rule cost exceeds" in each.message for each in found) and found


@pytest.mark.parametrize(
    "bounds", [{"maxItems": 10, "items": {"type": "string", "maxLength": 100}}, {"maxItems": 100, "items": {"type": "integer"}}]
)
def test_bounds_make_a_rule_cheap(bounds: dict[str, Any]) -> None:
    assert not list(limits.check(with_rule({**UNBOUNDED, **bounds}, EXPENSIVE), PLACE))


def test_messages_cost_too() -> None:
    found = limits.check(with_rule(UNBOUNDED, "self.size() > 1", messageExpression=f"{EXPENSIVE} ? 'a' : 'b'"), PLACE)
    assert next(found).field.endswith(".messageExpression")


def test_what_does_not_compile_costs_nothing() -> None:
    assert not list(limits.check(with_rule(UNBOUNDED, "self.all(x, self.exists(y, x.z == y)) &&"), PLACE))


@pytest.mark.parametrize(
    "rule", ["(self.sum() + self.sum()) % 2 == 0", "self.min() + self.max() > 3", "self.isSorted() && self.sum() + 1 > 2"]
)
def test_what_is_computed_of_numbers_is_a_number(rule: str) -> None:
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    assert not list(limits.check(with_rule(numbers, rule), PLACE))

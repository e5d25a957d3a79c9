"""A rule is asked if one of its ways leads to something, in the order of the rules; nothing else changes what they find."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema import check, finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, CrossFieldRule, Kind
from paddock.kubernetes.schema.ruling import RuleSet, compiled, rules_of
from tests.kit.declarations import documents
from tests.kit.declarations.mutations import mutations

SETTINGS = AdmissionSettings()
CLUSTER = AdmissionSettings(target="cluster")
ONE_IN = 5
WAYS = ((), ("a.b",), ("list[].x", "c"), ("map{one/two}",), ("list[].x.y", "a"))


def _thing(**members: Any) -> Any:
    return SimpleNamespace(**{"a": None, "c": None, "list": None, "map": None, **members})


@pytest.mark.parametrize(
    ("place", "given"),
    [
        (_thing(), {0}),
        (_thing(a=SimpleNamespace(b=None)), {0, 4}),
        (_thing(a=SimpleNamespace(b=0)), {0, 1, 4}),
        (_thing(c=False), {0, 2}),
        (_thing(list=[]), {0}),
        (_thing(list=[SimpleNamespace(x=None), SimpleNamespace(x=SimpleNamespace(y=None))]), {0, 2}),
        (_thing(list=[SimpleNamespace(x=SimpleNamespace(y="")), SimpleNamespace(x=None)]), {0, 2, 4}),
        (_thing(map={"one": 1}), {0}),
        (_thing(map={"one/two": ""}), {0, 3}),
    ],
)
def test_ways_lead_to_what_is_not_none(place: Any, given: set[int]) -> None:
    bits = compiled(WAYS)(place)
    assert {index for index in range(len(WAYS)) if bits >> index & 1} == given


def _rule(id: str, *given: str, **others: Any) -> CrossFieldRule:
    def look(place: Any) -> Iterator[Finding]:
        yield finding.warning(("spec",), id, id)

    def place_of(value: Any, settings: AdmissionSettings) -> Any:
        return value

    return CrossFieldRule(id, id, lambda value, settings: look(value), (), place_of, look, given=given, **others)


def test_rules_are_asked_in_order_and_of_an_unchanged_place_for_warnings_only() -> None:
    rules = RuleSet([_rule("one", "a"), _rule("two"), _rule("three", "c", warns=True)])
    place = _thing(a=1, c=1)
    assert [each.rule for each in rules.findings(place, SETTINGS)] == ["one", "two", "three"]
    assert [each.rule for each in rules.findings(place, SETTINGS, before=place)] == ["three"]
    assert [each.rule for each in rules.findings(_thing(c=1), SETTINGS, before=place)] == ["two", "three"]


@pytest.mark.parametrize("kind", [each for each in catalog.every() if any(rule.given for rule in each.rules)], ids=lambda kind: kind.kind)
@pytest.mark.parametrize("settings", [SETTINGS, CLUSTER], ids=["embedded", "cluster"])
def test_a_rule_that_is_not_asked_would_find_nothing(kind: Kind, settings: AdmissionSettings) -> None:
    things = (documents.least(kind), documents.fullest(kind), *_mutated(kind))
    for thing in things:
        value = from_data(check.check(kind.cls, thing).value, kind.cls)
        every = [found for rule in kind.rules for found in rule.check(value, settings)]
        assert rules_of(kind).findings(value, settings) == every


def _mutated(kind: Kind) -> Iterator[Any]:
    places = (place.wrap(documents.full(place.shape)) for place in documents.places(kind))
    yield from (thing for number, thing in enumerate(places) if number % ONE_IN == 0)
    yield from (each.thing for each in mutations(kind, lambda path, number: number % (ONE_IN * 4) == 0) if isinstance(each.thing, dict))

"""The effect of apply on values and owners, case by case: the tables in `cases/`.

They say what the reference implementation of server-side apply gives for its own tests, in this form:

- `types`: numbered; a type is a map (`fields`, `item` for the other keys, `defaults`), a keyed list (`keys`, `item`), a set, atomic, a
  scalar or deduced; `@name` leads to `named`.
- `cases`: each with its type, what goes in and what has to come out. In `applying.json` a case is a sequence of steps, each done to the
  result of the one before; a step that is refused names its conflicts or says `error`.
- `not_here`: what is left out, and the word for why (see `LEFT_OUT`). Taking a part out of a value, as clients do, has no cases either:
  the server never does it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes.meta.apply import applying, differences, ownership, types, values
from paddock.kubernetes.meta.apply.applying import ApplyRequest
from paddock.kubernetes.meta.apply.ownership import ManagedFieldsEntry, Manager
from paddock.kubernetes.meta.apply.types import MergeType
from paddock.kubernetes.meta.failure import Failure, FailureTarget

CASES = Path(__file__).parent / "cases"
LEFT_OUT = {
    "conversion": "fields keep the names of the version they were written in; no converter takes part in the bookkeeping",
    "either": "a list that is a set where something is a list, beside a map where it is a map: no schema of OpenAPI says that",
    "ignored": "what is never owned is fixed: identity, and what the server sets itself",
}
Case = dict[str, Any]


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return found


def table(name: str) -> pytest.MarkDecorator:
    cases = load(name)["cases"]
    return pytest.mark.parametrize("case", cases, ids=lambda case: str(case["name"]))


class Reader:
    """Makes types of one file; a name that is met inside itself leads back to itself."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said["types"]

    def type(self, number: str) -> MergeType:
        said = self._said[number]
        return _Named(said["named"]).read(said["root"])


class _Named:
    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self._made: dict[str, MergeType] = {}

    def read(self, said: Any) -> MergeType:
        if isinstance(said, str):
            name = said[1:]
            if name not in self._made:
                made = self._made[name] = MergeType(types.MAP)
                found = self.read(self._said[name])
                for attribute in MergeType.__slots__:
                    setattr(made, attribute, getattr(found, attribute))
            return self._made[name]
        if said["kind"] == "deduced":
            return types.DEDUCED
        fields = {name: self.read(each) for name, each in said.get("fields", {}).items()}
        item = self.read(said["item"]) if "item" in said else None
        keys = tuple(said.get("keys", ()))
        return MergeType(said["kind"], fields=fields, item=item, keys=keys, defaults=said.get("defaults") or _defaults(said, self._said))


def _defaults(said: Any, named: dict[str, Any]) -> dict[str, Any]:
    """The defaults of the keys of a keyed list."""
    item = said.get("item") if said["kind"] == "keyed" else None
    item = named[item[1:]] if isinstance(item, str) else item
    return (item or {}).get("defaults") or {}


READERS = {path.stem: Reader(json.loads(path.read_text())) for path in CASES.glob("*.json")}


def type_of(name: str, case: Case) -> MergeType:
    return READERS[name].type(case["type"])


def test_what_is_left_out_says_why() -> None:
    left = [each for path in CASES.glob("*.json") for each in load(path.stem).get("not_here", ())]
    assert {each["why"] for each in left} == set(LEFT_OUT)


@pytest.mark.spec("kube-api", 91)
@table("places")
def test_the_places_of_a_value(case: Case) -> None:
    assert values.places_of(type_of("places", case), case["value"], live=True) == case["places"]


@pytest.mark.spec("kube-api", 91)
@table("comparing")
def test_the_difference_of_two_values(case: Case) -> None:
    kind = type_of("comparing", case)
    for before, after, added, removed in (
        (case["before"], case["after"], case["added"], case["removed"]),
        (case["after"], case["before"], case["removed"], case["added"]),
    ):
        found = differences.difference(kind, before, after)
        assert (found.added, found.modified, found.removed) == (added, case["modified"], removed)


@pytest.mark.spec("kube-api", 91)
@table("merging")
def test_what_a_merge_makes(case: Case) -> None:
    assert values.merge(type_of("merging", case), case["live"], case["config"]) == case["merged"]


@pytest.mark.spec("kube-api", 91)
@table("removing")
def test_taking_places_away(case: Case) -> None:
    assert values.without(type_of("removing", case), case["value"], case["gone"]) == case["rest"]


@pytest.mark.spec("kube-api", 91)
@table("reconciling")
def test_places_that_were_merged_before_and_are_one_value_now(case: Case) -> None:
    found = values.fitted(type_of("reconciling", case), case["before"])
    assert found == (case["before"] if case["after"] is None else case["after"])


@pytest.mark.spec("kube-api", 91)
@table("validating")
def test_repeated_entries_are_refused(case: Case) -> None:
    """Values of the wrong type are for `fitting` to refuse; a repeated entry is refused of a configuration, not of a stored object."""
    kind = type_of("validating", case)
    if case["outcome"] == "repeated":
        with pytest.raises(values.Unmergeable):
            values.places_of(kind, case["value"])
        values.places_of(kind, case["value"], live=True)
    elif case["outcome"] == "valid" and isinstance(case["value"], dict):
        assert isinstance(values.places_of(kind, case["value"]), dict)


@pytest.mark.spec("kube-api", 91)
@table("applying")
def test_applies_and_updates(case: Case) -> None:
    live: Any = {}
    owners: list[ManagedFieldsEntry] = []
    for step in case["steps"]:
        root, manager = READERS["applying"].type(step["type"]), Manager(step["who"], step["version"])
        done = _outcome(root, live, owners, manager, step)
        assert done[0] == ("error" if step.get("error") else step.get("conflicts", [])), step
        if done[0]:
            continue
        _, live, owners = done
        assert live == (step["live"] or {})
        assert {each.manager.name: each.places for each in owners} == {who: each["places"] for who, each in step["owners"].items()}


def _outcome(
    root: MergeType, live: Any, owners: list[ManagedFieldsEntry], manager: Manager, step: Case
) -> tuple[Any, Any, list[ManagedFieldsEntry]]:
    """Return the result of a step: `error`, conflicts, or neither and a new state."""
    try:
        return [], *_step(root, live, owners, manager, step)
    except values.Unmergeable:
        return "error", live, owners
    except Failure as said:
        return sorted(_conflicts(said)), live, owners


def _step(
    root: MergeType, live: Any, owners: list[ManagedFieldsEntry], manager: Manager, step: Case
) -> tuple[Any, list[ManagedFieldsEntry]]:
    config = step["object"] or {}
    if step["does"] == "update":
        return config, ownership.updated(root, (live, config), owners, ManagedFieldsEntry(manager, ownership.UPDATE, {}, ""))
    wanted = values.places_of(root, config)
    asked = ApplyRequest(manager, FailureTarget(), "", step["does"] == "force")
    return applying.settle(root, (live, values.merge(root, live, config)), wanted, owners, asked)


def _conflicts(said: Failure) -> list[str]:
    return [f"{cause.message.split(chr(34))[1]} {cause.field}" for cause in said.causes]

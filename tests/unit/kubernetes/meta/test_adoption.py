"""The steps and writes by which an object goes from one owner to the next."""

from typing import Any

import pytest

from paddock.kubernetes.meta import adoption
from paddock.kubernetes.meta.adoption import UNCONFIRMED, AdoptionStep

MINE, OTHER = {"uid": "mine", "kind": "VirtualMachine"}, {"uid": "other", "kind": "ConfigMap"}
AT: dict[str, Any] = {"uid": "object", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("owners", "labels", "deleting", "due"),
    [
        ([], None, False, AdoptionStep.ADOPT),
        ([], None, True, AdoptionStep.NONE),
        # Somebody else began, and was let go of.
        ([], {UNCONFIRMED: "other"}, False, AdoptionStep.ADOPT),
        (["mine"], None, False, AdoptionStep.NONE),
        (["mine"], {UNCONFIRMED: "mine"}, False, AdoptionStep.CONFIRM),
        (["mine"], {UNCONFIRMED: "mine"}, True, AdoptionStep.NONE),
        (["mine"], {UNCONFIRMED: "other"}, False, AdoptionStep.NONE),
        (["other"], None, False, AdoptionStep.NONE),
        (["other"], {UNCONFIRMED: "other"}, False, AdoptionStep.NONE),
        # A mark without an owner says nothing.
        (["other"], {UNCONFIRMED: "mine"}, False, AdoptionStep.NONE),
    ],
)
def test_what_is_due(owners: list[str], labels: dict[str, str] | None, deleting: bool, due: AdoptionStep) -> None:
    assert adoption.step("mine", owners, labels, deleting=deleting) is due


def test_an_adoption_has_to_be_confirmed() -> None:
    found = adoption.adopted({**AT, "ownerReferences": [OTHER, {"uid": "mine"}]}, MINE)
    assert found == {**AT, "ownerReferences": [OTHER, MINE], "labels": {UNCONFIRMED: "mine"}}
    assert adoption.confirmed({**AT, **found}) == {**AT, "labels": {UNCONFIRMED: None}}


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({}, None),
        ({"ownerReferences": [OTHER]}, None),
        ({"ownerReferences": [MINE]}, {"ownerReferences": None}),
        ({"ownerReferences": [MINE, OTHER]}, {"ownerReferences": [OTHER]}),
        ({"ownerReferences": [MINE], "labels": {UNCONFIRMED: "mine"}}, {"ownerReferences": None, "labels": {UNCONFIRMED: None}}),
        ({"ownerReferences": [MINE], "labels": {UNCONFIRMED: "other"}}, {"ownerReferences": None}),
    ],
)
def test_what_lets_go(before: dict[str, Any], change: dict[str, Any] | None) -> None:
    assert adoption.released({**AT, **before}, "mine") == (None if change is None else {**AT, **change})


def test_an_owner_is_taken_off() -> None:
    before = {"ownerReferences": [MINE, OTHER], "labels": {UNCONFIRMED: "mine", "app": "web"}}
    assert adoption.without_owner(before, "mine") == {"ownerReferences": [OTHER], "labels": {"app": "web"}}
    assert adoption.without_owner(before, "other") == {**before, "ownerReferences": [MINE]}

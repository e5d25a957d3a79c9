"""Clauses of items: words of their text."""

import pytest

from tools.conformance.checklist import Item
from tools.conformance.clauses import parse
from tools.conformance.reasons import ReasonsError

CHECKLISTS = {"kube-api": (Item(1, "Lists and watches work."), Item(2, "Names are checked."))}


def test_clauses_are_words_of_the_item() -> None:
    assert parse({"kube-api": {"1": ["Lists", "watches"]}}, CHECKLISTS) == {("kube-api", 1): ("Lists", "watches")}


@pytest.mark.parametrize(("spec", "number", "clause"), [("kube-api", "2", "watches"), ("kube-api", "3", "Lists"), ("nobody", "1", "Lists")])
def test_words_that_the_item_does_not_say_are_refused(spec: str, number: str, clause: str) -> None:
    with pytest.raises(ReasonsError, match=f"item {number} of {spec} does not say '{clause}'"):
        parse({spec: {number: [clause]}}, CHECKLISTS)

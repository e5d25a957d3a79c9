"""The quick check accepts what the careful one has nothing to say of, with the same result, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from paddock.base.jsondata import copied
from paddock.kubernetes import catalog
from paddock.kubernetes.schema import check as careful
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.accepting import accept_of
from paddock.kubernetes.schema.check import Checked
from paddock.kubernetes.schema.kind import Kind
from paddock.kubernetes.schema.scalars import BareWord
from tests.kit.declarations import documents
from tests.kit.declarations.mutations import mutations
from tests.unit.kubernetes.schema.sample import SAMPLE

ONE_IN = 7
each_kind = pytest.mark.parametrize("kind", [SAMPLE, *catalog.every()], ids=lambda kind: f"{kind.kind}.{kind.group}".rstrip("."))


def _accepted(kind: Kind, document: Any) -> Any:
    """Return what the quick check makes of a document; None if it leaves it to the careful one."""
    value = copied(document)
    found: list[Any] = []
    made = accept_of(shape.shape_of(kind.cls), careful._checker)(value, None, found)
    return value if made is value and not found else None


def _careful(kind: Kind, document: Any) -> Checked:
    findings: list[Any] = []
    return Checked(careful._checker(shape.shape_of(kind.cls))(document, None, findings), findings)


def _documents(kind: Kind) -> Iterator[Any]:
    yield from (documents.least(kind), documents.fullest(kind))
    yield from (place.wrap(documents.valid(place.shape)) for place in documents.places(kind))
    yield from (place.wrap({}) for place in documents.places(kind) if isinstance(place.shape, shape.ObjectShape))
    yield from (each.thing for each in mutations(kind, lambda path, number: number % ONE_IN == 0))


@each_kind
def test_it_agrees_with_the_careful_check(kind: Kind) -> None:
    accepted = 0
    for document in _documents(kind):
        wanted, made = _careful(kind, document), _accepted(kind, document)
        if made is not None:
            accepted += 1
            assert Checked(made, []) == wanted
            assert list(made) == list(wanted.value)
    assert accepted


@pytest.mark.parametrize("word", [BareWord("On"), BareWord("no")])
def test_bare_words_are_left_to_the_careful_check(word: BareWord) -> None:
    for kind in catalog.every():
        for place in documents.places(kind):
            if place.path[:1] == ("spec",) and not isinstance(place.shape, shape.ObjectShape | shape.ListShape | shape.MapShape):
                assert _accepted(kind, place.wrap(word)) is None


def test_what_it_is_given_stays_as_it_is() -> None:
    document = {"apiVersion": SAMPLE.api_version, "kind": SAMPLE.kind, "metadata": {"name": "web"}, "spec": {"disks": []}}
    before = copied(document)
    checked = careful.check(SAMPLE.cls, document)
    assert (document, checked.findings) == (before, []) and checked.value["spec"]["count"] == 1

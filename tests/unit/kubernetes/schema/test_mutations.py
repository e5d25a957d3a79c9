"""The generators of the tests, held to account: every constraint has a mutation, and a check that lost one is found out."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.schema import check as checking
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.finding import Severity, format_path
from paddock.kubernetes.schema.kind import Kind
from tests.golden import Golden
from tests.kit.declarations import documents, strategies, texts
from tests.kit.declarations.mutations import Mutation, mutations, slips
from tests.unit.kubernetes.schema.sample import SAMPLE, Sample, Spec


def _missed(kind: Kind) -> list[Mutation]:
    return [mutation for mutation in mutations(kind) if not _is_reported(mutation)]


def _is_reported(mutation: Mutation) -> bool:
    findings = check(mutation.kind.cls, mutation.thing).findings
    return any(found.path == mutation.path and found.severity is Severity.ERROR for found in findings)


def test_every_way_to_break_the_sample(golden: Golden) -> None:
    lines = [f"{format_path(each.path)}: {each.what}" for each in mutations(SAMPLE) if each.path[:1] != ("metadata",)]
    golden("mutations.txt", "\n".join(dict.fromkeys(lines)) + "\n")


def test_all_are_reported() -> None:
    assert _missed(SAMPLE) == []


def test_they_are_the_same_every_time() -> None:
    once, again = list(mutations(SAMPLE)), list(mutations(SAMPLE))
    assert once == again


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """A check that says nothing where a shape of this type stands; compiled checks are forgotten before and after."""
    monkeypatch.setitem(checking._MAKERS, request.param, lambda place: lambda raw, trail, out: checking._DROP)
    _forget(SAMPLE)
    yield
    monkeypatch.undo()
    _forget(SAMPLE)


def _forget(kind: Kind) -> None:
    for place in documents.places(kind):
        place.shape.__dict__.pop("checker", None)
        if isinstance(place.shape, shape.ObjectShape):
            shape.shape_of(place.shape.cls).__dict__.pop("checker", None)


@pytest.mark.parametrize("blind", list(checking._MAKERS), ids=lambda kind: kind.__name__, indirect=True)
@pytest.mark.usefixtures("blind")
def test_a_check_that_says_nothing_is_found_out() -> None:
    assert _missed(SAMPLE) != []


BOUNDS = ("ge", "le", "at_least", "positive", "whole", "min_length", "max_length", "pattern", "format", "enum", "min_items", "max_items")
OTHERS = ("keys", "unique", "key_format", "aliases", "required")


@pytest.mark.parametrize("bound", [*BOUNDS, *OTHERS])
def test_the_sample_has_every_constraint(bound: str) -> None:
    """So that what is proved with it is proved of all."""
    assert any(getattr(place.shape.field, bound) for place in documents.places(SAMPLE))


def test_the_fullest_document_has_every_field() -> None:
    def missing(place: shape.Shape, value: Any, path: str) -> Iterator[str]:
        if isinstance(place, shape.ObjectShape):
            for name, prop in place.properties.items():
                yield from missing(prop.shape, value[name], f"{path}.{name}") if name in value else [f"{path}.{name}"]
        elif isinstance(place, shape.ListShape):
            yield from missing(place.item, value[0], f"{path}[]") if value else [path]

    whole = documents.fullest(SAMPLE)
    assert list(missing(shape.shape_of(Spec), whole["spec"], "spec")) == []


@pytest.mark.parametrize("name", ["a", "id", "cores", "storageClassName"])
def test_slips_are_one_letter_off(name: str) -> None:
    made = list(slips(name))
    assert name not in made
    assert len(made) == len(set(made))
    assert all(abs(len(slip) - len(name)) <= 1 for slip in made)
    assert len(made) >= 3


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z_][a-z0-9_-]{0,31}$",
        "^https?://[^/]",
        "^(md5:[0-9a-fA-F]{32}|sha1:[0-9a-fA-F]{40})$",
        r"^\d+(\.\d+)*$",
        r"^[^\r\n]*$",
        "^(a|bb)+c?$",
        "^.{3,5}$",
        r"^\w+\s\S$",
        "x$",
    ],
)
def test_a_text_for_a_pattern(pattern: str) -> None:
    """`matching` asserts by itself that the text fits."""
    assert texts.matching(pattern) == texts.matching(pattern)


@given(strategies.documents(SAMPLE))
def test_drawn_documents_are_good(document: dict[str, Any]) -> None:
    assert [found for found in check(Sample, document).findings if found.severity is Severity.ERROR] == []
    assert "status" not in document


@given(
    strategies.documents(
        SAMPLE, {"spec.running": st.just(False), "spec.disks[].bus": st.just("sata"), "spec.tags": st.just(strategies.NOTHING)}
    )
)
def test_pins_hold(document: dict[str, Any]) -> None:
    assert document["spec"]["running"] is False
    assert all(disk["bus"] == "sata" for disk in document["spec"].get("disks", ()))
    assert "tags" not in document["spec"]


@given(strategies.objects(Spec))
def test_drawn_objects_have_their_defaults(spec: Spec) -> None:
    assert spec.count >= 1
    assert spec.memory

"""Properties of every document of every kind: checking settles it, typing keeps it, and nothing makes rules stumble."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import admit, admit_change
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.finding import Finding, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests.kit.declarations import documents as fixed
from tests.kit.declarations import strategies

KINDS = catalog.every()
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.group}".rstrip("."))
# There are many kinds: each gets a share of the profile's examples.
some = settings(max_examples=max(6, settings().max_examples // 10))


@each_kind
@some
@given(data=st.data())
def test_checking_settles_a_document_and_typing_keeps_it(kind: Kind, data: st.DataObject) -> None:
    raw = data.draw(strategies.documents(kind, {"status": st.just({})} if "status" in kind.cls.__struct_fields__ else None))
    once = check(kind.cls, raw)
    assert [found for found in once.findings if found.severity is Severity.ERROR] == []
    twice = check(kind.cls, once.value)
    assert twice.value == once.value
    place = shape.shape_of(kind.cls)
    again = check(kind.cls, to_data(from_data(once.value, kind.cls)))
    # A note is about a member that is given; a typed object leaves out what has its default.
    assert _wrong(again.findings) == _wrong(once.findings)
    assert _without_nulls(place, again.value) == _without_nulls(place, once.value)


def _wrong(findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity is not Severity.NOTE]


def _without_nulls(place: shape.Shape, value: Any) -> Any:
    """A document as a typed object holds it: null is none, a zero where it means nothing, too, and strangers are somebody else's."""
    if isinstance(place, shape.ObjectShape) and isinstance(value, dict):
        known = {name: prop for name, prop in place.properties.items() if value.get(name) is not None and not _is_zero(prop, value[name])}
        return {name: _without_nulls(prop.shape, value[name]) for name, prop in known.items()}
    if isinstance(place, shape.ListShape) and isinstance(value, list):
        return [_without_nulls(place.item, entry) for entry in value]
    if isinstance(place, shape.MapShape) and isinstance(value, dict):
        return {name: _without_nulls(place.value, entry) for name, entry in value.items()}
    return value


def _is_zero(prop: shape.Property, value: Any) -> bool:
    return prop.field.zero and not value


@each_kind
@some
@given(data=st.data())
def test_admission_looks_at_every_document_without_stumbling(kind: Kind, data: st.DataObject) -> None:
    old, new = data.draw(strategies.documents(kind)), data.draw(strategies.documents(kind))
    before, after = admit(old, AdmissionSettings()), admit(new, AdmissionSettings(target="cluster"))
    assert before.value is not None
    assert admit(old, AdmissionSettings()) == before
    changed = admit_change(before.value, after, AdmissionSettings())
    assert changed.findings[: len(after.findings)] == after.findings


@cache
def _places(group: str, name: str) -> list[fixed.Place]:
    kind = catalog.find(group, name)
    assert kind is not None
    return [place for place in fixed.places(kind) if place.path[:1] not in (("apiVersion",), ("kind",))]


@each_kind
@some
@given(data=st.data())
def test_no_rubbish_anywhere_makes_admission_stumble(kind: Kind, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(_places(kind.group, kind.kind)))
    thing = place.wrap(data.draw(strategies.JUNK))
    if isinstance(thing, dict):
        admitted = admit({"apiVersion": kind.api_version, "kind": kind.kind, **thing}, AdmissionSettings())
        assert admitted.kind is not None
    check(kind.cls, thing)

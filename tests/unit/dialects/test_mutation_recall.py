"""Every way to break a field of every kind is reported at its place; rules look at the rest without stumbling."""

import itertools
from collections.abc import Iterable, Sequence

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.finding import Finding, Path, Severity, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests.kit.declarations import documents
from tests.kit.declarations.mutations import Mutation, mutations

KINDS = catalog.every()
INSIDE = {("template", "spec"), ("virtualMachineTemplate", "spec")}
ONE_IN = 13

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.group}".rstrip("."))


def _findings(mutation: Mutation) -> Sequence[Finding]:
    """Return admission's findings, which begin with the check's; a document that is no object has no kind for admission."""
    if isinstance(mutation.thing, dict):
        return admit(mutation.thing, AdmissionSettings()).findings
    return check(mutation.kind.cls, mutation.thing).findings


def _reported(mutation: Mutation, findings: Sequence[Finding]) -> bool:
    return any(found.path == mutation.path and found.severity is Severity.ERROR for found in findings)


def _missed(tried: Iterable[Mutation], *, at_least: int = 100) -> list[str]:
    """Return the mutations that admission does not report, of more than so many."""
    missed, count = [], 0
    for mutation in tried:
        count += 1
        if not _reported(mutation, _findings(mutation)):
            missed.append(f"{format_path(mutation.path)}: {mutation.what}")
    assert count > at_least
    return missed


def _is_sampled(path: Path, number: int) -> bool:
    """Return whether the ordinary run breaks a place: every one but those inside a machine's template, and one in `ONE_IN` there."""
    return INSIDE.isdisjoint(itertools.pairwise(path)) or number % ONE_IN == 0


@each_kind
def test_every_mutation_is_reported_at_its_path(kind: Kind) -> None:
    """A template holds the spec of another kind, and the run tries every mutation of it there."""
    assert _missed(mutations(kind, _is_sampled)) == []


@pytest.mark.soak
@each_kind
def test_every_mutation_of_a_template_is_reported(kind: Kind) -> None:
    assert _missed(mutations(kind)) == []


@each_kind
def test_a_document_with_every_field_passes_its_schema(kind: Kind) -> None:
    """Otherwise a mutation could be reported for a mistake of the document that it was made from."""
    for document in (documents.fullest(kind), documents.least(kind)):
        errors = [found for found in check(kind.cls, document).findings if found.severity is Severity.ERROR]
        assert errors == []


@each_kind
def test_rules_look_at_a_document_with_every_field(kind: Kind) -> None:
    assert admit(documents.fullest(kind), AdmissionSettings()).kind is kind

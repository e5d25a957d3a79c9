"""Every way to break a field of every kind is reported at its place; rules look at the rest without stumbling."""

from collections.abc import Sequence

import pytest

from paddock.dialects import catalog
from paddock.dialects.admission import admit
from paddock.schema.check import check
from paddock.schema.finding import Finding, Severity, format_path
from paddock.schema.kind import AdmissionSettings, Kind
from tests import documents
from tests.mutations import Mutation, mutations

KINDS = catalog.every()

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.group}".rstrip("."))


def _findings(mutation: Mutation) -> Sequence[Finding]:
    """What admission says, which begins with what the check says; a document that is no object has no kind to be admitted by."""
    if isinstance(mutation.thing, dict):
        return admit(mutation.thing, AdmissionSettings()).findings
    return check(mutation.kind.cls, mutation.thing).findings


def _reported(mutation: Mutation, findings: Sequence[Finding]) -> bool:
    return any(found.path == mutation.path and found.severity is Severity.ERROR for found in findings)


@each_kind
def test_every_mutation_is_reported_at_its_path(kind: Kind) -> None:
    missed, count = [], 0
    for mutation in mutations(kind):
        count += 1
        if not _reported(mutation, _findings(mutation)):
            missed.append(f"{format_path(mutation.path)}: {mutation.what}")
    print(f"{kind.kind}: {count} mutations")
    assert missed == []
    assert count > 100


@each_kind
def test_a_document_with_every_field_passes_its_schema(kind: Kind) -> None:
    """Otherwise a mutation could be reported for a mistake of the document that it was made from."""
    for document in (documents.fullest(kind), documents.least(kind)):
        errors = [found for found in check(kind.cls, document).findings if found.severity is Severity.ERROR]
        assert errors == []


@each_kind
def test_rules_look_at_a_document_with_every_field(kind: Kind) -> None:
    assert admit(documents.fullest(kind), AdmissionSettings()).kind is kind

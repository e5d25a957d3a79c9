"""The table of translators: kinds that exist, translators that are there, and every front kind with a place in it."""

import pytest

from paddock.dialects import translators as catalog
from paddock.kubernetes import catalog as kinds


def test_every_dialect_translates_both_ways() -> None:
    for dialect in catalog.DIALECTS:
        assert callable(catalog.to_kubevirt(dialect))
        assert callable(catalog.from_kubevirt(dialect))
    assert {*catalog.DIALECTS, catalog.HUB} == set(kinds.DIALECTS)


@pytest.mark.parametrize("kind", [kind for kind in kinds.known() if catalog.taken_by(*kind)], ids=".".join)
def test_what_is_taken_exists(kind: tuple[str, str]) -> None:
    assert kinds.find(*kind) is not None
    assert catalog.taken_by(*kind) in catalog.DIALECTS


@pytest.mark.parametrize("kind", kinds.known(), ids=".".join)
def test_every_kind_of_a_front_dialect_is_taken_or_read(kind: tuple[str, str]) -> None:
    found = kinds.find(*kind)
    assert found is not None
    if found.dialect in catalog.DIALECTS:
        assert catalog.taken_by(*kind) is not None or catalog.is_read(*kind)
    else:
        assert not catalog.is_read(*kind)

"""Views stay inside a translation: nothing that it makes holds one."""

from collections.abc import Iterator
from typing import Any

import pytest

from paddock.base.errors import PaddockError
from paddock.dialects import translators as catalog
from paddock.kubernetes import admission
from paddock.kubernetes.meta.fieldview import is_view, members_of
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.field import Object
from tests.unit.dialects.test_every_field import SETTINGS, examples


def objects(value: Any) -> Iterator[Object]:
    if isinstance(value, Object):
        yield value
        for member in members_of(value.__class__):
            yield from objects(member.get(value))
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from objects(each)


@pytest.mark.parametrize("dialect", catalog.DIALECTS)
def test_no_result_holds_a_view(dialect: str) -> None:
    made: list[Any] = [admission.admit(each, SETTINGS).value for each in examples(dialect)]
    world, count = ObjectSet(made), 0
    for each in made:
        if catalog.taken_by(each.apiVersion.rpartition("/")[0], each.kind) != dialect:
            continue
        try:
            result = catalog.to_kubevirt(dialect)(each, world, Rendering())
        except PaddockError:
            continue
        for part in (part for resource in result.value for part in objects(resource)):
            assert not is_view(part), part
            count += 1
    assert count > 10

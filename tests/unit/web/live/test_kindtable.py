"""The console's table of kinds against the declarations."""

import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.client.target import Target
from paddock.web.live import kindtable, topics
from paddock.web.live.machinerows import MACHINE_TARGETS


@pytest.mark.parametrize("target", kindtable.EVERY, ids=lambda each: each.qualified)
def test_the_table_agrees_with_the_declarations(target: Target[Data]) -> None:
    declared = catalog.find(target.group, target.kind)
    assert declared is not None
    assert (declared.plural, declared.storage_version, declared.namespaced) == (target.plural, target.version, target.namespaced)


def test_every_kind_of_the_table_is_in_a_topic() -> None:
    used = {target.qualified for name in topics.TOPICS for target in topics.source(name).kinds}
    assert used == {each.qualified for each in (*kindtable.EVERY, *MACHINE_TARGETS)}

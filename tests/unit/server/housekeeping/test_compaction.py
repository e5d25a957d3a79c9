"""The retention of history."""

import pytest

from paddock.server.housekeeping.compaction import HistoryCompactor
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(("looks", "status"), [(0, 200), (2, 200), (3, 410)])
@played
async def test_a_page_can_be_asked_for_until_its_list_is_old(api: Harness, /, looks: int, status: int) -> None:
    for name in "abc":
        await api.post(MAPS, {"metadata": {"name": name}})
    token = (await api.get(f"{MAPS}?limit=2")).data["metadata"]["continue"]
    await api.post(MAPS, {"metadata": {"name": "d"}})
    ageing = HistoryCompactor(api.parts)
    for _ in range(looks):
        await ageing.compact()
    assert (await api.get(f"{MAPS}?limit=2&continue={token}")).status == status

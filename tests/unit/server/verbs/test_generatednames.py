"""Names that the server generates, as docs/spec/kube-api.md section 2 says."""

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness
from tests.unit.server.verbs.test_objects import MAPS, config_map


@pytest.mark.spec("kube-api", 19)
@played
async def test_names_are_generated(api: Harness, /) -> None:
    sent = config_map()
    sent["metadata"] = {"generateName": "x" * 80}
    made = (await api.post(MAPS, sent)).data["metadata"]["name"]
    assert made.startswith("x" * 58)
    assert len(made) == 63
    again = {(await api.post(MAPS, sent)).data["metadata"]["name"] for _ in range(1000)}
    assert len(again | {made}) == 1001


@pytest.mark.spec("kube-api", 19)
@played
async def test_an_object_needs_a_name_or_the_beginning_of_one(api: Harness, /) -> None:
    sent = config_map()
    sent["metadata"] = {}
    refused = await api.post(MAPS, sent)
    assert (refused.status, set(refused.causes)) == (422, {"metadata.name"})


@pytest.mark.spec("kube-api", 19)
@played
async def test_a_generated_name_that_is_taken_is_generated_again(api: Harness, /) -> None:
    sent = config_map()
    sent["metadata"] = {"generateName": "gen-"}
    chance = api.clock._chance.getstate()
    first = (await api.post(MAPS, sent)).data["metadata"]["name"]
    api.clock._chance.setstate(chance)
    second = await api.post(MAPS, sent)
    assert second.status == 201 and second.data["metadata"]["name"] != first

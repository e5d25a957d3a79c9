"""Names that the server generates, as docs/spec/kube-api.md section 2 says."""

import pytest

from tests.apiharness import Harness
from tests.unit.server.conftest import Play
from tests.unit.server.verbs.test_objects import MAPS, config_map


@pytest.mark.spec("kube-api", 19)
def test_names_are_generated(play: Play) -> None:
    async def script(api: Harness) -> None:
        sent = config_map()
        sent["metadata"] = {"generateName": "x" * 80}
        made = (await api.post(MAPS, sent)).data["metadata"]["name"]
        assert made.startswith("x" * 58)
        assert len(made) == 63
        again = {(await api.post(MAPS, sent)).data["metadata"]["name"] for _ in range(1000)}
        assert len(again | {made}) == 1001

    play(script)


@pytest.mark.spec("kube-api", 19)
def test_an_object_needs_a_name_or_the_beginning_of_one(play: Play) -> None:
    async def script(api: Harness) -> None:
        sent = config_map()
        sent["metadata"] = {}
        refused = await api.post(MAPS, sent)
        assert (refused.status, set(refused.causes)) == (422, {"metadata.name"})

    play(script)


@pytest.mark.spec("kube-api", 19)
def test_a_generated_name_that_is_taken_is_generated_again(play: Play) -> None:
    async def script(api: Harness) -> None:
        sent = config_map()
        sent["metadata"] = {"generateName": "gen-"}
        chance = api.clock._chance.getstate()
        first = (await api.post(MAPS, sent)).data["metadata"]["name"]
        api.clock._chance.setstate(chance)
        second = await api.post(MAPS, sent)
        assert second.status == 201 and second.data["metadata"]["name"] != first

    play(script)

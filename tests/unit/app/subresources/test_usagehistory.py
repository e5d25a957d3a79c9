"""`usagehistory`: whose history it is, ranges, and machines that never ran."""

import pytest

from paddock.app.history.rings import Resolution, UsageRings, UsageSeries
from paddock.app.subresources.environment import SubresourceEnvironment
from paddock.app.subresources.subresources import SubresourceApi
from tests.coroutines import scripted
from tests.unit.app.subresources.world import World

NOW = 1_800_000_000.0


class OneHistory:
    """The history of one owner."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.rings = UsageRings()
        self.rings.add(NOW, (0.5, 1024.0, *[0.0] * 5))

    def series(self, owner: str, resolution: Resolution) -> UsageSeries:
        return (self.rings if owner == self.owner else UsageRings()).series(resolution, NOW)


async def with_history(world: World, owner: str) -> None:
    given = SubresourceEnvironment(world.api.parts, world.machines, world.networks, world.consoles, usage=OneHistory(owner))
    await world.subresources.close()
    world.subresources = SubresourceApi(given)
    world.subresources.serve(world.api.api)


@scripted
async def test_the_history_of_a_machine() -> None:
    async with World() as world:
        uid = (await world.machine())["metadata"]["uid"]
        await with_history(world, uid)
        hour = (await world.get("vm", "vm", "usagehistory")).data
        assert (hour["range"], hour["step"], hour["times"][-1], hour["series"]["cpu"][-1]) == ("1h", 15, int(NOW), 0.5)
        week = (await world.get("vm", "vm", "usagehistory?range=7d")).data
        assert (week["range"], week["step"], len(week["times"])) == ("7d", 1800, 336)


@scripted
async def test_an_instance_without_a_machine_has_its_own() -> None:
    async with World() as world:
        uid = await world.instance()
        await with_history(world, uid)
        assert (await world.get("vmi", "vm", "usagehistory?range=24h")).data["series"]["memory"][-1] == 1024
        assert (await world.get("vm", "vm", "usagehistory")).status == 404


@scripted
async def test_a_machine_that_never_ran_has_no_series() -> None:
    async with World() as world:
        await world.machine()
        await with_history(world, "another")
        reply = await world.get("vm", "vm", "usagehistory")
        assert (reply.status, reply.data["series"], len(reply.data["times"])) == (200, {}, 240)


@pytest.mark.parametrize("range", ["2h", "", "1h%27", "<script>"])
@scripted
async def test_other_ranges_are_refused(range: str) -> None:
    async with World() as world:
        await world.machine()
        reply = await world.get("vm", "vm", f"usagehistory?range={range}")
        assert (reply.status, "1h, 24h, 7d" in reply.data["message"]) == (400, True), reply.data

"""No disk that a pool promised to keep is ever deleted: whenever the controllers end, however late the news, whoever comes between.

Every run of the tests plays some seeds of the storm; STORMS=first:end says which.
"""

import asyncio
import os
import random
from functools import partial

import pytest

from tests.coroutines import played_by
from tests.scenario.disks.world import DATA_VOLUMES, MACHINES, POOLS, SETTLED_SECONDS, World, play

FIRST, END = (int(each) for each in os.environ.get("STORMS", "0:30").split(":"))
IN_ONE_TEST = 10
# Kinds whose news is late.
LATE: tuple[dict[str, float], ...] = (
    {},
    {"virtualmachines": 5.0},
    {"datavolumes": 5.0},
    {"virtualmachinepools": 5.0},
    {"virtualmachines": 5.0, "datavolumes": 2.0},
)
# More than the controllers write, or ask, in one of the scripts.
MOST_WRITES, MOST_REQUESTS = 40, 60
OPPORTUNISTIC = {"statePreservation": "Offline"}


async def settled(world: World) -> None:
    """Wait until nothing moves any more."""
    await asyncio.sleep(SETTLED_SECONDS)


@pytest.mark.spec("kubevirt", 111)
@pytest.mark.spec("kubermatic", 56)
@pytest.mark.spec("kubevirt", 100)
@pytest.mark.parametrize("strategy", ["Halted", "Always"])
@pytest.mark.parametrize("late", LATE, ids=lambda late: "-".join(late) or "none")
@played_by(play)
async def test_late_news_loses_nothing(world: World, /, late: dict[str, float], strategy: str) -> None:
    world.wire.late = late
    # Requests take their time, so that those of several controllers come between each other.
    world.wire.reading, world.wire.writing = 0.05, 0.2
    await world.again()
    await world.make(3, strategy)
    await settled(world)
    before = await world.uids()
    for replicas in (1, 3, 2, 0, 3):
        await world.scale(replicas)
        await settled(world)
        await world.check_settled(replicas)
        assert await world.uids() == before and world.deleted == {}
    # Nobody waits: each change comes into the one before it.
    for replicas in (0, 3, 1, 2, 0, 3):
        await world.scale(replicas)
        await asyncio.sleep(0.5)
    await settled(world)
    await world.check_settled(3)
    assert await world.uids() == before and world.deleted == {}


@pytest.mark.spec("kubevirt", 111)
@pytest.mark.spec("kubermatic", 56)
@pytest.mark.parametrize("late", [{}, {"virtualmachines": 5.0}], ids=["", "late"])
def test_the_end_of_the_process_between_any_two_writes_loses_nothing(late: dict[str, float]) -> None:
    async def ending(world: World, write: int, *, comes_back: bool) -> bool:
        """Scale in, end before this write, start again; whether there was such a write."""
        await world.make(2, "Always")
        await settled(world)
        before = await world.uids()
        world.wire.late = late
        await world.again()
        await asyncio.sleep(20)
        world.wire.ends_at = world.wire.writes + write
        await world.scale(1)
        await asyncio.sleep(60)
        is_over = world.wire.writes < world.wire.ends_at
        if comes_back:
            # It is wanted after all, before anybody could go on.
            await world.scale(2)
        await world.again()
        await settled(world)
        await world.check_settled(2 if comes_back else 1)
        await world.scale(2)
        await settled(world)
        await world.check_settled(2)
        assert await world.uids() == before and world.deleted == {}, f"it ended before write {write}"
        return is_over

    for comes_back in (False, True):
        for write in range(MOST_WRITES):
            if play(partial(ending, write=write, comes_back=comes_back)):
                assert write > 4
                break
        else:
            raise AssertionError("it never ends by itself")


@pytest.mark.spec("kubevirt", 111)
@pytest.mark.parametrize("who", ["orphan", "scaled-in"])
def test_a_machine_that_is_deleted_at_any_request_leaves_a_disk_that_it_may_not_take(who: str) -> None:
    """A kept disk is adopted by the next machine, which is deleted, to leave its disks behind, at each moment of that."""

    async def meeting(world: World, request: int) -> bool:
        await world.make(1)
        await settled(world)
        before = await world.uids()
        await world.scale(0)
        await settled(world)

        async def intrude() -> None:
            if who == "orphan":
                await world.delete(f"{MACHINES}/web-0", "Orphan")
            else:
                await world.scale(0)
            # As much time as the garbage collector, and nobody else, wants.
            await world._house.collector.chores.settled()

        world.wire.at, world.wire.act = world.wire.requests + request, intrude
        await world.scale(1)
        await asyncio.sleep(60)
        is_over = world.wire.requests <= world.wire.at
        world.wire.at = -1
        await settled(world)
        assert await world.uids() == before and world.deleted == {}, f"it was deleted before request {request}"
        await world.scale(1)
        await settled(world)
        await world.check_settled(1)
        return is_over

    for request in range(MOST_REQUESTS):
        if play(partial(meeting, request=request)):
            assert request > 5
            break
    else:
        raise AssertionError("it never ends by itself")


@pytest.mark.spec("kubevirt", 111)
@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_a_pool_that_is_deleted_keeps_what_was_scaled_in(propagation: str) -> None:
    async def ending(world: World, request: int) -> bool:
        await world.make(2, proactive={"statePreservation": "Offline", "selectionPolicy": {"sortPolicy": "DescendingOrder"}})
        await settled(world)
        disk = (await world.uids())["disk-1"]

        async def intrude() -> None:
            intruded.append(not (await world.all(DATA_VOLUMES))["disk-1"].get("ownerReferences"))
            await world.delete(f"{POOLS}/web", propagation)
            await world._house.collector.chores.settled()

        intruded: list[bool] = []
        world.wire.at, world.wire.act = world.wire.requests + request, intrude
        await world.scale(1)
        await asyncio.sleep(60)
        if not intruded:
            return True
        await settled(world)
        # From the moment at which it is released the disk stays; before that the pool's end takes everything along.
        assert disk not in world.deleted or not intruded[0], f"it was deleted before request {request}"
        machines = await world.all(MACHINES)
        assert (machines == {}) == (propagation != "Orphan")
        return False

    for request in range(MOST_REQUESTS):
        if play(partial(ending, request=request)):
            assert request > 5
            break
    else:
        raise AssertionError("it never ends by itself")


@pytest.mark.spec("kubevirt", 111)
@pytest.mark.spec("kubevirt", 100)
@played_by(play)
async def test_a_machine_that_somebody_deletes_leaves_its_disk_where_the_pool_waits_for_that(world: World, /) -> None:
    await world.make(2, opportunistic=OPPORTUNISTIC)
    await settled(world)
    before = await world.uids()
    await world.scale(1)
    await settled(world)
    assert len(await world.all(MACHINES)) == 2
    await world.delete(f"{MACHINES}/web-1")
    await settled(world)
    await world.check_settled(1)
    await world.delete(f"{MACHINES}/web-0")
    await settled(world)
    await world.check_settled(1)
    assert await world.uids() == before and world.deleted == {}
    # The pool itself takes along what its machines own, and nothing else.
    await world.delete(f"{POOLS}/web")
    await settled(world)
    assert list(await world.uids()) == ["disk-1"]


@pytest.mark.spec("kubevirt", 111)
@played_by(play)
async def test_a_disk_of_somebody_else_is_left_alone(world: World, /) -> None:
    await world.make(1)
    await settled(world)
    await world.scale(0)
    await settled(world)
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
    made = (await world.api.post("/api/v1/namespaces/default/configmaps", mine)).data["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": made["uid"]}
    await world.api.merge(f"{DATA_VOLUMES}/disk-0", {"metadata": {"ownerReferences": [owner]}})
    for replicas in (1, 0):
        await world.scale(replicas)
        await settled(world)
        assert (await world.all(DATA_VOLUMES))["disk-0"]["ownerReferences"] == [owner]
    assert world.deleted == {}


@pytest.mark.spec("kubevirt", 111)
@pytest.mark.spec("kubermatic", 56)
@pytest.mark.spec("kubevirt", 100)
@pytest.mark.parametrize("first", range(FIRST, END, IN_ONE_TEST))
def test_a_storm_loses_nothing(first: int) -> None:
    for seed in range(first, min(first + IN_ONE_TEST, END)):
        chance = random.Random(seed)
        replicas = 3
        moves: list[str] = []

        async def script(world: World, chance: random.Random = chance, moves: list[str] = moves) -> None:
            nonlocal replicas
            assert world.storm is not None
            world.storm.blows = False
            await world.make(3, chance.choice(["Halted", "Always"]))
            await settled(world)
            before = await world.uids()
            world.storm.blows = True
            for _ in range(chance.randint(3, 8)):
                move = chance.choice(["in", "out", "any", "end", "orphan", "pause"])
                moves.append(move)
                match move:
                    case "end":
                        await world.again()
                    case "orphan":
                        await world.delete(f"{MACHINES}/web-{chance.randrange(3)}", "Orphan")
                    case "pause":
                        await world.api.merge(f"{POOLS}/web", {"spec": {"paused": chance.random() < 0.5}})
                    case _:
                        replicas = {"in": max(0, replicas - 1), "out": min(3, replicas + 1)}.get(move, chance.randint(0, 3))
                        await world.scale(replicas)
                await asyncio.sleep(chance.choice((0.0, 0.01, 0.1, 1.0, 5.0, 30.0)))
            await world.api.merge(f"{POOLS}/web", {"spec": {"paused": False}})
            world.storm.blows = False
            await world.again()
            await settled(world)
            assert world.deleted == {}
            await world.check_settled(replicas)
            assert await world.uids() == before

        try:
            play(script, chance)
        except BaseException as error:
            error.add_note(f"STORMS={seed}:{seed + 1}: {moves}")
            raise

"""Slots that owners share."""

import asyncio

from paddock.base.fairslots import FairSlots
from tests.coroutines import timeless


class Work:
    """Turns that are held until they are told to end, and the order in which they began."""

    def __init__(self, turns: FairSlots) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def begin(self, *names: str) -> None:
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._hold(name))
        await asyncio.sleep(0.01)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await asyncio.sleep(0.01)

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.begun.append(name)
            await self._ends[name].wait()


@timeless
async def test_one_owner_leaves_room_for_others() -> None:
    work = Work(FairSlots(4))
    await work.begin("a1", "a2", "a3", "a4", "b1")
    assert work.begun == ["a1", "a2", "b1"]
    assert work.turns.blocked("a") == "a has 2 under way, and 2 is the most"
    assert work.turns.blocked("b") == ""
    await work.end("b1")
    assert work.begun == ["a1", "a2", "b1"]
    await work.end("a1")
    assert work.begun[3:] == ["a3"]


@timeless
async def test_a_free_slot_goes_to_the_owner_with_the_fewest() -> None:
    work = Work(FairSlots(6))
    await work.begin("a1", "a2", "a3", "b1", "b2", "c1", "b3", "c2")
    assert work.begun == ["a1", "a2", "a3", "b1", "b2", "c1"]
    assert work.turns.blocked("c") == "all 6 are taken: a has 3, b has 2, c has 1"
    await work.end("a1")
    # b3 has waited for longer, and b has two slots already.
    assert work.begun[6:] == ["c2"]
    await work.end("a2")
    assert work.begun[7:] == ["b3"]


@timeless
async def test_who_has_none_gets_a_spare_one() -> None:
    work = Work(FairSlots(2))
    await work.begin("a1", "b1", "b2", "c1", "d1", "e1")
    assert work.begun == ["a1", "b1", "c1", "d1"]
    assert work.turns.blocked("e") == "all 2 are taken: a has 1, b has 1, c has 1"
    await work.end("a1")
    assert work.begun[4:] == ["e1"]


@timeless
async def test_those_who_give_up_leave_nothing_behind() -> None:
    work = Work(FairSlots(1))
    await work.begin("a1", "a2", "b1", "c1")
    assert work.begun == ["a1", "b1"]
    work.tasks["a2"].cancel()
    await work.end("a1")
    assert work.begun == ["a1", "b1", "c1"]
    work.tasks["b1"].cancel()
    work.tasks["c1"].cancel()
    await asyncio.sleep(0.01)
    assert work.turns.blocked("b") == ""


@timeless
async def test_a_turn_that_is_given_and_given_up_in_one_moment_is_free_again() -> None:
    work = Work(FairSlots(1))
    await work.begin("a1", "b1", "c1")
    work._ends["a1"].set()
    await asyncio.sleep(0)
    work.tasks["c1"].cancel()
    await work.begin("d1")
    assert work.begun == ["a1", "b1", "d1"]

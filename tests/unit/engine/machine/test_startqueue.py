"""The start queue in virtual time: who starts when, and who gives its place up."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.engine.machine import startqueue
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.machine.startslots import StartSlots
from tests import virtualtime
from tests.coroutines import run_by


def test_no_more_start_than_there_are_places() -> None:
    queue = StartQueue(2)
    for name in "abc":
        queue.offer(name, 0)
    assert queue.take(0) == ["a", "b"]
    assert queue.take(0) == []
    assert queue.position("c", 0) == 0
    assert queue.position("a", 0) is None


def test_a_place_is_given_up_when_the_machine_ends() -> None:
    queue = StartQueue(1)
    queue.offer("a", 0)
    queue.offer("b", 0)
    assert queue.take(0) == ["a"]
    queue.done("a")
    assert queue.take(1) == ["b"]


def test_one_that_was_called_off_does_not_start() -> None:
    queue = StartQueue(1)
    queue.offer("a", 0)
    queue.done("a")
    assert queue.take(0) == []


def test_higher_priorities_come_first_and_equal_ones_in_order() -> None:
    queue = StartQueue(9)
    for name, priority in (("low", -1), ("first", 0), ("high", 5), ("second", 0)):
        queue.offer(name, 0, priority)
    assert queue.take(1) == ["high", "first", "second", "low"]


def test_nobody_waits_for_ever_behind_higher_priorities() -> None:
    queue = StartQueue(1)
    queue.offer("low", 0, -1)
    queue.offer("high", startqueue.PATIENCE, 9)
    assert queue.take(startqueue.PATIENCE) == ["low"]


def test_after_a_reboot_all_that_arrive_in_a_moment_are_sorted_before_the_first_starts() -> None:
    queue = StartQueue(1)
    queue.gather()
    queue.offer("low", 100)
    assert queue.take(100) == []
    queue.offer("high", 101, 7)
    assert queue.take(101.5) == []
    assert queue.take(100 + startqueue.GATHERING) == ["high"]
    queue.done("high")
    assert queue.take(103) == ["low"]
    # From then on nobody waits for others.
    queue.done("low")
    queue.offer("late", 104)
    assert queue.take(104) == ["late"]


@run_by(virtualtime.run)
async def test_the_slots_give_turns_by_priority_after_a_reboot() -> None:
    turns: list[str] = []

    async def guest(slots: StartSlots, name: str, priority: int) -> None:
        await slots.take(name, priority)
        turns.append(name)
        slots.give_back(name)

    slots = StartSlots(StartQueue(1), lambda _: None)
    slots.gather()
    async with asyncio.TaskGroup() as tasks:
        for name, priority in (("shop", 0), ("batch", -5), ("database", 1000)):
            tasks.create_task(guest(slots, name, priority))
            await asyncio.sleep(0.5)
    slots.close()
    assert startqueue.GATHERING <= asyncio.get_running_loop().time() <= startqueue.GATHERING + 1
    assert turns == ["database", "shop", "batch"]


def test_offered_again_it_keeps_its_place() -> None:
    queue = StartQueue(1)
    queue.offer("a", 0)
    queue.offer("b", 0)
    queue.offer("a", 5)
    assert queue.take(6) == ["a"]
    queue.offer("a", 7)
    assert queue.booting == {"a"}


def test_a_guest_that_is_never_quiet_gives_its_place_up_in_the_end() -> None:
    queue = StartQueue(1, longest=30)
    queue.offer("busy", 0)
    queue.offer("next", 0)
    assert queue.take(0) == ["busy"]
    for second in range(1, 30):
        assert not queue.report("busy", float(second), second)
        assert queue.take(second) == []
    assert queue.take(30) == ["next"]


def test_a_short_pause_is_not_quiet() -> None:
    queue = StartQueue(1)
    queue.offer("a", 0)
    queue.take(0)
    assert not queue.report("a", 0.5, 0.5)
    assert not queue.report("a", 0.5, 1.0)
    assert not queue.report("a", 1.0, 1.5)
    assert not queue.report("a", 1.0, 2.5)
    assert queue.report("a", 1.0, 3.0)
    assert queue.report("a", 1.0, 3.5)


@pytest.mark.parametrize(("cpus", "accelerator", "expected"), [(2, "tcg", 3), (16, "kvm", 32), (0, "tcg", 2)])
def test_places(cpus: int, accelerator: str, expected: int) -> None:
    assert startqueue.places(cpus, accelerator) == expected  # type: ignore[arg-type]


@run_by(virtualtime.run)
async def test_fifty_guests_in_virtual_time() -> None:
    """Two seconds of CPU each, two at a time: each is quiet soon after its own start, not after everybody's."""
    taken: dict[str, float] = {}
    quiet: dict[str, float] = {}

    async def guest(queue: StartQueue, id: str) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not queue.report(id, min(loop.time() - start, 2.0), loop.time()):
            await asyncio.sleep(0.5)
        quiet[id] = loop.time()

    loop = asyncio.get_running_loop()
    queue = StartQueue(2)
    for number in range(50):
        queue.offer(str(number), loop.time())
    async with asyncio.TaskGroup() as tasks:
        while len(taken) < 50:
            for name in queue.take(loop.time()):
                taken[name] = loop.time()
                tasks.create_task(guest(queue, name))
            await asyncio.sleep(0.25)
    assert 80 < asyncio.get_running_loop().time() < 110
    assert list(taken) == [str(number) for number in range(50)]
    assert max(quiet[name] - taken[name] for name in taken) <= 4


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["offer", "done", "take", "report"]), st.integers(0, 3)), max_size=60))
def test_random_calls_never_overfill_the_places(calls: list[tuple[str, str, int]]) -> None:
    queue, now, alive = StartQueue(2, longest=20), 0.0, set[str]()
    for name, call, number in calls:
        now += number
        if call == "offer":
            queue.offer(name, now, number)
            alive.add(name)
        elif call == "done":
            queue.done(name)
            alive.discard(name)
        elif call == "take":
            started = queue.take(now)
            assert set(started) <= alive
            assert len(queue.booting) <= 2
            assert set(started) <= queue.booting
        else:
            queue.report(name, now * number / 3, now)
    for _ in range(10):
        now += 20
        queue.take(now)
    assert all(queue.position(name, now) is None for name in alive)

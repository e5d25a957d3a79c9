"""The work queue in virtual time, alone and against a small model."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base.backoff import Backoff
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.queue import QueueClosed, WorkQueue
from tests import virtualtime
from tests.coroutines import run_by


def queue(first: float = 1.0, longest: float = 60.0, jitter: float = 0.0) -> tuple[WorkQueue[str], Machinery]:
    machinery = Machinery(chance=random.Random(2))
    return WorkQueue("test", machinery, Backoff(first=first, longest=longest, jitter=jitter)), machinery


def run(script: Coroutine[Any, Any, None]) -> float:
    return virtualtime.run(script)


@run_by(run)
async def test_a_key_waits_once_and_in_order() -> None:
    keys, _ = queue()
    for key in ("a", "b", "a", "c", "b"):
        keys.add(key)
    assert [await keys.get() for _ in range(3)] == ["a", "b", "c"]
    assert len(keys) == 0


@run_by(run)
async def test_a_key_is_with_one_worker_and_comes_back_when_offered_meanwhile() -> None:
    keys, _ = queue()
    keys.add("a")
    assert await keys.get() == "a"
    keys.add("a")
    keys.add("a")
    assert len(keys) == 0
    assert not keys.idle
    keys.done("a")
    assert await keys.get() == "a"
    keys.done("a")
    assert keys.idle


@run_by(run)
async def test_delays_are_kept_and_the_earlier_wish_counts() -> None:
    keys, _ = queue()
    loop = asyncio.get_running_loop()
    keys.add_after("a", 10)
    keys.add_after("a", 5)
    keys.add_after("a", 7)
    assert (await keys.get(), loop.time()) == ("a", 5)
    keys.done("a")
    keys.add_after("b", 0)
    assert await keys.get() == "b"
    keys.done("b")
    await asyncio.sleep(100)
    assert keys.idle


@run_by(run)
async def test_a_key_that_is_looked_at_sooner_is_not_looked_at_again_for_an_old_wish() -> None:
    keys, _ = queue()
    loop = asyncio.get_running_loop()
    keys.add_after("a", 10)
    keys.add("a")
    assert await keys.get() == "a"
    # A wish that comes while a worker has the key is a new one.
    keys.add_after("a", 30)
    keys.done("a")
    assert (await keys.get(), loop.time()) == ("a", 30)
    keys.done("a")
    await asyncio.sleep(100)
    assert keys.idle


@run_by(virtualtime.run)
async def test_failures_wait_longer_each_time_until_forgotten() -> None:
    keys, _ = queue(first=1, longest=5)
    pauses = []
    for _ in range(5):
        pauses.append(keys.add_failed("a"))
        await keys.get()
        keys.done("a")
    assert pauses == [1, 2, 4, 5, 5]
    keys.forget("a")
    assert keys.add_failed("a") == 1
    assert keys.failures("a") == 1
    assert keys.add_failed("b", longest=True) == 5
    assert asyncio.get_running_loop().time() == 17


@run_by(run)
async def test_pauses_are_spread() -> None:
    keys, _ = queue(first=10, jitter=0.2)
    pauses = {keys.add_failed(str(number)) for number in range(50)}
    assert len(pauses) == 50
    assert min(pauses) >= 8
    assert max(pauses) <= 12


@run_by(virtualtime.run)
async def test_the_end() -> None:
    keys, _ = queue()
    waiting = asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.add_after("a", 5)
    keys.close()
    keys.add("b")
    with pytest.raises(QueueClosed):
        await waiting
    assert asyncio.get_running_loop().time() == 0


@run_by(virtualtime.run)
async def test_a_cancelled_worker_takes_no_key_with_it() -> None:
    keys, _ = queue()
    first, second = asyncio.create_task(keys.get()), asyncio.create_task(keys.get())
    await asyncio.sleep(0)
    keys.add("a")
    # The first is woken for the key, and cancelled before it runs.
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"
    assert asyncio.get_running_loop().time() == 0


@run_by(run)
async def test_metrics() -> None:
    keys, machinery = queue()
    keys.add("a")
    keys.add_after("b", 60)
    await asyncio.sleep(3)
    text = machinery.metrics.text()
    assert 'paddock_workqueue_depth{queue="test"} 1\n' in text
    assert 'paddock_workqueue_delayed{queue="test"} 1\n' in text
    await keys.get()
    assert 'paddock_workqueue_wait_seconds_sum{queue="test"} 3\n' in machinery.metrics.text()
    keys.close()


KEYS = st.sampled_from("abc")
STEPS = st.lists(st.tuples(st.sampled_from(["add", "later", "fail", "work", "wait"]), KEYS, st.integers(0, 20)), max_size=60)


@given(steps=STEPS, workers=st.integers(1, 3))
@run_by(run)
async def test_what_is_offered_is_looked_at_afterwards_by_one_worker_at_a_time(steps: list[tuple[str, str, int]], workers: int) -> None:
    """In any order: after the last offer of a key a reconcile of it begins, and no two reconciles of one key overlap."""
    keys, _ = queue(longest=10, jitter=0.1)
    chance = random.Random(5)
    order = 0
    offered: dict[str, int] = {}
    began: dict[str, int] = {}
    held: set[str] = set()

    async def work() -> None:
        nonlocal order
        while True:
            key = await keys.get()
            assert key not in held
            held.add(key)
            order += 1
            began[key] = order
            await asyncio.sleep(chance.choice((0, 0.5, 3)))
            held.discard(key)
            keys.done(key)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    for what, key, number in steps:
        if what == "wait":
            await asyncio.sleep(number)
            continue
        order += 1
        offered[key] = order
        if what == "later":
            keys.add_after(key, number)
        elif what == "fail":
            keys.add_failed(key)
        else:
            keys.add(key)
    await asyncio.sleep(1000)
    assert keys.idle
    assert all(began[key] > offered[key] for key in offered)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

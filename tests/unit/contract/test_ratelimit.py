"""The token bucket, in virtual time."""

import asyncio

import pytest

from paddock.contract.ratelimit import TokenBucket
from tests import virtualtime
from tests.coroutines import run_by


@run_by(virtualtime.run)
async def test_rate() -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(10, 20, loop.time)

    async def call() -> None:
        assert await bucket.take(100)
        times.append(loop.time())

    await asyncio.gather(*(call() for _ in range(50)))
    assert times[:20] == [0.0] * 20
    assert times[20:] == pytest.approx([(number + 1) / 10 for number in range(30)])


@run_by(virtualtime.run)
async def test_a_wait_beyond_the_deadline_is_refused_at_once() -> None:
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(1, 1, loop.time)
    assert await bucket.take(0)
    assert not await bucket.take(0.5)
    assert loop.time() == 0
    assert await bucket.take(1)
    assert asyncio.get_running_loop().time() == pytest.approx(1)


@run_by(virtualtime.run)
async def test_a_call_that_is_given_up_costs_nothing() -> None:
    bucket = TokenBucket(1, 1, asyncio.get_running_loop().time)
    assert await bucket.take(0)
    waiting = asyncio.create_task(bucket.take(10))
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.sleep(0.5)
    assert await bucket.take(0)

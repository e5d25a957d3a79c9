"""Work that ends although its page goes away."""

import asyncio
import logging

import pytest

from paddock.base.errors import Terminal
from paddock.web.longwork import LongWork
from tests.coroutines import timeless


@timeless
async def test_work_goes_on_without_its_caller() -> None:
    work, done = LongWork(), list[str]()

    async def slow() -> str:
        await asyncio.sleep(10)
        done.append("done")
        return "result"

    asking = asyncio.create_task(work.finish(slow()))
    await asyncio.sleep(1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(20)
    assert done == ["done"]
    assert await work.finish(slow()) == "result"


@timeless
async def test_a_close_ends_what_is_under_way() -> None:
    work, ended = LongWork(), list[str]()

    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("ended")

    asking = asyncio.create_task(work.finish(endless()))
    await asyncio.sleep(1)
    await work.close()
    await asyncio.gather(asking, return_exceptions=True)
    assert ended == ["ended"]


@timeless
async def test_failures_reach_the_caller_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    work = LongWork()

    async def fail() -> None:
        raise Terminal("cannot", why="so")

    with pytest.raises(Terminal):
        await work.finish(fail())
    await asyncio.sleep(0)
    assert "action failed" in caplog.text

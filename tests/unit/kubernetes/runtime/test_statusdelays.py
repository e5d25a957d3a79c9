"""Statuses that wait: how long, and until when."""

import asyncio

from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.statusdelays import StatusDelays
from tests import virtualtime
from tests.coroutines import run_by

KEY = Key("default", "web")


@run_by(virtualtime.run)
async def test_a_status_waits_from_its_first_difference_on_whatever_comes_in_between() -> None:
    resting = StatusDelays()
    assert not resting.rests(KEY)
    assert resting.left(KEY, 0.25) == 0.25
    await asyncio.sleep(0.125)
    assert (resting.rests(KEY), resting.left(KEY, 0.25)) == (True, 0.125)
    await asyncio.sleep(1)
    assert resting.left(KEY, 0.25) == 0
    resting.end(KEY)
    assert not resting.rests(KEY)
    assert resting.left(KEY, 0.25) == 0.25

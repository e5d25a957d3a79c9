"""A whole Paddock in a process of its own, which the tests of runs have too, for as long as many scalings take."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.host.runs.conftest import Host, Play, Talk, host

__all__ = ["host"]

SCALES = int(os.environ.get("SCALES", "5"))
_SECONDS = 300 + 30 * SCALES


@pytest.fixture
def play(host: Host) -> Play:
    """Runs a script with the started host."""

    def run(script: Callable[[Talk], Awaitable[Any]]) -> None:
        async def inside() -> None:
            async with asyncio.timeout(_SECONDS), host.client() as client:
                await script(Talk(host, client))

        host.start()
        asyncio.run(inside())

    return run

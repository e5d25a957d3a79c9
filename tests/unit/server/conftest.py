"""Scripts against a server in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.kit.servers.apiharness import Harness

Script = Callable[[Harness], Awaitable[Any]]
Play = Callable[[Script], None]


@pytest.fixture
def play() -> Play:
    """Runs a script with a fresh server."""

    def run(script: Script) -> None:
        async def inside() -> None:
            async with Harness() as api:
                await script(api)

        asyncio.run(inside())

    return run

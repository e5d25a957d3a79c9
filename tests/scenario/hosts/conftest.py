"""Scripts of a whole host in virtual time."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddock.server.store.contract import Store
from tests import virtualtime
from tests.kit.engine.fakehost import FakeHost

Script = Callable[[FakeHost], Awaitable[Any]]
Play = Callable[..., float]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with a fresh host; returns how long it took there."""

    def run(script: Script, *, common: bool = False, store: Store | None = None) -> float:
        async def inside() -> None:
            async with FakeHost(tmp_path, common=common, store=store) as host:
                await script(host)

        return virtualtime.run(inside())

    return run

"""Scripts of Stakater's machines on a whole host in virtual time."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddock.dialects import fronts
from paddock.dialects.stakater.controllers import controller
from paddock.dialects.stakater.controllers.settings import StakaterSettings
from tests import virtualtime
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.fronts.stakater.stage import Stage

Script = Callable[[Stage], Awaitable[Any]]
Play = Callable[..., float]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Runs a script on a fresh host, with settings where it needs others than those of the embedded server."""

    def run(script: Script, settings: StakaterSettings | None = None, *, catalogue: bool = True) -> float:
        if settings is not None:
            monkeypatch.setitem(fronts.WIRES, "stakater", lambda program, given, front: controller.wire(program, settings))

        async def inside() -> None:
            async with FakeHost(tmp_path) as host:
                await script(await Stage(host).open(catalogue=catalogue))

        return virtualtime.run(inside())

    return run

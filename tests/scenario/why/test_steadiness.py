"""An answer stays while nothing changes: what is tried again and again has one cause, also while the next attempt is under way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.base.images.errors import ImageUnavailable
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.why.faults import Inject, asked
from tests.scenario.why.image_faults import imported, pulled

_UNREACHABLE = ImageUnavailable("Unreachable", "cannot fetch", why="the server cannot be reached: connection refused")


@pytest.mark.parametrize("inject", [imported(_UNREACHABLE), pulled(_UNREACHABLE)], ids=["imported", "pulled"])
@run_by(virtualtime.run)
async def test_an_image_that_is_tried_again_has_one_cause_all_the_time(inject: Inject, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    async with FakeHost(tmp_path) as host:
        slowly(host, 15.0)
        await inject(host)
        # The first attempt has failed by then.
        await asyncio.sleep(20)
        for _ in range(100):
            await asyncio.sleep(4)
            answer = await asked(host, "vm/web")
            assert answer.cause is not None
            seen.append((answer.state, answer.cause.rule))
    assert set(seen) == {("fails", "image-server-unreachable")}


def slowly(host: FakeHost, seconds: float) -> None:
    """Let every attempt take so long."""
    fetch = host.engine.images.fetch

    async def slow(*given: Any, **more: Any) -> Any:
        await asyncio.sleep(seconds)
        return await fetch(*given, **more)

    host.engine.images.fetch = slow  # type: ignore[method-assign]


@run_by(virtualtime.run)
async def test_a_copy_that_comes_after_all_is_what_is_waited_for(tmp_path: Path) -> None:
    """A download that begins to arrive ends the failure before it."""
    async with FakeHost(tmp_path) as host:
        await imported(_UNREACHABLE)(host)
        host.engine.images.script("https://images.example/debian.qcow2", [_UNREACHABLE])
        await asyncio.sleep(5)
        host.engine.images.hold("https://images.example/debian.qcow2", 0.1, 0.4)
        await asyncio.sleep(40)
        answer = await asked(host, "vm/web")
        assert answer.cause is not None
        assert (answer.state, answer.cause.rule) == ("waits", "disk-being-filled"), answer.findings
        assert "40.00%" in answer.cause.cause, answer.cause.cause

"""The checks of the host: once in a while, however many pages ask."""

import asyncio
from pathlib import Path

import pytest

from paddock.app.doctor import gather, judge
from paddock.app.doctor.check import HostCheck, limited
from paddock.app.webconsole.hostchecks import KEPT_SECONDS, source
from tests.coroutines import timeless


@timeless
async def test_a_host_is_checked_once_in_five_minutes(tmp_path: Path) -> None:
    looks = list[Path]()

    async def look(root: Path) -> None:
        looks.append(root)
        await asyncio.sleep(1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather, "gather", look)
        patch.setattr(
            judge, "judge", lambda facts: [HostCheck(id="kvm", subject="accelerator", outcome=limited("none", "slow", "load it"))]
        )
        checks = source(tmp_path)
        found, _ = await asyncio.gather(checks(), checks())
        await checks()
        assert looks == [tmp_path]
        assert [(each.name, each.state, each.text, each.fix) for each in found] == [("accelerator", "waits", "none. slow", "load it")]
        await asyncio.sleep(KEPT_SECONDS)
        await checks()
        assert looks == [tmp_path, tmp_path]

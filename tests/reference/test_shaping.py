"""A real kube-apiserver's results for objects are still those recorded beside the tests of Paddock's own server.

With PADDOCK_RECORD=1 in the environment the recording is written anew.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.coroutines import run_by
from tests.reference import crds
from tests.reference.client import Api
from tests.unit.server.custom import steps

pytestmark = pytest.mark.reference
RECORDED = Path(steps.__file__).with_name("shaping.json")
_SETTLE_SECONDS = 2.5


@run_by(asyncio.run)
async def test_the_recorded_answers_are_those_of_a_real_server(api: Api) -> None:
    async def send(method: str, path: str, body: Any, media: str) -> tuple[int, dict[str, Any]]:
        for _ in range(20):
            said = api.request(method, path, body, headers={"Content-Type": media} if media else None)
            if said.status != 429:
                break
            # The storage of a changed definition is being made.
            await asyncio.sleep(1.0)
        return said.status, said.body

    async def settle() -> None:
        # A kube-apiserver serves the former schema for a moment, and says nothing when that is over.
        await asyncio.sleep(_SETTLE_SECONDS)

    players = [steps.Player(case, number, send, settle) for number, case in enumerate(steps.CASES)]
    found = list(await asyncio.gather(*(each.play() for each in players)))
    for number in range(len(steps.CASES)):
        api.request("DELETE", f"{crds.PATH}/foos{number}.{steps.GROUP}")
    answers = [{"name": case["name"], "steps": outcome} for case, outcome in zip(steps.CASES, found, strict=True)]
    if os.environ.get("PADDOCK_RECORD"):
        RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    assert answers == json.loads(RECORDED.read_text())

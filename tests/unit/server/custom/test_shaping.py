"""The effect of a definition on objects, step by step as in a kube-apiserver: the cases of `shaping.yaml` and its recorded answers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness
from tests.unit.server.custom import steps

ANSWERS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("shaping.json").read_text())


@pytest.mark.spec("kube-api", 104)
@pytest.mark.parametrize("number", range(len(steps.CASES)), ids=lambda number: str(steps.CASES[number]["name"]))
@played
async def test_as_a_kube_apiserver_does_it(api: Harness, /, number: int) -> None:
    async def send(method: str, path: str, body: Any, media: str) -> tuple[int, dict[str, Any]]:
        said = await api.call(method, path, body, **({"content_type": media} if media else {}))
        return said.status, said.data

    async def settle() -> None:
        await asyncio.sleep(0)

    case, answer = steps.CASES[number], ANSWERS[number]
    assert case["name"] == answer["name"]
    found = await steps.Player(case, number, send, settle).play()
    for step, (said, wanted) in enumerate(zip(found, answer["steps"], strict=True)):
        assert said == wanted, (step, case["steps"][step])

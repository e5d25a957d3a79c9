"""Large writes: a thread does their work, and what changes meanwhile counts."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from paddock.kubernetes.meta import patch
from paddock.server.objects.requests import LARGE_BYTES
from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness, Reply

MAPS = "/api/v1/namespaces/default/configmaps"
KEYS = 30_000
# Far more than the steps of a write, and far fewer than a loop takes that has nothing else to do meanwhile.
TURNS = 50
Ask = Callable[[Harness], Any]


def config_map(value: str = "v", **metadata: Any) -> dict[str, Any]:
    data = {f"key-{number}": value for number in range(KEYS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": data}


async def turns(work: Any) -> tuple[Reply, int]:
    """The answer, and how many turns others had meanwhile."""
    asking, count = asyncio.ensure_future(work), 0
    while not asking.done():
        await asyncio.sleep(0)
        count += 1
    return asking.result(), count


ASKED: dict[str, tuple[Ask, int]] = {
    "create": (lambda api: api.post(MAPS, config_map() | {"metadata": {"name": "b"}}), 201),
    "update": (lambda api: api.put(f"{MAPS}/a", config_map("w")), 200),
    "merge": (lambda api: api.merge(f"{MAPS}/a", {"data": config_map("w")["data"]}), 200),
    "apply of the same": (lambda api: api.apply(f"{MAPS}/a", config_map(), "second"), 200),
    "apply of something else": (lambda api: api.apply(f"{MAPS}/a", config_map("w"), "second", force=True), 200),
    "conflict": (lambda api: api.apply(f"{MAPS}/a", config_map("w"), "second"), 409),
    "a small patch of a large object": (lambda api: api.merge(f"{MAPS}/a", {"metadata": {"labels": {"a": "b"}}}), 200),
}


@pytest.mark.parametrize("name", ASKED)
@scripted
async def test_others_have_their_turns_during_a_large_write(name: str) -> None:
    async with Harness() as api:
        assert (await api.apply(f"{MAPS}/a", config_map(), "first")).status == 201
        ask, status = ASKED[name]
        answer, count = await turns(ask(api))
        assert (answer.status, count > TURNS) == (status, True), count


@scripted
async def test_a_small_write_asks_no_thread() -> None:
    async with Harness() as api:
        before = threading.active_count()
        assert (await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"key": "x" * (LARGE_BYTES - 1000)}})).status == 201
        assert (await api.merge(f"{MAPS}/a", {"data": {"other": "x"}})).status == 200
        assert threading.active_count() == before


@scripted
async def test_what_is_written_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The large one is computed anew on the object as it is then."""
    begun, go_on = threading.Event(), threading.Event()
    merged = patch.apply_merge_patch

    def slowly(old: Any, change: Any) -> Any:
        if len(orjson.dumps(change)) > LARGE_BYTES and not begun.is_set():
            begun.set()
            assert go_on.wait(60)
        return merged(old, change)

    monkeypatch.setattr(patch, "apply_merge_patch", slowly)
    async with Harness() as api:
        assert (await api.post(MAPS, {"metadata": {"name": "a"}})).status == 201
        asking = asyncio.ensure_future(api.merge(f"{MAPS}/a", {"data": config_map()["data"]}))
        await asyncio.to_thread(begun.wait, 60)
        assert (await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"a": "b"}}})).status == 200
        go_on.set()
        assert (await asking).status == 200
        found = (await api.get(f"{MAPS}/a")).data
        assert (found["metadata"]["labels"], len(found["data"])) == ({"a": "b"}, KEYS)

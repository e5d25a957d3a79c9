"""Conversion webhooks: a real kube-apiserver and Paddock ask the same webhook and answer alike, whatever it answers."""

import asyncio
import copy
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.server.edge.http import HttpResponse
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.webhooks import Webhook
from tests.reference import crds
from tests.reference.client import MERGE_PATCH, Api
from tests.unit.server.custom.test_conversion import answer_to, definition, one, two

pytestmark = pytest.mark.reference
Data = dict[str, Any]
WIDGETS = "/apis/example.com/{}/namespaces/default/widgets"
V1, V2 = WIDGETS.format("v1"), WIDGETS.format("v2")
APPLY = {"Content-Type": "application/apply-patch+yaml"}
Send = Callable[..., Awaitable[tuple[int, Data]]]


def _changed(**changes: Any) -> Callable[[Data], Data]:
    """A good answer with other metadata in its objects."""

    def answer(asked: Data) -> Data:
        made = answer_to(asked)
        for each in made["response"]["convertedObjects"]:
            each["metadata"] = {**each["metadata"], **changes}
        return made

    return answer


def _response(**changes: Any) -> Callable[[Data], Data]:
    def answer(asked: Data) -> Data:
        made = answer_to(asked)
        made["response"] = {**made["response"], **changes}
        return made

    return answer


def _objects(change: Callable[[list[Data]], list[Any]]) -> Callable[[Data], Data]:
    def answer(asked: Data) -> Data:
        made = answer_to(asked)
        made["response"]["convertedObjects"] = change(made["response"]["convertedObjects"])
        return made

    return answer


# What a webhook may do wrong, and right.
ANSWERS: dict[str, Callable[[Data], Data | HttpResponse]] = {
    "labels": _changed(labels={"made": "here"}, annotations={"and": "there"}),
    "other metadata": _changed(generation=99, finalizers=["example.com/x"], resourceVersion="1"),
    "another uid": _changed(uid="00000000-0000-4000-8000-00000000ffff"),
    "another name": _changed(name="b"),
    "another namespace": _changed(namespace="b"),
    "a failure": _response(result={"status": "Failure", "message": "no thanks"}),
    "a failure without a message": _response(result={"status": "Failure"}),
    "another question": _response(uid="x"),
    "no objects": _objects(lambda _: []),
    "too many objects": _objects(lambda found: found * 2),
    "another version": _objects(lambda found: [{**each, "apiVersion": "example.com/v1"} for each in found]),
    "another kind": _objects(lambda found: [{**each, "kind": "Gadget"} for each in found]),
    "no metadata": _objects(lambda found: [{key: value for key, value in each.items() if key != "metadata"} for each in found]),
    "no response": lambda asked: {key: value for key, value in answer_to(asked).items() if key != "response"},
}


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Webhook]:
    """A webhook in a thread of its own: one of the two servers lives in this one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    webhook = Webhook(tmp_path, answer_to)
    asyncio.run_coroutine_threadsafe(webhook.__aenter__(), loop).result(10)
    yield webhook
    asyncio.run_coroutine_threadsafe(webhook.__aexit__(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


async def play(send: Send, hook: Webhook) -> list[Any]:
    """The outcome of every step."""
    hook.answer = answer_to
    steps: list[tuple[str, str, Any, dict[str, str]]] = [
        ("POST", V1, one(), {}),
        ("GET", f"{V2}/a", None, {}),
        ("POST", V2, two("b"), {}),
        ("GET", f"{V1}/b", None, {}),
        ("GET", V2, None, {}),
        ("PATCH", f"{V2}/a", {"spec": {"port": "9"}}, MERGE_PATCH),
        ("PATCH", f"{V2}/a?fieldManager=m&force=true", two(port="8"), APPLY),
        ("PATCH", f"{V2}/c?fieldManager=m", two("c"), APPLY),
        ("GET", f"{V1}/a", None, {}),
        ("GET", f"{V2}/a/scale", None, {}),
        ("PATCH", f"{V2}/a", {"spec": {"size": "x"}}, MERGE_PATCH),
    ]
    outcomes = [_shown(*await send(*step)) for step in steps]
    for name, answer in ANSWERS.items():
        await send("PATCH", f"{V1}/a", {"metadata": {"annotations": {"turn": name}}}, MERGE_PATCH)
        hook.answer = answer
        outcomes.append((name, _shown(*await send("GET", f"{V2}/a", None, {}))))
        hook.answer = answer_to
    outcomes.append(_shown(*await send("DELETE", f"{V2}/a", None, {})))
    return outcomes


def _shown(status: int, body: Data) -> Any:
    if status >= 300:
        causes = [(each.get("field"), each.get("message")) for each in (body.get("details") or {}).get("causes") or ()]
        return status, causes or _plain(body["message"])
    if body["kind"].endswith("List"):
        return status, [_shown(status, each) for each in body["items"]]
    meta = {key: body["metadata"].get(key) for key in ("name", "generation", "labels", "annotations", "finalizers")}
    # Who owns what is left out: fields keep the names of the version they were written in (docs/design/0008-conversion.md).
    return status, body["apiVersion"], body.get("spec"), meta


def _plain(message: str) -> str:
    """A message without identities, which are each server's own."""
    return message if "UID" not in message and "response.uid" not in message else message.partition(":")[0]


@run_by(asyncio.run)
async def test_both_servers_answer_alike(api: Api, hook: Webhook) -> None:
    document = definition(config=hook.client_config)

    async def theirs(method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Data]:
        said = api.request(method, path, body, headers={"User-Agent": "tester", **headers})
        return said.status, said.body

    async def asking() -> list[Any]:
        made = api.request("POST", crds.PATH, copy.deepcopy(document))
        assert made.ok, made.message
        until = time.monotonic() + 20
        while not api.request("GET", V2).ok and time.monotonic() < until:
            time.sleep(0.2)
        return await play(theirs, hook)

    async def ours() -> list[Any]:
        async with Harness() as server:

            async def send(method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Data]:
                plain = {name.replace("-", "_").lower(): value for name, value in {"user-agent": "tester", **headers}.items()}
                said = await server.call(method, path, body, **plain)
                return said.status, orjson.loads(said.raw)

            assert (await server.post(crds.PATH, copy.deepcopy(document))).status == 201
            outcomes = await play(send, hook)
            await server.parts.caller.close()
            return outcomes

    try:
        expected = await asking()
    finally:
        api.request("DELETE", f"{crds.PATH}/widgets.example.com")
    found = await ours()
    assert found == expected

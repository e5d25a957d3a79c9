"""Kinds whose versions a webhook converts, through the whole road of requests."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from paddock.server.custom import conversion
from paddock.server.objects import watches
from paddock.server.objects.encoding import stamp
from paddock.server.store.contract import StoreKey
from paddock.server.webhooks import CallFailed, WebhookAddress, WebhookReply
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness, Reply
from tests.kit.servers.webhooks import Webhook

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/{}/namespaces/default/widgets"
V1, V2 = WIDGETS.format("v1"), WIDGETS.format("v2")
COLLECTION = "widgets.example.com"
Data = dict[str, Any]


def convert(data: Data, wanted: str) -> Data:
    """v1 has spec.address, `host:port`; v2 has spec.host and spec.port."""
    spec = data.get("spec") or {}
    if wanted.endswith("/v2"):
        host, _, port = spec.get("address", "").partition(":")
        made: Data = {"host": host, "port": port}
    else:
        made = {"address": f"{spec.get('host', '')}:{spec.get('port', '')}"}
    return {**data, "apiVersion": wanted, "spec": {**made, **{key: spec[key] for key in ("size", "replicas", "old") if key in spec}}}


def answer_to(asked: Data, change: Callable[[Data, str], Data] = convert) -> Data:
    request = asked["request"]
    objects = [change(each, request["desiredAPIVersion"]) for each in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
    return {"apiVersion": asked["apiVersion"], "kind": asked["kind"], "response": response}


class Hook:
    """Stands for the way to a webhook."""

    def __init__(self, api: Harness) -> None:
        self.asked: list[Data] = []
        self.wrong: Exception | None = None
        self.before: Callable[[], Any] | None = None
        self.change: Callable[[Data, str], Data] = convert
        api.parts.caller.post = self._post  # type: ignore[method-assign]

    @property
    def sizes(self) -> list[int]:
        """The number of objects in each question; reading it begins anew."""
        found = [len(each["request"]["objects"]) for each in self.asked]
        self.asked.clear()
        return found

    async def _post(self, address: WebhookAddress, body: bytes, seconds: float) -> WebhookReply:
        await asyncio.sleep(0)
        self.asked.append(orjson.loads(body))
        if self.before is not None:
            before, self.before = self.before, None
            await before()
        if self.wrong is not None:
            raise self.wrong
        return WebhookReply(200, orjson.dumps(answer_to(orjson.loads(body), self.change)))


def definition(storage: str = "v1", config: Data | None = None, **more: Any) -> Data:
    text, size = {"type": "string"}, {"type": "integer"}
    members = {
        "v1": {"address": text, "size": {**size, "default": 1}, "replicas": size},
        "v2": {"host": text, "port": text, "size": {**size, "default": 2}, "replicas": size},
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": found}}}},
            "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "selectableFields": [{"jsonPath": ".spec.host" if name == "v2" else ".spec.address"}],
            **more,
        }
        for name, found in members.items()
    ]
    webhook = {"clientConfig": config or {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    meta = {"name": "widgets.example.com"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def one(name: str = "a", address: str = "x:1", **members: Any) -> Data:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"address": address, **members}}


def two(name: str = "a", host: str = "x", port: str = "1", **members: Any) -> Data:
    spec = {"host": host, "port": port, **members}
    return {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def stored(api: Harness, name: str = "a") -> Data:
    record = api.store.get(StoreKey(COLLECTION, "default", name))
    assert record is not None
    data: Data = orjson.loads(record.value)
    return data


async def begin(api: Harness, storage: str = "v1") -> Hook:
    hook = Hook(api)
    made = await api.post(CRDS, definition(storage))
    assert (made.status, made.warnings) == (201, [])
    return hook


@played
async def test_each_version_is_written_and_read(api: Harness, /) -> None:
    hook = await begin(api)
    first = await api.post(V1, one(old="x"))
    assert first.data["spec"] == {"address": "x:1", "size": 1} and hook.sizes == []
    # Into the stored version, and back for the answer.
    second = await api.post(V2, two("b"))
    assert second.status == 201 and hook.sizes == [1, 1]
    assert second.data["spec"] == {"host": "x", "port": "1", "size": 2}
    assert (stored(api, "b")["apiVersion"], stored(api, "b")["spec"]) == ("example.com/v1", {"address": "x:1", "size": 2})
    assert second.data["metadata"]["resourceVersion"] == stored(api, "b")["metadata"]["resourceVersion"]
    # What was written is known; what was not is asked for once.
    assert (await api.get(f"{V2}/b")).data == second.data and hook.sizes == []
    for _ in range(2):
        # Members that a version does not have are pruned, and its defaults are not filled into what comes from another.
        assert (await api.get(f"{V2}/a")).data["spec"] == {"host": "x", "port": "1", "size": 1}
    assert hook.sizes == [1]
    assert hook.asked == [] and (await api.get(f"{V1}/b")).data["spec"] == {"address": "x:1", "size": 2}


@played
async def test_a_list_is_one_question(api: Harness, /, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = await begin(api)
    for number in range(7):
        await api.post(V1, one(f"w{number}", f"h{number}:1"))
    found = await api.get(V2)
    assert [each["spec"]["host"] for each in found.data["items"]] == [f"h{number}" for number in range(7)]
    assert hook.sizes == [7]
    await api.post(V1, one("w7", "h7:1"))
    page = (await api.get(f"{V2}?limit=3")).data
    assert len(page["items"]) == 3 and page["metadata"]["continue"] and hook.sizes == []
    assert len((await api.get(V2)).data["items"]) == 8 and hook.sizes == [1]
    table = (await api.get(V2, accept="application/json;as=Table;g=meta.k8s.io;v=v1")).data
    assert len(table["rows"]) == 8
    monkeypatch.setattr(conversion, "MOST_OBJECTS", 3)
    monkeypatch.setattr(conversion, "REMEMBERED_BYTES", 10)
    await api.merge(f"{CRDS}/widgets.example.com", {"spec": {"names": {"shortNames": ["w"]}}})
    # A list that is larger than what is remembered is whole all the same.
    assert len((await api.get(V2)).data["items"]) == 8 and hook.sizes == [3, 3, 2]


@played
async def test_those_who_want_the_same_ask_once(api: Harness, /) -> None:
    hook = await begin(api)
    await api.post(V1, one())
    found = await asyncio.gather(*(api.get(f"{V2}/a") for _ in range(5)))
    assert {each.status for each in found} == {200} and hook.sizes == [1]


@pytest.mark.parametrize("kind", ["put", "merge", "json", "apply"])
@played
async def test_changes_in_another_version(api: Harness, /, kind: str) -> None:
    await begin(api)
    made = (await api.post(V1, one())).data
    change: dict[str, Callable[[], Any]] = {
        "put": lambda: api.put(f"{V2}/a", {**two(port="9", size=1), "metadata": made["metadata"]}),
        "merge": lambda: api.merge(f"{V2}/a", {"spec": {"port": "9"}}),
        "json": lambda: api.call(
            "PATCH", f"{V2}/a", [{"op": "replace", "path": "/spec/port", "value": "9"}], content_type="application/json-patch+json"
        ),
        "apply": lambda: api.apply(f"{V2}/a", {**two(port="9"), "spec": {"port": "9"}}, force=True),
    }
    changed: Reply = await change[kind]()
    assert changed.status == 200, changed.data
    assert changed.data["spec"] == {"host": "x", "port": "9", "size": 1}
    assert stored(api)["spec"] == {"address": "x:9", "size": 1} and stored(api)["apiVersion"] == "example.com/v1"
    assert changed.data["metadata"]["generation"] == 2
    # The same again changes nothing.
    revision = api.store.revision
    assert (await api.merge(f"{V2}/a", {"spec": {"port": "9"}})).status == 200
    assert api.store.revision == revision


@played
async def test_an_apply_makes_an_object_in_another_version(api: Harness, /) -> None:
    await begin(api)
    made = await api.apply(f"{V2}/new", two("new"))
    assert (made.status, stored(api, "new")["spec"]) == (201, {"address": "x:1", "size": 2})
    (owner,) = made.data["metadata"]["managedFields"]
    assert (owner["apiVersion"], owner["fieldsV1"]) == ("example.com/v2", {"f:spec": {"f:host": {}, "f:port": {}}})


@played
async def test_a_write_is_decided_on_what_is_there_when_the_webhook_has_answered(api: Harness, /) -> None:
    hook = await begin(api)
    await api.post(V1, one())
    await api.get(f"{V2}/a")

    async def interfere() -> None:
        await api.merge(f"{V1}/a", {"spec": {"size": 5}})

    hook.before = interfere
    changed = await api.merge(f"{V2}/a", {"spec": {"port": "9"}})
    assert (changed.status, changed.data["spec"]) == (200, {"host": "x", "port": "9", "size": 5})
    assert stored(api)["spec"] == {"address": "x:9", "size": 5}
    # A precondition counts at that moment, too.
    hook.before = interfere
    stale = (await api.get(f"{V2}/a")).data
    stale["spec"]["size"] = 7
    await api.merge(f"{V1}/a", {"spec": {"size": 6}})
    assert (await api.put(f"{V2}/a", stale)).status == 409


@played
async def test_two_that_make_the_same_object(api: Harness, /) -> None:
    await begin(api)
    made = await asyncio.gather(api.post(V2, two()), api.post(V2, two()))
    assert sorted(each.status for each in made) == [201, 409]


@played
async def test_a_definition_that_changes_meanwhile(api: Harness, /) -> None:
    hook = await begin(api)

    async def end() -> None:
        await api.delete(f"{CRDS}/widgets.example.com")

    hook.before = end
    said = await api.post(V2, two())
    assert (said.status, said.reason) == (503, "ServiceUnavailable")
    assert api.store.get(StoreKey(COLLECTION, "default", "a")) is None


@played
async def test_a_watch_in_another_version(api: Harness, /) -> None:
    hook = await begin(api)
    await api.post(V1, one())
    async with api.watch(f"{V2}?watch=true") as events, api.watch(f"{V2}?watch=true") as others, api.watch(f"{V1}?watch=true") as plain:
        for watched in (events, others):
            assert (await watched.next())["object"]["spec"]["host"] == "x"
        await plain.next()
        assert hook.sizes == [1]
        await api.post(V1, one("b", "y:2"))
        await api.post(V2, two("c", "z", "3"))
        await api.delete(f"{V1}/a")
        for watched in (events, others):
            seen = [(each["type"], each["object"]["spec"]) for each in await watched.take(3)]
            assert seen == [
                ("ADDED", {"host": "y", "port": "2", "size": 1}),
                ("ADDED", {"host": "z", "port": "3", "size": 2}),
                ("DELETED", {"host": "x", "port": "1", "size": 1}),
            ]
        assert [each["type"] for each in await plain.take(3)] == ["ADDED", "ADDED", "DELETED"]


@played
async def test_fields_of_another_version_select(api: Harness, /) -> None:
    await begin(api)
    for name, address in (("a", "x:1"), ("b", "y:1"), ("c", "x:2")):
        await api.post(V1, one(name, address))
    found = (await api.get(f"{V2}?fieldSelector=spec.host=x&limit=1")).data["items"]
    assert [each["metadata"]["name"] for each in found] == ["a", "c"]
    async with api.watch(f"{V2}?watch=true&fieldSelector=spec.host=x") as events:
        await events.take(2)
        await api.merge(f"{V1}/a", {"spec": {"address": "z:1"}})
        await api.merge(f"{V1}/b", {"spec": {"address": "x:7"}})
        seen = [(each["type"], each["object"]["metadata"]["name"]) for each in await events.take(2)]
        assert seen == [("DELETED", "a"), ("ADDED", "b")]


async def _burst(api: Harness) -> None:
    """Commit more changes in another namespace than a watch takes at once, then one here, all together."""
    places = [("other", f"o{number}") for number in range(2 * watches.ASKED_TOGETHER)] + [("default", "mine")]
    pending = []
    for namespace, name in places:
        data = {**one(), "metadata": {"name": name, "namespace": namespace, "uid": name}}
        key = StoreKey(COLLECTION, namespace, name)
        pending.append(api.store.put(key, 0, lambda revision, data=data: stamp(data, revision)))  # type: ignore[misc]
    await asyncio.gather(*(each.committed() for each in pending))


@pytest.mark.spec("kube-api", 62)
@patch.object(watches, "BOOKMARK_SECONDS", 0.0)
@played
async def test_a_bookmark_says_nothing_of_what_was_not_sent(api: Harness, /) -> None:
    await begin(api)
    async with api.watch(f"{V2}?watch=true&allowWatchBookmarks=true") as events:
        assert await events.quiet()
        api.store.follow(lambda changes: api.parts.following.tell_time())
        await _burst(api)
        seen = await events.next()
        assert (seen["type"], seen["object"]["metadata"].get("name")) == ("ADDED", "mine")
        api.parts.following.tell_time()
        mark = await events.next()
        assert (mark["type"], mark["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(api.store.revision))


@pytest.mark.spec("kube-api", 65)
@played
async def test_a_watch_ends_when_what_it_was_not_sent_is_forgotten(api: Harness, /) -> None:
    await begin(api)
    start = api.store.revision
    tasks: list[asyncio.Task[None]] = []

    async def forget() -> None:
        await api.store.compact(api.store.revision)
        api.parts.following.trim()

    maps = "/api/v1/namespaces/default/configmaps"
    async with api.watch(f"{V2}?watch=true&resourceVersion={start}") as events, api.watch(f"{maps}?watch=true") as idle:
        assert await events.quiet()
        api.store.follow(lambda changes: tasks.append(asyncio.create_task(forget())))
        await _burst(api)
        await asyncio.gather(*tasks)
        await asyncio.wait_for(events.ended.wait(), 10)
        assert await events.quiet()
        await api.post(maps, {"metadata": {"name": "a"}})
        await asyncio.gather(*tasks)
        assert (await idle.next())["object"]["metadata"]["name"] == "a"
        assert not idle.ended.is_set(), "nothing that it watches was forgotten"
    async with api.watch(f"{V2}?watch=true&resourceVersion={start}") as again:
        assert (await again.next())["object"]["code"] == 410


@played
async def test_a_webhook_that_fails_loses_nothing_and_keeps_nobody(api: Harness, /) -> None:
    hook = await begin(api)
    await api.post(V1, one())
    before = stored(api)
    hook.wrong = CallFailed("https://127.0.0.1:1/convert", "connection refused")
    text = 'conversion webhook for example.com/v{}, Kind=Widget failed: Post "https://127.0.0.1:1/convert": connection refused'
    for said, asked in (
        (await api.get(f"{V2}/a"), 1),
        (await api.get(V2), 1),
        (await api.get(f"{V2}/a/scale"), 1),
        (await api.merge(f"{V2}/a", {"spec": {"port": "9"}}), 1),
        (await api.apply(f"{V2}/a", two()), 1),
        (await api.post(V2, two("b")), 2),
        (await api.delete(V2), 1),
    ):
        assert (said.status, said.data["message"]) == (500, text.format(asked))
    assert stored(api) == before and api.store.get(StoreKey(COLLECTION, "default", "b")) is None
    async with api.watch(f"{V1}?watch=true") as plain, api.watch(f"{V2}?watch=true&resourceVersion={api.store.revision}") as events:
        await plain.next()
        assert (await api.merge(f"{V1}/a", {"spec": {"size": 8}})).status == 200
        assert (await plain.next())["object"]["spec"]["size"] == 8
        error = await events.next()
        assert (error["type"], error["object"]["code"]) == ("ERROR", 500)
        async with asyncio.timeout(5):
            await events.ended.wait()
    # An object can always be deleted, in any version.
    gone = await api.delete(f"{V2}/a")
    assert (gone.status, gone.data["status"]) == (200, "Success")


@played
async def test_an_object_that_waits_for_its_finalizers(api: Harness, /) -> None:
    hook = await begin(api)
    await api.post(V1, {**one(), "metadata": {"name": "a", "finalizers": ["example.com/mine"]}})
    marked = await api.delete(f"{V2}/a")
    assert marked.data["metadata"]["deletionTimestamp"] and marked.data["spec"]["host"] == "x"
    assert (await api.merge(f"{V2}/a", {"metadata": {"finalizers": None}})).status == 200
    assert api.store.get(StoreKey(COLLECTION, "default", "a")) is None
    # Nor does a webhook that fails keep the definition from going.
    await api.post(V2, two("b"))
    hook.wrong = CallFailed("https://127.0.0.1:1/convert", "connection refused")
    await api.delete(f"{CRDS}/widgets.example.com")
    for _ in range(200):
        if (await api.get(f"{CRDS}/widgets.example.com")).status == 404:
            return
        await asyncio.sleep(0)
    raise AssertionError("the definition is still there")


@played
async def test_another_storage_version(api: Harness, /) -> None:
    hook = await begin(api)
    await api.post(V1, one("old"))
    versions = definition("v2")["spec"]["versions"]
    assert (await api.merge(f"{CRDS}/widgets.example.com", {"spec": {"versions": versions}})).status == 200
    await api.post(V2, two("new", "y"))
    assert hook.sizes == []
    assert [each["spec"]["host"] for each in (await api.get(V2)).data["items"]] == ["y", "x"] and hook.sizes == [1]
    assert [each["spec"]["address"] for each in (await api.get(V1)).data["items"]] == ["y:1", "x:1"] and hook.sizes == [1]
    # A write moves an old object to the new version.
    assert (await api.merge(f"{V2}/old", {"spec": {"size": 4}})).data["spec"] == {"host": "x", "port": "1", "size": 4}
    assert stored(api, "old")["apiVersion"] == "example.com/v2"


@played
async def test_dry_run_and_scale(api: Harness, /) -> None:
    await begin(api)
    dry = await api.post(f"{V2}?dryRun=All", two())
    assert (dry.status, dry.data["spec"]["host"]) == (201, "x") and api.store.get(StoreKey(COLLECTION, "default", "a")) is None
    await api.post(V1, one(replicas=3))
    assert (await api.get(f"{V2}/a/scale")).data["spec"] == {"replicas": 3}
    scaled = await api.merge(f"{V2}/a/scale", {"spec": {"replicas": 5}})
    assert scaled.data["spec"] == {"replicas": 5} and stored(api)["spec"]["replicas"] == 5


@played
async def test_over_https(api: Harness, /, tmp_path: Path) -> None:
    async with Webhook(tmp_path, answer_to) as hook:
        assert (await api.post(CRDS, definition(config=hook.client_config))).status == 201
        await api.post(V1, one())
        assert (await api.get(f"{V2}/a")).data["spec"]["host"] == "x"
        (asked,) = hook.asked
        assert (asked["apiVersion"], asked["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
        assert asked["request"]["desiredAPIVersion"] == "example.com/v2" and asked["request"]["uid"]
    await api.parts.caller.close()

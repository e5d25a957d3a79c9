"""Webhooks: asked over HTTPS, changing and judging what is written."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.server.edge.http import HttpResponse
from paddock.server.housekeeping import bootstrap, node
from tests.coroutines import played_by, run_by
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.webhooks import Answering, Webhook

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
Script = Callable[[Harness, Webhook], Awaitable[None]]
CREATES = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def allow(asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = {"uid": asked["request"]["uid"], "allowed": True, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}


def deny(asked: dict[str, Any], **status: Any) -> dict[str, Any]:
    return allow(asked, allowed=False, **({"status": status} if status else {}))


def patching(*operations: dict[str, Any]) -> Answering:
    text = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda asked: allow(asked, patch=text, patchType="JSONPatch")


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


@asynccontextmanager
async def judged_by(folder: Path, answer: Answering) -> AsyncIterator[tuple[Harness, Webhook]]:
    """Start a server and a webhook that answers so."""
    async with Harness() as api, Webhook(folder, answer) as hook:
        try:
            yield api, hook
        finally:
            await api.parts.gate.close()


def play(folder: Path, answer: Answering, script: Script) -> None:
    async def inside() -> None:
        async with judged_by(folder, answer) as (api, hook):
            await script(api, hook)

    asyncio.run(inside())


async def configure(api: Harness, hook: Webhook, kind: str = "Validating", *, name: str = "c", hooks: int = 1, **more: Any) -> Any:
    webhook = {"clientConfig": hook.client_config, "rules": [CREATES], "sideEffects": "None", "admissionReviewVersions": ["v1"], **more}
    webhooks = [{"name": f"h{each}.example.com", **webhook} for each in range(hooks)]
    made = await api.post(f"{GROUP}/{kind.lower()}webhookconfigurations", {"metadata": {"name": name}, "webhooks": webhooks})
    assert made.status == 201, made.data
    return made.data


def config_map(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more}, "data": {"k": "v"}}


@played_by(play, "tmp_path", allow)
async def test_a_webhook_has_defaults_and_is_shown_the_whole_write(api: Harness, hook: Webhook, /) -> None:
    made = await configure(api, hook)
    (stored,) = made["webhooks"]
    defaults = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "namespaceSelector": {},
        "objectSelector": {},
    }
    assert {key: stored[key] for key in defaults} == defaults
    assert (stored["rules"][0]["scope"], made["metadata"]["generation"]) == ("*", 1)
    assert (await api.post(f"{MAPS}?fieldManager=me", config_map())).status == 201
    (asked,) = hook.asked
    assert (asked["apiVersion"], asked["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    request = asked["request"]
    assert request["object"]["data"] == {"k": "v"}
    assert request["oldObject"] is None
    expected = {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "a",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"},
    }
    assert {key: request[key] for key in expected} == expected


@played_by(play, "tmp_path", deny)
async def test_a_denial_carries_the_words_of_the_webhook(api: Harness, hook: Webhook, /) -> None:
    await configure(api, hook)
    said = await api.post(MAPS, config_map())
    denied = 'admission webhook "h0.example.com" denied the request'
    assert (said.status, said.data["message"]) == (400, f"{denied} without explanation")
    hook.answer = lambda asked: deny(asked, message="no maps today", code=403, reason="Forbidden", details={"causes": [{"message": "m"}]})
    said = await api.post(MAPS, config_map())
    assert (said.status, said.reason, said.data["message"]) == (403, "Forbidden", f"{denied}: no maps today")
    assert said.data["details"]["causes"] == [{"message": "m"}]
    hook.answer = lambda asked: deny(asked, reason="Busy", code=200)
    said = await api.post(MAPS, config_map())
    assert (said.status, said.data["message"]) == (400, f"{denied}: Busy")
    assert (await api.get(MAPS)).data["items"] == []


@run_by(asyncio.run)
async def test_warnings_reach_the_client_and_notes_the_audit_log(tmp_path: Path) -> None:
    async with judged_by(tmp_path, lambda asked: allow(asked, warnings=["take care"], auditAnnotations={"k": "v"})) as (api, hook):
        await configure(api, hook)
        made = await api.post(MAPS, config_map())
        assert made.warnings == ['299 - "take care"']


BROKEN: list[tuple[Any, str]] = [
    (
        lambda asked: HttpResponse(500, b"boom"),
        'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
    ),
    (lambda asked: HttpResponse(301, b"", (("location", "/b"),)), "failed to call webhook: the webhook answers with a redirect (301)"),
    (lambda asked: HttpResponse(404, b""), "failed to call webhook: the server could not find the requested resource"),
    (lambda asked: {}, "received invalid webhook response: webhook response was absent"),
    (lambda asked: {"response": {"uid": "x"}}, "received invalid webhook response: expected response.uid="),
    (
        lambda asked: {**allow(asked), "apiVersion": "v7"},
        "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v7, Kind=",
    ),
    (lambda asked: allow(asked, patch="W10="), "received invalid webhook response: validating webhook may not return response.patch"),
    (lambda asked: HttpResponse(200, b"no json"), "failed to call webhook: couldn't get version/kind; json parse error"),
    (lambda asked: allow(asked, warnings="x"), "failed to call webhook: json: "),
]


@pytest.mark.parametrize(("answer", "why"), BROKEN)
@played_by(play, "tmp_path", "answer")
async def test_what_cannot_be_asked_fails_or_is_passed_over(api: Harness, hook: Webhook, /, why: str) -> None:
    await configure(api, hook)
    said = await api.post(MAPS, config_map())
    assert (said.status, said.reason) == (500, "InternalError")
    assert said.data["message"].startswith(f'Internal error occurred: failed calling webhook "h0.example.com": {why}')
    change = {
        "webhooks": [{**(await api.get(f"{GROUP}/validatingwebhookconfigurations/c")).data["webhooks"][0], "failurePolicy": "Ignore"}]
    }
    assert (await api.merge(f"{GROUP}/validatingwebhookconfigurations/c", change)).status == 200
    assert (await api.post(MAPS, config_map())).status == 201


@played_by(play, "tmp_path", allow)
async def test_nobody_there_nobody_trusted_no_service(api: Harness, hook: Webhook, /) -> None:
    config = hook.client_config
    service = {"name": "hooks", "namespace": "default", "path": "/ask"}
    for name, client, why in (
        ("gone", {**config, "url": "https://127.0.0.1:9/x"}, 'failed to call webhook: Post "https://127.0.0.1:9/x?timeout=10s":'),
        ("strange", {"url": config["url"]}, "certificate verify failed"),
        (
            "lost",
            {"service": service, "caBundle": hook.bundle},
            'Post "https://hooks.default.svc:443/ask?timeout=10s": service "hooks" not found',
        ),
    ):
        await configure(api, hook, name=name, clientConfig=client)
        said = await api.post(MAPS, config_map())
        assert said.status == 500
        assert why in said.data["message"]
        await api.delete(f"{GROUP}/validatingwebhookconfigurations/{name}")
    assert (await api.post(MAPS, config_map())).status == 201


@played_by(play, "tmp_path", allow)
async def test_a_webhook_that_takes_too_long(api: Harness, hook: Webhook, /) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    mute = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{mute.sockets[0].getsockname()[1]}/x"
    await configure(api, hook, clientConfig={"url": url}, timeoutSeconds=1)
    said = await api.post(MAPS, config_map())
    text = f'failed calling webhook "h0.example.com": failed to call webhook: Post "{url}?timeout=1s": context deadline exceeded'
    assert said.data["message"].endswith(text)
    mute.close()


@run_by(asyncio.run)
async def test_a_service_of_ours_leads_to_the_webhook(tmp_path: Path) -> None:
    async def script(api: Harness, hook: Webhook) -> None:
        core = "/api/v1/namespaces/default"
        await api.post(f"{core}/services", {"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}], "clusterIP": "None"}})
        subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": hook.port}]}
        await api.post(f"{core}/endpoints", {"metadata": {"name": "hooks"}, "subsets": [subset]})
        service = {"name": "hooks", "namespace": "default", "path": "/ask"}
        await configure(api, hook, clientConfig={"service": service, "caBundle": hook.bundle})
        said = await api.post(MAPS, config_map())
        assert (said.status, len(hook.asked)) == (400, 1), said.data

    async with Harness() as api, Webhook(tmp_path, deny, names=("hooks.default.svc",)) as hook:
        await script(api, hook)
        await api.parts.gate.close()


@run_by(asyncio.run)
async def test_a_patch_changes_what_is_stored(tmp_path: Path) -> None:
    answer = patching(add("/data/added", "x"), add("/metadata/labels", {"a": "b"}), add("/metadata/uid", "mine"))
    async with judged_by(tmp_path, answer) as (api, hook):
        await configure(api, hook, "Mutating")
        made = (await api.post(MAPS, config_map())).data
        assert made["data"] == {"k": "v", "added": "x"}
        assert (made["metadata"]["labels"], made["metadata"]["name"]) == ({"a": "b"}, "a")
        # What a webhook adds is nobody's.
        assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
        # What only the server sets is not taken from anybody.
        assert made["metadata"]["uid"] != "mine"
        secret = await configure(api, hook, "Mutating", name="s", rules=[{**CREATES, "resources": ["secrets"]}])
        assert secret["webhooks"][0]["reinvocationPolicy"] == "Never"
        hook.answer = patching(add("/stringData", {"p": "word"}))
        made = (await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})).data
        assert (made["data"], "stringData" in made) == ({"p": "d29yZA=="}, False)
        hook.answer = patching(add("/data", {"bad key": "x"}))
        assert (await api.post(MAPS, config_map("b"))).status == 422
        hook.answer = patching(*({"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(40)))
        doubled = await api.post(MAPS, config_map())
        assert (doubled.status, "Unable to complete the copy" in doubled.data["message"]) == (500, True)
        hook.answer = patching({"op": "remove", "path": "/nothing"})
        assert (await api.post(MAPS, config_map("b"))).status == 500
        hook.answer = patching(add("/data/number", 5))
        assert (await api.post(MAPS, config_map("b"))).status == 500
        hook.answer = patching(add("/kind", "Secret"))
        assert (await api.post(MAPS, config_map("b"))).status == 400


@played_by(play, "tmp_path", patching(add("/data", {"x": "y"})))
async def test_who_changes_a_new_object_does_not_see_what_it_gets_when_it_is_made(api: Harness, hook: Webhook, /) -> None:
    await configure(api, hook, "Mutating")
    made = (await api.post(MAPS, {"metadata": {"generateName": "gen-"}})).data
    await api.post(MAPS, config_map())
    first, second = (each["request"] for each in hook.asked)
    assert "name" not in first
    assert {"generateName": "gen-", "namespace": "default"}.items() <= first["object"]["metadata"].items()
    assert not {"name", "uid", "creationTimestamp"} & set(first["object"]["metadata"])
    assert (second["name"], second["object"]["metadata"]["name"]) == ("a", "a")
    assert made["metadata"]["name"].startswith("gen-")
    assert made["metadata"]["uid"]


@run_by(asyncio.run)
async def test_a_webhook_is_asked_again_when_others_changed_the_object(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        data = asked["request"]["object"]["data"]
        seen.append((",".join(sorted(data)), asked["request"]["uid"]))
        # Only the second call of a round adds something, once.
        return patching(add("/data/late", "x"))(asked) if len(seen) == 2 else allow(asked)  # type: ignore[return-value]

    async with judged_by(tmp_path, answer) as (api, hook):
        await configure(api, hook, "Mutating", hooks=3, reinvocationPolicy="IfNeeded")
        assert (await api.post(MAPS, config_map())).status == 201
        # All three, then the first again: it came before the change.
        assert [keys for keys, _ in seen] == ["k", "k", "k,late", "k,late"]
        seen.clear()
        await api.delete(f"{GROUP}/mutatingwebhookconfigurations/c")
        await configure(api, hook, "Mutating", hooks=3)
        assert (await api.post(MAPS, config_map("b"))).status == 201
        assert len(seen) == 3


@played_by(play, "tmp_path", allow)
async def test_dry_runs_have_no_side_effects(api: Harness, hook: Webhook, /) -> None:
    await configure(api, hook, sideEffects="NoneOnDryRun")
    assert (await api.post(f"{MAPS}?dryRun=All", config_map())).status == 201
    assert hook.asked[0]["request"]["dryRun"] is True
    assert hook.asked[0]["request"]["options"]["dryRun"] == ["All"]
    assert (await api.get(f"{MAPS}/a")).status == 404


MATCHING: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"rules": [{**CREATES, "operations": ["UPDATE", "DELETE"]}]}, False),
    ({"rules": [{**CREATES, "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}, True),
    ({"rules": [{**CREATES, "resources": ["configmaps/status"]}]}, False),
    ({"rules": [{**CREATES, "resources": ["*/*"]}]}, True),
    ({"rules": [{**CREATES, "scope": "Cluster"}]}, False),
    ({"rules": [{**CREATES, "scope": "Namespaced"}]}, True),
    ({"objectSelector": {"matchLabels": {"color": "red"}}}, True),
    ({"objectSelector": {"matchLabels": {"color": "blue"}}}, False),
    ({"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["x"]}]}}, False),
    ({"namespaceSelector": {"matchExpressions": [{"key": "absent", "operator": "DoesNotExist"}]}}, True),
    ({"matchConditions": [{"name": "one", "expression": "object.data.k == 'v'"}]}, True),
    ({"matchConditions": [{"name": "one", "expression": "request.userInfo.username != 'admin'"}]}, False),
    ({"matchConditions": [{"name": "one", "expression": "object.absent == 1"}, {"name": "two", "expression": "false"}]}, False),
    ({"matchConditions": [{"name": "one", "expression": "object.absent == 1"}], "failurePolicy": "Ignore"}, False),
    ({"matchConditions": [{"name": "one", "expression": "authorizer.requestResource.check('create').allowed()"}]}, True),
]


@pytest.mark.parametrize(("more", "asked"), MATCHING)
@played_by(play, "tmp_path", deny)
async def test_only_what_it_wants_to_see_is_shown(api: Harness, hook: Webhook, /, more: dict[str, Any], asked: bool) -> None:
    await configure(api, hook, **more)
    said = await api.post(MAPS, config_map(labels={"color": "red"}))
    assert (said.status, len(hook.asked)) == ((400, 1) if asked else (201, 0)), said.data


@played_by(play, "tmp_path", allow)
async def test_a_condition_without_a_value_refuses(api: Harness, hook: Webhook, /) -> None:
    await configure(api, hook, matchConditions=[{"name": "one", "expression": "object.absent == 1"}])
    said = await api.post(MAPS, config_map())
    text = "configmaps \"a\" is forbidden: expression 'object.absent == 1' resulted in error: no such key: absent"
    assert (said.status, said.data["message"], hook.asked) == (403, text, [])


@played_by(play, "tmp_path", allow)
async def test_updates_and_deletions_are_shown_with_what_was(api: Harness, hook: Webhook, /) -> None:
    await api.post(MAPS, config_map())
    await configure(api, hook, rules=[{**CREATES, "operations": ["UPDATE", "DELETE"]}])
    assert (await api.merge(f"{MAPS}/a", {"data": {"k": "w"}})).status == 200
    assert (await api.delete(f"{MAPS}/a?propagationPolicy=Foreground", {"gracePeriodSeconds": 5})).status == 200
    changed, gone = (each["request"] for each in hook.asked)
    assert (changed["operation"], changed["object"]["data"], changed["oldObject"]["data"]) == ("UPDATE", {"k": "w"}, {"k": "v"})
    assert changed["options"]["kind"] == "UpdateOptions"
    assert (gone["operation"], gone["object"], gone["oldObject"]["data"], gone["name"]) == ("DELETE", None, {"k": "w"}, "a")
    assert gone["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 5,
        "propagationPolicy": "Foreground",
    }
    hook.answer = deny
    assert (await api.delete(MAPS)).status == 400
    assert (await api.get(f"{MAPS}/a")).status == 200


@played_by(play, "tmp_path", allow)
async def test_equal_versions_count_unless_they_must_not(api: Harness, hook: Webhook, /) -> None:
    events = {**CREATES, "apiGroups": ["events.k8s.io"], "resources": ["events"]}
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}, "message": "m", "reason": "r"}
    await configure(api, hook, name="exact", rules=[events], matchPolicy="Exact")
    assert (await api.post("/api/v1/namespaces/default/events", event)).status == 201
    assert hook.asked == []
    await configure(api, hook, name="equal", rules=[events])
    await api.post("/api/v1/namespaces/default/events", {**event, "metadata": {"name": "f"}})
    (request,) = (each["request"] for each in hook.asked)
    assert (request["kind"]["group"], request["requestKind"]["group"]) == ("events.k8s.io", "")
    assert (request["object"]["apiVersion"], request["object"]["note"]) == ("events.k8s.io/v1", "m")


@played_by(play, "tmp_path", deny)
async def test_nobody_is_kept_from_configuring_admission(api: Harness, hook: Webhook, /) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await configure(api, hook, rules=[everything])
    assert (await api.post(MAPS, config_map())).status == 400
    assert (await api.delete(f"{GROUP}/validatingwebhookconfigurations/c")).status == 200
    assert (await api.post(MAPS, config_map())).status == 201


@played_by(play, "tmp_path", deny)
async def test_nobody_keeps_the_server_from_coming_up(api: Harness, hook: Webhook, /) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    for kind in ("Validating", "Mutating"):
        await configure(api, hook, kind, rules=[everything])
    await bootstrap.ensure(api.parts)
    await node.ensure(api.parts, node.this_host("127.0.0.1"), 7443)
    assert hook.asked == []


@played_by(play, "tmp_path", allow)
async def test_an_object_that_moved_meanwhile_is_decided_again(api: Harness, hook: Webhook, /) -> None:
    await api.post(MAPS, config_map())
    await configure(api, hook, rules=[{**CREATES, "operations": ["UPDATE"]}])
    moved: list[Any] = []

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        if not moved:
            # Somebody else is faster: past the API, as if it had been a write that nobody judges.
            moved.append(asyncio.ensure_future(api.merge(f"{MAPS}/a", {"data": {"other": "x"}})))
        return allow(asked)

    hook.answer = answer
    said = await api.merge(f"{MAPS}/a", {"data": {"k": "w"}})
    assert (said.status, (await moved[0]).status) == (200, 200)
    assert (await api.get(f"{MAPS}/a")).data["data"] == {"k": "w", "other": "x"}


@played_by(play, "tmp_path", allow)
async def test_a_namespace_that_went_meanwhile_takes_nothing(api: Harness, hook: Webhook, /) -> None:
    await api.namespace("brief")
    await configure(api, hook)
    gone: list[Any] = []

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        gone.append(asyncio.ensure_future(api.delete("/api/v1/namespaces/brief")))
        return allow(asked)

    hook.answer = answer
    said = await api.post("/api/v1/namespaces/brief/configmaps", config_map())
    await gone[0]
    assert (said.status, "being terminated" in said.data["message"]) == (403, True)

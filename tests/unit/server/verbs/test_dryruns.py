"""Dry runs of each verb: judged in full, and nothing of them is left. No other value of the option is taken."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness
from tests.unit.server.verbs.test_objects import MAPS, config_map

JSON_PATCH = [{"op": "add", "path": "/data", "value": {"x": "1"}}]
CHANGES: list[tuple[str, str, Any, str]] = [
    ("POST", "", config_map("b", data={"x": "1"}), "application/json"),
    ("PUT", "/a", config_map(data={"x": "1"}), "application/json"),
    ("PATCH", "/a", JSON_PATCH, "application/json-patch+json"),
    ("PATCH", "/a", {"data": {"x": "1"}}, "application/merge-patch+json"),
    ("PATCH", "/a", {"data": {"x": "1"}}, "application/strategic-merge-patch+json"),
    ("PATCH", "/a", config_map(data={"x": "1"}), "application/apply-patch+yaml"),
    ("PATCH", "/b", config_map("b", data={"x": "1"}), "application/apply-patch+yaml"),
    ("DELETE", "/a", None, "application/json"),
]


@pytest.mark.spec("kube-api", 33)
@pytest.mark.parametrize(("method", "name", "body", "content"), CHANGES, ids=[f"{each[0]} {each[1]} {each[3][12:]}" for each in CHANGES])
@played
async def test_a_dry_run_of_each_verb_leaves_no_trace(api: Harness, /, method: str, name: str, body: Any, content: str) -> None:
    await api.post(MAPS, config_map())
    before, revision = (await api.get(MAPS)).data["items"], api.store.revision
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={revision}") as events:
        query = "dryRun=All&fieldManager=tester"
        dry = await api.call(method, f"{MAPS}{name}?{query}", body, content_type=content)
        assert dry.status in (200, 201), dry.data
        assert method == "DELETE" or dry.data["data"] == {"x": "1"}
        assert api.store.revision == revision
        assert (await api.get(MAPS)).data["items"] == before
        assert await events.quiet()
        # For good, the same request is stored and told.
        real = await api.call(method, f"{MAPS}{name}?fieldManager=tester", body, content_type=content)
        assert real.status == dry.status
        assert (await events.next())["type"] in ("ADDED", "MODIFIED", "DELETED")


@pytest.mark.spec("kube-api", 33)
@played
async def test_the_body_of_a_deletion_asks_for_a_dry_run_as_its_query_does(api: Harness, /) -> None:
    await api.post(MAPS, config_map())
    revision = api.store.revision
    assert (await api.delete(f"{MAPS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]})).status == 200
    assert (api.store.revision, (await api.get(f"{MAPS}/a")).status) == (revision, 200)


@pytest.mark.spec("kube-api", 33)
@pytest.mark.parametrize(
    ("method", "name", "content"),
    [
        ("POST", "", "application/json"),
        ("PUT", "/a", "application/json"),
        ("PATCH", "/a", "application/merge-patch+json"),
        ("PATCH", "/a", "application/apply-patch+yaml"),
    ],
)
@played
async def test_a_dry_run_validates(api: Harness, /, method: str, name: str, content: str) -> None:
    await api.post(MAPS, config_map())
    wrong = config_map("a" if name else "b")
    wrong["metadata"]["labels"] = {"x": "no value"}
    refused = await api.call(method, f"{MAPS}{name}?dryRun=All&fieldManager=tester", wrong, content_type=content)
    assert (refused.status, set(refused.causes)) == (422, {"metadata.labels"})


@pytest.mark.spec("kube-api", 34)
@pytest.mark.parametrize("wrong", ["dryRun=Some", "fieldValidation=Maybe"])
@played
async def test_another_value_of_an_option_is_refused_by_each_verb(api: Harness, /, wrong: str) -> None:
    await api.post(MAPS, config_map())
    option = wrong.partition("=")[0]
    found = [
        await api.post(f"{MAPS}?{wrong}", config_map("b")),
        await api.put(f"{MAPS}/a?{wrong}", config_map(data={"x": "1"})),
        await api.merge(f"{MAPS}/a?{wrong}", {"data": {"x": "1"}}),
        await api.call(
            "PATCH", f"{MAPS}/a?{wrong}&fieldManager=tester", config_map(data={"x": "1"}), content_type="application/apply-patch+yaml"
        ),
    ]
    if option == "dryRun":
        found += [await api.delete(f"{MAPS}/a?{wrong}"), await api.delete(f"{MAPS}/a", {"dryRun": ["Some"]})]
    assert [(each.status, set(each.causes)) for each in found] == [(422, {option})] * len(found)
    assert [each["metadata"]["name"] for each in (await api.get(MAPS)).data["items"]] == ["a"]

"""Lists in pages, and the numbers among the parameters of requests."""

import base64
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness, Reply

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def names(reply: Reply) -> list[str]:
    return [item["metadata"]["name"] for item in reply.data["items"]]


@pytest.mark.spec("kube-api", 45, 46, 47)
@played
async def test_pages_show_one_moment(api: Harness, /) -> None:
    for name in "abcde":
        await api.post(MAPS, config_map(name))
    first = await api.get(f"{MAPS}?limit=2")
    assert names(first) == ["a", "b"]
    assert first.data["metadata"]["remainingItemCount"] == 3
    await api.delete(f"{MAPS}/c")
    await api.post(MAPS, config_map("aa"))
    second = await api.get(f"{MAPS}?limit=2&continue={first.data['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    assert second.data["metadata"]["resourceVersion"] == first.data["metadata"]["resourceVersion"]
    last = await api.get(f"{MAPS}?limit=2&continue={second.data['metadata']['continue']}")
    assert names(last) == ["e"]
    assert "continue" not in last.data["metadata"]
    await api.store.compact(api.store.revision)
    old = await api.get(f"{MAPS}?limit=2&continue={first.data['metadata']['continue']}")
    assert (old.status, old.reason) == (410, "Expired")
    rest = await api.get(f"{MAPS}?continue={old.data['metadata']['continue']}")
    assert names(rest) == ["d", "e"]
    for selector in ("labelSelector=!x", "fieldSelector=metadata.namespace=default"):
        selected = await api.get(f"{MAPS}?limit=2&{selector}")
        assert len(names(selected)) == 2 and selected.data["metadata"]["continue"]
        assert "remainingItemCount" not in selected.data["metadata"]
    for token in ("x", "e30", "%00"):
        assert (await api.get(f"{MAPS}?continue={token}")).status == 400


def _continue(revision: str, version: str = "meta.k8s.io/v1") -> str:
    return base64.urlsafe_b64encode(f'{{"v":"{version}","rv":{revision},"start":"default/a"}}'.encode()).decode().rstrip("=")


@pytest.mark.spec("kube-api", 47)
@played
async def test_a_token_of_a_revision_that_does_not_exist_is_expired(api: Harness, /) -> None:
    for name in "abc":
        await api.post(MAPS, config_map(name))
    lost = await api.get(f"{MAPS}?limit=2&continue={_continue(str(api.store.revision + 1))}")
    assert (lost.status, lost.reason) == (410, "Expired")
    assert names(await api.get(f"{MAPS}?continue={lost.data['metadata']['continue']}")) == ["b", "c"]
    assert names(await api.get(f"{MAPS}?continue={_continue(str(api.store.revision))}")) == ["b", "c"]


@pytest.mark.parametrize(
    "token",
    [*map(_continue, ("0", "1.5", '"1"', "true", "null", "1e400", "9" * 5000)), _continue("1", "meta.k8s.io/v2"), _continue("-1")[:-4]],
)
@played
async def test_tokens_that_no_server_made(api: Harness, /, token: str) -> None:
    answer = await api.get(f"{MAPS}?continue={token}")
    assert answer.status == 400
    assert answer.data["message"].startswith("continue key is not valid: ")


@pytest.mark.parametrize("name", ["limit", "resourceVersion", "timeoutSeconds", "gracePeriodSeconds"])
@pytest.mark.parametrize("text", ["--5", "9" * 20, "9" * 5000, "1.5", "x", "%D9%A3"])
@played
async def test_parameters_that_are_no_numbers(api: Harness, /, name: str, text: str) -> None:
    await api.post(MAPS, config_map("a"))
    match name:
        case "gracePeriodSeconds":
            answer = await api.delete(f"{MAPS}/a?{name}={text}")
        case "timeoutSeconds":
            answer = await api.get(f"{MAPS}?watch=1&{name}={text}")
        case _:
            answer = await api.get(f"{MAPS}?{name}={text}")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.data["message"].startswith(f'{name}: Invalid value: "')
    assert len(answer.data["message"]) < 120


@played
async def test_numbers_may_be_negative_where_they_count_for_none(api: Harness, /) -> None:
    await api.post(MAPS, config_map("a"))
    assert names(await api.get(f"{MAPS}?limit=-1")) == ["a"]
    assert (await api.get(f"{MAPS}?resourceVersion=-1")).status == 400

"""The preconditions of a patch: a resourceVersion or a uid inside it, and nothing where it has none."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness, Reply

MAPS = "/api/v1/namespaces/default/configmaps"
NETWORKS = "/apis/vitistack.io/v1alpha1/namespaces/default/networkconfigurations"
Patch = Callable[[Harness, str, dict[str, Any], str], Awaitable[Reply]]


async def merge(api: Harness, path: str, meta: dict[str, Any], value: str) -> Reply:
    return await api.merge(path, {"metadata": {**meta, "annotations": {value: value}}})


async def strategic(api: Harness, path: str, meta: dict[str, Any], value: str) -> Reply:
    body = {"metadata": {**meta, "annotations": {value: value}}}
    return await api.call("PATCH", path, body, content_type="application/strategic-merge-patch+json")


async def operations(api: Harness, path: str, meta: dict[str, Any], value: str) -> Reply:
    changes = [{"op": "add", "path": f"/metadata/{key}", "value": said} for key, said in meta.items()]
    changes += [{"op": "add", "path": f"/metadata/annotations/{value}", "value": value}]
    return await api.call("PATCH", path, changes, content_type="application/json-patch+json")


async def apply(api: Harness, path: str, meta: dict[str, Any], value: str) -> Reply:
    plain = path.startswith("/api/")
    kind = {"apiVersion": "v1", "kind": "ConfigMap"} if plain else {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration"}
    return await api.apply(path, {**kind, "metadata": {"name": "a", **meta, "annotations": {value: value}}}, value)


PATCHES = pytest.mark.parametrize(
    ("collection", "patch"),
    [(MAPS, merge), (MAPS, strategic), (MAPS, operations), (MAPS, apply), (NETWORKS, merge), (NETWORKS, operations), (NETWORKS, apply)],
)


async def begin(api: Harness, collection: str) -> dict[str, Any]:
    plain = collection == MAPS
    kind = {"apiVersion": "v1", "kind": "ConfigMap"} if plain else {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration"}
    made = await api.post(
        collection, {**kind, "metadata": {"name": "a", "annotations": {"first": "first"}}, **({} if plain else {"spec": {}})}
    )
    assert made.status == 201, made.data
    data: dict[str, Any] = made.data["metadata"]
    return data


@pytest.mark.spec("kube-api", 74)
@PATCHES
@played
async def test_a_revision_inside_a_patch_has_to_be_the_present_one(api: Harness, /, collection: str, patch: Patch) -> None:
    old = await begin(api, collection)
    path = f"{collection}/a"
    fresh = await patch(api, path, {"resourceVersion": old["resourceVersion"]}, "second")
    assert fresh.status == 200, fresh.data
    stale = await patch(api, path, {"resourceVersion": old["resourceVersion"]}, "third")
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert "the object has been modified" in stale.data["message"]
    other = await patch(api, path, {"uid": "00000000-0000-4000-8000-00000000ffff"}, "third")
    assert (other.status, other.reason) == (409, "Conflict")
    assert "third" not in (await api.get(path)).data["metadata"]["annotations"]


@pytest.mark.spec("kube-api", 74)
@PATCHES
@played
async def test_patches_without_a_revision_all_land(api: Harness, /, collection: str, patch: Patch) -> None:
    await begin(api, collection)
    names = [f"n{number}" for number in range(20)]
    done = await asyncio.gather(*(patch(api, f"{collection}/a", {}, name) for name in names))
    assert {each.status for each in done} == {200}
    found = (await api.get(f"{collection}/a")).data["metadata"]["annotations"]
    assert found == {"first": "first", **{name: name for name in names}}

"""An object stays within three mebibytes and two hundred levels, whichever way it grows."""

import asyncio
import json
from typing import Any

import pytest

from paddock.server.objects.writing import LARGEST_OBJECT
from tests.coroutines import timeless
from tests.kit.servers.apiharness import Harness, Reply
from tests.unit.kubernetes.meta.test_patch import doublings

MAPS = "/api/v1/namespaces/default/configmaps"
POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
SCALE = f"{POOLS}/web/scale"
NOTES = "/spec/virtualMachineTemplate/metadata/annotations"
HALF = "x" * (LARGEST_OBJECT // 2)
POOL = {
    "apiVersion": "pool.kubevirt.io/v1beta1",
    "kind": "VirtualMachinePool",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "virtualMachineTemplate": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "runStrategy": "Halted",
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}},
                },
            },
        },
    },
}


def template(notes: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"virtualMachineTemplate": {"metadata": {"annotations": notes}}}}


async def operations(api: Harness, path: str, changes: list[Any]) -> Reply:
    return await api.call("PATCH", path, changes, content_type="application/json-patch+json")


@pytest.mark.parametrize("path", [f"{MAPS}/a", SCALE])
@timeless
async def test_a_json_patch_doubles_nothing_beyond_measure(path: str) -> None:
    async with Harness() as api:
        assert (await api.post(MAPS, {"metadata": {"name": "a"}, "data": {}})).status == 201
        assert (await api.post(POOLS, POOL)).status == 201
        refused = await operations(api, path, doublings(40))
        assert (refused.status, refused.reason) == (422, "Invalid")
        assert "Unable to complete the copy, the accumulated size increase of copy" in refused.data["message"]
        many = await operations(api, path, [{"op": "test", "path": "", "value": {}}] * 10_001)
        assert (many.status, many.reason) == (413, "RequestEntityTooLarge")
        assert many.data["message"] == "The allowed maximum operations in a JSON patch is 10000, got 10001"


@timeless
async def test_operations_together_nest_no_deeper_than_a_body() -> None:
    def nested(levels: int) -> list[Any]:
        return [{"op": "add", "path": "/metadata/annotations" + "/a" * depth, "value": {}} for depth in range(levels)]

    async with Harness() as api:
        assert (await api.post(MAPS, {"metadata": {"name": "a"}})).status == 201
        refused = await operations(api, f"{MAPS}/a", nested(1500))
        assert (refused.status, refused.reason) == (400, "BadRequest")
        assert "nested deeper than 200 levels" in refused.data["message"]


@pytest.mark.parametrize(
    ("media", "change"),
    [
        ("merge-patch+json", template({"more": HALF})),
        ("json-patch+json", [{"op": "add", "path": f"{NOTES}/more", "value": HALF}]),
        ("json-patch+json", [{"op": "copy", "from": f"{NOTES}/half", "path": f"{NOTES}/more"}]),
        ("apply-patch+yaml", {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", **template({"more": HALF})}),
    ],
)
@pytest.mark.parametrize("query", ["fieldManager=b", "fieldManager=b&dryRun=All"])
@timeless
async def test_an_object_grows_to_three_mebibytes(media: str, change: Any, query: str) -> None:
    async with Harness() as api:
        assert (await api.post(POOLS, POOL)).status == 201
        assert (await api.merge(f"{POOLS}/web", template({"half": HALF}))).status == 200
        answer = await api.call("PATCH", f"{POOLS}/web?{query}", json.dumps(change).encode(), content_type=f"application/{media}")
        assert (answer.status, answer.reason) == (413, "RequestEntityTooLarge")
        assert answer.data["message"] == f"Request entity too large: limit is {LARGEST_OBJECT}"
        # It can be read, made smaller and deleted as ever.
        assert (await api.merge(f"{POOLS}/web", template({"half": "x"}))).status == 200
        assert (await api.delete(f"{POOLS}/web")).status == 200


LARGE = {"metadata": {"name": "a"}, "data": {f"k{number:05d}": "v" * 16 for number in range(20_000)}}
CHANGES = {"merge patch": ("application/merge-patch+json", ""), "apply": ("application/apply-patch+yaml", "?fieldManager=large&force=true")}


@pytest.mark.parametrize("ticks", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES)
@timeless
async def test_a_large_change_gives_way_and_loses_nothing_that_came_between(change: str, ticks: int) -> None:
    media, query = CHANGES[change]
    async with Harness() as api:
        assert (await api.post(MAPS, {"metadata": {"name": "a"}})).status == 201
        body = {"apiVersion": "v1", "kind": "ConfigMap", **LARGE}
        large = asyncio.create_task(api.call("PATCH", f"{MAPS}/a{query}", body, content_type=media))
        for _ in range(ticks):
            await asyncio.sleep(0)
        small = await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"small": "yes"}}})
        assert (small.status, (await large).status) == (200, 200)
        found = (await api.get(f"{MAPS}/a")).data
        assert (found["metadata"]["labels"], found["data"]) == ({"small": "yes"}, LARGE["data"])
        first, second = (int(each.data["metadata"]["resourceVersion"]) for each in (small, await large))
        assert first < second, "the small one did not wait for the large one"

"""One APIService for each group and version that is served."""

import asyncio
from typing import Any

import pytest

from paddock.server.housekeeping.background import BackgroundControllers
from tests.coroutines import played_by
from tests.kit.servers.apiharness import Harness

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition() -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": "Crate", "plural": "crates"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "crates.example.com"}, "spec": spec}


def play(script: Any) -> None:
    async def inside() -> None:
        async with Harness() as api:
            house = BackgroundControllers(api.parts, "-----BEGIN CERTIFICATE-----\n")
            house.start()
            try:
                async with asyncio.timeout(20):
                    await house.settled()
                    await script(api, house)
            finally:
                await house.stop()

    asyncio.run(inside())


async def names(api: Harness) -> set[str]:
    return {each["metadata"]["name"] for each in (await api.get(SERVICES)).data["items"]}


@played_by(play)
async def test_they_follow_what_is_served(api: Harness, house: BackgroundControllers, /) -> None:
    served = {f"{version}.{group}" for group, versions in api.parts.registry.groups().items() for version in versions}
    assert await names(api) == served
    assert {"v1.", "v1.kubevirt.io", "v1.apiregistration.k8s.io"} < served
    core = (await api.get(f"{SERVICES}/v1.")).data
    assert [(each["type"], each["status"]) for each in core["status"]["conditions"]] == [("Available", "True")]
    await api.post(DEFINITIONS, definition())
    await house.settled()
    assert await names(api) == served | {"v1.example.com"}
    await api.delete(f"{SERVICES}/v1.example.com")
    await house.settled()
    assert await names(api) == served | {"v1.example.com"}
    await api.delete(f"{DEFINITIONS}/crates.example.com")
    for _ in range(50):
        await asyncio.sleep(0)
        await house.settled()
    assert await names(api) == served


@pytest.mark.parametrize(
    ("name", "more", "field"),
    [("v1.x.example.com", {"service": {"name": "a", "namespace": "b"}}, "spec.service"), ("other", {}, "metadata.name")],
)
@played_by(play)
async def test_nobody_else_serves(api: Harness, house: BackgroundControllers, /, name: str, more: dict[str, Any], field: str) -> None:
    spec = {"group": "x.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, **more}
    refused = await api.post(SERVICES, {"metadata": {"name": name}, "spec": spec})
    assert (refused.status, list(refused.causes)) == (422, [field])

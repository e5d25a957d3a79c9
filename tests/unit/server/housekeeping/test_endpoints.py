"""Endpoints and slices of Services: those that select nothing yet, and those that somebody wrote by hand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.server.housekeeping.background import BackgroundControllers
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

SERVICES = "/api/v1/namespaces/default/services"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
MANAGER = "endpointslice.kubernetes.io/managed-by"


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "labels": {"team": "a"}}, "spec": {"ports": [{"port": 80}], **spec}}


def endpoints(*addresses: str, **meta: Any) -> dict[str, Any]:
    subset = {"addresses": [{"ip": each} for each in addresses], "ports": [{"name": "http", "port": 80}]}
    return {"metadata": {"name": "web", **meta}, "subsets": [subset]}


@asynccontextmanager
async def housekept(*, alone: bool = True) -> AsyncIterator[tuple[Harness, Callable[[], Awaitable[list[Any]]]]]:
    """A server with its housekeeping, and what slices it has when all is done."""
    async with Harness() as api:
        house = BackgroundControllers(api.parts, "authority", alone=alone)
        house.start()

        async def settled() -> list[Any]:
            await house.settled()
            return list((await api.get(SLICES)).data["items"])

        try:
            await settled()
            yield api, settled
        finally:
            await house.stop()


@pytest.mark.spec("kube-api", 137)
@run_by(asyncio.run)
async def test_a_service_that_selects_nothing_has_empty_endpoints_until_it_goes() -> None:
    async with housekept() as (api, settled):
        await api.post(SERVICES, service(selector={"app": "web"}))
        (made,) = await settled()
        labels = {"team": "a", "kubernetes.io/service-name": "web", MANAGER: "endpointslice-controller.k8s.io"}
        assert made["metadata"]["labels"] == labels
        assert (made["addressType"], made.get("endpoints") or [], made.get("ports") or []) == ("IPv4", [], [])
        written = (await api.get(f"{ENDPOINTS}/web")).data
        assert written["metadata"]["labels"] == {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        assert not written.get("subsets")
        # What another controller writes into them stays.
        filled = {"endpoints": [{"addresses": ["10.0.0.1"]}]}
        await api.merge(f"{SLICES}/{made['metadata']['name']}", filled)
        await api.merge(f"{SERVICES}/web", {"metadata": {"annotations": {"a": "b"}}})
        assert [each["endpoints"][0]["addresses"] for each in await settled()] == [["10.0.0.1"]]
        await api.delete(f"{SERVICES}/web")
        assert await settled() == []
        assert (await api.get(f"{ENDPOINTS}/web")).status == 404


@run_by(asyncio.run)
async def test_where_machines_are_looked_after_their_controller_writes_them() -> None:
    async with housekept(alone=False) as (api, settled):
        await api.post(SERVICES, service(selector={"app": "web"}))
        assert await settled() == []
        assert (await api.get(f"{ENDPOINTS}/web")).status == 404


@pytest.mark.spec("kube-api", 138)
@run_by(asyncio.run)
async def test_endpoints_of_others_are_mirrored() -> None:
    async with housekept() as (api, settled):
        await api.post(SERVICES, service())
        await api.post(ENDPOINTS, endpoints("10.1.2.3", "fd00::1", labels={"kept": "yes"}, annotations={"note": "b"}))
        made = {each["addressType"]: each for each in await settled()}
        assert made["IPv4"]["endpoints"] == [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}]
        assert made["IPv6"]["endpoints"] == [{"addresses": ["fd00::1"], "conditions": {"ready": True}}]
        assert made["IPv4"]["ports"] == [{"name": "http", "port": 80, "protocol": "TCP"}]
        meta = made["IPv4"]["metadata"]
        assert (meta["annotations"], meta["ownerReferences"][0]["kind"]) == ({"note": "b"}, "Endpoints")
        assert meta["labels"] == {
            "kept": "yes",
            "kubernetes.io/service-name": "web",
            MANAGER: "endpointslicemirroring-controller.k8s.io",
        }
        await api.put(f"{ENDPOINTS}/web", endpoints("10.2.3.4"))
        (changed,) = await settled()
        assert changed["endpoints"][0]["addresses"] == ["10.2.3.4"]
        assert changed["metadata"]["uid"] == meta["uid"]
        # Somebody else's change of a mirror is undone.
        await api.merge(f"{SLICES}/{meta['name']}", {"endpoints": []})
        assert [each["endpoints"][0]["addresses"] for each in await settled()] == [["10.2.3.4"]]
        await api.delete(f"{ENDPOINTS}/web")
        assert await settled() == []


@pytest.mark.spec("kube-api", 138)
@pytest.mark.parametrize(
    ("meta", "spec"),
    [
        ({"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, {}),
        ({"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}, {}),
        ({}, {"type": "ExternalName", "externalName": "example.org"}),
    ],
)
@run_by(asyncio.run)
async def test_some_endpoints_are_not_mirrored(meta: dict[str, Any], spec: dict[str, Any]) -> None:
    async with housekept() as (api, settled):
        await api.post(SERVICES, service(**spec))
        await api.post(ENDPOINTS, endpoints("10.1.2.3", **meta))
        assert await settled() == []


@run_by(asyncio.run)
async def test_endpoints_without_a_service_are_left_alone_and_go_with_one() -> None:
    async with housekept() as (api, settled):
        await api.post(ENDPOINTS, endpoints("10.1.2.3"))
        assert await settled() == []
        await api.post(SERVICES, service())
        assert len(await settled()) == 1
        await api.delete(f"{SERVICES}/web")
        assert await settled() == []
        assert (await api.get(f"{ENDPOINTS}/web")).status == 404
